//! Causes that a scene can have: how each changes a host, a server or the way between them.

use super::dice::Dice;
use super::habits::{Concurrency, CostOf, Faults, GivesUp, Habits, Wire};
use super::traffic::Traffic;

/// A cause in simulated scenes.
pub(super) struct SimulatedCause {
    pub(super) code: &'static str,
    pub(super) adapt: fn(&mut Dice, &mut Habits, &mut Faults),
    /// Takes the cause away again, for the scene that it is compared with.
    pub(super) remove: fn(&mut Faults),
    /// Whether its cost is time of calls. Other causes cost memory, requests or tokens, and always count.
    pub(super) costs_time: bool,
    /// Codes that follow from the cause.
    pub(super) accepted: &'static [&'static str],
    /// Codes that are right beside the cause's own, and do not name it.
    pub(super) beside: &'static [&'static str],
}

const fn timed(
    code: &'static str,
    adapt: fn(&mut Dice, &mut Habits, &mut Faults),
    remove: fn(&mut Faults),
) -> SimulatedCause {
    SimulatedCause { code, adapt, remove, costs_time: true, accepted: &[], beside: &[] }
}

const fn untimed(code: &'static str, adapt: fn(&mut Dice, &mut Habits, &mut Faults)) -> SimulatedCause {
    SimulatedCause { code, adapt, remove: |_| {}, costs_time: false, accepted: &[], beside: &[] }
}

fn over_http(dice: &mut Dice, habits: &mut Habits) {
    if habits.wire == Wire::Stdio {
        habits.wire = Wire::Http;
        habits.round_trip = dice.magnitude(0.05, 40.0);
    }
}

fn by_recorder(dice: &mut Dice, habits: &mut Habits) {
    over_http(dice, habits);
    habits.wire = Wire::Http;
}

/// The recorder before a near server.
fn by_near_recorder(dice: &mut Dice, habits: &mut Habits) {
    by_recorder(dice, habits);
    habits.round_trip = dice.magnitude(0.05, 1.0);
}

fn over_stdio(habits: &mut Habits) {
    habits.wire = Wire::Stdio;
    habits.hosts = 1;
    habits.round_trip = 0.05;
    habits.standalone_stream = false;
}

/// More calls at a time than `limit`, each of some length.
fn crowd(dice: &mut Dice, habits: &mut Habits, limit: u64) {
    habits.at_once = limit + dice.count(1, 30);
    habits.calls = dice.count(2, 12);
    habits.tool = dice.magnitude(20.0, 5_000.0);
    habits.pause = dice.pick(&[0.0, 5.0]);
}

const KIBIBYTE: f64 = 1_024.0;
/// Usual time-outs of clients.
const TIME_OUTS: [f64; 4] = [2_000.0, 5_000.0, 30_000.0, 60_000.0];

