//! Timers for many users at once: time-outs and ends of pauses.
//!
//! Constraint: no clock. A time-out is set with every call and nearly never comes true, so setting one must cost nothing: each
//! user has at most one entry in the heap, which, when it comes up, is put back at the time that counts by then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nothing is due.
pub(crate) const NEVER: u64 = u64::MAX;

/// One time for each user, put off again and again.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    users: Vec<Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// When it counts, or [`NEVER`].
    at: u64,
    /// The time of the entry in the heap that is valid, or [`NEVER`]: there is none.
    entry: u64,
}

impl Deadlines {
    /// Makes room for one more user.
    pub(crate) fn add_user(&mut self) {
        self.users.push(Deadline { at: NEVER, entry: NEVER });
    }

    /// Sets the user's time.
    pub(crate) fn set_deadline(&mut self, user: u32, at: u64) {
        let deadline = &mut self.users[user as usize];
        deadline.at = at;
        if at < deadline.entry {
            deadline.entry = at;
            self.heap.push(Reverse((at, user)));
        }
    }

    /// The user has none.
    pub(crate) fn clear_deadline(&mut self, user: u32) {
        self.users[user as usize].at = NEVER;
    }

    /// The next user whose time has come.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<u32> {
        while let Some(Reverse((at, user))) = self.heap.peek().copied() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let deadline = &mut self.users[user as usize];
            if deadline.entry != at {
                continue;
            }
            deadline.entry = NEVER;
            if deadline.at <= now {
                deadline.at = NEVER;
                return Some(user);
            }
            if deadline.at != NEVER {
                deadline.entry = deadline.at;
                self.heap.push(Reverse((deadline.at, user)));
            }
        }
        None
    }

    /// No time comes before this one.
    pub(crate) fn earliest(&self) -> u64 {
        self.heap.peek().map_or(NEVER, |Reverse((at, _))| *at)
    }
}

/// Pauses: each ends exactly once.
#[derive(Debug, Default)]
pub(crate) struct Pauses(BinaryHeap<Reverse<(u64, u32)>>);

impl Pauses {
    pub(crate) fn add_pause(&mut self, user: u32, until: u64) {
        self.0.push(Reverse((until, user)));
    }

    /// The next user whose pause is over, and when it was.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<(u64, u32)> {
        let Reverse((at, user)) = self.0.peek().copied()?;
        (at <= now).then(|| self.0.pop()).flatten().map(|_| (at, user))
    }

    pub(crate) fn earliest(&self) -> u64 {
        self.0.peek().map_or(NEVER, |Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Deadlines, NEVER};

    #[test]
    fn put_off_for_ever_it_takes_one_entry() {
        let mut deadlines = Deadlines::default();
        deadlines.add_user();
        (1..10_000).for_each(|at| deadlines.set_deadline(0, at));
        assert_eq!(deadlines.heap.len(), 1);
        assert_eq!(deadlines.pop_due(9_998), None);
        assert_eq!(deadlines.pop_due(9_999), Some(0));
        assert_eq!((deadlines.pop_due(NEVER), deadlines.earliest()), (None, NEVER));
    }

    proptest! {
        #[test]
        fn it_fires_what_a_plain_table_would(steps in prop::collection::vec((0u32..3, 0u64..50, any::<bool>()), 0..200)) {
            let (mut deadlines, mut table, mut now) = (Deadlines::default(), [NEVER; 3], 0);
            (0..3).for_each(|_| deadlines.add_user());
            for (user, ahead, clear) in steps {
                if clear {
                    deadlines.clear_deadline(user);
                    table[user as usize] = NEVER;
                } else {
                    deadlines.set_deadline(user, now + ahead);
                    table[user as usize] = now + ahead;
                }
                now += 7;
                let mut fired = Vec::new();
                while let Some(user) = deadlines.pop_due(now) {
                    fired.push(user);
                }
                fired.sort_unstable();
                let expected: Vec<u32> = (0..3u32).filter(|user| table[*user as usize] <= now).collect();
                expected.iter().for_each(|user| table[*user as usize] = NEVER);
                prop_assert_eq!(fired, expected);
                prop_assert!(deadlines.earliest() <= table.iter().copied().min().unwrap_or(NEVER));
            }
        }
    }
}
