//! How much load there is, and who is said to have limited it.

use std::time::Duration;

use mcpace_load::outcome::Saturation;
use serde_json::json;

use crate::server::{Action, Request, Server, good, operation, plan, planned, run};

#[test]
fn arrivals_are_exact_and_those_without_room_are_told() {
    let server = Server::start(|request: &Request| {
        std::thread::sleep(Duration::from_millis(40));
        good(request)
    });
    let model = json!({"kind": "open", "rate": 200, "max_in_flight": 2});
    let outcome = run(plan(&server.url(), &json!({"model": model, "duration_s": 1, "warm_up_s": 0.5})));
    assert_eq!(outcome.intended, 200);
    // Two at a time, each 40 ms: not more than 25 a second each.
    assert!(outcome.begun <= 60 && outcome.dropped >= 140 && outcome.late > 0, "{outcome:?}");
    // Calls that waited for room are measured from when they were due.
    let echo = operation(&outcome, "echo");
    assert!(echo.latency.max_s > 0.2 && echo.latency.max_s > 3.0 * echo.service.max_s, "{echo:?}");
    let due: u64 = outcome.seconds.iter().map(|second| second.intended).sum();
    assert_eq!(due, 300);
}

#[test]
fn a_ramp_of_the_rate_has_the_area_under_it() {
    let server = Server::start(good);
    let model = json!({"kind": "open", "rate": 0, "max_in_flight": 200});
    let stages = json!([{"duration_s": 1, "to": 200}, {"duration_s": 0.5, "to": 200}]);
    let outcome =
        run(plan(&server.url(), &json!({"model": model, "stages": stages, "duration_s": null, "threads": 2})));
    assert_eq!(outcome.intended, 200);
    assert_eq!(operation(&outcome, "echo").ok, 200);
}

#[test]
fn users_come_and_go() {
    let server = Server::start(good);
    let stages = json!([{"duration_s": 1, "to": 10}, {"duration_s": 0, "to": 2}, {"duration_s": 1, "to": 2}]);
    let changes = json!({"model": {"kind": "closed", "vus": 1}, "stages": stages, "duration_s": null, "session": "user", "think_s": 0.01});
    let outcome = run(plan(&server.url(), &changes));
    assert!(outcome.seconds[0].users >= 8, "{:?}", outcome.seconds);
    assert_eq!(operation(&outcome, "initialize").ok, operation(&outcome, "delete").ok);
    assert_eq!(operation(&outcome, "initialize").ok, 10);
}

#[test]
fn weights_are_kept() {
    let server = Server::start(good);
    let one = |name: &str, weight: f64| json!({"name": name, "kind": "call", "tool": name, "weight": weight});
    let operations = json!([one("rare", 1.0), one("often", 3.0), one("never", 0.0)]);
    let outcome =
        run(plan(&server.url(), &json!({"operations": operations, "max_calls": 4000, "duration_s": 50, "seed": 5})));
    let counts: Vec<u64> = planned(&outcome).map(|operation| operation.ok).collect();
    // Five standard deviations of the binomial.
    assert!(counts[0].abs_diff(1000) < 140 && counts[0] + counts[1] == 4000 && counts[2] == 0, "{counts:?}");
}

#[test]
fn the_warm_up_is_shown_and_left_out() {
    let server = Server::start(good);
    let model = json!({"kind": "open", "rate": 100, "max_in_flight": 50});
    let outcome = run(plan(&server.url(), &json!({"model": model, "warm_up_s": 1, "duration_s": 1})));
    assert_eq!((outcome.intended, operation(&outcome, "echo").count), (100, 100));
    assert!(outcome.seconds[0].warm_up && outcome.seconds[0].ok > 0 && !outcome.seconds[1].warm_up);
}

/// Arguments that take the engine much longer to make than the target to pass over.
fn heavy() -> serde_json::Value {
    json!([{"name": "heavy", "kind": "call", "tool": "echo", "arguments": {"text": "{{uuid}}".repeat(20_000)}}])
}

#[test]
fn an_engine_that_cant_keep_up_says_so() {
    let server = Server::start(|request: &Request| match request.rpc() {
        "tools/call" => good(request),
        _ => Action::Nothing,
    });
    let outcome = run(plan(
        &server.url(),
        &json!({"operations": heavy(), "duration_s": 2, "model": {"kind": "closed", "vus": 20}}),
    ));
    assert_eq!(outcome.engine.reason, Some(Saturation::ThreadsBusy), "{:?}", outcome.engine);
    let model = json!({"kind": "open", "rate": 5000, "max_in_flight": 5000});
    let outcome = run(plan(&server.url(), &json!({"operations": heavy(), "duration_s": 2, "model": model})));
    assert_eq!(outcome.engine.reason, Some(Saturation::LateStarts), "{:?}", outcome.engine);
}

#[test]
fn a_slow_target_is_not_the_engines_fault() {
    let server = Server::start(|request: &Request| {
        std::thread::sleep(Duration::from_millis(20));
        good(request)
    });
    let outcome = run(plan(&server.url(), &json!({"duration_s": 1})));
    assert!(!outcome.engine.saturated, "{:?}", outcome.engine);
}
