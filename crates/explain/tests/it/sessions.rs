//! Sessions and discovery that are begun again and again.

use mcpace_explain::{Cause, Level, Reason};
use mcpace_record::{LineFrom, Recording};

use crate::script::{Post, Reply, Script, call_tool, ms, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![session_per_call(), discovery_repeated()]
}

const METADATA: &str = "/.well-known/oauth-authorization-server";

fn session(script: &mut Script, at: f64) {
    script.post(request(at, 0, "initialize", Reply::Json(at + 1.0, at + 2.0)));
    script.post(notification(at + 3.0, "notifications/initialized", at + 4.0));
}

/// Each call connects for itself (langchain-mcp-adapters #207).
pub(crate) fn session_per_call() -> Recording {
    let mut script = Script::recorder();
    for call in 0..4 {
        let at = f64::from(call) * 100.0;
        script.call("call", at, at + 10.0);
        session(&mut script, at + 1.0);
        script.post(call_tool(at + 6.0, 1, Reply::Json(at + 7.0, at + 8.0)));
    }
    script.recording()
}

/// The metadata is fetched before each call, the token stays the same (typescript-sdk #1527).
pub(crate) fn discovery_repeated() -> Recording {
    authorised_calls(["t"; 4])
}

fn authorised_calls(tokens: [&'static str; 4]) -> Recording {
    let mut script = Script::recorder();
    for (call, token) in (1..).zip(tokens) {
        let at = call as f64 * 100.0;
        script.call("call", at, at + 50.0);
        script.fetch(7, at + 1.0, METADATA, at + 40.0, 200);
        let post = call_tool(at + 41.0, call, Reply::Json(at + 42.0, at + 43.0));
        script.post(Post { token: Some(token), ..post });
    }
    script.recording()
}

#[test]
fn a_session_begun_inside_each_call_is_named() {
    insta::assert_json_snapshot!(found(&session_per_call()));
}

#[test]
fn as_many_connects_as_calls_are_an_experiments_own_doing() {
    let mut script = Script::recorder();
    for call in 0..5 {
        let at = f64::from(call) * 100.0;
        script.call("connect", at, at + 10.0);
        session(&mut script, at + 1.0);
        script.call("call", at + 50.0, at + 60.0);
        script.post(call_tool(at + 51.0, 1, Reply::Json(at + 52.0, at + 53.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn one_call_in_three_that_reconnects_is_recovery() {
    let mut script = Script::recorder();
    for call in 0..3 {
        let at = call as f64 * 100.0;
        script.call("call", at, at + 10.0);
        if call == 1 {
            session(&mut script, at + 1.0);
        }
        script.post(call_tool(at + 6.0, call, Reply::Json(at + 7.0, at + 8.0)));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn separate_runs_of_a_program_look_like_a_session_for_each_call() {
    let mut script = Script::recorder();
    for run in 0..3 {
        let at = f64::from(run) * 1_000.0;
        session(&mut script, at);
        script.post(call_tool(at + 6.0, 1, Reply::Json(at + 7.0, at + 8.0)));
    }
    let [finding] = found(&script.recording()).try_into().unwrap();
    assert_eq!((finding.confidence.level, finding.confidence.reason), (Level::Low, Reason::AnotherLooksAlike));
}

#[test]
fn a_bare_recording_shows_sessions_by_their_order() {
    let bare = |sessions: usize| {
        let mut script = Script::recorder();
        for call in 0..6 {
            let at = call as f64 * 100.0;
            if call < sessions {
                session(&mut script, at);
            }
            script.post(call_tool(at + 6.0, call as u64, Reply::Json(at + 7.0, at + 8.0)));
        }
        codes(&script.recording())
    };
    assert_eq!(bare(6), ["session-per-call"]);
    assert_eq!(bare(1), [""; 0]);
    assert_eq!(bare(3), [""; 0]);
}

/// Three sessions that are begun at once, each for one tool call, and a fourth at `fourth`; `calls` in each
/// (langchain-mcp-adapters 0.3.2 with parallel tool calls).
fn parallel_sessions(fourth: f64, calls: u64) -> Recording {
    let mut script = Script::recorder();
    for (number, id) in (0..).zip(["a", "b", "c", "d"]) {
        let at = if number < 3 { number as f64 } else { fourth };
        script.begin(number, at, Some(id), at + 10.0);
        for call in 0..calls {
            let sent = at + 40.0 + 100.0 * call as f64;
            let call = call_tool(sent, call + 1, Reply::Json(sent + 20.0, sent + 20.1));
            script.post(Post { session: Some(id), conn: number, ..call });
        }
    }
    script.recording()
}

#[test]
fn sessions_begun_at_once_are_each_counted_for_their_own_call() {
    let [finding] = found(&parallel_sessions(500.0, 1)).try_into().unwrap();
    let Cause::SessionPerCall(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.tool_calls, context.sessions, finding.total.time), (4, 4, ms(160.0)));
    assert_eq!(finding.confidence.level, Level::Low);
    assert_eq!(codes(&parallel_sessions(500.0, 2)), [""; 0]);
}

#[test]
fn sessions_that_all_begin_before_any_call_is_answered_are_several_clients() {
    assert_eq!(codes(&parallel_sessions(3.0, 1)), [""; 0]);
}

#[test]
fn a_process_spawned_for_each_call_is_counted() {
    let mut script = Script::stdio();
    for call in 0..3 {
        let at = f64::from(call) * 1000.0;
        script.call("call", at, at + 100.0);
        script.spawn(at + 1.0, 10 + call, "server");
        let initialize = || Some(request(0.0, 0, "initialize", Reply::Silence));
        script.line(at + 2.0, LineFrom::Client, initialize());
        script.line(at + 50.0, LineFrom::Server, initialize());
        let tool = || Some(call_tool(0.0, 1, Reply::Silence));
        script.line(at + 60.0, LineFrom::Client, tool());
        script.line(at + 99.0, LineFrom::Server, tool());
    }
    let found = found(&script.recording());
    let Some(Cause::SessionPerCall(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.sessions, context.processes), (3, 3));
}

#[test]
fn discovery_under_an_unchanged_token_is_named() {
    insta::assert_json_snapshot!(found(&discovery_repeated()));
}

#[test]
fn fresh_credentials_need_discovery() {
    assert_eq!(codes(&authorised_calls(["t1", "t2", "t3", "t4"])), [""; 0]);
}

#[test]
fn a_session_that_is_refused_again_knows_the_metadata() {
    let refusals = |sessions: [&'static str; 4]| {
        let mut script = Script::recorder();
        for (number, (session, token)) in (0..).zip(sessions.into_iter().zip(["t1", "t2", "t3", "t4"])) {
            let (at, id) = (number as f64 * 100.0, number * 2);
            let refused = call_tool(at, id, Reply::Json(at + 1.0, at + 2.0));
            script.post(Post { session: Some(session), status: 401, ..refused });
            script.fetch(7, at + 3.0, METADATA, at + 10.0, 200);
            let again = call_tool(at + 20.0, id + 1, Reply::Json(at + 21.0, at + 22.0));
            script.post(Post { session: Some(session), token: Some(token), ..again });
        }
        codes(&script.recording())
    };
    assert_eq!(refusals(["s"; 4]), ["discovery-repeated"]);
    assert_eq!(refusals(["s1", "s2", "s3", "s4"]), [""; 0]);
}

#[test]
fn one_connect_that_fetches_the_same_document_twice_is_named_unless_it_was_refused() {
    let connect = |refusal: bool| {
        let mut script = Script::recorder();
        script.call("connect", 0.0, 100.0);
        script.fetch(7, 1.0, METADATA, 10.0, 200);
        if refusal {
            let refused = request(11.0, 0, "initialize", Reply::Json(12.0, 13.0));
            script.post(Post { status: 403, ..refused });
        }
        script.fetch(7, 20.0, METADATA, 30.0, 200);
        script.post(request(40.0, 0, "initialize", Reply::Json(42.0, 43.0)));
        codes(&script.recording())
    };
    assert_eq!(connect(false), ["discovery-repeated"]);
    assert_eq!(connect(true), [""; 0]);
}

#[test]
fn a_probe_for_a_document_that_is_not_there_is_no_fetch() {
    let mut script = Script::recorder();
    script.call("connect", 0.0, 100.0);
    script.fetch(7, 1.0, METADATA, 10.0, 404);
    script.fetch(7, 20.0, METADATA, 30.0, 404);
    script.post(request(40.0, 0, "initialize", Reply::Json(42.0, 43.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}
