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

/// Uses of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyUses {
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

impl KeyUses {
    /// Nothing used yet.
    pub(super) fn new(rule: &RateLimit, now: u64) -> Self {
        match rule.algorithm {
            Algorithm::FixedWindow => KeyUses::Fixed { begun: now, calls: 0 },
            Algorithm::SlidingWindow => {
                KeyUses::Sliding(Box::new(Sliding { latest: now / part_length(rule), calls: [0; SLOTS] }))
            }
            Algorithm::TokenBucket { .. } => KeyUses::Bucket { full_at: 0 },
        }
    }

    /// Counts one use, or tells how long there is no room for one. A state of another algorithm begins anew.
    pub(super) fn take_use(&mut self, rule: &RateLimit, now: u64) -> Result<(), Duration> {
        if rule.calls == 0 {
            return Err(rule.per);
        }
        match (&mut *self, rule.algorithm) {
            (KeyUses::Fixed { begun, calls }, Algorithm::FixedWindow) => take_fixed(begun, calls, rule, now),
            (KeyUses::Sliding(sliding), Algorithm::SlidingWindow) => sliding.take_use(rule, now),
            (KeyUses::Bucket { full_at }, Algorithm::TokenBucket { burst }) => take_bucket(full_at, burst, rule, now),
            _ => {
                *self = KeyUses::new(rule, now);
                self.take_use(rule, now)
            }
        }
    }

    /// From when on it says no more than a new one would.
    pub(super) fn idle_at(&self, rule: &RateLimit) -> u64 {
        match self {
            KeyUses::Fixed { begun, .. } => begun.saturating_add(whole_nanos(rule.per)),
            KeyUses::Sliding(sliding) => sliding.latest.saturating_add(SLOTS as u64).saturating_mul(part_length(rule)),
            KeyUses::Bucket { full_at } => {
                let calls = u128::from(rule.calls.max(1));
                u64::try_from(full_at.div_ceil(calls)).unwrap_or(u64::MAX)
            }
        }
    }
}

fn take_fixed(begun: &mut u64, calls: &mut u32, rule: &RateLimit, now: u64) -> Result<(), Duration> {
    let end = begun.saturating_add(whole_nanos(rule.per));
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
    fn take_use(&mut self, rule: &RateLimit, now: u64) -> Result<(), Duration> {
        let part = part_length(rule);
        // A clock that goes back stays in the latest part.
        let current = (now / part).max(self.latest);
        self.advance_to(current);
        let used: u64 = self.calls.iter().map(|&calls| u64::from(calls)).sum();
        if used < u64::from(rule.calls) {
            self.calls[slot_index(current)] += 1;
            return Ok(());
        }
        // Part after part goes, the oldest first, until there is room for one.
        let mut left = used;
        for oldest in 1..=SLOTS as u64 {
            let number = current + oldest;
            left -= u64::from(self.calls[slot_index(number)]);
            if left < u64::from(rule.calls) {
                return Err(Duration::from_nanos(number.saturating_mul(part).saturating_sub(now)));
            }
        }
        // Unless none are allowed at all, which was seen before: with all parts gone there is room.
        Err(rule.per)
    }

    /// Makes `current` the latest part; what has left the window is forgotten.
    fn advance_to(&mut self, current: u64) {
        let passed = current - self.latest;
        if passed >= SLOTS as u64 {
            self.calls = [0; SLOTS];
        } else {
            (1..=passed).for_each(|step| self.calls[slot_index(self.latest + step)] = 0);
        }
        self.latest = current;
    }
}

/// The generic cell rate algorithm: a bucket as the time at which it would be full.
fn take_bucket(full_at: &mut u128, burst: u32, rule: &RateLimit, now: u64) -> Result<(), Duration> {
    let calls = u128::from(rule.calls);
    let call = u128::from(whole_nanos(rule.per));
    let now = u128::from(now) * calls;
    let then = (*full_at).max(now) + call;
    let over = (then - now).saturating_sub(call * u128::from(burst));
    if over == 0 {
        *full_at = then;
        return Ok(());
    }
    Err(Duration::from_nanos(u64::try_from(over.div_ceil(calls)).unwrap_or(u64::MAX)))
}

fn slot_index(number: u64) -> usize {
    (number % SLOTS as u64) as usize
}

/// The length of a part of a sliding window.
fn part_length(rule: &RateLimit) -> u64 {
    whole_nanos(rule.per).div_ceil(PARTS).max(1)
}

