//! `constant-cost-per-request`: an equal extra time on every request.

use mcpace_explain::{Cause, Code, Follows, Level};
use mcpace_record::{EventKind, Peer, Recording};

use crate::script::{Post, Reply, Script, call_tool, ms, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![with_token(), with_session(), with_everything(), with_processor_time(8.0)]
}

/// Every request takes 60 ms, and connecting 0.3 ms.
fn with_everything() -> Recording {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.connect(101, 0.1, 0.4, Some(1));
    let ask = |at: f64, post: fn(f64, u64, Reply) -> Post, id: u64| post(at, id, Reply::Json(at + 60.0, at + 60.1));
    script.post(ask(1.0, |at, id, reply| request(at, id, "initialize", reply), 0));
    script.post(notification(70.0, "notifications/initialized", 130.0));
    script.post(ask(200.0, |at, id, reply| request(at, id, "tools/list", reply), 1));
    script.post(ask(300.0, call_tool, 2));
    script.recording()
}

#[test]
fn a_cost_of_every_request_is_named_beside_a_quick_connect() {
    let found = found(&with_everything());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ConstantCostPerRequest(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.follows, finding.confidence.level), (Follows::Everything, Level::Medium));
    assert_eq!(context.without, ms(0.3));
}

/// Listings, calls and pings of 20 ms, each of which costs the server's process `each` ms of processor time.
fn with_processor_time(each: f64) -> Recording {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.connect(101, 0.1, 15.0, Some(1));
    let mut used = 500.0;
    for (number, method) in ["tools/list", "tools/call", "ping"].into_iter().cycle().take(12).enumerate() {
        let at = 100.0 * (number + 1) as f64;
        script.post(request(at, number as u64, method, Reply::Json(at + 20.0, at + 20.1)));
        for (moment, cost) in [(at + 0.2, 0.0), (at + 20.2, each)] {
            used += cost;
            script.event(moment, EventKind::ProcessorTime { of: Peer::Server, pid: 7, cpu: ms(used) });
        }
    }
    script.recording()
}

#[test]
fn processor_time_of_every_request_is_named_and_a_wait_is_not() {
    let found = found(&with_processor_time(8.0));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ConstantCostPerRequest(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.follows, finding.confidence.level), (Follows::ProcessorTime, Level::High));
    assert_eq!((context.floor, context.requests, context.kinds), (ms(8.0), 12, 3));
    assert_eq!(finding.alternatives.iter().map(|other| other.code).collect::<Vec<_>>(), [Code::RebuiltPerRequest]);
    assert_eq!(codes(&with_processor_time(1.0)), [""; 0]);
}

/// Time that a server takes for a request with a token, for one in a session, and for any request.
#[derive(Clone, Copy)]
struct Costs {
    token: f64,
    session: f64,
    all: f64,
}

/// Three connects with discovery, then listings and calls, and an answer to a question of the server's.
fn traffic(costs: Costs) -> Recording {
    let mut script = Script::recorder();
    for client in 0..3_u64 {
        let at = client as f64 * 10_000.0;
        let id = ["a", "b", "c"][client as usize];
        let first = client * 10 + 1;
        let token = Some(["t0", "t1", "t2"][client as usize]);
        let wait = costs.all + costs.token + costs.session;
        script.call("connect", at, at + 323.0 + wait);
        let refused = request(at + 1.0, 0, "initialize", Reply::Json(at + 2.0 + costs.all, at + 2.1 + costs.all));
        script.post(Post { status: 401, conn: first, ..refused });
        let metadata = "/.well-known/oauth-protected-resource/mcp";
        script.fetch(first, at + 150.0, metadata, at + 151.0 + costs.all, 200);
        let ask = |at: f64, post: fn(f64, u64, Reply) -> Post, id: u64, session: Option<&'static str>| {
            let done = at + 1.1 + costs.all + costs.token + session.map_or(0.0, |_| costs.session);
            Post { token, session, conn: first, ..post(at, id, Reply::Json(done, done + 0.1)) }
        };
        script.post(ask(at + 200.0, |at, id, reply| request(at, id, "initialize", reply), 0, None));
        let initialized = notification(at + 320.0, "notifications/initialized", at + 321.0 + wait);
        script.post(Post { token, session: Some(id), conn: first, ..initialized });
        script.answer(first, at + 900.0, Some(id), token, at + 901.0 + wait);
        script.call("list", at + 1_000.0, at + 1_004.0 + wait);
        script.post(ask(at + 1_001.0, |at, id, reply| request(at, id, "tools/list", reply), 1, Some(id)));
        for call in 0..3 {
            let at = at + 2_000.0 + f64::from(call) * 300.0;
            script.call("call", at, at + 4.0 + wait);
            script.post(ask(at + 1.0, call_tool, 2, Some(id)));
        }
    }
    script.recording()
}

