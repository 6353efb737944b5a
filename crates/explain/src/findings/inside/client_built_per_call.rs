//! `client-built-per-call`: a tool builds a client, a session or an engine of a library in each of its calls.
//!
//! Seen in sampled stacks: the server's own code calls a constructor of a library, whose name says that it is made for many
//! requests. Building one loads certificates, opens connections or compiles patterns, which all later requests could share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use mcpace_record::Nanos;

use super::tool_finding::make_finding;
use super::{CallTimes, ClientBuiltPerCall};
use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::{Language, Origin, java, origin_of, own_call};
use crate::inside::{Stretch, ToolCall, median_count, sum_times};
use crate::view::StackCall;

/// Endings of the names of classes whose objects serve many requests.
const CLASSES: [&str; 12] = [
    "client",
    "session",
    "engine",
    "pool",
    "connection",
    "context",
    "redis",
    "transport",
    "connector",
    "manager",
    "driver",
    "cluster",
];

/// Functions that make such objects.
const FUNCTIONS: [&str; 9] = [
    "create_engine",
    "create_async_engine",
    "create_default_context",
    "create_ssl_context",
    "create_pool",
    "create_client",
    "connect",
    "from_url",
    "client",
];

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        // The time that no earlier finding explains, as loading code, by what is built and by the line that builds it.
        let mut built: BTreeMap<Build<'_>, BTreeMap<BuiltClient<'_>, Nanos>> = BTreeMap::new();
        for call in &tool.calls {
            for stretch in &call.stretches {
                let Some((client, build)) = client_of(stretch) else { continue };
                let sum = built.entry(build).or_default().entry(client).or_default();
                *sum = *sum + scene.unclaimed_in(call.exchange.call, stretch.from, stretch.to);
            }
        }
        let sums = built.into_iter().map(|(build, clients)| (sum_times(clients.values().copied()), build, clients));
        let most = sums.rev().max_by_key(|(sum, ..)| *sum);
        let Some((cause, build, clients)) = most.filter(|(cause, ..)| tool.is_notable(*cause)) else { continue };
        let Some((BuiltClient { name: client, own }, _)) = clients.into_iter().rev().max_by_key(|(_, sum)| *sum) else {
            continue;
        };
        let builds = |stretch: &Stretch<'_, '_>| client_of(stretch).is_some_and(|(_, other)| other == build);
        let context = ClientBuiltPerCall {
            tool: tool.tool.to_owned(),
            built: median_count(tool.calls.iter().map(|call| count_builds(call, builds))).max(1),
            line: SourceLine::of_call(&own),
            slowest_function: slowest_function(
                tool.calls.iter().flat_map(|call| &call.stretches).filter(|s| builds(s)),
            ),
            times: CallTimes::of_calls(tool, cause, cause),
            client,
        };
        let proof = (Level::High, Reason::StacksSampled);
        findings.push(make_finding(
            scene,
            &tool.calls,
            Cause::ClientBuiltPerCall(context),
            proof,
            Disproof::ShareClient,
            |call| {
                call.stretches
                    .iter()
                    .filter(|stretch| builds(stretch))
                    .map(|stretch| (stretch.from, stretch.to))
                    .collect()
            },
        ));
    }
    findings
}

/// A class or a function that builds a client, and the own call that calls it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct BuiltClient<'a> {
    name: String,
    own: StackCall<'a>,
}

/// A build, which may have several lines.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Build<'a> {
    /// A client of a library, built by one line.
    Library(String, StackCall<'a>),
    /// Clients of the standard library that one function of a file builds: certificates, the context of TLS made of them, and
    /// the client are built on several lines.
    Standard { file: &'a str, function: &'a str },
}

/// The client that a stretch builds, and the build that it is a part of.
fn client_of<'a>(stretch: &Stretch<'_, 'a>) -> Option<(BuiltClient<'a>, Build<'a>)> {
    let stack = stretch.stack()?;
    let own = own_call(stack)?;
    let (name, call) = stack[..own].iter().rev().find_map(|call| Some((built_client(call)?, call)))?;
    let own = stack[own];
    let build = match origin_of(call.file) {
        Origin::Standard(_) => Build::Standard { file: own.file, function: own.function },
        Origin::Library(_) | Origin::Own => Build::Library(name.clone(), own),
    };
    Some((BuiltClient { name, own }, build))
}

/// Name of the class or the function where a call builds a client.
fn built_client(call: &StackCall<'_>) -> Option<String> {
    let package = match origin_of(call.file) {
        Origin::Library(package) | Origin::Standard(package) => package,
        Origin::Own => return None,
    };
    if Language::of_file(call.file) == Language::Java {
        return java::built_client(call);
    }
    let (class, function) = call.function.rsplit_once('.').unwrap_or(("", call.function));
    if matches!(function, "__init__" | "__new__") {
        // Before Python 3.11 the class is not told: the file's name stands for it.
        let stem = call.file.rsplit('/').next().and_then(|file| file.strip_suffix(".py")).unwrap_or_default();
        let name = if class.is_empty() { stem.trim_start_matches('_') } else { class };
        let lower = name.to_ascii_lowercase();
        return CLASSES.iter().any(|end| lower.ends_with(end)).then(|| format!("{package}.{name}"));
    }
    FUNCTIONS.contains(&function).then(|| match class {
        "" => format!("{package}.{function}"),
        class => format!("{package}.{class}.{function}"),
    })
}

/// How often a call builds it, nearly: stretches apart, with different requests before them, are different builds. A quick one
/// may fall between two samples.
fn count_builds(call: &ToolCall<'_, '_>, builds: impl Fn(&Stretch<'_, '_>) -> bool) -> u64 {
    let mut built: HashSet<usize> = HashSet::new();
    let mut was_building = false;
    for stretch in &call.stretches {
        let is_building = builds(stretch);
        if is_building && !was_building {
            built.insert(call.spans.partition_point(|span| span.began <= stretch.from));
        }
        was_building = is_building;
    }
    built.len() as u64
}

/// The innermost function that most of the time is spent in.
fn slowest_function<'v, 'a: 'v>(stretches: impl Iterator<Item = &'v Stretch<'v, 'a>>) -> String {
    let mut times: HashMap<&str, Nanos> = HashMap::new();
    for stretch in stretches {
        let Some(stack) = stretch.stack() else { continue };
        let time = times.entry(stack.first().map_or("", |call| call.function)).or_default();
        *time = *time + stretch.time();
    }
    let most = times.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)));
    most.map_or_else(String::new, |(function, _)| function.to_owned())
}
