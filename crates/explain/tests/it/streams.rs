//! Streams that are held back, cut, or use up all connections.

use mcpace_explain::{Cause, Code, CountedFrom, Disproof, Level};
use mcpace_record::{CallId, CallOutcome, Closer, EventKind, MessageKind, MessageNote, Recording, ReplyEnding};

use crate::script::{Post, Reply, Script, call_tool, note, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![bunched(), packed(), cut_by_the_server(), cut_by_the_client(), no_connection_free()]
}

fn progress() -> Vec<MessageNote> {
    let method = Some("notifications/progress".to_owned());
    vec![MessageNote { method, ..note(MessageKind::Notification, None) }]
}

/// `replies` of 400 ms with four progress events each, `apart` from one another, the last of them with the result.
fn with_progress(replies: u64, apart: f64, encoding: Option<&'static str>) -> Recording {
    progress_of(1.0, replies, apart, encoding)
}

/// Replies with four progress events each. Each request is sent `sent` ms after its call's start.
pub(crate) fn progress_of(sent: f64, replies: u64, apart: f64, encoding: Option<&'static str>) -> Recording {
    let mut script = Script::recorder();
    for id in 1..=replies {
        let at = id as f64 * 1_000.0;
        script.call("call", at, at + 420.0);
        let reply = Reply::Sse(at + 2.0, at + 401.0, Some(at + 401.0));
        let ex = script.post(Post { encoding, ..call_tool(at + sent, id, reply) });
        for event in 0..4 {
            script.stream_event(ex, event + 1, at + 401.0 - apart * (4 - event) as f64, progress());
        }
    }
    script.recording()
}

pub(crate) fn bunched() -> Recording {
    with_progress(2, 0.0, None)
}

pub(crate) fn packed() -> Recording {
    with_progress(1, 0.0, Some("gzip"))
}

#[test]
fn progress_that_comes_at_once_with_the_result_was_held_back() {
    insta::assert_json_snapshot!(found(&bunched()));
}

#[test]
fn a_compressed_stream_leaves_no_other_explanation() {
    let found = found(&packed());
    assert_eq!((found[0].cause.code(), found[0].confidence.level), ("buffered-stream", Level::High));
    assert_eq!((found[0].disproof, found[0].alternatives.len()), (Disproof::AskUncompressed, 0));
}

#[test]
fn a_single_reply_may_be_chance_and_a_blocked_server_looks_the_same() {
    let found = found(&with_progress(1, 0.0, None));
    assert_eq!(found[0].confidence.level, Level::Low);
    assert_eq!(found[0].alternatives[0].code, Code::BlockedEventLoop);
}

#[test]
fn progress_that_comes_while_the_tool_works_is_healthy_packed_or_not() {
    assert_eq!(codes(&with_progress(3, 90.0, None)), [""; 0]);
    assert_eq!(codes(&with_progress(3, 90.0, Some("gzip"))), [""; 0]);
}

/// Standalone streams of four sessions, opened at odd times, that end at `age(session)`; each is opened again.
fn lifetimes(age: impl Fn(u64) -> f64, ending: ReplyEnding) -> Recording {
    const SESSIONS: [&str; 4] = ["s0", "s1", "s2", "s3"];
    let mut script = Script::recorder();
    for time in 0..4_u64 {
        let at = time as f64 * 777.0;
        let session = Some(SESSIONS[time as usize]);
        let ex = script.session_get(time + 1, at, at + 2.0, session);
        script.reply_end(ex, at + 2.0 + age(time), ending, "", Vec::new());
        script.session_get(time + 20, at + age(time) + 500.0, at + age(time) + 502.0, session);
    }
    script.recording()
}

pub(crate) fn cut_by_the_server() -> Recording {
    lifetimes(|time| 30_000.0 + time as f64, ReplyEnding::ServerBroke)
}

pub(crate) fn cut_by_the_client() -> Recording {
    lifetimes(|time| 300_000.0 + time as f64, ReplyEnding::ClientLeft)
}

