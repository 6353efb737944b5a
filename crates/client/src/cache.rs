//! Results that the server allows to be kept (2026-07-28, server/utilities/caching).
//!
//! One cache a client, so both scopes may be kept: whoever asks here is always the same. Bounded by entries, the one that
//! expires first leaving first. A change that came while a list was under way must not be undone by that list's arrival,
//! hence the generation.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::Raw;
use crate::lock::lock_mutex;

/// Whether a kept result will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Yes, and a new one is kept.
    #[default]
    Use,
    /// No, but the new one is kept.
    Refresh,
    /// No, and the new one isn't kept.
    Bypass,
}

/// A server may not have a result kept for longer than this.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Cache {
    limit: usize,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    generation: u64,
    kept: HashMap<(&'static str, String), (Raw, Instant)>,
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    pub(crate) fn get_result(&self, method: &'static str, key: &str, now: Instant) -> Option<Raw> {
        let state = lock_mutex(&self.state);
        let (raw, until) = state.kept.get(&(method, key.to_owned()))?;
        (*until > now).then(|| raw.clone())
    }

    /// To be had before asking, and given back with the result.
    pub(crate) fn generation(&self) -> u64 {
        lock_mutex(&self.state).generation
    }

    pub(crate) fn put_result(
        &self,
        method: &'static str,
        key: &str,
        raw: &Raw,
        ttl_ms: f64,
        generation: u64,
        now: Instant,
    ) {
        let mut state = lock_mutex(&self.state);
        if state.generation != generation || self.limit == 0 {
            return;
        }
        let Ok(ttl) = Duration::try_from_secs_f64(ttl_ms / 1000.0) else { return };
        let key = (method, key.to_owned());
        if ttl.is_zero() {
            state.kept.remove(&key);
            return;
        }
        if state.kept.len() >= self.limit && !state.kept.contains_key(&key) {
            state.kept.retain(|_, (_, until)| *until > now);
            if state.kept.len() >= self.limit {
                let first = state.kept.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone());
                first.map(|first| state.kept.remove(&first));
            }
        }
        state.kept.insert(key, (raw.clone(), now + ttl.min(LONGEST)));
    }

    /// Forgets what a notification of the server makes stale.
    pub(crate) fn invalidate(&self, notification: &str, uri: Option<&str>) {
        let stale: &[&str] = match notification {
            "notifications/tools/list_changed" => &["tools/list"],
            "notifications/prompts/list_changed" => &["prompts/list"],
            "notifications/resources/list_changed" => &["resources/list", "resources/templates/list"],
            "notifications/resources/updated" => &["resources/read"],
            _ => return,
        };
        let mut state = lock_mutex(&self.state);
        state.generation += 1;
        state.kept.retain(|(method, key), _| {
            let other = uri.is_some_and(|uri| !key.starts_with(uri) && !uri.starts_with(key.as_str()));
            !stale.contains(method) || other
        });
    }

    pub(crate) fn clear(&self) {
        let mut state = lock_mutex(&self.state);
        state.generation += 1;
        state.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> Raw {
        Raw::new("{}")
    }

    #[test]
    fn what_is_kept_ends_with_its_time_and_with_a_change() {
        let (cache, now) = (Cache::new(8), Instant::now());
        cache.put_result("tools/list", "", &raw(), 1000.0, cache.generation(), now);
        cache.put_result("resources/read", "file:///a", &raw(), 1000.0, cache.generation(), now);
        cache.put_result("resources/read", "file:///b", &raw(), 1000.0, cache.generation(), now);
        assert!(
            cache.get_result("tools/list", "", now).is_some() && cache.get_result("prompts/list", "", now).is_none()
        );
        assert!(cache.get_result("tools/list", "", now + Duration::from_secs(1)).is_none());
        cache.invalidate("notifications/resources/updated", Some("file:///a"));
        assert!(cache.get_result("resources/read", "file:///a", now).is_none());
        assert!(cache.get_result("resources/read", "file:///b", now).is_some());
        cache.invalidate("notifications/tools/list_changed", None);
        assert!(cache.get_result("tools/list", "", now).is_none());
    }

    #[test]
    fn a_list_that_was_asked_before_a_change_is_not_kept() {
        let (cache, now) = (Cache::new(8), Instant::now());
        let generation = cache.generation();
        cache.invalidate("notifications/tools/list_changed", None);
        cache.put_result("tools/list", "", &raw(), 1000.0, generation, now);
        assert!(cache.get_result("tools/list", "", now).is_none());
    }

    #[test]
    fn no_server_fills_the_memory_or_keeps_for_ever() {
        let (cache, now) = (Cache::new(2), Instant::now());
        for (index, key) in ["a", "b", "c"].into_iter().enumerate() {
            cache.put_result("resources/read", key, &raw(), 1000.0 * (index + 1) as f64, cache.generation(), now);
        }
        assert!(
            cache.get_result("resources/read", "a", now).is_none()
                && cache.get_result("resources/read", "c", now).is_some()
        );
        cache.put_result("tools/list", "", &raw(), 1e300, cache.generation(), now);
        cache.put_result("tools/list", "", &raw(), -5.0, cache.generation(), now);
        cache.put_result("tools/list", "", &raw(), 1e15, cache.generation(), now);
        assert!(cache.get_result("tools/list", "", now + LONGEST).is_none());
    }
}
