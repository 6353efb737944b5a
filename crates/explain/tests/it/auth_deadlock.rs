//! Silence after a token.

use mcpace_explain::{Cause, Level, Severity};
use mcpace_record::{Closer, Recording, Side};

use crate::script::{Reply, Script, call_tool, ms, request};
use crate::{codes, found};

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

#[test]
fn a_token_that_never_came_is_the_authorization_servers_fault() {
    let mut script = Script::recorder();
    script.failed_call("call", 0.0, 30_000.0);
    refused(&mut script);
    script.fetch(2, 5.0, "/token", 9.0, 503);
    assert!(!codes(&script.recording()).contains(&"auth-deadlock"));
}