fn lifetime(recording: &Recording) -> (Closer, CountedFrom, u64) {
    let found = found(recording);
    let Some(Cause::ClusteredStreamLifetime(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    (context.closed_by, context.counted_from, context.streams)
}

#[test]
fn who_closes_tells_a_clients_time_out_from_an_edge() {
    assert_eq!(lifetime(&cut_by_the_server()), (Closer::Server, CountedFrom::Beginning, 4));
    assert_eq!(lifetime(&cut_by_the_client()), (Closer::Client, CountedFrom::Beginning, 4));
}

#[test]
fn streams_of_any_age_are_healthy() {
    assert_eq!(codes(&lifetimes(|time| 5_000.0 * (time + 1) as f64, ReplyEnding::ServerBroke)), [""; 0]);
}

#[test]
fn streams_that_end_with_their_sessions_end_rightly() {
    let mut script = Script::recorder();
    for (time, session) in ["s0", "s1", "s2", "s3"].into_iter().enumerate() {
        let at = time as f64 * 50_000.0;
        let ex = script.session_get(time as u64 + 1, at, at + 2.0, Some(session));
        script.reply_end(ex, at + 30_000.0, ReplyEnding::ClientLeft, "", Vec::new());
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// Two long replies are open; a third call starts 100 ms in and sends when one of them ends, or never.
fn limited(sends: bool) -> Recording {
    let mut script = Script::recorder();
    for round in 0..2_u64 {
        let at = round as f64 * 5_000.0;
        for conn in [1, 2] {
            let end = at + 1_000.0 + conn as f64 * 500.0;
            script.post(Post {
                conn,
                ..call_tool(at + conn as f64, round * 10 + conn, Reply::Sse(at + 5.0, end, Some(end)))
            });
        }
        if sends {
            script.call("call", at + 100.0, at + 1_600.0);
            script.post(call_tool(at + 1_501.0, round * 10 + 3, Reply::Json(at + 1_550.0, at + 1_551.0)));
        } else {
            let call = CallId(round + 1);
            let start = EventKind::CallStart { call, operation: "call".to_owned(), tool: None };
            script.event(at + 100.0, start);
            script.event(at + 900.0, EventKind::CallEnd { call, outcome: CallOutcome::failed("timed out") });
        }
    }
    script.recording()
}

pub(crate) fn no_connection_free() -> Recording {
    limited(true)
}

#[test]
fn a_request_that_leaves_as_one_of_n_replies_ends_waited_for_a_connection() {
    let found = found(&no_connection_free());
    let Some(Cause::ConnectionLimit(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.limit, context.held, context.never_left), (2, 2, 0));
}

#[test]
fn a_request_that_never_leaves_is_counted_apart() {
    let found = found(&limited(false));
    let Some(Cause::ConnectionLimit(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.limit, context.never_left), (2, 2));
}

#[test]
fn where_more_were_open_at_another_time_there_is_no_limit() {
    let mut script = Script::recorder();
    for conn in [1, 2] {
        let end = 1_000.0 + conn as f64 * 500.0;
        script.post(Post { conn, ..call_tool(conn as f64, conn, Reply::Sse(5.0, end, Some(end))) });
    }
    script.call("call", 100.0, 1_600.0);
    script.post(call_tool(1_501.0, 3, Reply::Json(1_550.0, 1_551.0)));
    for conn in 4..8 {
        let at = 5_000.0 + conn as f64;
        script.post(Post { conn, ..request(at, conn, "ping", Reply::Json(5_100.0 + at, 5_101.0 + at)) });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_call_that_sends_at_once_beside_open_streams_is_healthy() {
    let mut script = Script::recorder();
    script.get(9, 0.0, Some(1.0), None);
    script.get(8, 0.0, Some(1.0), None);
    script.call("call", 500.0, 520.0);
    script.post(call_tool(501.0, 1, Reply::Json(510.0, 511.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}
