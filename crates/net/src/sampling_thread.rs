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
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

/// Tells a thread to end.
#[derive(Default)]
struct Ending {
    ended: Mutex<bool>,
    wake: Condvar,
}

/// Paces a thread: the period varies at random, and is lengthened where one look takes long.
pub(crate) struct Pace {
    ending: Arc<Ending>,
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
        let ending = Arc::new(Ending::default());
        let pace = Pace { ending: Arc::clone(&ending), period, least_ratio, cost: Duration::ZERO };
        let events = Arc::clone(&sink);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || sample(events, pace))
            .map_err(|reason| NetError::Io { what: "could not start the sampler's thread", reason })?;
        Ok(Self { sink, ending, thread: Some(thread) })
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
        *lock_mutex(&self.ending.ended) = true;
        self.ending.wake.notify_all();
        // A thread that panicked leaves the events that it had made.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for SamplingThread {
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl Pace {
    /// Waits until the next look, after one that began at `began`; whether there is a next one.
    pub(crate) fn await_next(&mut self, began: Instant) -> bool {
        self.cost = (self.cost * 7 + began.elapsed()) / 8;
        let usual = self.period.max(self.cost * self.least_ratio);
        let period = usual.mul_f64(rand::rng().random_range(0.5..1.5));
        let ended = lock_mutex(&self.ending.ended);
        match self.ending.wake.wait_timeout_while(ended, period, |ended| !*ended) {
            Ok((ended, _)) => !*ended,
            Err(_) => false,
        }
    }
}
