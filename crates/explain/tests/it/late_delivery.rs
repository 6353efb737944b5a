//! Results that were there long before the call returned.

use mcpace_explain::{Cause, Finding, Level, Reason, Released};
use mcpace_record::{Closer, EventKind, Recording, Side};

use crate::script::{Reply, Script, call_tool};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![drained_bodies(), nothing_on_the_wire(), incomplete()]
}

/// Calls that last `length` ms with the result at 5 ms; the reply ends at `end`.
fn calls(count: u64, length: f64, end: Option<f64>) -> Script {
    let mut script = Script::recorder();
    for call in 0..count {
        let at = call as f64 * 10_000.0;
        script.call("call", at, at + length);
        let reply = Reply::Sse(at + 4.0, at + 5.0, end.map(|end| at + end));
        script.post(call_tool(at + 1.0, call, reply));
    }
    script
}

/// The client reads each body to its end before it looks at it (python-sdk #2432).
pub(crate) fn drained_bodies() -> Recording {
    calls(3, 3001.0, Some(3000.0)).recording()
}

pub(crate) fn nothing_on_the_wire() -> Recording {
    calls(3, 500.0, Some(5.1)).recording()
}

pub(crate) fn incomplete() -> Recording {
    let mut script = calls(3, 3001.0, Some(3000.0));
    script.event(1.0, EventKind::EventsLost { count: 1 });
    script.recording()
}

fn only(recording: &Recording) -> Finding {
    let mut found = found(recording);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn released_by(finding: &Finding) -> Released {
    match &finding.cause {
        Cause::LateDelivery(context) => context.released_by,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_that_is_drained_first_is_named_with_what_the_client_waited_for() {
    insta::assert_json_snapshot!(found(&drained_bodies()));
}

#[test]
fn a_close_that_releases_the_result_is_told_apart() {
    let mut script = calls(1, 2001.0, None);
    script.accept(1, 0.5);
    script.close(Side::Front, 1, 2000.0, Closer::Client);
    assert_eq!(released_by(&only(&script.recording())), Released::ConnectionClose);
}

#[test]
fn without_a_sign_on_the_wire_confidence_is_low() {
    let finding = only(&nothing_on_the_wire());
    assert_eq!(released_by(&finding), Released::NothingSeen);
    assert_eq!(finding.confidence.level, Level::Low);
}

#[test]
fn an_incomplete_recording_makes_it_less_sure() {
    assert_eq!(only(&incomplete()).confidence.reason, Reason::RecordingIncomplete);
}

#[test]
fn a_client_that_needs_a_few_milliseconds_is_not_late() {
    // 5.05 ms to 24 ms.
    assert_eq!(codes(&calls(5, 24.0, Some(5.1)).recording()), [""; 0]);
}

#[test]
fn one_pause_among_many_calls_is_noise() {
    let mut script = calls(4, 7.0, Some(5.1));
    script.call("call", 90_000.0, 90_080.0);
    script.post(call_tool(90_001.0, 9, Reply::Json(90_004.0, 90_005.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn one_long_pause_among_several_calls_is_noise_too_but_not_alone() {
    let paused = |others: u64| {
        let mut script = calls(others, 7.0, Some(5.1));
        script.call("call", 90_000.0, 90_400.0);
        script.post(call_tool(90_001.0, 9, Reply::Json(90_004.0, 90_005.0)));
        codes(&script.recording())
    };
    assert_eq!(paused(4), [""; 0]);
    assert_eq!(paused(1), [""; 0]);
    assert_eq!(paused(0), ["late-delivery"]);
}

#[test]
fn a_stream_held_open_is_no_matter_to_a_client_that_returns_at_once() {
    assert_eq!(codes(&calls(5, 6.0, Some(3000.0)).recording()), [""; 0]);
    assert_eq!(codes(&calls(5, 6.0, None).recording()), [""; 0]);
}

#[test]
fn a_slow_server_is_not_the_clients_fault() {
    let mut script = Script::recorder();
    for call in 0..3 {
        let at = call as f64 * 10_000.0;
        script.call("call", at, at + 3002.0);
        script.post(call_tool(at + 1.0, call, Reply::Json(at + 3000.0, at + 3001.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_reply_that_ended_with_its_result_released_nobody() {
    let finding = only(&calls(3, 500.0, Some(5.0)).recording());
    assert_eq!(released_by(&finding), Released::NothingSeen);
}
