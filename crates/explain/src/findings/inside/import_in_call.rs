//! `import-in-call`: a tool loads code while a call waits: in each call, or in the first call of each process.
//!
//! Loading a module again in each call is a reload, a module that is not kept, or an import that fails each time: failures
//! are not remembered. An import that has been done before takes microseconds and is not named.

use std::rc::Rc;

use mcpace_record::Nanos;

use super::stack_times::{stack_times, stretches_of};
use super::tool_finding::make_finding;
use super::{CallTimes, ImportInCall};
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::own_call;
use crate::inside::library_files::{LibraryFile, loads_code};
use crate::inside::{Doing, Stretch, ToolCall, WarmCalls, is_share, sum_times};
use crate::view::{SampledStack, StackCall};

/// Time of a first call that loading takes at least, in percent and absolutely. A person notices that much.
const LEAST_PERCENT: u64 = 10;
const SHORTEST_IN_FIRST: Nanos = Nanos::from_millis(50);

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let in_each = if tool.has_first_calls { None } else { find_in(scene, tool, &tool.calls, false) };
        findings.extend(in_each.or_else(|| find_in(scene, tool, &tool.first_calls, true)));
    }
    findings
}

/// Loading in `calls`, which are the first calls of each process or the later ones.
fn find_in<'s, 'a>(
    scene: &mut Scene<'s, 'a>,
    tool: &WarmCalls<'s, 'a>,
    calls: &[ToolCall<'s, 'a>],
    in_first_call: bool,
) -> Option<Finding> {
    // Keys are the calls that load: modules by the code that imports them.
    let times = stack_times(scene, calls, loading_stack);
    let cause = sum_times(times.values().map(|time| time.sum));
    let server = sum_times(calls.iter().map(|call| call.to.since(call.from)));
    let mean = |sum: Nanos| Nanos(sum.0 / calls.len().max(1) as u64);
    let is_notable = if in_first_call {
        is_share(cause, LEAST_PERCENT, server) && mean(cause) >= SHORTEST_IN_FIRST
    } else {
        tool.is_notable(cause)
    };
    let most = times.into_iter().max_by(|a, b| a.1.sum.cmp(&b.1.sum).then_with(|| b.0.cmp(&a.0)));
    let (module, time) = most.filter(|_| is_notable)?;
    let (line, _) = time.longest_line()?;
    let context = ImportInCall {
        tool: tool.tool.to_owned(),
        module: module.map(str::to_owned),
        in_first_call,
        line,
        times: CallTimes { server: mean(server), cause: mean(cause), gain: mean(cause) },
    };
    let proof = (Level::High, Reason::StacksSampled);
    Some(make_finding(scene, calls, Cause::ImportInCall(context), proof, Disproof::ImportAtStart, |call| {
        stretches_of(call, |stretch| loading_stack(stretch).is_some())
    }))
}

/// The module that is loaded, where it can be seen, and the stack from the code that loads it on.
fn loading_stack<'a>(stretch: &Stretch<'_, 'a>) -> Option<(Option<&'a str>, SampledStack<'a>)> {
    // Reading files is a wait.
    let (Doing::Running(stack) | Doing::Waiting { stack, .. }) = stretch.doing else { return None };
    // The server's program may have been loaded by an import itself: its tool is not.
    let loaders = (0..stack.len()).rev().filter(|position| loads_code(&stack[*position]));
    let (loader, importer) = loaders.map(|loader| (loader, &stack[loader + 1..])).find(|(_, rest)| {
        // A module that imports another one at its beginning has no tool around it.
        own_call(rest).is_some()
    })?;
    let own = own_call(importer)?;
    let module = stack[..loader].iter().rev().find(|call| is_module_body(call)).and_then(module_name);
    Some((module, &importer[own..]))
}

/// Whether a call is the body of a module.
fn is_module_body(call: &StackCall<'_>) -> bool {
    matches!(call.function, "<module>" | "(anonymous)") && !loads_code(call)
}

/// The library that a module belongs to, or the name of a file of the server.
fn module_name<'a>(call: &StackCall<'a>) -> Option<&'a str> {
    let path = LibraryFile::of_call(call).map_or(call.file.rsplit('/').next()?, |file| file.path);
    let scoped = usize::from(path.starts_with('@'));
    let end = path.match_indices('/').nth(scoped).map_or(path.len(), |(at, _)| at);
    Some(path[..end].trim_end_matches(".py").trim_end_matches(".js"))
}
