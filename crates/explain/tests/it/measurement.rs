//! Recordings of an instrument that was late itself, and of clients that take long lines slowly.

use mcpace_explain::{Cause, Level};
use mcpace_record::{EventKind, LineFrom, Nanos, Recording};

use crate::script::{Post, Reply, Script, call_tool, ms};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![busy(), kept_from_running(), squared()]
}

/// Ten calls of 100 ms, in each of which the instrument is late by `late`, of which it worked itself for `busy`.
fn late(late: f64, busy: f64) -> Recording {
    let mut script = Script::recorder();
    for id in 1..11_u64 {
        let at = id as f64 * 1_000.0;
        script.call("call", at, at + 100.0);
        script.post(call_tool(at + 1.0, id, Reply::Json(at + 98.0, at + 99.0)));
        script.event(at + 90.0, EventKind::InstrumentLate { by: ms(late), busy: ms(busy) });
        // Between calls nobody is hurt.
        script.event(at + 500.0, EventKind::InstrumentLate { by: ms(late), busy: ms(busy) });
    }
    script.recording()
}

pub(crate) fn busy() -> Recording {
    late(60.0, 55.0)
}

pub(crate) fn kept_from_running() -> Recording {
    late(60.0, 1.0)
}

#[test]
fn a_recorder_that_works_when_it_is_late_limits_what_it_measures() {
    insta::assert_json_snapshot!(found(&busy()));
}

#[test]
fn a_recorder_that_is_kept_from_running_is_on_a_noisy_machine() {
    let found = found(&kept_from_running());
    let Some(Cause::NoisyRun(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.times, context.late, context.of), (10, ms(600.0), ms(1_000.0)));
}

#[test]
fn a_little_lateness_and_lateness_between_calls_are_healthy() {
    assert_eq!(codes(&late(20.0, 20.0)), [""; 0]);
    let mut script = Script::recorder();
    for id in 1..11_u64 {
        let at = id as f64 * 1_000.0;
        script.call("call", at, at + 100.0);
        script.post(call_tool(at + 1.0, id, Reply::Json(at + 98.0, at + 99.0)));
        script.event(at + 900.0, EventKind::InstrumentLate { by: ms(600.0), busy: ms(0.0) });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// Six answers over stdio, each twice as long as the one before; the client takes `time` of the bytes.
fn lines(time: fn(f64) -> f64) -> Recording {
    let mut script = Script::stdio();
    script.spawn(0.0, 1, "server");
    for id in 1..7_u64 {
        let (at, bytes) = (id as f64 * 60_000.0, 100_000 << id);
        let millis = time(bytes as f64);
        let ask = || Some(Post { name: None, ..call_tool(0.0, id, Reply::Silence) });
        script.call("call", at, at + 22.0 + millis);
        script.blocked = Nanos::ZERO;
        script.line(at + 1.0, LineFrom::Client, ask());
        script.blocked = ms(millis * 0.7);
        script.sized_line(at + 20.0 + millis * 0.7, LineFrom::Server, ask(), bytes);
    }
    script.recording()
}

pub(crate) fn squared() -> Recording {
    lines(|bytes| bytes * bytes / 1e10)
}

#[test]
fn a_client_whose_time_grows_with_the_square_of_the_size_is_named() {
    let found = found(&squared());
    let line = found.iter().find_map(|f| match &f.cause {
        Cause::SuperlinearLine(context) => Some((context, f.confidence.level)),
        _ => None,
    });
    let Some((context, level)) = line else { panic!("{found:?}") };
    assert!((1.8..=2.1).contains(&context.power), "{}", context.power);
    assert_eq!((context.lines, context.largest, level), (6, 6_400_000, Level::Medium));
}

#[test]
fn time_in_proportion_to_the_size_is_healthy() {
    assert!(!codes(&lines(|bytes| bytes / 1e4)).contains(&"superlinear-line"));
}
