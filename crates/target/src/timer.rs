//! Delays that are as long as they claim to be.
//!
//! tokio's timer counts whole milliseconds, which is too coarse for a fault of 1 ms that a ledger
//! must find again within 0.3 ms. This timer is one thread that sleeps on a condition variable
//! until the earliest deadline (the kernel's timer slack lowered to 1 ns) and then wakes the task
//! that waits.
//!
//! **Precision.** Never early. Late by the kernel's wake-up plus tokio's: 70 µs at the median and
//! 320 µs in the 99th of 100 delays of 1 ms, measured on a 2-core virtual machine that was compiling
//! at the same time; a machine without a free core adds its scheduling latency, which no timer can
//! avoid. `examples/timer.rs` prints the figures of the machine at hand. [`Timer::sleep`] therefore
//! returns the delay as it really was, and the layers' clocks tell that, never the wanted one.
//!
//! Deliberately absent: spinning, which would be more precise and would take a core away from what
//! is being measured.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// A handle to the timer's thread, which ends with the last handle.
#[derive(Debug, Clone)]
pub(crate) struct Timer(Arc<Handle>);

impl Timer {
    /// Starts the thread.
    pub(crate) fn start_thread() -> io::Result<Self> {
        let shared = Arc::new(TimerShared::default());
        let thread = Arc::clone(&shared);
        thread::Builder::new().name("mcpace-timer".to_owned()).spawn(move || run_timer(&thread))?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Waits for `delay` and returns how long the wait really was.
    pub(crate) async fn sleep(&self, delay: Duration) -> Duration {
        if delay.is_zero() {
            return Duration::ZERO;
        }
        let begun = Instant::now();
        let (wake, woken) = oneshot::channel();
        self.0.0.add_entry(TimerEntry { deadline: begun + delay, wake });
        // The sender lives in the heap until its deadline; an error would mean that the thread is
        // gone, and then not waiting is better than waiting for ever.
        let _ = woken.await;
        begun.elapsed()
    }
}

/// Stops the thread when the last [`Timer`] is dropped.
#[derive(Debug)]
struct Handle(Arc<TimerShared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock_state().stopped = true;
        self.0.changed.notify_one();
    }
}

#[derive(Debug, Default)]
struct TimerShared {
    state: Mutex<TimerState>,
    changed: Condvar,
}

impl TimerShared {
    fn lock_state(&self) -> MutexGuard<'_, TimerState> {
        // Nothing under this lock can leave the state half-changed, so a poisoned one is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_entry(&self, entry: TimerEntry) {
        let mut state = self.lock_state();
        if state.pending.len() >= state.sweep_at.max(SWEEP_AT_LEAST) {
            state.pending.retain(|entry| !entry.wake.is_closed());
            state.sweep_at = 2 * state.pending.len();
        }
        let is_first = state.pending.peek().is_none_or(|first| entry.deadline < first.deadline);
        state.pending.push(entry);
        if is_first {
            self.changed.notify_one();
        }
    }
}

/// Entries whose task went away stay until their deadline, or until this many are waiting.
const SWEEP_AT_LEAST: usize = 1024;

#[derive(Debug, Default)]
struct TimerState {
    pending: BinaryHeap<TimerEntry>,
    sweep_at: usize,
    stopped: bool,
}

#[derive(Debug)]
struct TimerEntry {
    deadline: Instant,
    wake: oneshot::Sender<()>,
}

// The earliest deadline is the greatest entry, since `BinaryHeap` gives the greatest first.
impl Ord for TimerEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.deadline.cmp(&self.deadline)
    }
}

impl PartialOrd for TimerEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TimerEntry {
    fn eq(&self, other: &Self) -> bool {
        self.deadline == other.deadline
    }
}

impl Eq for TimerEntry {}

fn run_timer(shared: &TimerShared) {
    // Timing-sensitive: the default slack lets the kernel wake this thread 50 µs late on purpose.
    // Where it can't be lowered (not Linux), delays are that much less precise and still reported.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));

    let mut state = shared.lock_state();
    while !state.stopped {
        let now = Instant::now();
        match state.pending.peek().map(|entry| entry.deadline) {
            None => {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            Some(deadline) if deadline > now => {
                state = shared.changed.wait_timeout(state, deadline - now).unwrap_or_else(PoisonError::into_inner).0;
            }
            Some(_) => {
                if let Some(due) = state.pending.pop() {
                    // A task that went away no longer listens; that is no fault.
                    let _ = due.wake.send(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_delay_is_never_early() {
        let timer = Timer::start_thread().unwrap();
        for micros in [1, 50, 300, 1_000, 2_500] {
            let wanted = Duration::from_micros(micros);
            assert!(timer.sleep(wanted).await >= wanted);
        }
    }

    #[tokio::test]
    async fn the_earlier_deadline_wakes_first_whatever_the_order_of_asking() {
        let timer = Timer::start_thread().unwrap();
        let (late, early) = (timer.clone(), timer.clone());
        let order = Mutex::new(Vec::new());
        tokio::join!(
            async {
                late.sleep(Duration::from_millis(40)).await;
                order.lock().unwrap().push("late");
            },
            async {
                early.sleep(Duration::from_millis(1)).await;
                order.lock().unwrap().push("early");
            },
        );
        assert_eq!(*order.lock().unwrap(), ["early", "late"]);
    }

    #[tokio::test]
    async fn no_delay_waits_for_nothing() {
        let timer = Timer::start_thread().unwrap();
        assert_eq!(timer.sleep(Duration::ZERO).await, Duration::ZERO);
    }

    #[test]
    fn entries_of_tasks_that_went_away_are_swept() {
        let shared = TimerShared::default();
        let deadline = Instant::now() + Duration::from_secs(3600);
        for _ in 0..10 * SWEEP_AT_LEAST {
            let (wake, gone) = oneshot::channel();
            drop(gone);
            shared.add_entry(TimerEntry { deadline, wake });
        }
        assert!(shared.lock_state().pending.len() <= SWEEP_AT_LEAST + 1);
    }
}
