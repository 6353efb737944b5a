//! Listings that bring what is known.

use mcpace_explain::{Cause, RepeatedListing, Severity};
use mcpace_record::{LineFrom, MessageKind, MessageNote, Recording};

use crate::script::{Post, Reply, Script, call_tool, note, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![before_each_call()]
}

fn listing(at: f64, id: u64, result: u64) -> Post {
    let list = request(at, id, "tools/list", Reply::Json(at + 4.0, at + 5.0));
    Post { session: Some("s"), result: Some(result), tools: Some(3), bytes: Some(2_000), ..list }
}

fn call(at: f64, id: u64) -> Post {
    Post { session: Some("s"), ..call_tool(at, id, Reply::Json(at + 2.0, at + 3.0)) }
}

/// Calls with a listing before each; `result` is what the listing of each brings.
fn listed_before_each(calls: u64, result: impl Fn(u64) -> u64) -> Script {
    let mut script = Script::recorder();
    for number in 0..calls {
        let at = number as f64 * 100.0;
        script.call("call", at, at + 20.0);
        script.post(listing(at + 1.0, number * 2, result(number)));
        script.post(call(at + 8.0, number * 2 + 1));
    }
    script
}

pub(crate) fn before_each_call() -> Recording {
    listed_before_each(5, |_| 1).recording()
}

#[test]
fn a_listing_before_each_call_is_named_with_its_time_and_bytes() {
    insta::assert_json_snapshot!(found(&before_each_call()));
}

#[test]
fn listings_that_bring_something_else_each_time_are_needed() {
    assert_eq!(codes(&listed_before_each(5, |number| number).recording()), [""; 0]);
}

#[test]
fn one_listing_and_a_second_are_nothing() {
    assert_eq!(codes(&listed_before_each(3, |_| 1).recording()), [""; 0]);
}

#[test]
fn a_listing_now_and_then_among_many_calls_is_nothing() {
    let mut script = listed_before_each(5, |_| 1);
    for number in 100..150 {
        let at = number as f64 * 100.0;
        script.call("call", at, at + 20.0);
        script.post(call(at + 8.0, number));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_listing_after_the_server_said_that_it_changed_is_needed() {
    let mut script = listed_before_each(5, |_| 1);
    let stream = script.get(2, 0.5, Some(0.6), None);
    for number in 0..5_u32 {
        let changed = MessageNote {
            method: Some("notifications/tools/list_changed".to_owned()),
            ..note(MessageKind::Notification, None)
        };
        script.stream_event(stream, number, f64::from(number) * 100.0 + 90.0, vec![changed]);
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// A host that lists anew over stdio before each call; the server announces a change before each listing or none
/// (gemini-cli 0.61.0 with server-everything 2026.8.31).
fn listed_over_stdio(announced: bool) -> Recording {
    let mut script = Script::stdio();
    script.spawn(0.0, 42, "server");
    for number in 0..5 {
        let at = number as f64 * 100.0 + 1.0;
        if announced {
            let changed = notification(0.0, "notifications/tools/list_changed", 0.0);
            script.line(at, LineFrom::Server, Some(changed));
        }
        let list = || Some(listing(0.0, number * 2, 1));
        script.line(at + 1.0, LineFrom::Client, list());
        script.line(at + 3.0, LineFrom::Server, list());
        let call = || Some(call(0.0, number * 2 + 1));
        script.line(at + 50.0, LineFrom::Client, call());
        script.line(at + 52.0, LineFrom::Server, call());
    }
    script.recording()
}

#[test]
fn a_listing_after_a_stdio_server_said_that_it_changed_is_needed() {
    assert_eq!(codes(&listed_over_stdio(false)), ["repeated-listing"]);
    assert_eq!(codes(&listed_over_stdio(true)), [""; 0]);
}

#[test]
fn a_program_that_was_asked_to_list_lists() {
    let mut script = Script::recorder();
    for number in 0..10 {
        let at = number as f64 * 100.0;
        script.call("list", at, at + 20.0);
        script.post(listing(at + 1.0, number, 1));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn each_sessions_first_listing_is_its_own() {
    let mut script = Script::recorder();
    for (number, session) in ["a", "b", "c", "d", "e", "f", "g"].into_iter().enumerate() {
        let at = number as f64 * 100.0;
        script.post(Post { session: Some(session), ..listing(at, number as u64, 1) });
        script.post(Post { session: Some(session), ..call(at + 10.0, number as u64) });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_health_check_without_calls_is_named_and_large_ones_weigh_more() {
    let checks = |bytes: u64| {
        let mut script = Script::recorder();
        for number in 0..7 {
            script.post(Post { bytes: Some(bytes), ..listing(number as f64 * 30_000.0, number, 1) });
        }
        let found = found(&script.recording());
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let Cause::RepeatedListing(RepeatedListing { repeats, tool_calls, .. }) = finding.cause else {
            panic!("{finding:?}")
        };
        assert_eq!((repeats, tool_calls, finding.total.requests), (6, 0, 6));
        (finding.severity, finding.total.bytes > bytes * 6)
    };
    assert_eq!(checks(2_000), (Severity::Low, true));
    // Below what would be a finding of its own.
    assert_eq!(checks(99_000), (Severity::Low, true));
}

/// A foreign client (FastMCP 2.10 with two servers) that begins a session to list before each call, and ends it.
fn sessions_only_to_list(ended: bool) -> Recording {
    let mut script = Script::recorder();
    for number in 0..6 {
        let at = number as f64 * 100.0;
        let session = ["a", "b", "c", "d", "e", "f"][number];
        let id = number as u64 * 4;
        script.post(Post { session: Some(session), ..listing(at, id, 1) });
        if ended {
            script.delete(1, at + 10.0, session, at + 11.0);
        }
        script.post(Post { session: Some("calls"), ..call(at + 20.0, id + 2) });
    }
    script.recording()
}

#[test]
fn sessions_that_are_begun_only_to_list_are_counted_as_one() {
    assert_eq!(codes(&sessions_only_to_list(true)), ["repeated-listing"]);
}

#[test]
fn sessions_of_hosts_that_list_and_stay_are_healthy() {
    assert_eq!(codes(&sessions_only_to_list(false)), [""; 0]);
}
