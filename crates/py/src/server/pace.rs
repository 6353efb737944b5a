//! Whether a function may run on an I/O thread: only for as long as its calls hold that thread up by next to nothing.
//!
//! What calls held the thread for beyond the short is a debt, and each short call pays a little of it: a function that blocks
//! is gone after its first call, one whose thread had to wait once for others' turn at the interpreter is not. A long call
//! may not be the function's doing at all: the system may have run other threads meanwhile. So the first one only has the
//! next calls watched, by the clocks of [`super::held`].
//!
//! Constraint: a decision costs a load; a call two readings of the clock. Time is a parameter.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::held::Held;
use super::queue::Manner;

/// A call that takes this long is not short.
const SHORT: Duration = Duration::from_micros(200);
/// A debt above this is too much. Python makes a thread wait for the interpreter for 5 ms at most before it interrupts whoever
/// has it (`sys.getswitchinterval`).
const TOO_MUCH_US: u32 = 8_000;
/// What a short call pays: who is long once in 400 calls, by 8 ms, stays.
const PAID_US: u32 = 20;
/// So many short calls in a row before the next may be inline.
const TRUSTED: u32 = 16;
/// So many calls are watched after one that took long for reasons unknown.
const WATCHED: u32 = 1_000;
/// The first time away; it doubles each time.
const AWAY_MS: u64 = 100;
/// The longest time away.
const AWAY_MOST_MS: u64 = 60_000;
/// So many good calls inline, and what was before is forgotten.
const FORGIVEN: u32 = 100_000;

/// So many calls elsewhere that mostly worked make a function busy; twice as many are remembered.
const BUSY: u32 = 4;

/// Milliseconds on the process's own clock.
pub(super) fn now_ms() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// What is known of one function.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Short calls in a row.
    short: AtomicU32,
    /// Calls that are still to be watched.
    watched: AtomicU32,
    /// What watched calls held their thread for and short ones haven't paid yet, in microseconds.
    debt_us: AtomicU32,
    /// Whether its last call elsewhere took its time.
    slow: AtomicBool,
    /// Calls elsewhere that mostly worked, less those that mostly waited.
    busy: AtomicU32,
    /// Times that it held up an I/O thread.
    offences: AtomicU32,
    /// Until when it stays away, in milliseconds.
    away_until: AtomicU64,
}

impl Pace {
    /// Whether the next call may be inline.
    pub(super) fn is_inline(&self) -> bool {
        self.short.load(Relaxed) >= TRUSTED
    }

    /// Whether the next call inline is to be watched.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Relaxed) > 0
    }

    /// How the next call elsewhere is to be queued. Unknown functions get the benefit of the doubt.
    pub(super) fn manner(&self) -> Manner {
        Manner { is_slow: self.slow.load(Relaxed), is_busy: self.busy.load(Relaxed) >= BUSY }
    }

    /// A call elsewhere held its thread.
    pub(super) fn ran(&self, Held { held, worked }: Held, now_ms: u64) {
        let busy = self.busy.load(Relaxed);
        let busy = if worked * 2 >= held { (busy + 1).min(2 * BUSY) } else { busy.saturating_sub(1) };
        self.busy.store(busy, Relaxed);
        self.slow.store(held >= SHORT, Relaxed);
        if held >= SHORT {
            self.short.store(0, Relaxed);
        } else if now_ms >= self.away_until.load(Relaxed) {
            self.short.fetch_add(1, Relaxed);
        }
    }

    /// A call inline took this long; `held` is what it held its thread for, where it was watched.
    pub(super) fn ran_inline(&self, took: Duration, held: Option<Duration>, now_ms: impl FnOnce() -> u64) {
        let Some(held) = held else {
            if took < SHORT {
                self.was_good()
            } else {
                self.watched.store(WATCHED, Relaxed)
            }
            return;
        };
        if held < SHORT {
            // A race loses a count at worst.
            self.watched.store(self.watched.load(Relaxed).saturating_sub(1), Relaxed);
            self.debt_us.store(self.debt_us.load(Relaxed).saturating_sub(PAID_US), Relaxed);
            return self.was_good();
        }
        self.watched.store(WATCHED, Relaxed);
        let held_us = u32::try_from(held.as_micros()).unwrap_or(u32::MAX);
        let debt_us = self.debt_us.load(Relaxed).saturating_add(held_us);
        if debt_us <= TOO_MUCH_US {
            return self.debt_us.store(debt_us, Relaxed);
        }
        self.debt_us.store(0, Relaxed);
        self.short.store(0, Relaxed);
        let offences = self.offences.fetch_add(1, Relaxed).min(16);
        let away = (AWAY_MS << offences).min(AWAY_MOST_MS);
        self.away_until.store(now_ms() + away, Relaxed);
    }

    fn was_good(&self) {
        let good = self.short.fetch_add(1, Relaxed);
        if good >= FORGIVEN {
            self.short.store(TRUSTED, Relaxed);
            self.offences.store(0, Relaxed);
        }
    }
}
