//! Requests of a gateway, seen by a recording before it and one behind it.

use mcpace_explain::{Cause, Finding, Level, Reason, explain_recording, find_causes};
use mcpace_record::Recording;

use crate::script::{Post, Reply, Script, call_tool, notification, request};
use crate::streams::progress_of;

fn found(before: &Recording, behind: &Recording) -> Vec<Finding> {
    explain_recording(before, Some(behind)).findings
}

fn codes(before: &Recording, behind: &Recording) -> Vec<&'static str> {
    found(before, behind).iter().map(|finding| finding.cause.code()).collect()
}

/// Five calls to a gateway, each with what `sent_on` sends behind it; a call's result comes at 80 ms.
fn five_calls(sent_on: impl Fn(&mut Script, f64, u64)) -> (Recording, Recording) {
    let (mut before, mut behind) = (Script::recorder(), Script::recorder());
    for number in 1..6 {
        let at = number as f64 * 200.0;
        before.call("call", at, at + 85.0);
        before.post(Post { session: Some("s"), ..call_tool(at + 1.0, number, Reply::Json(at + 80.0, at + 81.0)) });
        sent_on(&mut behind, at + 5.0, number);
    }
    (before.recording(), behind.recording())
}

fn passed_on(behind: &mut Script, at: f64, number: u64) {
    behind.post(call_tool(at, number, Reply::Json(at + 20.0, at + 21.0)));
}

/// The gateway begins a session for each call and lists the tools in it.
fn session_for_each() -> (Recording, Recording) {
    five_calls(|behind, at, number| {
        behind.post(request(at, 0, "initialize", Reply::Json(at + 10.0, at + 11.0)));
        behind.post(notification(at + 12.0, "notifications/initialized", at + 13.0));
        behind.post(request(at + 15.0, 1, "tools/list", Reply::Json(at + 20.0, at + 21.0)));
        passed_on(behind, at + 25.0, number);
    })
}

/// One listing from each of three servers; the second begins `after` ms after the first, and so on. Each takes 20 ms.
fn listing_from_three(after: f64) -> (Recording, Recording) {
    let (mut before, mut behind) = (Script::recorder(), Script::recorder());
    for round in 0..2 {
        let at = f64::from(round) * 500.0;
        before.call("list", at, at + 90.0);
        before.post(request(at + 1.0, 1, "tools/list", Reply::Json(at + 80.0, at + 81.0)));
        for (number, target) in ["/a", "/b", "/c"].into_iter().enumerate() {
            let sent = at + 5.0 + number as f64 * after;
            let listing = request(sent, 1, "tools/list", Reply::Json(sent + 20.0, sent + 21.0));
            behind.post(Post { target, conn: number as u64 + 1, ..listing });
        }
    }
    (before.recording(), behind.recording())
}

/// Progress that comes at once before what stands between, and `apart` from one another behind it.
fn progress_held(apart: f64) -> (Recording, Recording) {
    (progress_of(1.0, 2, 0.0, None), progress_of(1.5, 2, apart, None))
}

/// For the list of all that is shown.
pub(crate) fn shown() -> Vec<Finding> {
    let mut shown = Vec::new();
    for (before, behind) in [session_for_each(), listing_from_three(24.0), progress_held(90.0)] {
        shown.extend(found(&before, &behind));
    }
    shown
}

#[test]
fn requests_that_a_gateway_adds_are_named_with_what_they_cost() {
    let (before, behind) = session_for_each();
    insta::assert_json_snapshot!(found(&before, &behind));
}

#[test]
fn a_gateway_that_passes_calls_on_adds_nothing() {
    let (before, behind) = five_calls(passed_on);
    assert_eq!(codes(&before, &behind), [""; 0]);
}

#[test]
fn setting_up_in_the_first_call_is_healthy() {
    let (before, behind) = five_calls(|behind, at, number| {
        if number == 1 {
            behind.post(request(at, 0, "initialize", Reply::Json(at + 10.0, at + 11.0)));
            behind.post(notification(at + 12.0, "notifications/initialized", at + 13.0));
        }
        passed_on(behind, at + 25.0, number);
    });
    assert_eq!(codes(&before, &behind), [""; 0]);
}

#[test]
fn what_was_sent_for_which_of_two_requests_is_not_guessed() {
    let (_, behind) = session_for_each();
    let mut before = Script::recorder();
    for number in 1..6 {
        let at = number as f64 * 200.0;
        before.post(call_tool(at + 1.0, number, Reply::Json(at + 80.0, at + 81.0)));
        before.post(Post { conn: 2, ..call_tool(at + 2.0, number + 10, Reply::Json(at + 82.0, at + 83.0)) });
    }
    assert_eq!(codes(&before.recording(), &behind), [""; 0]);
}

#[test]
fn servers_asked_one_after_another_are_named_with_what_asking_at_once_would_save() {
    let (before, behind) = listing_from_three(24.0);
    let found = found(&before, &behind);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::SerialFanOut(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.requests, context.servers), (2, 3));
    // Each server took 21.05 ms; two of the three could have been meanwhile.
    assert_eq!(finding.calls[0].time, crate::script::ms(42.1));
    assert!(finding.evidence.iter().any(|evidence| evidence.behind));
}

#[test]
fn servers_asked_at_once_are_healthy() {
    let (before, behind) = listing_from_three(0.5);
    assert_eq!(codes(&before, &behind), [""; 0]);
}

#[test]
fn different_questions_may_need_each_others_answers() {
    let (mut before, mut behind) = (Script::recorder(), Script::recorder());
    for round in 0..3 {
        let at = f64::from(round) * 500.0;
        before.post(call_tool(at + 1.0, 1, Reply::Json(at + 80.0, at + 81.0)));
        let first = request(at + 5.0, 1, "tools/list", Reply::Json(at + 25.0, at + 26.0));
        behind.post(Post { target: "/a", ..first });
        behind.post(Post { target: "/b", conn: 2, ..call_tool(at + 30.0, 1, Reply::Json(at + 70.0, at + 71.0)) });
    }
    assert_eq!(codes(&before.recording(), &behind.recording()), [""; 0]);
}

#[test]
fn without_a_recording_behind_it_nothing_is_said_of_a_gateway() {
    let (before, _) = session_for_each();
    assert!(find_causes(&before).is_empty());
}

#[test]
fn progress_that_was_spread_out_behind_is_held_by_what_stands_between() {
    let (before, behind) = progress_held(90.0);
    let found = found(&before, &behind);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.cause.code(), finding.confidence.level), ("buffered-stream", Level::High));
    assert_eq!((finding.confidence.reason, finding.alternatives.len()), (Reason::SpreadBehind, 0));
    assert_eq!(finding.evidence.iter().filter(|evidence| evidence.behind).count(), 4);
}

#[test]
fn progress_that_came_at_once_behind_too_is_for_an_experiment_still() {
    let (before, behind) = progress_held(0.0);
    let found = found(&before, &behind);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.confidence.level, finding.alternatives.len()), (Level::Medium, 1));
}
