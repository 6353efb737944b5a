//! Are the figures true? Held against what is known of the target, and against laws that no target can break.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpace_load::start_run;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::server::{Request, Server, Turn, example, finish, good, operation, plan, run};

/// A target in a process of its own, ended with the test.
struct Peer(Child, #[expect(dead_code, reason = "held, not read")] Turn);

impl Peer {
    fn start() -> (Self, String) {
        let mut child = Command::new(example("peer")).arg("http").stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        (Self(child, Turn::alone()), format!("http://127.0.0.1:{}/mcp", port.trim()))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_frozen_target_is_seen_by_all_who_were_due_meanwhile() {
    let (peer, url) = Peer::start();
    let model = json!({"kind": "open", "rate": 1000, "max_in_flight": 50});
    let run = start_run(plan(&url, &json!({"model": model, "duration_s": 4}))).unwrap();
    while run.progress().is_empty() {
        std::thread::yield_now();
    }
    let frozen = Instant::now();
    peer.signal(Signal::STOP);
    // The fault itself: a second of silence.
    std::thread::sleep(Duration::from_secs(1));
    let frozen_s = frozen.elapsed().as_secs_f64();
    peer.signal(Signal::CONT);
    let outcome = finish(&run);
    assert_eq!((outcome.intended, outcome.dropped, outcome.unfinished), (4000, 0, 0));
    assert!(outcome.late >= 450, "{}", outcome.late);
    let echo = operation(&outcome, "echo");
    assert_eq!(echo.ok, 4000);
    // Calls that were due in the first half waited for the second. A generator that waits for replies would have sent
    // hardly any of them.
    let slow: u64 = echo.latency.buckets.iter().filter(|(ns, _)| *ns >= 500_000_000).map(|(_, count)| count).sum();
    assert!(slow >= 450, "{slow}");
    assert!(echo.latency.max_s >= frozen_s - 0.02, "{} {frozen_s}", echo.latency.max_s);
    assert!(echo.latency.p999_s >= 0.9 * frozen_s, "{}", echo.latency.p999_s);
}

#[test]
fn littles_law_holds() {
    let turn = AtomicU64::new(0);
    let server = Server::alone(move |request: &Request| {
        std::thread::sleep(Duration::from_micros(2000 + 500 * (turn.fetch_add(1, Ordering::SeqCst) % 8)));
        good(request)
    });
    let outcome =
        run(plan(&server.url(), &json!({"model": {"kind": "closed", "vus": 16}, "duration_s": 3, "warm_up_s": 0.5})));
    let echo = operation(&outcome, "echo");
    let users = echo.ok as f64 / outcome.measured_s * echo.latency.mean_s;
    assert!((users / 16.0 - 1.0).abs() < 0.02, "{users}");
}

#[test]
fn a_scripted_distribution_comes_back() {
    let delays: Arc<Mutex<Vec<(f64, f64)>>> = Arc::default();
    let (log, turn) = (Arc::clone(&delays), AtomicU64::new(0));
    let server = Server::alone(move |request: &Request| {
        let begun = Instant::now();
        // In each 200 calls, 140 take 50 ms, 50 take 100 ms, 9 take 200 ms and one takes 400 ms, in a fixed mixed
        // order.
        let millis = match turn.fetch_add(1, Ordering::SeqCst) * 77 % 200 {
            0..140 => 50,
            140..190 => 100,
            190..199 => 200,
            _ => 400,
        };
        std::thread::sleep(Duration::from_millis(millis));
        let reply = good(request);
        // The real delay: a busy machine sleeps longer.
        let delay = begun.elapsed().as_secs_f64();
        log.lock().unwrap().push((delay, delay - millis as f64 / 1e3));
        reply
    });
    // Evenly spread: users in step would wait for each other at the engine and at the target.
    let model = json!({"kind": "open", "rate": 400, "max_in_flight": 1000});
    let outcome = run(plan(&server.url(), &json!({"model": model, "duration_s": 10})));
    let echo = operation(&outcome, "echo");
    assert_eq!(echo.ok, 4000);
    let (mut delays, mut overslept): (Vec<f64>, Vec<f64>) = delays.lock().unwrap().iter().copied().unzip();
    delays.sort_by(f64::total_cmp);
    overslept.sort_by(f64::total_cmp);
    let at = |sorted: &[f64], q: f64| sorted[(q * 4000.0f64).ceil() as usize - 1];
    let quantiles = [
        (0.5, echo.service.p50_s),
        (0.9, echo.service.p90_s),
        (0.99, echo.service.p99_s),
        (0.999, echo.service.p999_s),
    ];
    for (q, found) in quantiles {
        let true_s = at(&delays, q);
        // A call wakes a thread on either side, which this machine does as late as it woke those that slept.
        let woken_late_s = 2.0 * at(&overslept, f64::midpoint(q, 1.0));
        let allowed_s = (0.02 * true_s).max(20e-6) + woken_late_s;
        assert!((found - true_s).abs() <= allowed_s, "p{}: {found} where {true_s} was, {woken_late_s}", q * 100.0);
    }
}
