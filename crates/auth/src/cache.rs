//! Cache of facts about tokens, keyed by their SHA-256. It is bounded in number and in bytes, and each entry has its
//! own expiry. Pure.

use std::num::NonZeroUsize;
use std::time::Duration;

use lru::LruCache;

use crate::Moment;
use crate::digest::Digest;

/// Bounded cache with an expiry for each entry. The least recently used entry is dropped first.
pub(crate) struct Cache<V> {
    entries: LruCache<Digest, CacheEntry<V>>,
    bytes: usize,
    most_bytes: usize,
}

struct CacheEntry<V> {
    value: V,
    bytes: usize,
    until: Until,
}

/// The end of an entry's time, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Until {
    steady: Duration,
    wall: Option<Duration>,
}

impl Until {
    /// `time` from now on, and no longer than until `expires` by the calendar. `None` where that is no time at all.
    pub(crate) fn capped_time(time: Duration, expires: Option<Duration>, now: Moment) -> Option<Self> {
        let until = Self { steady: now.steady.saturating_add(time), wall: expires };
        (!until.is_past(now)).then_some(until)
    }

    pub(crate) fn is_past(self, now: Moment) -> bool {
        now.steady >= self.steady || self.wall.is_some_and(|end| now.wall >= end)
    }
}

impl<V> Cache<V> {
    pub(crate) fn new(most: NonZeroUsize, most_bytes: usize) -> Self {
        Self { entries: LruCache::new(most), bytes: 0, most_bytes }
    }

    /// Entry of a token, if it has not expired.
    pub(crate) fn find_fresh(&mut self, token: &Digest, now: Moment) -> Option<&V> {
        if self.entries.peek(token)?.until.is_past(now) {
            self.forget(token);
            return None;
        }
        self.entries.get(token).map(|entry| &entry.value)
    }

    /// Keeps what takes `bytes`; too large a thing isn't kept.
    pub(crate) fn keep_value(&mut self, token: Digest, value: V, bytes: usize, until: Until) {
        self.forget(&token);
        if bytes > self.most_bytes {
            return;
        }
        self.bytes += bytes;
        if let Some((_, pushed_out)) = self.entries.push(token, CacheEntry { value, bytes, until }) {
            self.bytes -= pushed_out.bytes;
        }
        while self.bytes > self.most_bytes {
            let Some((_, oldest)) = self.entries.pop_lru() else { break };
            self.bytes -= oldest.bytes;
        }
    }

    pub(crate) fn forget(&mut self, token: &Digest) {
        if let Some(entry) = self.entries.pop(token) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment { wall: Duration::from_secs(1_000_000 + seconds), steady: Duration::from_secs(seconds) }
    }

    fn cache(most: usize, most_bytes: usize) -> Cache<&'static str> {
        Cache::new(NonZeroUsize::new(most).unwrap(), most_bytes)
    }

    fn keep(cache: &mut Cache<&'static str>, token: &'static str, bytes: usize, expires: Option<u64>) {
        let until = Until::capped_time(Duration::from_secs(60), expires.map(|end| at(end).wall), at(0));
        cache.keep_value(Digest::of(token), token, bytes, until.unwrap());
    }

    fn has(cache: &mut Cache<&'static str>, token: &str, now: Moment) -> bool {
        cache.find_fresh(&Digest::of(token), now).is_some()
    }

    #[test]
    fn an_entry_lives_for_its_time_and_never_past_the_token() {
        let mut cache = cache(9, 99);
        keep(&mut cache, "a", 1, None);
        keep(&mut cache, "b", 1, Some(10));
        assert!(has(&mut cache, "a", at(59)) && !has(&mut cache, "a", at(60)));
        assert!(has(&mut cache, "b", at(9)) && !has(&mut cache, "b", at(10)));
        assert_eq!(cache.bytes, 0);
        assert_eq!(Until::capped_time(Duration::ZERO, None, at(0)), None);
        assert_eq!(Until::capped_time(Duration::from_secs(9), Some(at(0).wall), at(0)), None);
    }

    #[test]
    fn a_calendar_that_jumps_ends_what_is_over_by_it_and_prolongs_nothing() {
        let mut cache = cache(9, 99);
        keep(&mut cache, "a", 1, Some(10));
        keep(&mut cache, "b", 1, Some(10));
        let ahead = Moment { wall: at(10).wall, steady: at(1).steady };
        assert!(!has(&mut cache, "a", ahead));
        let back = Moment { wall: Duration::ZERO, steady: at(60).steady };
        assert!(!has(&mut cache, "b", back));
    }

    #[test]
    fn what_was_wanted_longest_ago_goes_first() {
        let mut cache = cache(2, 99);
        keep(&mut cache, "a", 1, None);
        keep(&mut cache, "b", 1, None);
        assert!(has(&mut cache, "a", at(1)));
        keep(&mut cache, "c", 1, None);
        assert!(has(&mut cache, "a", at(1)) && !has(&mut cache, "b", at(1)) && has(&mut cache, "c", at(1)));
        assert_eq!(cache.bytes, 2);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut cache = cache(100, 10);
        keep(&mut cache, "a", 4, None);
        keep(&mut cache, "b", 4, None);
        keep(&mut cache, "c", 4, None);
        assert!(!has(&mut cache, "a", at(1)) && has(&mut cache, "b", at(1)));
        keep(&mut cache, "large", 11, None);
        assert!(!has(&mut cache, "large", at(1)) && has(&mut cache, "b", at(1)));
        keep(&mut cache, "b", 1, None);
        assert_eq!(cache.bytes, 5);
    }
}
