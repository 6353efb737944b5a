//! Requests that are sent again after a success, and the resends that are legitimate.

use mcpace_explain::{Cause, Level, Severity, call_ledgers};
use mcpace_record::Recording;

use crate::script::{Post, Reply, Script, call_tool, ms, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![python_1_12_with_oauth(), only_notifications()]
}

const TOKEN: Option<&str> = Some("Bearer [redacted 1]");

/// mcp 1.12.1 with OAuth against a server that holds each reply's stream open for 3 s (python-sdk #1274).
pub(crate) fn python_1_12_with_oauth() -> Recording {
    let mut script = Script::recorder();
    let with_token = |post: Post| Post { token: TOKEN, ..post };
    let initialize = |at, reply| with_token(request(at, 0, "initialize", reply));
    script.call("connect", 0.0, 3016.0);
    script.post(initialize(5.0, Reply::Sse(10.0, 11.0, Some(3011.0))));
    script.post(initialize(3011.5, Reply::Sse(3014.0, 3015.0, Some(6015.0))));
    let initialized = |at, done| Post { conn: 2, ..with_token(notification(at, "notifications/initialized", done)) };
    script.post(initialized(3016.5, 3018.0));
    script.post(initialized(3018.5, 3020.0));
    let refused = |script: &mut Script, at: f64| {
        script.get_with(2, at, Some(at + 1.0), Some(at + 1.0), TOKEN, 405);
    };
    refused(&mut script, 3021.0);
    refused(&mut script, 3022.5);
    script.call("call", 4000.0, 7010.0);
    let call = |at, reply| with_token(call_tool(at, 2, reply));
    script.post(call(4002.0, Reply::Sse(4004.0, 4005.0, Some(7005.0))));
    script.post(call(7005.6, Reply::Sse(7008.0, 7009.0, Some(10009.0))));
    script.recording()
}

/// Repeated notifications alone, which have no id.
pub(crate) fn only_notifications() -> Recording {
    let mut script = Script::recorder();
    script.call("connect", 0.0, 20.0);
    script.post(request(1.0, 0, "initialize", Reply::Json(2.0, 3.0)));
    script.post(notification(4.0, "notifications/initialized", 6.0));
    script.post(notification(6.5, "notifications/initialized", 8.0));
    script.recording()
}

/// Two equal calls inside one operation, the first with `reply` and `status`, the second at `again`.
fn sent_twice(reply: Reply, status: u16, again: f64) -> Recording {
    let mut script = Script::recorder();
    script.call("call", 0.0, again + 5.0);
    let first = call_tool(1.0, 1, reply);
    script.post(Post { status, ..first });
    script.post(call_tool(again, 1, Reply::Json(again + 2.0, again + 3.0)));
    script.recording()
}

#[test]
fn each_request_of_mcp_1_12_with_oauth_is_named_and_the_second_execution_counted() {
    insta::assert_json_snapshot!(found(&python_1_12_with_oauth()));
}

#[test]
fn its_ledgers_show_the_drained_reply_as_the_clients_time() {
    insta::assert_json_snapshot!(call_ledgers(&python_1_12_with_oauth()));
}

#[test]
fn a_tool_that_runs_twice_is_severe_at_any_speed() {
    let recording = sent_twice(Reply::Json(2.0, 3.0), 200, 4.0);
    let finding = &found(&recording)[0];
    assert_eq!(finding.severity, Severity::High);
    assert_eq!(finding.confidence.level, Level::High);
    // From the first result at the client to the second: 3.05 ms to 7.05 ms.
    assert_eq!(finding.calls[0].time, ms(4.0));
    assert_eq!(finding.calls[0].requests, 1);
}

#[test]
fn the_cost_of_a_third_sending_is_charged_once() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 20.0);
    for at in [1.0, 5.0, 9.0] {
        script.post(call_tool(at, 1, Reply::Json(at + 1.0, at + 2.0)));
    }
    let recording = script.recording();
    let finding = &found(&recording)[0];
    assert_eq!(finding.total.requests, 2);
    assert_eq!(finding.total.time, ms(8.0));
}

#[test]
fn a_resend_after_a_failure_is_a_retry() {
    for status in [307, 401, 403, 404, 429, 500, 502] {
        let retried = sent_twice(Reply::Json(2.0, 3.0), status, 4.0);
        assert_eq!(codes(&retried), [""; 0], "after {status}");
    }
    let broken = sent_twice(Reply::Broken(2.0, 3.0), 200, 4.0);
    assert_eq!(codes(&broken), [""; 0]);
    let ended_without_result = sent_twice(Reply::Empty(3.0), 200, 4.0);
    assert_eq!(codes(&ended_without_result), [""; 0]);
    let no_answer_yet = sent_twice(Reply::Silence, 200, 4.0);
    assert_eq!(codes(&no_answer_yet), [""; 0]);
}

#[test]
fn a_resend_after_a_json_rpc_error_is_a_retry() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 10.0);
    let first = call_tool(1.0, 1, Reply::Json(2.0, 3.0));
    script.post(Post { error: true, ..first });
    script.post(call_tool(4.0, 1, Reply::Json(5.0, 6.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn the_same_tool_under_a_new_id_is_another_call() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 10.0);
    script.post(call_tool(1.0, 1, Reply::Json(2.0, 3.0)));
    script.post(call_tool(4.0, 2, Reply::Json(5.0, 6.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// Fresh clients all say the same bytes with the same ids.
/// go-sdk 1.8 and mcp-go 1.2 in 2026-07-28: no session, ids from 1 again, and the process's connections are shared.
#[test]
fn a_client_that_begins_again_on_the_same_connection_repeats_nothing() {
    let mut script = Script::recorder();
    for at in [0.0, 10.0] {
        script.call("connect", at, at + 4.0);
        script.post(request(at + 1.0, 1, "server/discover", Reply::Json(at + 2.0, at + 3.0)));
        script.call("call", at + 5.0, at + 9.0);
        script.post(call_tool(at + 6.0, 2, Reply::Json(at + 7.0, at + 8.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn fresh_clients_that_start_alike_repeat_nothing() {
    let mut script = Script::recorder();
    for trial in 0..5 {
        let at = f64::from(trial) * 100.0;
        script.call("connect", at, at + 10.0);
        script.post(request(at + 1.0, 0, "initialize", Reply::Json(at + 2.0, at + 3.0)));
        script.post(notification(at + 4.0, "notifications/initialized", at + 5.0));
        script.call("call", at + 20.0, at + 30.0);
        script.post(call_tool(at + 21.0, 1, Reply::Json(at + 22.0, at + 23.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_stream_that_is_reopened_after_its_end_is_no_repeat_by_itself() {
    let mut script = Script::recorder();
    script.get(1, 1.0, Some(2.0), Some(50.0));
    script.get(1, 51.0, Some(52.0), Some(100.0));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn repeated_notifications_are_less_sure_and_repeated_streams_are_counted() {
    let finding = &found(&only_notifications())[0];
    assert_eq!(finding.confidence.level, Level::Medium);
    let Cause::DuplicateRequest(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.executions, context.after_reply_end), (0, 1));

    let findings = found(&python_1_12_with_oauth());
    let streams = findings.iter().filter_map(|finding| match &finding.cause {
        Cause::DuplicateRequest(context) => Some(context.streams),
        _ => None,
    });
    assert_eq!(streams.sum::<u64>(), 1);
}
