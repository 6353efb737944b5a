//! `dependency-connection-per-call`: a tool opens new connections to a dependency in each of its calls, though an earlier
//! connection could have been kept.
//!
//! Seen in the kernel's account of the server's connections. The time that connecting takes is seen in sampled stacks, and
//! between the opening of a connection and the first request on it.

use std::collections::HashMap;
use std::rc::Rc;

use mcpace_record::{Nanos, SocketCloser};

use super::tool_finding::make_finding;
use super::{CallTimes, DependencyConnectionPerCall};
use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::{Origin, called_name, origin_of, own_call};
use crate::inside::{ToolCall, WarmCalls, median_count, sum_times};
use crate::view::{ProgramSocket, SampledStack, StackCall, View};

/// Least percentage of calls that open a connection, and least percentage of connections that an earlier one could replace.
const LEAST_SHARE_PERCENT: usize = 80;

/// Connecting takes at least this time, and at least this percentage of a call.
const SHORTEST: Nanos = Nanos::from_millis(1);
const LEAST_PERCENT: u64 = 5;

/// Functions of libraries that open a connection, and those that agree on TLS.
const CONNECTS: [&str; 12] = [
    "connect",
    "_connect",
    "connect_tcp",
    "connect_check_health",
    "create_connection",
    "getaddrinfo",
    "new_conn",
    "_new_conn",
    "on_connect",
    "on_connect_check_health",
    "open_connection",
    "handle_connect",
];
const HANDSHAKES: [&str; 4] = ["do_handshake", "start_tls", "ssl_wrap_socket", "wrap_socket"];

/// The connections of one address that the calls of a tool opened.
struct Opened<'v, 'a> {
    /// By the number of the call.
    calls: Vec<Vec<&'v ProgramSocket<'a>>>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let view = scene.view;
    let mut findings = Vec::new();
    if view.inside.sockets.is_empty() {
        return findings;
    }
    let history = History::of_view(view);
    // Which of several calls opens a connection cannot be seen.
    for tool in Rc::clone(&scene.warm_calls).iter().filter(|tool| tool.calls.iter().all(|call| call.is_alone)) {
        let mut repeated: Vec<(&str, Opened<'_, '_>)> = opened_by_calls(view, tool)
            .into_iter()
            .filter(|(address, opened)| opened.is_per_call() && history.could_be_kept(tool, address, opened))
            .collect();
        let connecting = |address: &str, opened: &Opened<'_, '_>| -> Vec<Vec<(Nanos, Nanos)>> {
            let calls = tool.calls.iter().zip(&opened.calls);
            calls.map(|(call, sockets)| connecting_times(call, sockets, address)).collect()
        };
        let cause_of =
            |times: &[Vec<(Nanos, Nanos)>]| sum_times(times.iter().flatten().map(|(from, to)| to.since(*from)));
        repeated.sort_by(|a, b| a.0.cmp(b.0));
        let most = repeated
            .into_iter()
            .map(|(address, opened)| (connecting(address, &opened), address, opened))
            .max_by_key(|(times, _, _)| cause_of(times));
        let Some((times, address, opened)) = most else { continue };
        let cause = cause_of(&times);
        if !is_notable(tool, cause) {
            continue;
        }
        let context = make_context(tool, address, &opened, CallTimes::of_calls(tool, cause, cause));
        let proof = (Level::High, Reason::ConnectionsSeen);
        let by_call: HashMap<Nanos, Vec<(Nanos, Nanos)>> = tool.calls.iter().map(|call| call.from).zip(times).collect();
        let cause = Cause::DependencyConnectionPerCall(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::KeepConnection, |call| {
            by_call.get(&call.from).cloned().unwrap_or_default()
        }));
    }
    findings
}

fn is_notable(tool: &WarmCalls<'_, '_>, cause: Nanos) -> bool {
    let is_large = cause.0.saturating_mul(100) >= tool.server_time().0.saturating_mul(LEAST_PERCENT);
    is_large && tool.mean(cause) >= SHORTEST
}

