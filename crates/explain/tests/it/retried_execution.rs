//! A tool that is called again while the first call may be running.

use mcpace_explain::{Cause, Level, RetriedExecution, Trigger};
use mcpace_record::Recording;

use crate::script::{Post, Reply, Script, call_tool, ms, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![after_a_timeout(), at_once()]
}

fn ask(at: f64, id: u64, reply: Reply) -> Post {
    Post { arguments: Some(7), session: Some("s"), ..call_tool(at, id, reply) }
}

/// The client gives the first call up after `timeout` ms and calls again inside the same operation.
fn given_up_after(timeout: f64) -> Recording {
    let mut script = Script::recorder();
    script.call("call", 0.0, timeout + 600.0);
    script.post(ask(1.0, 1, Reply::Left(2.0, timeout + 900.0, timeout + 1.0)));
    script.post(Post { conn: 2, ..ask(timeout + 5.0, 2, Reply::Json(timeout + 500.0, timeout + 501.0)) });
    script.recording()
}

pub(crate) fn after_a_timeout() -> Recording {
    given_up_after(30_000.0)
}

/// A host sends each call twice; it tells no operations. `gap` is how long it rests between calls.
fn pairs(gap: f64, number: u64) -> Recording {
    let mut script = Script::recorder();
    script.post(Post { session: Some("s"), ..request(0.0, 0, "initialize", Reply::Json(1.0, 2.0)) });
    for pair in 0..number {
        let at = 1_000.0 + pair as f64 * (30.0 + gap);
        for (conn, delay) in [(1, 0.0), (2, 4.0)] {
            let (sent, done) = (at + delay, at + delay + 25.0);
            let call = ask(sent, pair * 2 + conn, Reply::Json(done, done + 0.5));
            script.post(Post { conn, arguments: Some(pair), ..call });
        }
    }
    script.recording()
}

pub(crate) fn at_once() -> Recording {
    pairs(500.0, 4)
}

fn context(recording: &Recording) -> (RetriedExecution, Level) {
    match found(recording).as_slice() {
        [finding] => match &finding.cause {
            Cause::RetriedExecution(context) => (context.clone(), finding.confidence.level),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_that_is_made_again_after_a_round_time_is_a_retry() {
    insta::assert_json_snapshot!(found(&after_a_timeout()));
}

#[test]
fn the_time_out_is_told_and_the_wait_charged() {
    let found = found(&after_a_timeout());
    assert_eq!(found[0].calls[0].time, ms(30_004.0));
    let (context, level) = context(&after_a_timeout());
    // The client left 50 µs after the server saw it.
    assert_eq!(context.timeout, Some(ms(30_000.05)));
    assert_eq!((context.trigger, level), (Trigger::TimeOut, Level::High));
}

#[test]
fn nobody_chooses_twelve_and_a_half_seconds() {
    assert_eq!(codes(&given_up_after(12_437.0)), [""; 0]);
}

#[test]
fn a_client_that_says_that_it_gave_up_needs_no_operation() {
    let calls = |cancels: bool| {
        let mut script = Script::recorder();
        for round in 0..2_u32 {
            let at = f64::from(round) * 20_000.0;
            let first = u64::from(round) * 2 + 1;
            script.post(ask(at, first, Reply::Json(at + 9_000.0, at + 9_001.0)));
            if cancels {
                let cancelled = notification(at + 5_001.0, "notifications/cancelled", at + 5_002.0);
                script.post(Post { conn: 3, session: Some("s"), ..cancelled });
            }
            script.post(Post { conn: 2, ..ask(at + 5_010.0, first + 1, Reply::Json(at + 8_900.0, at + 8_901.0)) });
        }
        codes(&script.recording())
    };
    assert_eq!(calls(true), ["retried-execution", "client-time-out"]);
    assert_eq!(calls(false), [""; 0]);
}

#[test]
fn a_retry_after_a_failure_is_legitimate() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 5_600.0);
    script.post(ask(1.0, 1, Reply::Broken(2.0, 5_001.0)));
    script.post(ask(5_005.0, 2, Reply::Json(5_500.0, 5_501.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn calls_that_come_in_pairs_out_of_silence_are_one_dispatched_twice() {
    let (context, level) = context(&at_once());
    assert_eq!((context.trigger, context.repeats, context.both_answered), (Trigger::AtOnce, 4, 4));
    assert_eq!((context.timeout, level), (None, Level::Medium));
}

#[test]
fn two_workers_that_call_in_turns_are_no_pairs() {
    assert_eq!(codes(&pairs(1.0, 20)), [""; 0]);
}

#[test]
fn two_pairs_are_chance() {
    assert_eq!(codes(&pairs(500.0, 2)), [""; 0]);
}

#[test]
fn two_calls_of_one_operation_at_once_are_one_dispatched_twice() {
    let twice = |other: u64| {
        let mut script = Script::recorder();
        script.call("call", 0.0, 100.0);
        script.post(ask(1.0, 1, Reply::Json(50.0, 51.0)));
        script.post(Post { conn: 2, arguments: Some(other), ..ask(3.0, 2, Reply::Json(52.0, 53.0)) });
        codes(&script.recording())
    };
    assert_eq!(twice(7), ["retried-execution"]);
    // Other arguments are another call.
    assert_eq!(twice(8), [""; 0]);
}

#[test]
fn the_same_call_after_its_answer_is_another_call() {
    let mut script = Script::recorder();
    for id in 1..20 {
        let at = id as f64 * 1_000.0;
        script.call("call", at, at + 10.0);
        script.post(ask(at + 1.0, id, Reply::Json(at + 8.0, at + 9.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}
