//! Decides whether a function may run on an I/O thread. It may, as long as its calls are short.
//!
//! Time beyond a short call is a debt, and each short call pays a little of the debt. A function that blocks loses the I/O thread
//! after its first long call. A function that waited once for the interpreter keeps it. A long call may have another cause: the system
//! may have run other threads meanwhile. The first long call therefore only starts the measurement of the next calls by the clocks
//! of [`crate::server::threads::thread_time`].
//!
//! Constraint: a decision costs one load, and a call costs two readings of the clock. Time is a parameter.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::server::threads::queue::Manner;
use crate::server::threads::thread_time::ThreadTime;

/// Upper limit of a short call.
const SHORT: Duration = Duration::from_micros(200);
/// Largest debt, in microseconds. Python interrupts the holder of the interpreter after 5 ms (`sys.getswitchinterval`), so one such
/// wait fits.
const TOO_MUCH_US: u32 = 8_000;
/// Debt that a short call pays, in microseconds: a function that takes 8 ms once in 400 calls stays inline.
const PAID_US: u32 = 20;
/// Number of consecutive short calls before the next call may run inline on the I/O thread.
const TRUSTED: u32 = 16;
/// Number of calls that are measured after a long call.
const WATCHED: u32 = 1_000;
/// First time off the I/O thread; it doubles each time.
const AWAY_MS: u64 = 100;
/// Longest time off the I/O thread.
const AWAY_MOST_MS: u64 = 60_000;
/// Number of good inline calls after which earlier offences are forgotten.
const FORGIVEN: u32 = 100_000;

/// Number of CPU-bound calls off the I/O thread that make a function busy; twice as many are remembered.
const BUSY: u32 = 4;

/// Milliseconds on the process's own clock.
pub(crate) fn now_ms() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Recent behaviour of one function.
#[derive(Debug, Default)]
pub(crate) struct InlinePolicy {
    /// Short calls in a row.
    short: AtomicU32,
    /// Number of calls that are still measured.
    watched: AtomicU32,
    /// Time of long calls that short calls have not paid yet, in microseconds.
    debt_us: AtomicU32,
    /// Whether the last call off the I/O thread was long.
    slow: AtomicBool,
    /// CPU-bound calls off the I/O thread, less those that mostly waited.
    busy: AtomicU32,
    /// Number of times that the function blocked an I/O thread.
    offences: AtomicU32,
    /// Time until which the function stays off the I/O thread, in milliseconds.
    away_until: AtomicU64,
}

impl InlinePolicy {
    /// Whether the next call may run inline.
    pub(crate) fn is_inline(&self) -> bool {
        self.short.load(Relaxed) >= TRUSTED
    }

    /// Whether the next inline call is measured.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Relaxed) > 0
    }

    /// Position of the next call in the pool's queue. An unknown function counts as quick.
    pub(crate) fn queue_manner(&self) -> Manner {
        Manner { is_slow: self.slow.load(Relaxed), is_busy: self.busy.load(Relaxed) >= BUSY }
    }

    /// Records a call off the I/O thread.
    pub(crate) fn record_call(&self, ThreadTime { held, worked }: ThreadTime, now_ms: u64) {
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

    /// Records an inline call. `held` is the time that it held its thread, where the call was measured.
    pub(crate) fn record_inline(&self, took: Duration, held: Option<Duration>, now_ms: impl FnOnce() -> u64) {
        let Some(held) = held else {
            if took < SHORT {
                self.record_good_call()
            } else {
                self.watched.store(WATCHED, Relaxed)
            }
            return;
        };
        if held < SHORT {
            // A race loses a count at worst.
            self.watched.store(self.watched.load(Relaxed).saturating_sub(1), Relaxed);
            self.debt_us.store(self.debt_us.load(Relaxed).saturating_sub(PAID_US), Relaxed);
            return self.record_good_call();
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

    fn record_good_call(&self) {
        let good = self.short.fetch_add(1, Relaxed);
        if good >= FORGIVEN {
            self.short.store(TRUSTED, Relaxed);
            self.offences.store(0, Relaxed);
        }
    }
}