fn whole_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{KeyUses, part_length, whole_nanos};
    use crate::guard::{Algorithm, RateLimit};
    use std::time::Duration;

    fn rules() -> impl Strategy<Value = RateLimit> {
        let algorithm = prop_oneof![
            Just(Algorithm::FixedWindow),
            Just(Algorithm::SlidingWindow),
            (1_u32..8).prop_map(|burst| Algorithm::TokenBucket { burst }),
        ];
        (algorithm, 1_u32..12, 1_u64..2_000).prop_map(|(algorithm, calls, per)| {
            RateLimit::new("rule", calls, Duration::from_nanos(per)).algorithm(algorithm)
        })
    }

    /// Moments of use, in their order: often at the same time, sometimes after long.
    fn moments() -> impl Strategy<Value = Vec<u64>> {
        let step = prop_oneof![4 => Just(0_u64), 4 => 1_u64..40, 2 => 40_u64..600, 1 => 600_u64..9_000];
        (0_u64..10_000, prop::collection::vec(step, 1..150)).prop_map(|(start, steps)| {
            steps
                .into_iter()
                .scan(start, |now, step| {
                    *now += step;
                    Some(*now)
                })
                .collect()
        })
    }

    fn allowed(rule: &RateLimit, moments: &[u64]) -> Vec<u64> {
        let mut state = KeyUses::new(rule, moments[0]);
        moments.iter().copied().filter(|&now| state.take_use(rule, now).is_ok()).collect()
    }

    /// Checks the bound that holds for every algorithm, independently of its implementation.
    fn check(rule: &RateLimit, allowed: &[u64]) -> Result<(), TestCaseError> {
        let (calls, per) = (rule.calls as usize, whole_nanos(rule.per));
        match rule.algorithm {
            Algorithm::SlidingWindow => {
                for (first, last) in allowed.iter().zip(allowed.iter().skip(calls)) {
                    prop_assert!(last - first >= per, "{} uses from {first} to {last}", calls + 1);
                }
            }
            Algorithm::FixedWindow => {
                let mut rest = allowed;
                while let Some(begun) = rest.first() {
                    let within = rest.iter().take_while(|now| **now < begun + per).count();
                    prop_assert!(within <= calls, "{within} uses from {begun} on");
                    rest = &rest[within..];
                }
            }
            Algorithm::TokenBucket { burst } => {
                for (first, from) in allowed.iter().enumerate() {
                    for (last, to) in allowed.iter().enumerate().skip(first) {
                        let most = u128::from(burst) * u128::from(per) + u128::from(to - from) * calls as u128;
                        let used = (last - first + 1) as u128 * u128::from(per);
                        prop_assert!(used <= most, "{} uses from {from} to {to}", last - first + 1);
                    }
                }
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn never_more_than_allowed(rule in rules(), moments in moments()) {
            check(&rule, &allowed(&rule, &moments))?;
        }

        #[test]
        fn whoever_waits_as_told_gets_through_and_nobody_before(rule in rules(), moments in moments()) {
            let mut state = KeyUses::new(&rule, moments[0]);
            for now in moments {
                let Err(wait) = state.take_use(&rule, now) else { continue };
                let then = now + whole_nanos(wait);
                prop_assert!(then > now);
                prop_assert!(state.clone().take_use(&rule, then - 1).is_err(), "too early at {}", then - 1);
                prop_assert!(state.clone().take_use(&rule, then).is_ok(), "still refused at {then}");
            }
        }

        #[test]
        fn nobody_is_refused_without_cause(rule in rules(), moments in moments()) {
            let mut state = KeyUses::new(&rule, moments[0]);
            let mut allowed = Vec::new();
            let per = whole_nanos(rule.per);
            for now in moments {
                if state.take_use(&rule, now).is_ok() {
                    allowed.push(now);
                    continue;
                }
                let within = |time: u64| allowed.iter().filter(|&&then| then + time > now).count();
                match rule.algorithm {
                    Algorithm::FixedWindow => prop_assert!(within(per) >= rule.calls as usize),
                    // At most a part late, and one for the part that is under way.
                    Algorithm::SlidingWindow => prop_assert!(within(per + 2 * part_length(&rule) + 16) >= rule.calls as usize),
                    // In the time that a bucket takes to fill, it was emptied.
                    Algorithm::TokenBucket { burst } => {
                        let filling = (u64::from(burst) * per).div_ceil(u64::from(rule.calls));
                        prop_assert!(within(filling) >= 1);
                    }
                }
            }
        }

        #[test]
        fn an_idle_state_is_as_good_as_a_new_one(rule in rules(), moments in moments(), later in moments_after()) {
            let mut state = KeyUses::new(&rule, moments[0]);
            moments.iter().for_each(|&now| { let _ = state.take_use(&rule, now); });
            let idle = state.idle_at(&rule);
            let begun = idle.max(*moments.last().unwrap_or(&0));
            let mut fresh = KeyUses::new(&rule, begun + later[0]);
            for step in later {
                let now = begun + step;
                prop_assert_eq!(state.take_use(&rule, now).is_ok(), fresh.take_use(&rule, now).is_ok(), "at {}", now);
            }
        }

        #[test]
        fn a_clock_that_goes_back_gives_nothing_away(rule in rules(), moments in moments(), back in 1_u64..5_000) {
            let mut state = KeyUses::new(&rule, moments[0]);
            let mut passed = allowed(&rule, &moments);
            moments.iter().for_each(|&now| { let _ = state.take_use(&rule, now); });
            // All of them count as if they were now.
            let now = *moments.last().unwrap_or(&0);
            for _ in 0..30 {
                if state.take_use(&rule, now.saturating_sub(back)).is_ok() {
                    passed.push(now);
                }
            }
            check(&rule, &passed)?;
        }
    }

    fn moments_after() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0_u64..50, 1..40).prop_map(|mut steps| {
            steps.sort_unstable();
            steps
        })
    }

    fn rule(algorithm: Algorithm, calls: u32) -> RateLimit {
        RateLimit::new("rule", calls, Duration::from_secs(60)).algorithm(algorithm)
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_takes_its_burst_at_once_and_refills_steadily() {
        let rule = rule(Algorithm::TokenBucket { burst: 5 }, 60);
        let mut state = KeyUses::new(&rule, 0);
        assert!((0..5).all(|_| state.take_use(&rule, 0).is_ok()));
        assert_eq!(state.take_use(&rule, 0), Err(Duration::from_secs(1)));
        for second in 1..=20 {
            assert!(state.take_use(&rule, second * SECOND).is_ok());
            assert!(state.take_use(&rule, second * SECOND).is_err());
        }
        // After long it is full again, and no fuller.
        let later = 1_000 * SECOND;
        assert_eq!((0..50).filter(|_| state.take_use(&rule, later).is_ok()).count(), 5);
    }

    #[test]
    fn a_fixed_window_begins_with_a_use() {
        let rule = rule(Algorithm::FixedWindow, 2);
        let mut state = KeyUses::new(&rule, 7 * SECOND);
        assert!(state.take_use(&rule, 7 * SECOND).is_ok());
        assert!(state.take_use(&rule, 66 * SECOND).is_ok());
        assert_eq!(state.take_use(&rule, 66 * SECOND), Err(Duration::from_secs(1)));
        assert!(state.take_use(&rule, 67 * SECOND).is_ok());
    }

    #[test]
    fn a_sliding_window_has_no_border() {
        let rule = rule(Algorithm::SlidingWindow, 10);
        let mut state = KeyUses::new(&rule, 0);
        assert!((0..10).all(|_| state.take_use(&rule, 59 * SECOND).is_ok()));
        assert!(state.take_use(&rule, 61 * SECOND).is_err());
        assert!(state.take_use(&rule, 118 * SECOND).is_err());
        assert!(state.take_use(&rule, 124 * SECOND).is_ok());
    }

    #[test]
    fn figures_beyond_all_measure_do_no_harm() {
        let algorithms = [Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::TokenBucket { burst: u32::MAX }];
        for algorithm in algorithms {
            for (calls, per) in [(u32::MAX, Duration::MAX), (1, Duration::MAX), (u32::MAX, Duration::from_nanos(1))] {
                let rule = RateLimit::new("rule", calls, per).algorithm(algorithm);
                let mut state = KeyUses::new(&rule, 0);
                for now in [0, 1, u64::MAX / 2, u64::MAX] {
                    let _ = state.take_use(&rule, now);
                    let _ = state.idle_at(&rule);
                }
            }
            let never = RateLimit::new("rule", 0, Duration::from_secs(1)).algorithm(algorithm);
            assert!(KeyUses::new(&never, 0).take_use(&never, 0).is_err());
        }
    }
}