pub(super) const CAUSES: &[SimulatedCause] = &[
    timed(
        "duplicate-request",
        |dice, habits, faults| {
            over_http(dice, habits);
            faults.duplicates = dice.magnitude(0.05, 1.0);
        },
        |faults| faults.duplicates = 0.0,
    ),
    SimulatedCause {
        beside: &["client-time-out"],
        ..timed(
            "retried-execution",
            |dice, _, faults| {
                let (limit, part) = (dice.pick(&TIME_OUTS), dice.magnitude(0.05, 1.0));
                faults.gives_up = Some(GivesUp { limit, part, repeats: true, cancels: false, progress: 0 });
            },
            |faults| faults.gives_up = None,
        )
    },
    SimulatedCause {
        accepted: &["repeated-listing"],
        ..timed("hidden-listing", |_, _, faults| faults.list_after_call = true, |faults| faults.list_after_call = false)
    },
    timed(
        "session-per-call",
        |dice, habits, faults| {
            by_recorder(dice, habits);
            (habits.at_once, habits.calls) = (1, dice.count(2, 60));
            habits.ping_every = None;
            faults.session_per_call = true;
        },
        |faults| faults.session_per_call = false,
    ),
    timed("repeated-listing", |_, _, faults| faults.list_before_call = true, |faults| faults.list_before_call = false),
    timed(
        "discovery-repeated",
        |dice, habits, faults| {
            over_http(dice, habits);
            habits.token = true;
            faults.rediscovery = Some(dice.magnitude(2.0, 400.0));
        },
        |faults| faults.rediscovery = None,
    ),
    timed(
        "redirect-per-request",
        |dice, habits, faults| {
            over_http(dice, habits);
            faults.redirect = true;
        },
        |faults| faults.redirect = false,
    ),
    untimed("transport-probing", |dice, habits, faults| {
        by_recorder(dice, habits);
        habits.hosts = dice.count(2, 6);
        faults.probing = true;
    }),
    timed(
        "waits-for-get",
        |dice, habits, faults| {
            by_recorder(dice, habits);
            habits.standalone_stream = true;
            (habits.at_once, habits.calls) = (1, dice.count(1, 8));
            faults.waits_for_get = Some(dice.magnitude(100.0, 5_000.0));
        },
        |faults| faults.waits_for_get = Some(0.0),
    ),
    timed(
        "address-fallback",
        |dice, habits, faults| {
            (habits.wire, habits.marks) = (Wire::OwnClient, true);
            (habits.at_once, habits.calls) = (1, dice.count(1, 8));
            faults.dead_address = Some(dice.magnitude(5.0, 3_000.0));
        },
        |faults| faults.dead_address = None,
    ),
    timed(
        "stream-not-drained",
        |dice, habits, faults| {
            over_http(dice, habits);
            habits.event_streams = true;
            habits.round_trip = dice.magnitude(5.0, 80.0);
            faults.undrained = true;
        },
        |faults| faults.undrained = false,
    ),
    timed(
        "connection-per-request",
        |dice, habits, faults| {
            (habits.wire, habits.marks) = (Wire::OwnClient, true);
            habits.round_trip = dice.magnitude(5.0, 80.0);
            faults.connection_per_request = true;
        },
        |faults| faults.connection_per_request = false,
    ),
    timed(
        "delayed-ack",
        |dice, habits, faults| {
            over_http(dice, habits);
            habits.event_streams = false;
            faults.delayed_ack = true;
        },
        |faults| faults.delayed_ack = false,
    ),
    untimed("buffered-stream", |dice, habits, faults| {
        over_http(dice, habits);
        habits.event_streams = true;
        habits.progress = dice.count(3, 8) as u32;
        habits.tool = dice.magnitude(400.0, 10_000.0);
        faults.buffered_progress = true;
    }),
    timed(
        "slow-start",
        |dice, habits, faults| {
            over_stdio(habits);
            faults.slow_start = Some(dice.magnitude(1_500.0, 30_000.0));
        },
        |faults| faults.slow_start = None,
    ),
    untimed("large-listing", |dice, habits, faults| {
        habits.tools = dice.count(40, 400) as u32;
        faults.listing_bytes = Some(dice.count(120_000, 1_500_000));
    }),
    untimed("session-leak", |dice, habits, faults| {
        by_recorder(dice, habits);
        habits.sampled = Some(200.0);
        habits.session_ids = true;
        (habits.hosts, habits.at_once, habits.calls) = (dice.count(60, 300), 1, dice.count(2, 4));
        (habits.tool, habits.pause, habits.ping_every) = (dice.magnitude(2.0, 200.0), 200.0, None);
        faults.session_leak = Some(dice.magnitude(200.0, 2_000.0) * KIBIBYTE);
    }),
    untimed("task-leak", |dice, habits, faults| {
        habits.sampled = Some(200.0);
        habits.session_ids = false;
        (habits.hosts, habits.at_once, habits.calls) = (1, dice.count(1, 8), dice.count(200, 400));
        (habits.tool, habits.pause, habits.ping_every) = (dice.magnitude(2.0, 200.0), 5.0, None);
        faults.request_leak = Some(dice.magnitude(60.0, 1_000.0) * KIBIBYTE);
    }),
    SimulatedCause {
        accepted: &["thread-pool-saturation"],
        ..timed(
            "completion-waves",
            |dice, habits, faults| {
                let slots = dice.count(2, 16);
                crowd(dice, habits, slots);
                habits.spread = dice.pick(&[0.02, 0.1]);
                faults.concurrency = Concurrency::ToolPool(slots as usize);
            },
            |faults| faults.concurrency = Concurrency::Parallel,
        )
    },
    SimulatedCause {
        accepted: &["completion-waves"],
        ..timed(
            "thread-pool-saturation",
            |dice, habits, faults| {
                let slots = dice.count(2, 16);
                crowd(dice, habits, slots);
                habits.ping_every = Some(habits.tool * dice.uniform(0.3, 1.5));
                faults.concurrency = Concurrency::RequestPool(slots as usize);
            },
            |faults| faults.concurrency = Concurrency::Parallel,
        )
    },
    timed(
        "serial-session",
        |dice, habits, faults| {
            by_recorder(dice, habits);
            crowd(dice, habits, 1);
            habits.hosts = dice.count(2, 5);
            faults.concurrency = Concurrency::SessionSerial;
            habits.session_ids = true;
        },
        |faults| faults.concurrency = Concurrency::Parallel,
    ),
    timed(
        "blocked-event-loop",
        |dice, habits, faults| {
            crowd(dice, habits, 1);
            habits.ping_every = Some(habits.tool * dice.uniform(0.3, 1.5));
            faults.concurrency = Concurrency::EventLoop;
        },
        |faults| faults.concurrency = Concurrency::Parallel,
    ),
    timed(
        "head-of-line",
        |dice, habits, faults| {
            over_stdio(habits);
            crowd(dice, habits, 2);
            habits.spread = dice.uniform(0.5, 2.0);
            faults.concurrency = Concurrency::RepliesInOrder;
        },
        |faults| faults.concurrency = Concurrency::Parallel,
    ),
    timed(
        "constant-cost-per-request",
        |dice, habits, faults| {
            over_http(dice, habits);
            habits.round_trip = dice.magnitude(0.05, 2.0);
            let of = dice.pick(&[CostOf::Tokens, CostOf::Sessions, CostOf::All, CostOf::Processor]);
            match of {
                CostOf::Tokens => habits.token = true,
                CostOf::Sessions => habits.session_ids = true,
                CostOf::All => {}
                CostOf::Processor => {
                    over_stdio(habits);
                    // Nobody knows how the processor time of requests at the same time is divided.
                    (habits.at_once, habits.calls) = (1, habits.calls.max(8));
                    habits.sampled = Some(500.0);
                }
            }
            habits.ping_every.get_or_insert(2_000.0);
            faults.constant_cost = Some((dice.magnitude(5.0, 800.0), of));
        },
        |faults| faults.constant_cost = None,
    ),
    untimed("noisy-run", |dice, habits, faults| faults.instrument_late = Some((lateness(dice, habits), 0.5))),
    untimed("recorder-limited", |dice, habits, faults| {
        let late = lateness(dice, habits);
        faults.instrument_late = Some((late, late * 0.9));
    }),
    timed(
        "late-delivery",
        |dice, habits, faults| {
            (habits.marks, habits.hosts, habits.at_once) = (true, 1, 1);
            faults.late_delivery = Some(dice.magnitude(20.0, 3_000.0));
        },
        |faults| faults.late_delivery = None,
    ),
    untimed("get-loop", |dice, habits, faults| {
        by_recorder(dice, habits);
        habits.standalone_stream = false;
        faults.get_loop = Some(dice.magnitude(100.0, 8_000.0));
    }),
    untimed("retry-storm", |dice, habits, faults| {
        by_recorder(dice, habits);
        faults.retry_storm = Some((dice.pick(&[405, 429, 500, 503]), dice.magnitude(50.0, 5_000.0)));
    }),
    untimed("resume-loop", |dice, habits, faults| {
        by_recorder(dice, habits);
        (habits.event_streams, habits.session_ids) = (true, true);
        faults.resume_loop = Some(dice.magnitude(200.0, 5_000.0));
    }),
    untimed("clustered-stream-lifetime", |dice, habits, faults| {
        by_recorder(dice, habits);
        (habits.session_ids, habits.standalone_stream) = (true, false);
        faults.stream_age = Some(dice.magnitude(5_000.0, 300_000.0));
    }),
    untimed("auth-deadlock", |dice, habits, faults| {
        by_recorder(dice, habits);
        habits.token = true;
        faults.auth_deadlock = true;
    }),
    timed(
        "packet-loss",
        |dice, habits, faults| {
            by_near_recorder(dice, habits);
            // The recorder's kernel counts its own segments only: a few of those must be lost.
            faults.loss = Some(dice.magnitude(0.02, 0.3));
            let lossy = (5.0 / faults.loss.unwrap_or(1.0)) as u64;
            habits.calls = habits.calls.max(dice.count(lossy, 4 * lossy).div_ceil(habits.at_once));
        },
        |faults| faults.loss = None,
    ),
    timed(
        "slow-reader",
        |dice, habits, faults| {
            by_near_recorder(dice, habits);
            faults.slow_reader = Some(dice.magnitude(5.0, 3_000.0));
        },
        |faults| faults.slow_reader = None,
    ),
    timed(
        "distant-server",
        |dice, habits, faults| {
            by_near_recorder(dice, habits);
            faults.distance = Some(dice.magnitude(3.0, 400.0));
        },
        |faults| faults.distance = None,
    ),
    // A client that gives up closes the connection, and its next call may have the same arguments.
    SimulatedCause {
        beside: &["connection-per-request", "retried-execution"],
        ..timed(
            "client-time-out",
            |dice, habits, faults| faults.gives_up = Some(time_out(dice, habits)),
            |faults| faults.gives_up = None,
        )
    },
    SimulatedCause {
        beside: &["client-time-out", "connection-per-request", "retried-execution"],
        ..timed(
            "progress-ignored",
            |dice, habits, faults| {
                habits.event_streams = true;
                let progress = dice.count(4, 20) as u32;
                faults.gives_up = Some(GivesUp { progress, ..time_out(dice, habits) });
            },
            |faults| faults.gives_up = None,
        )
    },
];

