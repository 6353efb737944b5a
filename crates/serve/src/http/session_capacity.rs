//! How many sessions there are, whose they are, and which of them is to make room.
//!
//! Constraint: one caller keeps nobody out. Where all places are taken, a session whose client said nothing since it began makes
//! room, the oldest first; and once half of them are, an authenticated caller has a tenth at most. It knows no session: whether
//! one is used yet is asked of whoever has them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::lock::lock_mutex;
use super::session_key::SessionKey;

/// Counts the sessions in all and for each principal, and picks the session that makes room.
pub(super) struct SessionPlaces {
    limit: usize,
    /// Places taken by sessions in the table, and by those that are about to be.
    taken: AtomicUsize,
    /// How many of them by whom, where anybody is authenticated.
    owned: Mutex<HashMap<Arc<str>, usize>>,
    /// Sessions that nobody may have used yet, the oldest first; and some that are used, or gone.
    fresh: Mutex<VecDeque<SessionKey>>,
}

/// How it went to take a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PlaceOutcome {
    Free,
    /// It is one more than there are: somebody has to make room, or it is to be given back.
    OneTooMany,
    /// The caller has too many already: none was taken.
    Refused,
}

impl SessionPlaces {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0), owned: Mutex::default(), fresh: Mutex::default() }
    }

    pub(super) fn count_taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    pub(super) fn take_place(&self, owner: Option<&Arc<str>>) -> PlaceOutcome {
        if let Some(owner) = owner {
            let mut owned = lock_mutex(&self.owned);
            let count = owned.entry(Arc::clone(owner)).or_default();
            if *count >= (self.limit / 10).max(1) && self.count_taken() >= self.limit / 2 {
                return PlaceOutcome::Refused;
            }
            *count += 1;
        }
        if self.taken.fetch_add(1, Relaxed) < self.limit { PlaceOutcome::Free } else { PlaceOutcome::OneTooMany }
    }

    pub(super) fn give_back(&self, owner: Option<&Arc<str>>) {
        self.taken.fetch_sub(1, Relaxed);
        if let Some(owner) = owner {
            let mut owned = lock_mutex(&self.owned);
            if let Some(count) = owned.get_mut(owner) {
                *count -= 1;
                if *count == 0 {
                    owned.remove(owner);
                }
            }
        }
    }

    /// Notes a session that has only begun.
    pub(super) fn note_fresh(&self, key: SessionKey, is_unused: impl Fn(SessionKey) -> bool) {
        let mut fresh = lock_mutex(&self.fresh);
        // So that the list has few that are used or gone, and never more than there may be sessions.
        while fresh.front().is_some_and(|&key| !is_unused(key)) || fresh.len() >= self.limit.max(1) {
            fresh.pop_front();
        }
        fresh.push_back(key);
    }

    /// The oldest of those that were noted, to be forgotten. It may be used by now, or gone.
    pub(super) fn oldest_noted(&self) -> Option<SessionKey> {
        lock_mutex(&self.fresh).pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_tenth_once_half_are_taken_and_any_number_before() {
        let places = SessionPlaces::new(20);
        let [one, other]: [Arc<str>; 2] = ["one".into(), "other".into()];
        for _ in 0..10 {
            assert_eq!(places.take_place(Some(&one)), PlaceOutcome::Free);
        }
        assert_eq!(places.take_place(Some(&one)), PlaceOutcome::Refused);
        let of_other: Vec<_> = (0..3).map(|_| places.take_place(Some(&other))).collect();
        assert_eq!(of_other, [PlaceOutcome::Free, PlaceOutcome::Free, PlaceOutcome::Refused]);
        assert_eq!(places.count_taken(), 12, "who gets none takes none");
        // Down to fewer than half, it is anybody's again.
        (0..3).for_each(|_| places.give_back(Some(&one)));
        assert_eq!(places.take_place(Some(&other)), PlaceOutcome::Free);
        // Nobody's are counted together only.
        while places.count_taken() < 20 {
            assert_eq!(places.take_place(None), PlaceOutcome::Free);
        }
        assert_eq!(places.take_place(None), PlaceOutcome::OneTooMany);
        assert_eq!(lock_mutex(&places.owned).len(), 2);
        (0..7).for_each(|_| places.give_back(Some(&one)));
        assert_eq!(lock_mutex(&places.owned).len(), 1, "who has none is forgotten");
    }

    #[test]
    fn the_oldest_are_found_first_and_no_more_are_noted_than_there_may_be() {
        let places = SessionPlaces::new(3);
        let keys: Vec<SessionKey> = (0..5).map(|_| SessionKey::random().unwrap()).collect();
        keys.iter().for_each(|&key| places.note_fresh(key, |_| true));
        assert!(places.oldest_noted() == Some(keys[2]));
        // Those in front that are used by now are let go.
        places.note_fresh(keys[0], |key| key != keys[3]);
        assert!(places.oldest_noted() == Some(keys[4]));
        assert!(places.oldest_noted() == Some(keys[0]) && places.oldest_noted().is_none());
    }
}