/// The established connections that each call of a tool opened, by address.
fn opened_by_calls<'v, 'a>(view: &'v View<'a>, tool: &WarmCalls<'_, 'a>) -> HashMap<&'a str, Opened<'v, 'a>> {
    let mut opened: HashMap<&'a str, Opened<'v, 'a>> = HashMap::new();
    for socket in view.inside.sockets.iter().filter(|socket| socket.established) {
        let Some(absent) = socket.absent else { continue };
        // The calls of a tool are alone at the server, and in order. A connection that was too short to be seen while it was
        // open was seen at its end.
        let Some(number) = tool.calls.partition_point(|call| call.from <= socket.seen.at).checked_sub(1) else {
            continue;
        };
        if absent <= tool.calls[number].to {
            let calls = tool.calls.len();
            let entry = opened.entry(socket.address).or_insert_with(|| Opened { calls: vec![Vec::new(); calls] });
            entry.calls[number].push(socket);
        }
    }
    opened
}

impl Opened<'_, '_> {
    fn is_per_call(&self) -> bool {
        let with_connection = self.calls.iter().filter(|sockets| !sockets.is_empty()).count();
        with_connection * 100 >= self.calls.len() * LEAST_SHARE_PERCENT
    }
}

/// All connections by address, in the order of their opening.
struct History<'v, 'a> {
    sockets: HashMap<&'a str, Vec<(usize, &'v ProgramSocket<'a>)>>,
    view: &'v View<'a>,
}

impl<'v, 'a> History<'v, 'a> {
    fn of_view(view: &'v View<'a>) -> Self {
        let mut sockets: HashMap<&'a str, Vec<(usize, &'v ProgramSocket<'a>)>> = HashMap::new();
        for (number, socket) in view.inside.sockets.iter().enumerate() {
            sockets.entry(socket.address).or_default().push((number, socket));
        }
        Self { sockets, view }
    }

    /// Whether most of the connections could have been an earlier one that was ended, or idle.
    fn could_be_kept(&self, tool: &WarmCalls<'_, '_>, address: &str, opened: &Opened<'_, 'a>) -> bool {
        let all = self.sockets.get(address).map(Vec::as_slice).unwrap_or_default();
        let mut replaceable = 0;
        let mut total = 0;
        let by_call = tool.calls.iter().zip(&opened.calls);
        for (call, socket) in by_call.flat_map(|(call, sockets)| sockets.iter().map(move |socket| (call, socket))) {
            let Some(at) = opened_in(call, socket) else { continue };
            let earlier = all.partition_point(|(_, other)| other.seen.at < socket.seen.at);
            total += 1;
            // The latest of them tell: a pool keeps those that it used last.
            let is_free = |(number, other): &&(usize, &ProgramSocket<'_>)| {
                other.is_closed_at(at) || !self.is_awaited(*number, at)
            };
            replaceable += usize::from(all[..earlier].iter().rev().take(MOST_EARLIER).any(|other| is_free(&other)));
        }
        total > 0 && replaceable * 100 >= total * LEAST_SHARE_PERCENT
    }

    /// Whether an answer was awaited on a connection.
    fn is_awaited(&self, number: usize, at: Nanos) -> bool {
        let waits = &self.view.inside.socket_waits;
        let begun = waits.partition_point(|wait| wait.from <= at);
        let recent = waits[..begun].iter().rev().take(MOST_EARLIER);
        recent.filter(|wait| wait.socket as usize == number).any(|wait| wait.to > at)
    }
}

/// Earlier connections, and waits on them, that are looked at.
const MOST_EARLIER: usize = 64;

