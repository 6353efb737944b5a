//! How much load there is, and who is said to have limited it.

use std::time::Duration;

use mcpace_load::outcome::{LoadOutcome, RunEnd, Saturation, SecondDelta};
use mcpace_load::plan::LoadModel;
use mcpace_load::{Run, start_run};
use serde_json::json;

use crate::server::{Action, Request, Server, finish, good, operation, plan, planned, run};

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

/// The operations of all engines of one load, and the sum of what their seconds reported.
fn run_shares(server: &Server, changes: &serde_json::Value, engines: usize) -> Vec<(LoadOutcome, Vec<SecondDelta>)> {
    let start_ns = mcpace_clock::monotonic_ns() + 200_000_000;
    let start = |number: usize| {
        let mut changes = changes.clone();
        changes["share"] = json!({"first_thread": number, "all_threads": engines, "start_ns": start_ns});
        start_run(plan(&server.url(), &changes)).unwrap()
    };
    let runs: Vec<Run> = (0..engines).map(start).collect();
    let found = runs.iter().map(|run| (finish(run), run.take_deltas())).collect::<Vec<_>>();
    for (outcome, _) in &found {
        assert!(outcome.started_ns.abs_diff(start_ns) < 100_000_000, "{} {start_ns}", outcome.started_ns);
    }
    found
}

#[test]
fn engines_share_arrivals_and_users_without_loss() {
    let server = Server::start(good);
    let model = json!({"kind": "open", "rate": 300, "max_in_flight": 30});
    let found = run_shares(&server, &json!({"model": model, "duration_s": 1.5}), 3);
    assert_eq!(found.iter().map(|(outcome, _)| outcome.intended).collect::<Vec<_>>(), [150, 150, 150]);
    let model = json!({"kind": "closed", "vus": 1});
    let stages = json!([{"duration_s": 0, "to": 7}, {"duration_s": 1, "to": 7}]);
    let changes = json!({"model": model, "stages": stages, "duration_s": null, "session": "user", "think_s": 0.01});
    let found = run_shares(&server, &changes, 3);
    let users = found.iter().map(|(outcome, _)| operation(outcome, "initialize").ok).collect::<Vec<_>>();
    assert_eq!(users, [3, 2, 2]);
}

#[test]
fn the_seconds_of_a_share_add_up_to_its_outcome() {
    let server = Server::start(good);
    let model = json!({"kind": "closed", "vus": 5});
    let changes = json!({"model": model, "duration_s": 1.4, "warm_up_s": 0.3, "think_s": 0.002, "session": "user"});
    for (outcome, deltas) in run_shares(&server, &changes, 2) {
        assert_eq!(
            deltas.iter().map(|delta| &delta.second).collect::<Vec<_>>(),
            outcome.seconds.iter().collect::<Vec<_>>()
        );
        let last = deltas.last().unwrap();
        assert_eq!(last.started_ns, outcome.started_ns);
        assert_eq!(
            (last.intended, last.begun, last.connections),
            (outcome.intended, outcome.begun, outcome.connections)
        );
        for whole in &outcome.operations {
            let parts = || deltas.iter().flat_map(|delta| &delta.operations).filter(|part| part.name == whole.name);
            assert_eq!(parts().map(|part| part.ok).sum::<u64>(), whole.ok, "{}", whole.name);
            let mut buckets = std::collections::BTreeMap::new();
            for (bound, count) in parts().flat_map(|part| &part.latency.buckets) {
                *buckets.entry(*bound).or_insert(0) += count;
            }
            assert_eq!(buckets.into_iter().collect::<Vec<_>>(), whole.latency.buckets, "{}", whole.name);
        }
        assert!(deltas.len() >= 2 && operation(&outcome, "echo").ok > 100, "{outcome:?}");
    }
}

#[test]
fn a_share_that_is_stopped_before_its_start_sends_nothing() {
    let server = Server::start(|_: &Request| panic!("a request"));
    let share = json!({"first_thread": 0, "all_threads": 1, "start_ns": u64::MAX});
    let run = start_run(plan(&server.url(), &json!({"share": share}))).unwrap();
    assert!(!run.wait(Duration::from_millis(50)));
    run.stop();
    let outcome = finish(&run);
    assert_eq!((outcome.ended, outcome.begun, outcome.connections.opened), (RunEnd::Stopped, 0, 0));
}

#[test]
fn shares_that_cannot_be_are_refused() {
    let share = |first: usize, all: usize| json!({"share": {"first_thread": first, "all_threads": all, "start_ns": 0}});
    for changes in [share(2, 2), share(usize::MAX, 3), share(0, 100_000)] {
        let mut plan = plan("http://127.0.0.1:1/mcp", &json!({}));
        plan.share = serde_json::from_value(changes["share"].clone()).unwrap();
        assert!(plan.check().unwrap_err().to_string().contains("shared by all engines"), "{changes}");
    }
    // The limit of users is of one engine.
    let mut plan = plan("http://127.0.0.1:1/mcp", &share(0, 2));
    plan.model = LoadModel::Closed { vus: 200_000 };
    assert_eq!(plan.check(), Ok(()));
    plan.model = LoadModel::Closed { vus: 200_001 };
    assert!(plan.check().is_err());
}
