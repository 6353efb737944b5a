//! The mixture: which kinds of load there are, and who does what when. Chance is seeded, so that two runs differ by timing
//! alone.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::client::Outcome;
use crate::{children, legacy, modern, rough};

/// Past this a piece of load has hung.
const LIMIT: Duration = Duration::from_secs(30);

/// Kinds of load.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// The server's program, for stdio.
    pub(crate) program: PathBuf,
    /// Leak that is provoked.
    pub(crate) leak: Option<String>,
}

/// Chance.
pub(crate) struct Dice(StdRng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// 0 to `count - 1`.
    pub(crate) fn one_of(&mut self, count: u64) -> u64 {
        self.0.random_range(0..count)
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.random_range(0..from.len())]
    }

    pub(crate) fn pick_of<T>(&mut self, mut from: Vec<T>) -> T {
        from.swap_remove(self.0.random_range(0..from.len()))
    }

    /// A time in which something has begun, or not.
    pub(crate) fn moment(&mut self) -> Duration {
        Duration::from_micros(self.0.random_range(0..20_000))
    }
}

type Piece<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One kind of load.
struct Kind {
    name: &'static str,
    /// How often, beside the others.
    weight: u64,
    run: for<'a> fn(&'a Target, &'a mut Dice) -> Piece<'a>,
}

macro_rules! kinds {
    ($($name:literal, $weight:literal, $run:path;)*) => {
        [$(Kind { name: $name, weight: $weight, run: |target, dice| Box::pin($run(target, dice)) }),*]
    };
}

const KINDS: [Kind; 20] = kinds! {
    "legacy: calls", 20, legacy::calls;
    "legacy: progress and logs", 10, legacy::progress;
    "legacy: questions", 10, legacy::questions;
    "legacy: questions without an answer", 5, legacy::unanswered;
    "legacy: cancelled calls", 10, legacy::cancelled;
    "legacy: disconnects", 10, legacy::left;
    "legacy: resumption", 10, legacy::resumed;
    "legacy: subscriptions", 10, legacy::watched;
    "legacy: 2024-11-05's endpoints", 5, legacy::two_endpoints;
    "modern: calls", 20, modern::calls;
    "modern: rounds", 10, modern::rounds;
    "modern: disconnects", 10, modern::left;
    "modern: subscriptions", 10, modern::subscriptions;
    "modern: tasks", 10, modern::tasks;
    "bad requests", 10, rough::bad_requests;
    "slow senders", 4, rough::slow_senders;
    "slow readers", 2, rough::slow_readers;
    "HTTP/2", 5, rough::http2;
    "stdio children", 1, children::children;
    "leaks on purpose", 0, leak;
};

/// Only where it is asked for.
const LEAK: &str = "leaks on purpose";

/// How it went, by kind.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) kinds: BTreeMap<&'static str, Count>,
}

#[derive(Default)]
pub(crate) struct Count {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Why, the first time.
    pub(crate) first: Option<String>,
}

impl Tally {
    /// Whether every kind was there, and nearly all of it went well. A machine busy with other things may be too slow for
    /// the server's short limits now and then.
    pub(crate) fn is_good(&self) -> bool {
        let wanted = KINDS.iter().filter(|kind| kind.weight > 0).count();
        let good = |count: &Count| count.done > 0 && count.failed * 100 <= count.done;
        self.kinds.len() >= wanted && self.kinds.values().all(good)
    }

    pub(crate) fn total(&self) -> u64 {
        self.kinds.values().map(|count| count.done).sum()
    }
}

/// One that does piece after piece until it is told to stop.
pub(crate) async fn act(target: Target, seed: u64, tally: Arc<Mutex<Tally>>, stop: CancellationToken) {
    let mut dice = Dice::new(seed);
    let weight = |kind: &Kind| if kind.name == LEAK && target.leak.is_some() { 20 } else { kind.weight };
    let all: u64 = KINDS.iter().map(weight).sum();
    while !stop.is_cancelled() {
        let mut drawn = dice.one_of(all);
        let kind = KINDS.iter().find(|kind| {
            let is_it = drawn < weight(kind);
            drawn = drawn.saturating_sub(weight(kind));
            is_it
        });
        let Some(kind) = kind else { continue };
        let ended = tokio::time::timeout(LIMIT, (kind.run)(&target, &mut dice)).await;
        let ended = ended.unwrap_or_else(|_| Err(format!("still not done after {} s", LIMIT.as_secs()).into()));
        // Nothing under the lock can panic half way.
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        let count = tally.kinds.entry(kind.name).or_default();
        match ended {
            Ok(()) => count.done += 1,
            Err(failure) => {
                count.failed += 1;
                count.first.get_or_insert_with(|| failure.to_string());
            }
        }
    }
}

async fn leak(target: &Target, _: &mut Dice) -> Outcome {
    modern::alone(target, "leak", json!({"what": target.leak})).await.map(drop)
}
