//! The limiter of one process.
//!
//! Constraint: bounded in keys, whatever peers call themselves; what is idle goes when room is made. Known keys are found
//! without an allocation: what is kept of a key is its hash, under a secret of this limiter's, so that nobody can aim at
//! another's.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::algorithm::KeyUses;
use super::{Exceeded, Limiter, RateLimit, Taking};

/// Limiter that counts in the memory of this process. It is the default of [`crate::Builder::limiter`].
///
/// When the maximum number of keys is in use, new keys are counted together, in one of 256 groups by their hash, until other
/// keys are idle. A client that fills the limiter with made-up names therefore uses up the limit of some groups, not of all.
pub struct MemoryLimiter {
    shards: Box<[Mutex<Shard>]>,
    /// Keys in a shard.
    room: usize,
    secret: RandomState,
    clock: LimiterClock,
}

/// Time since any beginning.
type LimiterClock = Box<dyn Fn() -> Duration + Send + Sync>;

#[derive(Default)]
struct Shard {
    uses: HashMap<u64, Use, BuildHasherDefault<AsItIs>>,
    /// At this size it is swept.
    sweep_at: usize,
    /// Not before this, where there is no room anyway.
    sweep_after: u64,
}

/// Uses of one key under one rule.
struct Use {
    state: KeyUses,
    idle_at: u64,
}

const SHARDS: usize = 16;
/// Groups in a shard of those that find no room.
const GROUPS: u64 = 16;
/// Below this, sweeping isn't worth it.
const FEW: usize = 64;
/// A full shard is swept once in this time at most: it looks at all of them.
const SWEEP_EACH_NS: u64 = 100_000_000;
/// Keys, where nobody says otherwise.
const KEYS: usize = 100_000;

impl MemoryLimiter {
    /// With room for so many keys.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        let begun = Instant::now();
        Self::with_clock(keys, move || begun.elapsed())
    }

    /// Creates a limiter on another clock, which returns the time since an arbitrary start.
    #[must_use]
    pub fn with_clock(keys: usize, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let room = keys.div_ceil(SHARDS).max(1);
        Self { shards, room, secret: RandomState::new(), clock: Box::new(clock) }
    }

    /// How many keys it holds, idle ones among them.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.shards.iter().map(|shard| lock_shard(shard).uses.len()).sum()
    }

    fn count_use(&self, rule: &RateLimit, key: &str) -> Result<(), Exceeded> {
        let hash = self.key_hash(rule, key);
        // Neither bits that choose the bucket nor those that are compared first.
        let mut shard = lock_shard(&self.shards[(hash >> 32) as usize % SHARDS]);
        // Within the lock, so that time goes on in the order in which uses are counted.
        let now = u64::try_from((self.clock)().as_nanos()).unwrap_or(u64::MAX);
        if let Some(known) = shard.uses.get_mut(&hash) {
            return known.take_use(rule, now);
        }
        let hash = if shard.make_room(self.room, now) { hash } else { self.hash_of_group(rule, hash % GROUPS) };
        match shard.uses.entry(hash) {
            Entry::Occupied(mut known) => known.get_mut().take_use(rule, now),
            Entry::Vacant(free) => {
                free.insert(Use { state: KeyUses::new(rule, now), idle_at: now }).take_use(rule, now)
            }
        }
    }

    fn key_hash(&self, rule: &RateLimit, key: &str) -> u64 {
        self.secret.hash_one((&*rule.name, rule.algorithm, rule.calls, rule.per, Some(key)))
    }

    /// Hash of a group of keys that found no room.
    fn hash_of_group(&self, rule: &RateLimit, group: u64) -> u64 {
        self.secret.hash_one((&*rule.name, rule.algorithm, rule.calls, rule.per, None::<&str>, group))
    }
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        Self::new(KEYS)
    }
}

impl Limiter for MemoryLimiter {
    fn take(&self, rule: &RateLimit, key: &str) -> Taking {
        Taking::Now(self.count_use(rule, key))
    }
}

impl std::fmt::Debug for MemoryLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLimiter").field("keys", &self.keys()).finish_non_exhaustive()
    }
}

impl Use {
    fn take_use(&mut self, rule: &RateLimit, now: u64) -> Result<(), Exceeded> {
        let taken = self.state.take_use(rule, now);
        self.idle_at = self.state.idle_at(rule);
        taken.map_err(|retry_after| Exceeded { retry_after })
    }
}