pub(crate) fn with_token() -> Recording {
    traffic(Costs { token: 60.0, session: 0.0, all: 0.0 })
}

pub(crate) fn with_session() -> Recording {
    traffic(Costs { token: 0.0, session: 60.0, all: 0.0 })
}

#[test]
fn a_cost_that_goes_with_the_token_is_named() {
    let found = found(&with_token());
    let [first, ..] = found.as_slice() else { panic!("nothing found") };
    assert!(found.iter().all(|f| f.cause.code() == "constant-cost-per-request"), "{found:?}");
    let Cause::ConstantCostPerRequest(context) = &first.cause else { panic!("{first:?}") };
    assert_eq!((context.follows, first.confidence.level), (Follows::Token, Level::High));
    // Sending takes a request 0.1 ms, and the metadata none.
    assert_eq!(context.floor.since(context.without), ms(59.9));
    let call = found.iter().find(|f| f.operation.as_deref() == Some("call")).unwrap();
    assert_eq!(call.calls.len(), 9);
    assert_eq!(call.calls[0].time, ms(59.9));
}

#[test]
fn a_cost_that_goes_with_the_session_is_named() {
    let found = found(&with_session());
    let contexts = found.iter().map(|finding| match &finding.cause {
        Cause::ConstantCostPerRequest(context) => context.follows,
        other => panic!("{other:?}"),
    });
    assert!(contexts.clone().count() > 0 && contexts.clone().all(|follows| follows == Follows::Session));
}

#[test]
fn a_distant_server_is_no_cost_of_its_own() {
    assert_eq!(codes(&traffic(Costs { token: 0.0, session: 0.0, all: 60.0 })), [""; 0]);
}

#[test]
fn a_near_server_without_either_is_healthy() {
    assert_eq!(codes(&traffic(Costs { token: 1.0, session: 1.0, all: 0.2 })), [""; 0]);
}

#[test]
fn slow_requests_of_few_kinds_are_slow_by_themselves() {
    let mut script = Script::recorder();
    for number in 0..10 {
        let at = number as f64 * 1_000.0;
        script.fetch(9, at, "/.well-known/oauth-protected-resource/mcp", at + 1.0, 404);
        for (gap, method) in [(10.0, "tools/call"), (200.0, "prompts/get"), (400.0, "resources/read")] {
            let done = at + gap + 80.0;
            let post = request(at + gap, number, method, Reply::Json(done, done + 0.1));
            script.post(Post { token: Some("t"), session: Some("s"), ..post });
        }
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn slow_tools_behind_a_token_are_no_cost_of_the_token() {
    let mut script = Script::recorder();
    for number in 0..10 {
        let at = number as f64 * 1_000.0;
        script.fetch(9, at, "/.well-known/oauth-protected-resource/mcp", at + 1.0, 404);
        for (gap, wait, method) in [(10.0, 80.0, "tools/call"), (200.0, 80.0, "prompts/get"), (400.0, 2.0, "ping")] {
            let done = at + gap + wait;
            let post = request(at + gap, number, method, Reply::Json(done, done + 0.1));
            script.post(Post { token: Some("t"), session: Some("s"), ..post });
        }
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}
