//! Whether a function may run on an I/O thread: only for as long as all its recent calls were short.
//!
//! A long call may not be the function's doing: the system may have run other threads meanwhile. So the first one only has
//! the next calls watched, by the clocks of [`super::held`]; what holds its thread while it is watched goes.
//!
//! Constraint: a decision costs a load; a call two readings of the clock. Time is a parameter.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A call that takes this long is not short.
const SHORT: Duration = Duration::from_micros(200);
/// An inline call that held its thread for this long, whatever for, was one too many.
const TOO_LONG: Duration = Duration::from_millis(1);
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
    /// Whether its last call elsewhere was short.
    quick: AtomicBool,
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

    /// Whether its last call elsewhere was short.
    pub(super) fn was_quick(&self) -> bool {
        self.quick.load(Relaxed)
    }

    /// A call elsewhere took this long.
    pub(super) fn ran(&self, took: Duration, now_ms: u64) {
        self.quick.store(took < SHORT, Relaxed);
        if took >= SHORT {
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
            return self.was_good();
        }
        self.watched.store(WATCHED, Relaxed);
        self.short.store(0, Relaxed);
        if held >= TOO_LONG {
            let offences = self.offences.fetch_add(1, Relaxed).min(16);
            let away = (AWAY_MS << offences).min(AWAY_MOST_MS);
            self.away_until.store(now_ms() + away, Relaxed);
        }
    }

    fn was_good(&self) {
        let good = self.short.fetch_add(1, Relaxed);
        if good >= FORGIVEN {
            self.short.store(TRUSTED, Relaxed);
            self.offences.store(0, Relaxed);
        }
    }
}
