//! Traffic as it should be: nothing may be found in it.

use mcpace_record::{Closer, Recording, Side};

use crate::codes;
use crate::script::{Post, Reply, Script, call_tool, notification, request};

/// mcp 1.11.0 with OAuth on a server that holds streams open: five trials of connect, list, call, each with a fresh client
/// that discovers, gets a token, keeps the server's own stream and reuses what is free.
fn five_trials(hold: f64) -> Recording {
    let mut script = Script::recorder();
    for trial in 0..5_u64 {
        let (at, first) = (trial as f64 * 10_000.0, trial * 10 + 1);
        let session = ["s0", "s1", "s2", "s3", "s4"][trial as usize];
        let token = ["t0", "t1", "t2", "t3", "t4"][trial as usize];
        one_trial(&mut script, at, first, session, token, hold);
    }
    script.recording()
}

fn one_trial(script: &mut Script, at: f64, first: u64, session: &'static str, token: &'static str, hold: f64) {
    let sse = |result: f64| Reply::Sse(result - 1.0, result, Some(result + hold));
    let with = |conn: u64, post: Post| Post { conn, session: Some(session), token: Some(token), ..post };
    for conn in 0..6 {
        script.accept(first + conn, at + 0.5 + conn as f64 * 0.01);
    }
    script.call("connect", at, at + 60.0);
    let refused = request(at + 1.0, 0, "initialize", Reply::Json(at + 2.0, at + 2.0));
    script.post(Post { status: 401, conn: first, ..refused });
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    script.fetch(first + 5, at + 5.0, metadata, at + 6.0, 200);
    let initialize = request(at + 20.0, 0, "initialize", sse(at + 25.0));
    script.post(Post { session: None, ..with(first, initialize) });
    let initialized = notification(at + 26.0, "notifications/initialized", at + 28.0);
    script.post(with(first + 1, initialized));
    script.get(first + 2, at + 29.0, Some(at + 30.0), None);
    script.call("list", at + 100.0, at + 110.0);
    let list = request(at + 101.0, 1, "tools/list", sse(at + 108.0));
    script.post(with(first + 1, list));
    script.call("call", at + 200.0, at + 210.0);
    let call = call_tool(at + 201.0, 2, sse(at + 208.0));
    script.post(with(first + 3, call));
    script.call("disconnect", at + 300.0, at + 305.0);
    script.close(Side::Front, first, at + 304.0, Closer::Client);
}

#[test]
fn nothing_is_found_in_a_sound_client_on_a_prompt_server() {
    assert_eq!(codes(&five_trials(0.2)), [""; 0]);
}

#[test]
fn nothing_is_found_in_a_sound_client_on_a_server_that_holds_streams_open() {
    assert_eq!(codes(&five_trials(2_000.0)), [""; 0]);
}

#[test]
fn nothing_is_found_in_an_empty_recording() {
    assert_eq!(codes(&Script::recorder().recording()), [""; 0]);
}

#[test]
fn nothing_is_found_in_our_own_client_over_one_connection() {
    let mut script = Script::client();
    script.call("connect", 0.0, 10.0);
    script.connect(1, 1.0, 2.0, None);
    script.post(request(2.1, 0, "initialize", Reply::Json(3.0, 4.0)));
    script.post(notification(4.1, "notifications/initialized", 5.0));
    for id in 1..20 {
        let at = id as f64 * 20.0;
        script.call("call", at, at + 6.0);
        script.post(call_tool(at + 0.1, id, Reply::Sse(at + 4.0, at + 5.0, Some(at + 5.1))));
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}
