//! Silence after a token.

use mcpace_explain::{Cause, Finding, Level, Severity};
use mcpace_record::{Closer, Recording, Side};

use crate::script::{Reply, Script, call_tool, ms, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![hanging()]
}

fn refused(script: &mut Script) {
    let call = call_tool(1.0, 1, Reply::Json(2.0, 3.0));
    script.post(crate::script::Post { status: 401, error: true, ..call });
}

/// The token is refreshed inside a call that then hangs until the program gives up.
pub(crate) fn hanging() -> Recording {
    let mut script = Script::recorder();
    script.failed_call("call", 0.0, 30_000.0);
    refused(&mut script);
    script.token(2, 5.0, 9.0);
    script.recording()
}

#[test]
fn a_call_that_stands_still_after_the_token_is_named() {
    let found = found(&hanging());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::AuthDeadlock(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.calls, context.of_calls), (1, 1));
    // The token reaches the client at 9.05 ms.
    assert_eq!(finding.calls[0].time, ms(30_000.0 - 9.05));
    assert_eq!((finding.severity, finding.confidence.level), (Severity::High, Level::Medium));
}

#[test]
fn a_call_that_never_returns_is_named_once_time_has_gone_by() {
    let waiting = |until: f64| {
        let mut script = Script::recorder();
        script.started_call("call", 0.0);
        refused(&mut script);
        script.token(2, 5.0, 9.0);
        // Another client goes on, so that the recording does.
        script.close(Side::Front, 7, until, Closer::Client);
        codes(&script.recording()).contains(&"auth-deadlock")
    };
    assert!(waiting(60_000.0));
    assert!(!waiting(3_000.0));
}

#[test]
fn a_call_that_goes_on_with_its_token_is_healthy() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 20_030.0);
    refused(&mut script);
    script.token(2, 5.0, 9.0);
    script.post(call_tool(11.0, 2, Reply::Json(20_000.0, 20_001.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_call_that_waits_for_the_server_is_no_deadlock() {
    let mut script = Script::recorder();
    script.failed_call("call", 0.0, 30_000.0);
    script.post(request(1.0, 1, "tools/call", Reply::Silence));
    script.token(2, 5.0, 9.0);
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// The token is refreshed for the stream of 2024-11-05, on which everything comes, the address for requests first.
fn connecting(endpoint: bool) -> Vec<&'static str> {
    let mut script = Script::recorder();
    script.failed_call("connect", 0.0, 30_000.0);
    script.token(2, 5.0, 9.0);
    let stream = script.session_get(1, 11.0, 12.0, None);
    if endpoint {
        script.stream_event(stream, 0, 13.0, Vec::new());
    }
    codes(&script.recording())
}

#[test]
fn a_client_that_opened_its_stream_did_so_with_a_good_token() {
    assert_eq!(connecting(true), [""; 0], "mcp 1.12 makes nothing of it, whatever the token");
    assert_eq!(connecting(false), [""; 0], "the server says nothing");
}

#[test]
fn a_sessions_own_stream_has_nothing_to_say() {
    let session_stream = |head: bool| {
        let mut script = Script::recorder();
        script.failed_call("call", 0.0, 30_000.0);
        refused(&mut script);
        script.token(2, 5.0, 9.0);
        if head {
            script.session_get(1, 11.0, 12.0, Some("s1"));
        } else {
            script.get(1, 11.0, None, None);
        }
        codes(&script.recording())
    };
    assert_eq!(session_stream(true), ["auth-deadlock"]);
    assert_eq!(session_stream(false), [""; 0], "its head is what the client may wait for");
}

/// A connect is given up, 4 s after its token was asked for; the next one sends nothing.
fn after(token: impl Fn(&mut Script)) -> Vec<Finding> {
    let mut script = Script::recorder();
    script.failed_call("connect", 0.0, 5_000.0);
    token(&mut script);
    script.failed_call("connect", 6_000.0, 36_000.0);
    found(&script.recording())
}

fn given_up(script: &mut Script) {
    script.token_given_up(2, 1_000.0, 5_000.0);
}

#[test]
fn a_lock_that_a_token_took_along_is_named_where_nothing_is_sent_any_more() {
    let found = after(given_up);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::AuthDeadlock(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.calls, context.of_calls), (1, 2), "the first waited for its token");
    assert_eq!(finding.calls[0].time, ms(30_000.0));
}

#[test]
fn a_token_that_is_still_awaited_holds_the_lock_rightly() {
    let found = after(|script| script.token_given_up(2, 1_000.0, 36_500.0));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn who_sends_anything_waits_for_no_token() {
    let found = after(|script| {
        given_up(script);
        script.post(request(35_000.0, 1, "initialize", Reply::Silence));
    });
    assert!(found.is_empty(), "{found:?}");
    let found = after(|script| {
        given_up(script);
        script.fetch(3, 5_500.0, "/.well-known/oauth-protected-resource", 5_600.0, 404);
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_token_that_never_came_is_the_authorization_servers_fault() {
    let mut script = Script::recorder();
    script.failed_call("call", 0.0, 30_000.0);
    refused(&mut script);
    script.fetch(2, 5.0, "/token", 9.0, 503);
    assert!(!codes(&script.recording()).contains(&"auth-deadlock"));
}
