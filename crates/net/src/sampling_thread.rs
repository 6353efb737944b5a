//! A thread that looks at processes from outside, with the events that it makes.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcpace_record::{Instrument, Recording, RecordingHead};
use rand::Rng;

use crate::lock::lock_mutex;
use crate::{NetError, Sink, SinkOptions};

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
        self.cost = (self.cost * 7 + began.elapsed()) / 8;
        let usual = self.period.max(self.cost * self.least_ratio);
        let period = usual.mul_f64(rand::rng().random_range(0.5..1.5));
        let state = lock_mutex(&self.control.state);
        // A lock that was poisoned by a panic elsewhere ends the thread.
        let Ok((state, _)) = self.control.wake.wait_timeout_while(state, period, |state| !state.has_ended) else {
            return false;
        };
        let resumed = self.control.wake.wait_while(state, |state| state.is_paused && !state.has_ended);
        resumed.is_ok_and(|state| !state.has_ended)
    }
}
