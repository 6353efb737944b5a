//! Findings about one operation that repeats without an end.

use mcpace_explain::{Cause, Level, Storm};
use mcpace_record::{MessageKind, Recording};

use crate::script::asides::{Stream, stream};
use crate::script::{Post, Reply, Script, call_tool, ms, note, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![get_loop(), resume_loop(), steady(), in_step()]
}

fn connected() -> Script {
    let mut script = Script::recorder();
    script.post(Post { session: Some("s"), ..request(0.0, 0, "initialize", Reply::Json(1.0, 2.0)) });
    script
}

/// A recording of `number` GETs, one every `period` ms, each of which lives for `life` ms.
fn gets(number: u64, period: impl Fn(u64) -> f64, life: f64, like: Stream) -> Recording {
    let mut script = connected();
    let mut at = 10.0;
    for get in 0..number {
        script.open(2, Stream { at, head: at + 1.0, end: Some(at + life), ..like });
        at += period(get);
    }
    script.recording()
}

/// mcp whose server ends the stream at once (python-sdk #3257).
pub(crate) fn get_loop() -> Recording {
    gets(10, |_| 1_000.0, 3.0, stream(0.0, 0.0, None))
}

#[test]
fn a_stream_that_is_opened_at_a_fixed_period_is_named() {
    let found = found(&get_loop());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::GetLoop(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.streams, context.sessions, context.period), (10, 1, ms(1_000.0)));
    assert!(!context.not_a_stream);
    assert_eq!((finding.total.requests, finding.confidence.level), (9, Level::High));
    assert!(finding.calls.is_empty());
}

#[test]
fn a_body_that_is_no_stream_is_told() {
    let text = Stream { content_type: "text/plain", ..stream(0.0, 0.0, None) };
    let found = found(&gets(6, |_| 500.0, 2.0, text));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::GetLoop(context) = &finding.cause else { panic!("{finding:?}") };
    assert!(context.not_a_stream);
    assert_eq!(finding.confidence.level, Level::Medium);
}

#[test]
fn streams_that_live_or_come_without_a_period_or_seldom_are_healthy() {
    let plain = stream(0.0, 0.0, None);
    // That is another matter: something cuts them off.
    assert_eq!(codes(&gets(10, |_| 31_000.0, 30_000.0, plain)), ["clustered-stream-lifetime"]);
    assert_eq!(codes(&gets(10, |get| 1_000.0 * 2_f64.powi(get as i32), 3.0, plain)), [""; 0]);
    assert_eq!(codes(&gets(3, |_| 1_000.0, 3.0, plain)), [""; 0]);
}

