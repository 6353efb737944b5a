//! Measures the time for which a call held its thread, on the processor or blocked. Time in which the system ran other threads does
//! not count.
//!
//! Constraint: a measurement takes some microseconds, so only some calls are measured. Where the system gives no figure, all time counts.

use std::time::{Duration, Instant};

/// Clock readings at the beginning of a call.
pub(crate) struct ThreadTimer {
    started: Instant,
    waited_to_run: Option<Duration>,
    worked: Duration,
}

/// Times of one call on its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTime {
    /// Time for which the call held the thread.
    pub(crate) held: Duration,
    /// Part of the time on a processor.
    pub(crate) worked: Duration,
}

impl ThreadTimer {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), waited_to_run: waited_to_run(), worked: processor_time() }
    }

    /// Returns the times since the beginning.
    pub(crate) fn read(&self) -> ThreadTime {
        let (wall, worked) = (self.started.elapsed(), processor_time().saturating_sub(self.worked));
        let preempted = match (self.waited_to_run, waited_to_run()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => Duration::ZERO,
        };
        ThreadTime { held: wall.saturating_sub(preempted).max(worked), worked }
    }
}

/// This thread's time on a processor.
fn processor_time() -> Duration {
    Duration::from_nanos(mcpace_clock::thread_processor_ns())
}

/// Time for which this thread was ready while others ran: the second figure of `/proc/thread-self/schedstat` (Linux,
/// Documentation/scheduler/sched-stats), in nanoseconds.
#[cfg(target_os = "linux")]
fn waited_to_run() -> Option<Duration> {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    thread_local! {
        static FILE: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    FILE.with(|file| {
        let mut bytes = [0; 64];
        let length = file.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
    })
}

/// Only Linux tells how long a thread was ready while others ran.
#[cfg(not(target_os = "linux"))]
fn waited_to_run() -> Option<Duration> {
    None
}