/// Causes of which a scene can have any two.
pub(super) const INDEPENDENT: &[&str] = &[
    "delayed-ack",
    "discovery-repeated",
    "duplicate-request",
    "get-loop",
    "large-listing",
    "redirect-per-request",
    "repeated-listing",
    "retry-storm",
];

/// A time-out that ends a few calls: a single call that is given up is a person who cancels.
fn time_out(dice: &mut Dice, habits: &mut Habits) -> GivesUp {
    let limit = if dice.chance(0.5) { dice.pick(&TIME_OUTS) } else { dice.magnitude(1_500.0, 60_000.0) };
    let part = dice.magnitude(0.05, 1.0);
    let fewest = (5.0 / part) as u64;
    habits.calls = habits.calls.max(dice.count(fewest, 4 * fewest).div_ceil(habits.at_once));
    // Nothing else tells of it over stdio.
    let cancels = habits.wire == Wire::Stdio || dice.chance(0.5);
    GivesUp { limit, part, repeats: false, cancels, progress: 0 }
}

fn lateness(dice: &mut Dice, habits: &mut Habits) -> f64 {
    habits.tool = dice.magnitude(50.0, 500.0);
    (habits.calls, habits.spread) = (habits.calls.max(8), dice.pick(&[0.02, 0.1, 0.4]));
    habits.round_trip = habits.round_trip.min(habits.tool / 10.0);
    habits.tool * dice.uniform(0.5, 0.9)
}

/// Codes that may be found in a scene because of its habits.
pub(super) fn consequences(habits: &Habits, faults: &Faults) -> Vec<&'static str> {
    let mut codes = Vec::new();
    let alike = ["blocked-event-loop", "serial-session", "thread-pool-saturation", "completion-waves", "head-of-line"];
    let one_at_a_time = matches!(faults.concurrency, Concurrency::EventLoop | Concurrency::SessionSerial);
    if one_at_a_time && habits.hosts == 1 {
        codes.extend(alike);
    }
    codes
}

/// Adds the streams and requests of causes that repeat, beside the calls.
pub(super) fn add_loops(traffic: &mut Traffic<'_>, faults: &Faults, habits: &Habits) {
    if let Some(period) = faults.get_loop {
        traffic.loop_streams(period);
    }
    if let Some((status, pause)) = faults.retry_storm {
        traffic.retry_refused(status, pause);
    }
    if let Some(period) = faults.resume_loop {
        traffic.resume_in_vain(period, habits.marks);
    }
    if let Some(age) = faults.stream_age {
        traffic.cut_streams(age);
    }
    if faults.auth_deadlock {
        traffic.stop_after_token(habits.marks);
    }
}