#[test]
fn streams_that_bring_something_are_no_loop() {
    let mut script = connected();
    for get in 0..10 {
        let at = 10.0 + f64::from(get) * 1_000.0;
        let ex = script.get(2, at, Some(at + 1.0), None);
        let message = mcpace_record::MessageNote {
            method: Some("notifications/message".to_owned()),
            ..note(MessageKind::Notification, None)
        };
        script.stream_event(ex, 0, at + 2.0, vec![message]);
        script.reply_end(ex, at + 3.0, mcpace_record::ReplyEnding::Complete, "", Vec::new());
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// A call whose stream ended before its answer, and what the client does about it.
fn resumed(attempts: u32, failed: bool, answered: bool) -> Recording {
    let mut script = connected();
    if failed {
        script.failed_call("call", 5.0, 30_000.0);
    } else {
        script.call("call", 5.0, 30_000.0);
    }
    let call = call_tool(10.0, 1, Reply::Empty(15.0));
    script.post(Post { session: Some("s"), ..call });
    for attempt in 0..attempts {
        let at = 1_000.0 + f64::from(attempt) * 2_000.0;
        script.open(2, Stream { after: Some("7"), ..stream(at, at + 1.0, Some(at + 2.0)) });
    }
    if answered {
        let ex = script.get(3, 29_000.0, Some(29_001.0), None);
        script.stream_event(ex, 0, 29_900.0, vec![note(MessageKind::Result, Some(1))]);
    }
    script.recording()
}

pub(crate) fn resume_loop() -> Recording {
    resumed(8, true, false)
}

#[test]
fn a_stream_that_is_resumed_after_the_same_event_in_vain_is_named() {
    let found = found(&resume_loop());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ResumeLoop(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.attempts, context.calls, context.period), (8, 1, ms(2_000.0)));
    assert_eq!(finding.calls[0].time, ms(27_000.0));
    assert_eq!((finding.calls[0].requests, finding.confidence.level), (7, Level::High));
}

#[test]
fn coming_back_until_the_answer_is_there_is_how_resumption_works() {
    assert_eq!(codes(&resumed(8, false, true)), [""; 0]);
}

#[test]
fn a_call_that_returned_has_had_its_answer_wherever_it_came() {
    assert_eq!(codes(&resumed(8, false, false)), [""; 0]);
}

#[test]
fn two_attempts_are_no_loop() {
    assert_eq!(codes(&resumed(2, true, false)), [""; 0]);
}

/// One client whose request is refused with `status` each time.
fn refused(number: u32, status: u16, pause: impl Fn(u32) -> f64) -> Recording {
    let mut script = connected();
    let mut at = 100.0;
    for request in 0..number {
        let get = Stream { status, content_type: "text/plain", ..stream(at, at + 1.0, Some(at + 1.5)) };
        script.open(2, get);
        at += pause(request);
    }
    script.recording()
}

pub(crate) fn steady() -> Recording {
    refused(12, 405, |_| 5_000.0)
}

/// `clients` whose server is away try again every two seconds, each within `spread` ms.
fn reconnects(clients: u64, rounds: u64, spread: f64) -> Recording {
    let mut script = Script::recorder();
    for round in 0..rounds {
        for client in 0..clients {
            let at = round as f64 * 2_000.0 + client as f64 * spread / clients as f64;
            let post = request(at, 0, "initialize", Reply::Json(at + 1.0, at + 1.1));
            script.post(Post { conn: client + 1, status: 503, error: true, ..post });
        }
    }
    script.recording()
}

pub(crate) fn in_step() -> Recording {
    reconnects(20, 4, 30.0)
}

fn storm(recording: &Recording) -> Storm {
    match found(recording).as_slice() {
        [finding] => match &finding.cause {
            Cause::RetryStorm(context) => context.pattern,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_asks_again_at_a_steady_pace_is_named() {
    assert_eq!(storm(&steady()), Storm::Steady);
}

#[test]
fn of_several_clients_the_pace_in_the_middle_is_told() {
    let mut script = Script::recorder();
    for (client, period) in [("a", 1_000.0), ("b", 3_000.0), ("c", 7_000.0)] {
        for number in 0..6 {
            let at = 100.0 + f64::from(number) * period;
            let refused = Stream { session: Some(client), status: 405, ..stream(at, at + 1.0, Some(at + 1.5)) };
            script.open(2, Stream { content_type: "text/plain", ..refused });
        }
    }
    let found = found(&script.recording());
    let Some(Cause::RetryStorm(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.clients, context.period), (3, ms(3_000.0)));
}

#[test]
fn pauses_that_grow_acquit_a_client_and_so_do_few_tries() {
    assert_eq!(codes(&refused(12, 429, |number| 100.0 * 1.6_f64.powi(number as i32))), [""; 0]);
    assert_eq!(codes(&refused(4, 405, |_| 5_000.0)), [""; 0]);
}

#[test]
fn a_missing_token_is_no_storm() {
    assert_eq!(codes(&refused(12, 401, |_| 5_000.0)), [""; 0]);
}

#[test]
fn a_success_in_between_ends_a_row_of_refusals() {
    let mut script = connected();
    for number in 0..12_u32 {
        let at = 100.0 + f64::from(number) * 1_000.0;
        let (status, error) = if number % 3 == 2 { (200, false) } else { (429, true) };
        let call = call_tool(at, u64::from(number), Reply::Json(at + 1.0, at + 2.0));
        script.post(Post { session: Some("s"), status, error, ..call });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn one_refused_stream_a_session_is_how_clients_find_out() {
    let mut script = Script::recorder();
    for number in 0..20 {
        let at = f64::from(number) * 1_000.0;
        script.post(request(at, 0, "initialize", Reply::Json(at + 1.0, at + 2.0)));
        script.post(notification(at + 3.0, "notifications/initialized", at + 4.0));
        let get = Stream { session: None, status: 405, content_type: "text/plain", ..stream(at + 5.0, at + 6.0, None) };
        script.open(2, Stream { end: Some(at + 6.5), ..get });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn clients_that_come_back_at_the_same_moments_are_named() {
    assert_eq!(storm(&in_step()), Storm::InStep);
}

#[test]
fn clients_that_spread_their_tries_are_healthy() {
    assert_eq!(codes(&reconnects(20, 4, 1_900.0)), [""; 0]);
    assert_eq!(codes(&reconnects(3, 4, 30.0)), [""; 0]);
    assert_eq!(codes(&reconnects(20, 2, 30.0)), [""; 0]);
}
