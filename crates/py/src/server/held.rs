//! How long a call itself held its thread: at work, or blocked. Time in which the system ran other threads doesn't count.
//!
//! Constraint: some microseconds, so only for calls that are watched. Where the system doesn't tell, all time counts.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The clocks at a call's begin.
pub(super) struct Watch {
    started: Instant,
    waited_to_run: Option<Duration>,
    worked: Duration,
}

/// What a call did with its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// For how long it had it.
    pub(super) held: Duration,
    /// For how much of that it was on a processor.
    pub(super) worked: Duration,
}

impl Watch {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), waited_to_run: waited_to_run(), worked: worked() }
    }

    /// From the begin until now.
    pub(super) fn read(&self) -> Held {
        let (wall, worked) = (self.started.elapsed(), worked().saturating_sub(self.worked));
        let preempted = match (self.waited_to_run, waited_to_run()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => Duration::ZERO,
        };
        Held { held: wall.saturating_sub(preempted).max(worked), worked }
    }
}

/// This thread's time on a processor.
fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// How long this thread could have run, but others did: the second figure of `/proc/thread-self/schedstat` (Linux,
/// Documentation/scheduler/sched-stats), in nanoseconds.
fn waited_to_run() -> Option<Duration> {
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
