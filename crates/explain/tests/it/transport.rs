//! Connections that are opened without need.

use mcpace_explain::{Cause, Code, Level, ReplyKind, Severity};
use mcpace_record::{Closer, Recording, Side};

use crate::script::{Post, Reply, Script, call_tool, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![connection_per_request(), replies_left_early(), some_replies_left_early(), replies_left_early_beside_others()]
}

/// Side that closes a connection after its reply.
#[derive(Clone, Copy)]
enum Fate {
    StaysOpen,
    ClosedBy(Closer),
    ResetByClient,
}

/// Six calls of one session, each on its own connection.
fn calls(reply: fn(f64) -> Reply, fate: Fate) -> Recording {
    let mut script = Script::recorder();
    for id in 1..7 {
        let at = id as f64 * 100.0;
        script.call("call", at, at + 10.0);
        script.accept(id, at + 0.9);
        script.connect(id + 100, at + 1.2, at + 3.2, Some(id));
        script.post(Post { conn: id, session: Some("s"), ..call_tool(at + 1.0, id, reply(at)) });
        match fate {
            Fate::StaysOpen => {}
            Fate::ClosedBy(by) => script.close(Side::Front, id, at + 20.0, by),
            Fate::ResetByClient => script.reset(id, at + 9.2),
        }
    }
    script.recording()
}

fn json(at: f64) -> Reply {
    Reply::Json(at + 8.0, at + 9.0)
}

fn sse(at: f64) -> Reply {
    Reply::Sse(at + 8.0, at + 9.0, Some(at + 9.1))
}

pub(crate) fn connection_per_request() -> Recording {
    calls(json, Fate::ClosedBy(Closer::Client))
}

/// The client leaves each stream once it has the result (python-sdk #3281).
pub(crate) fn replies_left_early() -> Recording {
    let left = |at: f64| Reply::Left(at + 8.0, at + 9.0, at + 9.1);
    calls(left, Fate::ClosedBy(Closer::Client))
}

/// Other clients' streams, each read to its end, end right after their result.
pub(crate) fn replies_left_early_beside_others() -> Recording {
    let mut script = Script::recorder();
    left_early(&mut script);
    for id in 1..4 {
        let at = id as f64 * 100.0 + 2_000.0;
        let read = Reply::Sse(at + 8.0, at + 9.0, Some(at + 9.1));
        script.post(Post { conn: 50, session: Some("other"), ..call_tool(at + 1.0, id, read) });
    }
    script.recording()
}

fn left_early(script: &mut Script) {
    for id in 1..7 {
        let at = id as f64 * 100.0;
        script.call("call", at, at + 10.0);
        script.accept(id, at + 0.9);
        script.connect(id + 100, at + 1.2, at + 3.2, Some(id));
        let left = Reply::Left(at + 8.0, at + 9.0, at + 9.1);
        script.post(Post { conn: id, session: Some("s"), ..call_tool(at + 1.0, id, left) });
        script.close(Side::Front, id, at + 20.0, Closer::Client);
    }
}

#[test]
fn replies_left_early_though_others_end_promptly_are_the_clients_doing() {
    let found = found(&replies_left_early_beside_others());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.cause.code(), finding.confidence.level), ("stream-not-drained", Level::High));
}

/// The client leaves two replies in six before their end: whether it had to is not seen.
pub(crate) fn some_replies_left_early() -> Recording {
    let mixed = |at: f64| if at > 450.0 { Reply::Left(at + 8.0, at + 9.0, at + 9.1) } else { json(at) };
    calls(mixed, Fate::ClosedBy(Closer::Client))
}

#[test]
fn where_some_replies_are_left_early_that_alone_would_look_the_same() {
    let found = found(&some_replies_left_early());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ConnectionPerRequest(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.left_early, context.replies, finding.confidence.level), (2, ReplyKind::Mixed, Level::Low));
    assert_eq!(finding.alternatives.iter().map(|other| other.code).collect::<Vec<_>>(), [Code::StreamNotDrained]);
}

#[test]
fn replies_left_early_are_named_as_what_they_may_be() {
    let found = found(&replies_left_early());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].cause.code(), "stream-not-drained");
    assert_eq!(found[0].alternatives[0].code, Code::ConnectionPerRequest);
    assert_eq!(found[0].confidence.level, Level::Low);
    assert_eq!(found[0].severity, Severity::Low);
}

/// The reply was handed over to its end, which the client didn't read (mcp-go, of JSON whose last chunk comes apart).
#[test]
fn replies_whose_end_is_left_unread_are_broken_off_too() {
    for reply in [json, sse] {
        let found = found(&calls(reply, Fate::ResetByClient));
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let Cause::StreamNotDrained(context) = &finding.cause else { panic!("{finding:?}") };
        assert_eq!((context.left_early, finding.alternatives[0].code), (6, Code::ConnectionPerRequest));
    }
}

