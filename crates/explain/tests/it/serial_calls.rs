//! Tool calls that a foreign client makes one after another, and processes that leave requests without an answer.

use mcpace_explain::{ProcessExit, SerialCalls, explain_recording};
use mcpace_record::{EventKind, LineFrom, Nanos};

use crate::script::{Post, Reply, Script, call_tool, ms, request};

/// Listings and, after `pause`, two calls of 1 s and one of 5 ms that begin `gap` after the answer before them
/// (openai-agents 0.24.0 over HTTP with parallel tool calls).
fn turn(pause: f64, gap: f64) -> Script {
    let mut script = Script::recorder();
    script.post(Post { session: Some("s"), ..request(0.0, 1, "tools/list", Reply::Json(4.0, 5.0)) });
    let mut at = 5.0 + pause;
    for (id, took) in [(2, 1_000.0), (3, 1_000.0), (4, 5.0)] {
        script.post(Post { session: Some("s"), ..call_tool(at, id, Reply::Json(at + took, at + took)) });
        at += took + gap;
    }
    script
}

fn serial_calls(script: Script) -> SerialCalls {
    explain_recording(&script.recording(), None).serial_calls
}

#[test]
fn calls_that_follow_one_another_at_once_after_a_pause_are_counted_with_what_they_would_take_together() {
    let SerialCalls { calls, time, at_once } = serial_calls(turn(400.0, 8.0));
    assert_eq!(calls, 3);
    assert!(time >= ms(2_005.0) && time < ms(2_006.0), "{time:?}");
    assert!(at_once >= ms(1_000.0) && at_once < ms(1_001.0), "{at_once:?}");
}

#[test]
fn calls_without_a_pause_before_them_or_with_pauses_between_them_are_a_program_or_a_model() {
    assert_eq!(serial_calls(turn(10.0, 8.0)), SerialCalls::default());
    assert_eq!(serial_calls(turn(400.0, 400.0)), SerialCalls::default());
}

#[test]
fn calls_that_overlap_are_parallel() {
    assert_eq!(serial_calls(turn(400.0, -4.0)), SerialCalls::default());
}

#[test]
fn a_program_whose_operations_are_marked_decides_for_itself() {
    let mut script = turn(400.0, 8.0);
    script.call("call", 400.0, 3_000.0);
    assert_eq!(serial_calls(script), SerialCalls::default());
}

/// A process that answers the first of two requests and ends; the second is cancelled, or not.
fn ended_process(cancels: bool, code: Option<i32>, signal: Option<i32>) -> Vec<ProcessExit> {
    let mut script = Script::stdio();
    script.spawn(0.0, 42, "server");
    let initialize = || Some(request(0.0, 0, "initialize", Reply::Silence));
    script.line(1.0, LineFrom::Client, initialize());
    script.line(200.0, LineFrom::Server, initialize());
    script.line(300.0, LineFrom::Client, Some(call_tool(0.0, 1, Reply::Silence)));
    if cancels {
        let cancelled = Post { id: None, ..request(0.0, 0, "notifications/cancelled", Reply::Silence) };
        script.line(400.0, LineFrom::Client, Some(cancelled));
    }
    script.event(500.0, EventKind::ProcessExited { pid: 42, code, signal });
    explain_recording(&script.recording(), None).exits
}

#[test]
fn a_process_that_ends_leaves_requests_without_an_answer() {
    let left = ProcessExit { code: None, signal: Some(9), answered: 1, unanswered: 1, only_call: None };
    assert_eq!(ended_process(false, None, Some(9)), [left]);
    let cancelled = ProcessExit { code: Some(0), signal: None, answered: 1, unanswered: 0, only_call: None };
    assert_eq!(ended_process(true, Some(0), None), [cancelled]);
}

/// A process that answers one call, `gap` after its start, and ends `end` after that (langchain-mcp-adapters 0.3.2).
fn only_call(calls: u64, gap: f64, end: f64) -> Option<Nanos> {
    let mut script = Script::stdio();
    script.spawn(0.0, 42, "server");
    let initialize = || Some(request(0.0, 0, "initialize", Reply::Silence));
    script.line(1.0, LineFrom::Client, initialize());
    script.line(200.0, LineFrom::Server, initialize());
    let mut at = 200.0 + gap;
    for id in 1..=calls {
        let call = || Some(call_tool(0.0, id, Reply::Silence));
        script.line(at, LineFrom::Client, call());
        script.line(at + 4.0, LineFrom::Server, call());
        at += 4.0;
    }
    let list = || Some(request(0.0, 9, "tools/list", Reply::Silence));
    script.line(at + 1.0, LineFrom::Client, list());
    script.line(at + 3.0, LineFrom::Server, list());
    script.event(at + 3.0 + end, EventKind::ProcessExited { pid: 42, code: Some(0), signal: None });
    let [exit] = explain_recording(&script.recording(), None).exits.try_into().unwrap();
    exit.only_call
}

#[test]
fn a_process_that_is_started_for_one_call_is_told_from_one_that_waits() {
    let took = only_call(1, 2.0, 12.0).unwrap();
    assert!(took >= ms(4.0) && took < ms(5.0), "{took:?}");
    assert_eq!(only_call(2, 2.0, 12.0), None);
    assert_eq!(only_call(1, 3_000.0, 12.0), None);
    assert_eq!(only_call(1, 2.0, 900.0), None);
}
