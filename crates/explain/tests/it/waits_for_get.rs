//! Requests that are held until the server's own stream stands.

use mcpace_explain::{Cause, HoldReason};
use mcpace_record::Recording;

use crate::script::{Reply, Script, call_tool, ms, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![held(Some("Bearer t"), 1), held(None, 2)]
}

/// `times` connects: the GET's head comes 500 ms late and the next request leaves 1 ms after it.
pub(crate) fn held(token: Option<&str>, times: u64) -> Recording {
    connects(token, times, 501.0)
}

fn connects(token: Option<&str>, times: u64, released: f64) -> Recording {
    let mut script = Script::recorder();
    for time in 0..times {
        let at = time as f64 * 10_000.0;
        script.call("connect", at, at + 600.0);
        script.post(request(at + 1.0, 0, "initialize", Reply::Json(at + 2.0, at + 3.0)));
        script.get_with(2, at + 4.0, Some(at + 500.0), None, token, 200);
        script.post(notification(at + released, "notifications/initialized", at + released + 2.0));
    }
    script.recording()
}

fn gate(recording: &Recording) -> HoldReason {
    match &found(recording)[0].cause {
        Cause::WaitsForGet(context) => context.gate,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_that_leaves_with_the_streams_head_was_held() {
    insta::assert_json_snapshot!(found(&held(None, 2)));
}

#[test]
fn the_two_reasons_are_told_apart_by_authentication() {
    assert_eq!(gate(&held(None, 2)), HoldReason::StreamFirst);
    assert_eq!(gate(&held(Some("Bearer t"), 2)), HoldReason::AuthorizationLock);
}

#[test]
fn a_request_that_leaves_before_the_head_was_not_held() {
    assert_eq!(codes(&connects(None, 2, 100.0)), [""; 0]);
}

#[test]
fn a_request_that_leaves_long_after_the_head_was_not_held_by_it() {
    assert_eq!(codes(&connects(None, 2, 590.0)), [""; 0]);
}

#[test]
fn an_operation_that_starts_after_the_head_was_not_held() {
    let mut script = Script::recorder();
    script.get(2, 0.0, Some(500.0), None);
    script.call("call", 500.5, 510.0);
    script.post(call_tool(501.0, 1, Reply::Json(502.0, 503.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn an_operation_that_starts_while_the_head_is_due_is_charged_from_its_start() {
    let mut script = Script::recorder();
    script.get(2, 0.0, Some(500.0), None);
    script.call("call", 300.0, 510.0);
    script.post(call_tool(501.0, 1, Reply::Json(502.0, 503.0)));
    let found = found(&script.recording());
    // The head reaches the client at 500.05 ms.
    assert_eq!(found[0].calls[0].time, ms(200.05));
}

#[test]
fn without_operations_only_a_message_that_leaves_right_after_the_head_was_held() {
    let bare = |next: &'static str, at: f64| {
        let mut script = Script::recorder();
        script.post(request(1.0, 0, "initialize", Reply::Json(2.0, 3.0)));
        script.get(2, 4.0, Some(500.0), None);
        script.post(notification(at, next, at + 1.0));
        codes(&script.recording())
    };
    assert_eq!(bare("notifications/initialized", 501.0), ["waits-for-get"]);
    assert_eq!(bare("notifications/progress", 501.0), ["waits-for-get"]);
    assert_eq!(bare("notifications/progress", 515.0), [""; 0], "it may have left by chance");
}