#[test]
fn of_a_connection_that_is_reset_the_last_reply_alone_was_left_unread() {
    let mut script = Script::recorder();
    for id in 1..7 {
        let at = id as f64 * 100.0;
        script.accept(id, at + 0.9);
        // The first two connections carry two calls each.
        let times = if id < 3 { vec![at, at + 50.0] } else { vec![at] };
        for at in &times {
            script.post(Post { conn: id, session: Some("s"), ..call_tool(at + 1.0, id, json(*at)) });
        }
        script.reset(id, times[times.len() - 1] + 9.2);
    }
    let found = found(&script.recording());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::StreamNotDrained(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.requests, context.left_early), (8, 6));
}

#[test]
fn a_connection_that_the_client_asks_to_close_could_have_been_used_again() {
    let calls = |asks_to_close: bool| {
        let mut script = Script::recorder();
        for id in 1..7 {
            let at = id as f64 * 100.0;
            script.accept(id, at);
            let call = call_tool(at + 1.0, id, json(at));
            script.post(Post { conn: id, session: Some("s"), asks_to_close, ..call });
            script.close(Side::Front, id, at + 10.0, Closer::Server);
        }
        codes(&script.recording())
    };
    assert_eq!((calls(true), calls(false)), (vec!["connection-per-request"], vec![]));
}

#[test]
fn a_connection_for_each_call_is_named_with_what_it_costs() {
    insta::assert_json_snapshot!(found(&connection_per_request()));
}

#[test]
fn connections_left_open_and_unused_are_named_with_the_kind_of_replies() {
    let found = found(&calls(sse, Fate::StaysOpen));
    let Some(Cause::ConnectionPerRequest(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.connections, context.needless), (6, 5));
    assert_eq!((context.replies, context.closed_by), (ReplyKind::Sse, None));
}

/// typescript-sdk on undici: the pool opens a second and a third connection a moment before the first is free, and uses them
/// all from then on.
#[test]
fn a_pool_that_opened_more_than_it_needed_and_uses_them_is_healthy() {
    let mut script = Script::recorder();
    for (id, conn) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 1), (6, 2)] {
        let at = id as f64 * 100.0;
        if id <= 3 {
            script.accept(conn, at + 0.9);
            script.connect(conn + 100, at + 1.2, at + 3.2, Some(conn));
        }
        let session = if id <= 4 { "first" } else { "second" };
        script.post(Post { conn, session: Some(session), ..call_tool(at + 1.0, id, sse(at)) });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_server_that_closes_leaves_the_client_no_choice() {
    for by in [Closer::Server, Closer::Instrument] {
        assert_eq!(codes(&calls(json, Fate::ClosedBy(by))), [""; 0]);
    }
}

#[test]
fn a_connection_that_carries_an_open_stream_is_not_free() {
    let held = |at: f64| Reply::Sse(at + 8.0, at + 9.0, Some(at + 5000.0));
    assert_eq!(codes(&calls(held, Fate::StaysOpen)), [""; 0]);
}

#[test]
fn a_connection_that_was_free_and_is_busy_again_is_not_free() {
    let mut script = Script::recorder();
    (1..6).for_each(|conn| script.accept(conn, conn as f64 * 10.0 + 9.9));
    script.post(call_tool(20.0, 1, Reply::Json(21.0, 22.0)));
    for (id, conn) in (2..).zip([1, 2, 3, 4, 5]) {
        let at = 10.0 * id as f64 + 5.0;
        let held = Reply::Sse(at + 1.0, at + 2.0, Some(at + 5000.0));
        let call = call_tool(at, id, held);
        script.post(Post { conn, ..call });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn one_more_connection_beside_the_servers_stream_is_healthy() {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.accept(2, 10.0);
    script.post(request(1.0, 0, "initialize", Reply::Json(2.0, 3.0)));
    script.get(2, 10.1, Some(11.0), None);
    for id in 1..6 {
        let at = 100.0 * id as f64;
        script.post(call_tool(at, id, Reply::Json(at + 1.0, at + 2.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_few_requests_prove_nothing() {
    let mut script = Script::recorder();
    for id in 1..3 {
        let at = 100.0 * id as f64;
        script.accept(id, at - 1.0);
        let call = call_tool(at, id, Reply::Json(at + 1.0, at + 2.0));
        script.post(Post { conn: id, ..call });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_burst_of_calls_beside_one_free_connection_needs_the_others() {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.post(call_tool(1.0, 1, Reply::Json(2.0, 3.0)));
    (2..9).for_each(|conn| script.accept(conn, 10.0));
    for conn in 1..9 {
        let call = call_tool(11.0, conn + 1, Reply::Json(60.0, 61.0));
        script.post(Post { conn, ..call });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}
