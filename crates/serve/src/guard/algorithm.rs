//! The algorithms of rate limits.
//!
//! Constraint: pure. Time is a parameter, in nanoseconds since any beginning; where it stands still or goes back, nobody gains
//! by it.

use std::time::Duration;

use super::{Algorithm, RateLimit};

/// Into so many parts is a sliding window divided.
const PARTS: u64 = 16;
/// Those, and the one that is only partly within.
const SLOTS: usize = PARTS as usize + 1;

/// What one key has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fixed {
        begun: u64,
        calls: u32,
    },
    /// On the heap: most states are smaller.
    Sliding(Box<Sliding>),
    /// When the bucket will be full again, in units of which `calls` make a nanosecond: nothing is lost to rounding.
    Bucket {
        full_at: u128,
    },
}

/// Uses by part of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sliding {
    /// The number of the latest part that was used, since the beginning of time.
    latest: u64,
    /// By the part's number, modulo.
    calls: [u32; SLOTS],
}

impl State {
    /// Nothing used yet.
    pub(super) fn new(rule: &RateLimit, now: u64) -> Self {
        match rule.algorithm {
            Algorithm::FixedWindow => State::Fixed { begun: now, calls: 0 },
            Algorithm::SlidingWindow => {
                State::Sliding(Box::new(Sliding { latest: now / part(rule), calls: [0; SLOTS] }))
            }
            Algorithm::TokenBucket { .. } => State::Bucket { full_at: 0 },
        }
    }

    /// Counts one use, or tells how long there is no room for one. A state of another algorithm begins anew.
    pub(super) fn take(&mut self, rule: &RateLimit, now: u64) -> Result<(), Duration> {
        if rule.calls == 0 {
            return Err(rule.per);
        }
        match (&mut *self, rule.algorithm) {
            (State::Fixed { begun, calls }, Algorithm::FixedWindow) => fixed(begun, calls, rule, now),
            (State::Sliding(sliding), Algorithm::SlidingWindow) => sliding.take(rule, now),
            (State::Bucket { full_at }, Algorithm::TokenBucket { burst }) => bucket(full_at, burst, rule, now),
            _ => {
                *self = State::new(rule, now);
                self.take(rule, now)
            }
        }
    }

    /// From when on it says no more than a new one would.
    pub(super) fn idle_at(&self, rule: &RateLimit) -> u64 {
        match self {
            State::Fixed { begun, .. } => begun.saturating_add(nanos(rule.per)),
            State::Sliding(sliding) => sliding.latest.saturating_add(SLOTS as u64).saturating_mul(part(rule)),
            State::Bucket { full_at } => {
                let calls = u128::from(rule.calls.max(1));
                u64::try_from(full_at.div_ceil(calls)).unwrap_or(u64::MAX)
            }
        }
    }
}

fn fixed(begun: &mut u64, calls: &mut u32, rule: &RateLimit, now: u64) -> Result<(), Duration> {
    let end = begun.saturating_add(nanos(rule.per));
    if now >= end {
        (*begun, *calls) = (now, 0);
    }
    if *calls < rule.calls {
        *calls += 1;
        return Ok(());
    }
    Err(Duration::from_nanos(end.saturating_sub(now)))
}

impl Sliding {
    fn take(&mut self, rule: &RateLimit, now: u64) -> Result<(), Duration> {
        let part = part(rule);
        // A clock that goes back stays in the latest part.
        let current = (now / part).max(self.latest);
        self.forget(current);
        let used: u64 = self.calls.iter().map(|&calls| u64::from(calls)).sum();
        if used < u64::from(rule.calls) {
            self.calls[slot(current)] += 1;
            return Ok(());
        }
        // Part after part goes, the oldest first, until there is room for one.
        let mut left = used;
        for oldest in 1..=SLOTS as u64 {
            let number = current + oldest;
            left -= u64::from(self.calls[slot(number)]);
            if left < u64::from(rule.calls) {
                return Err(Duration::from_nanos(number.saturating_mul(part).saturating_sub(now)));
            }
        }
        // Unless none are allowed at all, which was seen before: with all parts gone there is room.
        Err(rule.per)
    }

    /// Makes `current` the latest part; what has left the window is forgotten.
    fn forget(&mut self, current: u64) {
        let passed = current - self.latest;
        if passed >= SLOTS as u64 {
            self.calls = [0; SLOTS];
        } else {
            (1..=passed).for_each(|step| self.calls[slot(self.latest + step)] = 0);
        }
        self.latest = current;
    }
}

/// The generic cell rate algorithm: a bucket as the time at which it would be full.
fn bucket(full_at: &mut u128, burst: u32, rule: &RateLimit, now: u64) -> Result<(), Duration> {
    let calls = u128::from(rule.calls);
    let call = u128::from(nanos(rule.per));
    let now = u128::from(now) * calls;
    let then = (*full_at).max(now) + call;
    let over = (then - now).saturating_sub(call * u128::from(burst));
    if over == 0 {
        *full_at = then;
        return Ok(());
    }
    Err(Duration::from_nanos(u64::try_from(over.div_ceil(calls)).unwrap_or(u64::MAX)))
}

fn slot(number: u64) -> usize {
    (number % SLOTS as u64) as usize
}

/// The length of a part of a sliding window.
fn part(rule: &RateLimit) -> u64 {
    nanos(rule.per).div_ceil(PARTS).max(1)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
