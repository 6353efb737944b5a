//! When an issuer's keys are fetched, and how long they are good for. Pure: the clock is a parameter.
//!
//! A key that nobody knows yet is a reason to ask, but anybody can make such a token: so there is a least time between two
//! requests. An issuer that is away takes nothing down: its keys go on for a while.

use std::sync::Arc;
use std::time::Duration;

use crate::key_set::KeySet;

/// State machine that decides when an issuer's keys are fetched and how long they are trusted. Times are those of a
/// steady clock.
pub(crate) struct Rotation {
    policy: Policy,
    keys: Option<(Arc<KeySet>, Duration)>,
    /// When a request was last begun.
    asked: Option<Duration>,
    /// Requests in a row that failed.
    failures: u32,
    /// Changes with the keys: what was verified by others no longer counts.
    generation: u64,
}

/// How often, how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// How long keys are believed without asking again.
    pub(crate) lifetime: Duration,
    /// How long they go on while the issuer can't be asked.
    pub(crate) kept: Duration,
    /// The least time between two requests.
    pub(crate) interval: Duration,
}

/// Next step for one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RotationStep {
    /// The keys that are there decide.
    Use,
    /// So they do, and it is time to fetch them anew meanwhile.
    UseAndRefresh,
    /// Fetch, or wait for whoever does, and look again.
    Fetch,
    /// The issuer has no such key.
    Unknown,
    /// There are no keys, and the issuer can't be asked now.
    Unavailable,
}

/// How long to wait after the first failure; doubled with each further one, up to the interval.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

impl Rotation {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, keys: None, asked: None, failures: 0, generation: 0 }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The generation of the keys that are there, where they are not too old to be believed.
    pub(crate) fn trusted_generation(&self, now: Duration) -> Option<u64> {
        let (_, fetched) = self.keys.as_ref()?;
        let Policy { lifetime, kept, .. } = self.policy;
        (now.saturating_sub(*fetched) < kept.max(lifetime)).then_some(self.generation)
    }

    /// The keys that are there, however old.
    pub(crate) fn current_keys(&self) -> Option<Arc<KeySet>> {
        self.keys.as_ref().map(|(keys, _)| Arc::clone(keys))
    }

    /// `has`: whether the token's key is among the keys that are there. `may_fetch`: whether waiting is still an option for
    /// this token; `is_fetching`: whether a request is under way already.
    pub(crate) fn next_step(&self, now: Duration, has: bool, may_fetch: bool, is_fetching: bool) -> RotationStep {
        let can = may_fetch && (is_fetching || self.is_due(now));
        let Some((_, fetched)) = &self.keys else {
            return if can { RotationStep::Fetch } else { RotationStep::Unavailable };
        };
        let age = now.saturating_sub(*fetched);
        let Policy { lifetime, kept, .. } = self.policy;
        match has {
            // Before they are too old, so that nobody has to wait for new ones.
            true if age < lifetime && can && !is_fetching && age >= lifetime / 4 * 3 => RotationStep::UseAndRefresh,
            true if age < lifetime => RotationStep::Use,
            _ if can => RotationStep::Fetch,
            true if age < kept.max(lifetime) => RotationStep::Use,
            false if self.failures == 0 => RotationStep::Unknown,
            _ => RotationStep::Unavailable,
        }
    }

    /// A request begins.
    pub(crate) fn note_request(&mut self, now: Duration) {
        self.asked = Some(now);
    }

    /// It brought keys.
    pub(crate) fn accept_keys(&mut self, keys: KeySet, now: Duration) {
        self.failures = 0;
        match &mut self.keys {
            Some((known, fetched)) if **known == keys => *fetched = now,
            other => {
                *other = Some((Arc::new(keys), now));
                self.generation += 1;
            }
        }
    }

    /// It brought none.
    pub(crate) fn note_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    fn is_due(&self, now: Duration) -> bool {
        let Some(asked) = self.asked else { return true };
        let pause = match self.failures {
            0 => self.policy.interval,
            failures => FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(self.policy.interval),
        };
        now.saturating_sub(asked) >= pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { lifetime: minutes(60), kept: minutes(24 * 60), interval: Duration::from_secs(30) };

    const fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn first(rotation: &Rotation, now: Duration, has: bool) -> RotationStep {
        rotation.next_step(now, has, true, false)
    }

    fn again(rotation: &Rotation, now: Duration, has: bool) -> RotationStep {
        rotation.next_step(now, has, false, false)
    }

    fn with_keys(at: Duration) -> Rotation {
        let mut rotation = Rotation::new(POLICY);
        rotation.note_request(at);
        rotation.accept_keys(KeySet::default(), at);
        rotation
    }

    #[test]
    fn keys_are_used_refreshed_ahead_of_time_and_waited_for_when_old() {
        let rotation = with_keys(seconds(0));
        assert_eq!(first(&rotation, minutes(44), true), RotationStep::Use);
        assert_eq!(first(&rotation, minutes(45), true), RotationStep::UseAndRefresh);
        assert_eq!(rotation.next_step(minutes(45), true, true, true), RotationStep::Use);
        assert_eq!(first(&rotation, minutes(60), true), RotationStep::Fetch);
        assert_eq!(rotation.next_step(minutes(60), true, true, true), RotationStep::Fetch);
    }

    #[test]
    fn unknown_keys_make_one_request_an_interval() {
        let mut rotation = with_keys(seconds(0));
        let mut requests = 0;
        for second in 0..300 {
            let now = seconds(second);
            match first(&rotation, now, false) {
                RotationStep::Fetch => {
                    requests += 1;
                    rotation.note_request(now);
                    rotation.accept_keys(KeySet::default(), now);
                    assert_eq!(again(&rotation, now, false), RotationStep::Unknown);
                }
                step => assert_eq!(step, RotationStep::Unknown),
            }
        }
        assert_eq!(requests, 9);
        assert_eq!(rotation.generation(), 1);
    }

    #[test]
    fn an_issuer_that_is_away_is_asked_less_and_less_and_its_keys_go_on() {
        let mut rotation = with_keys(seconds(0));
        let mut requests = Vec::new();
        for second in 3600..3800 {
            let now = seconds(second);
            if first(&rotation, now, true) == RotationStep::Fetch {
                requests.push(second - 3600);
                rotation.note_request(now);
                rotation.note_failure();
            }
            assert_eq!(again(&rotation, now, true), RotationStep::Use);
            assert_eq!(again(&rotation, now, false), RotationStep::Unavailable);
        }
        assert_eq!(requests, [0, 1, 3, 7, 15, 31, 61, 91, 121, 151, 181]);
        assert_eq!(again(&rotation, minutes(24 * 60), true), RotationStep::Unavailable);
    }

    #[test]
    fn without_keys_there_is_no_verdict() {
        let mut rotation = Rotation::new(POLICY);
        assert_eq!(first(&rotation, seconds(5), true), RotationStep::Fetch);
        rotation.note_request(seconds(5));
        rotation.note_failure();
        assert_eq!(again(&rotation, seconds(5), true), RotationStep::Unavailable);
        assert_eq!(first(&rotation, seconds(5), true), RotationStep::Unavailable);
        assert_eq!(rotation.next_step(seconds(5), true, true, true), RotationStep::Fetch);
        assert_eq!(first(&rotation, seconds(6), true), RotationStep::Fetch);
    }
}