fn make_context(
    tool: &WarmCalls<'_, '_>,
    address: &str,
    opened: &Opened<'_, '_>,
    times: CallTimes,
) -> DependencyConnectionPerCall {
    let sockets = || opened.calls.iter().flatten();
    let closed_by = |closer: SocketCloser| sockets().filter(|socket| socket.closed_by == Some(closer)).count();
    let round_trips = sockets().filter_map(|socket| socket.info).map(|info| info.min_rtt.0).filter(|rtt| *rtt > 0);
    let stacks =
        || tool.calls.iter().flat_map(|call| &call.stretches).filter_map(|s| Some((s, connecting_stack(s.stack()?)?)));
    let mut lines: HashMap<StackCall<'_>, Nanos> = HashMap::new();
    for (stretch, (stack, own)) in stacks() {
        let time = lines.entry(stack[own]).or_default();
        *time = *time + stretch.time();
    }
    let line = lines.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
    let unknown = SourceLine { file: String::new(), line: 0, function: String::new() };
    DependencyConnectionPerCall {
        tool: tool.tool.to_owned(),
        address: address.to_owned(),
        connections: median_count(opened.calls.iter().map(|sockets| sockets.len() as u64)),
        dependency_closes: closed_by(SocketCloser::Peer) > closed_by(SocketCloser::Program),
        handshake: stacks().any(|(_, (stack, own))| stack[..own].iter().any(|call| is_named(call, &HANDSHAKES))),
        round_trip: Nanos(median_count(round_trips)),
        line: line.map_or(unknown, |(call, _)| SourceLine::of_call(&call)),
        times,
    }
}

/// Times of a call in which it connects, disjoint and in order.
fn connecting_times(call: &ToolCall<'_, '_>, sockets: &[&ProgramSocket<'_>], address: &str) -> Vec<(Nanos, Nanos)> {
    if sockets.is_empty() {
        return Vec::new();
    }
    let stretches = call.stretches.iter();
    let mut times: Vec<(Nanos, Nanos)> = stretches
        .filter(|stretch| stretch.stack().is_some_and(|stack| connecting_stack(stack).is_some()))
        .map(|stretch| (stretch.from, stretch.to))
        .collect();
    times.extend(sockets.iter().filter_map(|socket| opening_time(call, socket, address)));
    times.iter_mut().for_each(|(from, to)| (*from, *to) = ((*from).max(call.from), (*to).min(call.to)));
    merge_times(times)
}

/// From the opening of a connection to the first request on it: a span that begins, or data that is sent within a span.
fn opening_time(call: &ToolCall<'_, '_>, socket: &ProgramSocket<'_>, address: &str) -> Option<(Nanos, Nanos)> {
    let opened = opened_in(call, socket)?;
    let round_trip = socket.info.map_or(Nanos::ZERO, |info| info.min_rtt);
    let is_spanned = call.spans.iter().any(|span| span.began <= opened && opened < span.ended.at);
    let spans_tell = call.spans.iter().any(|span| span.dependency == address);
    let next_span = call.spans.iter().map(|span| span.began).find(|began| *began > opened);
    // The first data of a database's connection agrees on the connection itself; its first span is a statement.
    let next_span = next_span.filter(|_| !is_spanned && !spans_tell);
    let request = next_span.or(socket.first_sent).filter(|at| *at > opened && !socket.is_closed_at(*at));
    Some((opened, request.unwrap_or(opened + round_trip)))
}

/// When a call opened a connection, nearly.
fn opened_in(call: &ToolCall<'_, '_>, socket: &ProgramSocket<'_>) -> Option<Nanos> {
    socket.opened().map(|opened| opened.max(call.from))
}

/// A stack that connects, with the position of the server's own call in it.
fn connecting_stack(stack: SampledStack<'_>) -> Option<(SampledStack<'_>, usize)> {
    let own = own_call(stack)?;
    let connects = |call: &StackCall<'_>| is_named(call, &CONNECTS) || is_named(call, &HANDSHAKES);
    stack[..own].iter().any(connects).then_some((stack, own))
}

fn is_named(call: &StackCall<'_>, names: &[&str]) -> bool {
    names.contains(&called_name(call)) && origin_of(call.file) != Origin::Own
}

fn merge_times(mut times: Vec<(Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
    times.retain(|(from, to)| from < to);
    times.sort_unstable();
    let mut merged: Vec<(Nanos, Nanos)> = Vec::new();
    for (from, to) in times {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}
