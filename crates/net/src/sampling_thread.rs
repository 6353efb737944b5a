//! A thread that looks at processes from outside, with the events that it makes.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcpace_record::{Instrument, Recording, RecordingHead};
use rand::Rng;

use crate::lock::lock_mutex;
use crate::{NetError, Sink, SinkOptions};

/// A thread that waits for something else than its end looks for its end after this time.
#[cfg(target_os = "linux")]
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Runs until it is dropped or stopped.
pub(crate) struct SamplingThread {
    sink: Arc<Sink>,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// Tells a thread to pause and to end.
#[derive(Default)]
struct Control {
    state: Mutex<ControlState>,
    wake: Condvar,
}

#[derive(Default)]
struct ControlState {
    has_ended: bool,
    is_paused: bool,
}

/// Paces a thread: the period varies at random, and is lengthened where one look takes long.
pub(crate) struct Pace {
    control: Arc<Control>,
    period: Duration,
    /// The period is at least this many times as long as one look takes.
    least_ratio: u32,
    /// How long one look takes, smoothed.
    cost: Duration,
}

impl SamplingThread {
    /// Starts a thread that looks each `period` or less often, and runs `sample` with its pace.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(crate) fn start<S: FnOnce(Arc<Sink>, Pace) + Send + 'static>(
        name: &str,
        (period, least_ratio): (Duration, u32),
        sample: S,
    ) -> Result<Self, NetError> {
        let sink = Sink::new(RecordingHead::bare(Instrument::Client), SinkOptions::default())?;
        let control = Arc::new(Control::default());
        let pace = Pace { control: Arc::clone(&control), period, least_ratio, cost: Duration::ZERO };
        let events = Arc::clone(&sink);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || sample(events, pace))
            .map_err(|reason| NetError::Io { what: "could not start the sampler's thread", reason })?;
        Ok(Self { sink, control, thread: Some(thread) })
    }

    /// Lets no further look begin until [`resume`](Self::resume). A look that has begun goes on.
    pub(crate) fn pause(&self) {
        lock_mutex(&self.control.state).is_paused = true;
    }

    pub(crate) fn resume(&self) {
        lock_mutex(&self.control.state).is_paused = false;
        self.control.wake.notify_all();
    }

    /// Ends the thread and returns its events.
    #[must_use]
    pub(crate) fn stop(mut self) -> Recording {
        self.end_thread();
        // Without a file, finishing cannot fail.
        let _ = self.sink.finish();
        self.sink.recording()
    }

    fn end_thread(&mut self) {
        lock_mutex(&self.control.state).has_ended = true;
        self.control.wake.notify_all();
        // A thread that panicked leaves the events that it had made.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for SamplingThread {
    fn drop(&mut self) {
        self.end_thread();
    }
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "processes are looked at on Linux only"))]
impl Pace {
    /// Waits until the next look, after one that began at `began`; whether there is a next one.
    pub(crate) fn await_next(&mut self, began: Instant) -> bool {
        let period = self.next_period(began);
        self.await_end(period)
    }

    /// Waits as [`await_next`](Self::await_next), and has `wait` called meanwhile. It waits for at most the time that it is
    /// given, and less where something happens.
    #[cfg(target_os = "linux")]
    pub(crate) fn await_next_with(&mut self, began: Instant, mut wait: impl FnMut(Duration)) -> bool {
        let until = Instant::now() + self.next_period(began);
        while !lock_mutex(&self.control.state).has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            wait(left.min(LONGEST_WAIT));
        }
        self.await_end(Duration::ZERO)
    }

    /// The time until the next look, after one that began at `began`.
    fn next_period(&mut self, began: Instant) -> Duration {
        self.cost = (self.cost * 7 + began.elapsed()) / 8;
        let usual = self.period.max(self.cost * self.least_ratio);
        usual.mul_f64(rand::rng().random_range(0.5..1.5))
    }

    /// Waits for the end for `period`, and then while the thread is paused; whether it goes on.
    fn await_end(&self, period: Duration) -> bool {
        let state = lock_mutex(&self.control.state);
        // A lock that was poisoned by a panic elsewhere ends the thread.
        let Ok((state, _)) = self.control.wake.wait_timeout_while(state, period, |state| !state.has_ended) else {
            return false;
        };
        let resumed = self.control.wake.wait_while(state, |state| state.is_paused && !state.has_ended);
        resumed.is_ok_and(|state| !state.has_ended)
    }
}