impl Shard {
    /// Whether there is room for another key. Each sweep is paid for by as many insertions as it leaves keys.
    fn make_room(&mut self, room: usize, now: u64) -> bool {
        let is_full = self.uses.len() >= room;
        let is_due = if is_full { now >= self.sweep_after } else { self.uses.len() >= self.sweep_at.max(FEW) };
        if is_due {
            self.uses.retain(|_, used| used.idle_at > now);
            self.sweep_at = self.uses.len() * 2;
            self.sweep_after = now.saturating_add(SWEEP_EACH_NS);
            if self.uses.capacity() > 4 * self.uses.len().max(FEW) {
                self.uses.shrink_to(2 * self.uses.len());
            }
        }
        self.uses.len() < room
    }
}

fn lock_shard(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // Nothing under the lock can panic half way.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    use super::{GROUPS, MemoryLimiter, SHARDS};
    use crate::guard::{Algorithm, RateLimit};

    fn limiter(keys: usize) -> (MemoryLimiter, Arc<AtomicU64>) {
        let seconds = Arc::new(AtomicU64::new(0));
        let its = Arc::clone(&seconds);
        (MemoryLimiter::with_clock(keys, move || Duration::from_secs(its.load(Relaxed))), seconds)
    }

    fn rule(calls: u32) -> RateLimit {
        RateLimit::new("rule", calls, Duration::from_secs(60)).algorithm(Algorithm::FixedWindow)
    }

    #[test]
    fn uses_at_the_same_time_are_counted_exactly() {
        for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::TokenBucket { burst: 500 }] {
            let (limiter, _) = limiter(1_000);
            let rule = rule(500).algorithm(algorithm);
            let uses = || (0..300).filter(|_| limiter.count_use(&rule, "one").is_ok()).count();
            let all: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(uses)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum()
            });
            assert_eq!(all, 500, "{algorithm:?}");
        }
    }

    #[test]
    fn what_has_a_name_and_figures_in_common_is_counted_together() {
        let (limiter, _) = limiter(1_000);
        let pass = |rule: &RateLimit, key: &str| limiter.count_use(rule, key).is_ok();
        assert!(pass(&rule(1), "a"));
        assert!(!pass(&rule(1), "a"));
        assert!(pass(&rule(1), "b"), "another key");
        assert!(pass(&RateLimit::new("other", 1, Duration::from_secs(60)), "a"), "another name");
        assert!(pass(&rule(2), "a"), "other figures");
    }

    #[test]
    fn keys_are_bounded_and_the_rest_shares_what_there_is() {
        let (limiter, seconds) = limiter(320);
        let rule = rule(1);
        let pass = |key: usize| limiter.count_use(&rule, &format!("key {key}")).is_ok();
        let passed = (0..20_000).filter(|&key| pass(key)).count();
        // One for each group of those who found no room, in each shard.
        assert!(limiter.keys() <= 320 + SHARDS * GROUPS as usize, "{}", limiter.keys());
        assert_eq!(passed, limiter.keys());
        // A known key keeps its own count; the new keys do not raise its limit.
        assert!(!pass(0));
        seconds.store(61, Relaxed);
        let passed = (20_000..20_200).filter(|&key| pass(key)).count();
        assert!(passed >= 190, "idle keys made no room: {passed}");
    }

    #[test]
    fn who_fills_it_with_names_has_not_used_up_what_is_everybody_elses() {
        let (limiter, _) = limiter(16);
        let rule = rule(3);
        for _ in 0..10 {
            for hog in 0..100 {
                let _ = limiter.count_use(&rule, &format!("hog {hog}"));
            }
        }
        let newcomers = (0..100).filter(|index| limiter.count_use(&rule, &format!("newcomer {index}")).is_ok()).count();
        assert!(newcomers > 20, "{newcomers} of 100");
    }

    #[test]
    fn idle_keys_go_without_need_for_room() {
        let (limiter, seconds) = limiter(1_000_000);
        let rule = rule(1);
        for minute in 0..50 {
            seconds.store(minute * 120, Relaxed);
            for key in 0..2_000 {
                let _ = limiter.count_use(&rule, &format!("{minute} {key}"));
            }
        }
        assert!(limiter.keys() < 6_000, "{}", limiter.keys());
    }
}
