//! Detours on the way to the server: redirects, dead addresses, transports that are tried out, acknowledgements.

use mcpace_explain::{Cause, Level, call_ledgers};
use mcpace_record::{Recording, ServerTiming};

use crate::script::{Post, Reply, Script, call_tool, ms, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![redirected(), dead_address(), probing(), acknowledged_late()]
}

/// Calls that are sent on to `/mcp/`: all of them, or the first `redirected`.
fn sent_on(calls: u64, redirected: u64) -> Recording {
    let mut script = Script::recorder();
    for id in 1..=calls {
        let at = id as f64 * 100.0;
        script.call("call", at, at + 20.0);
        if id <= redirected {
            script.post(Post { status: 307, ..call_tool(at + 1.0, id, Reply::Empty(at + 4.0)) });
        }
        let served = call_tool(at + 5.0, id, Reply::Json(at + 9.0, at + 10.0));
        script.post(Post { target: "/mcp/", ..served });
    }
    script.recording()
}

pub(crate) fn redirected() -> Recording {
    sent_on(4, 4)
}

#[test]
fn a_redirect_before_each_request_is_named_with_both_paths() {
    insta::assert_json_snapshot!(found(&redirected()));
}

#[test]
fn a_client_that_remembers_where_it_was_sent_is_healthy() {
    assert_eq!(codes(&sent_on(8, 1)), [""; 0]);
    assert_eq!(codes(&sent_on(20, 3)), [""; 0]);
    assert_eq!(codes(&sent_on(1, 1)), [""; 0]);
}

/// Five connects, each tried at `::1` first, which takes `failing` to refuse.
fn tried_twice(failing: f64) -> Recording {
    let mut script = Script::client();
    for time in 0..5_u64 {
        let at = time as f64 * 1_000.0;
        script.call("connect", at, at + failing + 20.0);
        script.connect_fails(time + 50, at + 1.0, at + 1.0 + failing);
        script.connect(time + 1, at + 1.01 + failing, at + 2.0 + failing, None);
        let initialize =
            request(at + 3.0 + failing, 0, "initialize", Reply::Json(at + 5.0 + failing, at + 6.0 + failing));
        script.post(Post { conn: time + 1, ..initialize });
    }
    script.recording()
}

pub(crate) fn dead_address() -> Recording {
    tried_twice(300.0)
}

#[test]
fn a_dead_first_address_is_named_with_the_one_that_stands() {
    let found = found(&dead_address());
    let Some(Cause::AddressFallback(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.from.as_str(), context.to.as_str(), context.tries), ("[::1]:1", "127.0.0.1:1", 5));
    assert_eq!(found[0].calls[0].time, ms(300.0));
    assert_eq!(found[0].confidence.level, Level::High);
}

#[test]
fn a_refusal_that_costs_nothing_is_healthy() {
    assert_eq!(codes(&tried_twice(0.1)), [""; 0]);
}

#[test]
fn a_server_that_cannot_be_reached_at_all_is_no_fallback() {
    let mut script = Script::client();
    for time in 0..3 {
        script.connect_fails(time, time as f64 * 1_000.0, time as f64 * 1_000.0 + 300.0);
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// `times` connects whose POST is refused with `status`, then the GET of the old transport.
fn tried_out(times: u64, status: u16) -> Recording {
    let mut script = Script::recorder();
    for time in 0..times {
        let at = time as f64 * 1_000.0;
        script.call("connect", at, at + 50.0);
        let refused = request(at + 1.0, 0, "initialize", Reply::Empty(at + 5.0));
        script.post(Post { status, error: true, ..refused });
        script.get(2, at + 6.0, Some(at + 8.0), None);
        script.post(Post {
            target: "/messages",
            ..request(at + 10.0, 1, "initialize", Reply::Json(at + 12.0, at + 13.0))
        });
    }
    script.recording()
}

pub(crate) fn probing() -> Recording {
    tried_out(3, 405)
}

#[test]
fn a_transport_that_is_tried_out_on_each_connect_is_named() {
    let found = found(&probing());
    let Some(Cause::TransportProbing(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!((context.probes, context.status), (3, 405));
}

#[test]
fn a_first_connect_must_find_out_and_a_refused_token_is_no_probe() {
    assert_eq!(codes(&tried_out(1, 405)), [""; 0]);
    assert_eq!(codes(&tried_out(3, 401)), [""; 0]);
}

/// Two kinds of calls on one connection, whose results come `pause` after their heads; the first of a connection after
/// `young`.
fn paused(pause: fn(u64) -> f64, young: f64, tools: [&'static str; 2], timing: Option<ServerTiming>) -> Recording {
    let mut script = Script::recorder();
    script.post(request(0.0, 0, "initialize", Reply::Sse(2.0, 2.0 + young, Some(2.1 + young))));
    for id in 1..9_u64 {
        let at = id as f64 * 200.0;
        let result = at + 3.0 + pause(id);
        script.call("call", at, result + 5.0);
        let call = call_tool(at + 1.0, id, Reply::Sse(at + 3.0, result, Some(result)));
        script.post(Post { name: Some(tools[id as usize % 2]), timing, ..call });
    }
    script.recording()
}

fn forty(id: u64) -> f64 {
    40.2 + (id % 3) as f64
}

pub(crate) fn acknowledged_late() -> Recording {
    paused(forty, 0.3, ["greet", "echo"], None)
}

#[test]
fn pauses_of_the_kernels_size_whatever_is_asked_are_its_acknowledgements() {
    insta::assert_json_snapshot!(found(&acknowledged_late()));
}

#[test]
fn the_ledger_agrees_with_the_finding_that_such_a_pause_is_not_the_servers() {
    for ledger in call_ledgers(&acknowledged_late()) {
        assert!(ledger.parts.response >= ms(40.0) && ledger.parts.server < ms(5.0), "{:?}", ledger.parts);
    }
    // Where nothing proves it, the tool may have taken the time.
    for ledger in call_ledgers(&paused(forty, 0.3, ["greet", "greet"], None)) {
        assert!(ledger.parts.server >= ms(40.0), "{:?}", ledger.parts);
    }
}

#[test]
fn the_servers_own_word_tells_a_tools_time_from_the_kernels() {
    let told = |service: f64| Some(ServerTiming { service: ms(service), ..ServerTiming::default() });
    assert_eq!(codes(&paused(forty, 0.3, ["greet", "greet"], told(0.5))), ["delayed-ack"]);
    assert_eq!(codes(&paused(forty, 0.3, ["greet", "greet"], told(40.0))), [""; 0]);
}

#[test]
fn a_tool_that_takes_forty_milliseconds_is_a_tool() {
    assert_eq!(codes(&paused(forty, 0.3, ["greet", "greet"], None)), [""; 0]);
}

#[test]
fn a_server_that_pauses_on_young_connections_too_does_it_itself() {
    assert_eq!(codes(&paused(forty, 40.5, ["greet", "echo"], None)), [""; 0]);
}

#[test]
fn pauses_of_any_other_size_are_the_servers() {
    assert_eq!(codes(&paused(|_| 25.0, 0.3, ["greet", "echo"], None)), [""; 0]);
    assert_eq!(codes(&paused(|_| 70.0, 0.3, ["greet", "echo"], None)), [""; 0]);
    assert_eq!(codes(&paused(|id| id as f64 * 17.0, 0.3, ["greet", "echo"], None)), [""; 0]);
}
