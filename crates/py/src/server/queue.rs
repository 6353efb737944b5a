//! Which of the calls that wait for a thread goes next, and when.
//!
//! Quick functions overtake slow ones, a limited number of times. Functions that only work and never wait take turns: a second
//! thread would fight the first for the interpreter, and neither would be sooner. Where such a call takes longer than a turn,
//! the next one may go.
//!
//! Constraint: pure; time is a parameter.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a busy function's call keeps others of the kind waiting at most: Python's own turn (`sys.getswitchinterval`).
const TURN: Duration = Duration::from_millis(5);
/// So many quick calls overtake a slow one that waits.
const OVERTAKING: u32 = 16;

/// See the module.
pub(super) struct Queue<T> {
    quick: VecDeque<Waiting<T>>,
    slow: VecDeque<Waiting<T>>,
    /// Quick ones taken since a slow one was.
    overtaken: u32,
    /// Calls of busy functions under way, and when the last of them began.
    busy: usize,
    turn: Option<Instant>,
}

/// What is known of a call's function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Its last call took its time.
    pub(super) is_slow: bool,
    /// Its calls mostly work.
    pub(super) is_busy: bool,
}

struct Waiting<T> {
    call: T,
    is_busy: bool,
}

/// A call that was taken.
pub(super) struct Taken<T> {
    pub(super) call: T,
    /// Whether it counts as a busy function's, until [`Queue::over`] is told.
    pub(super) is_busy: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { quick: VecDeque::new(), slow: VecDeque::new(), overtaken: 0, busy: 0, turn: None }
    }
}

impl<T> Queue<T> {
    pub(super) fn push(&mut self, call: T, manner: Manner) {
        let queue = if manner.is_slow { &mut self.slow } else { &mut self.quick };
        queue.push_back(Waiting { call, is_busy: manner.is_busy });
    }

    pub(super) fn len(&self) -> usize {
        self.quick.len() + self.slow.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.quick.is_empty() && self.slow.is_empty()
    }

    /// The next call, its turn come or not.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Taken<T>> {
        let Waiting { call, is_busy } = if self.next_is_quick() {
            self.overtaken += 1;
            self.quick.pop_front()
        } else {
            self.overtaken = 0;
            self.slow.pop_front()
        }?;
        if is_busy {
            self.busy += 1;
            self.turn = Some(now);
        }
        Some(Taken { call, is_busy })
    }

    /// A call that counted as a busy function's is over.
    pub(super) fn over(&mut self) {
        self.busy = self.busy.saturating_sub(1);
    }

    /// How long the next call is to wait for its turn yet; `None` where it may go, or there is none.
    pub(super) fn turn_left(&self, now: Instant) -> Option<Duration> {
        let next = if self.next_is_quick() { self.quick.front() } else { self.slow.front() }?;
        let turn = self.turn.filter(|_| self.busy > 0 && next.is_busy)?;
        TURN.checked_sub(now.saturating_duration_since(turn)).filter(|left| !left.is_zero())
    }

    fn next_is_quick(&self) -> bool {
        !self.quick.is_empty() && (self.overtaken < OVERTAKING || self.slow.is_empty())
    }
}
