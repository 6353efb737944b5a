//! Samples the stacks of the threads of Python processes, from outside, by py-spy.
//!
//! The processes are one process and its descendants, as they come and go. A process stands still while its stacks are
//! read, for half a millisecond or so. The sampler lengthens its period so that processes stand still for at most a
//! twentieth of the time. Periods vary at random, so that work at a steady pace is not met at one and the same place.
//!
//! The sampler traces a process while it reads the stacks. `waitpid` for that process, on any thread of this program, may
//! then take the stop for the end of the process. Wait for the pidfd of a sampled child first, as tokio does.

#[cfg(target_os = "linux")]
mod sampling;

use std::time::Duration;

use mcpace_record::Recording;

use crate::NetError;
use crate::sampling_thread::SamplingThread;

/// The period is at least this many times as long as reading the stacks takes.
const LEAST_RATIO: u32 = 20;

/// Samples Python processes until it is dropped or stopped.
pub struct StackSampler(SamplingThread);

impl StackSampler {
    /// Samples `root` and its descendants each `period`; of this process, the descendants only.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn start(root: u32, period: Duration) -> Result<Self, NetError> {
        let thread = SamplingThread::start("mcpace-stacks", (period, LEAST_RATIO), move |sink, pace| {
            #[cfg(target_os = "linux")]
            sampling::sample_until_ended(sink, root, pace);
            #[cfg(not(target_os = "linux"))]
            {
                use mcpace_record::{EventKind, EvidenceSource};
                let (_, _) = (root, pace);
                let reason = "the stacks of processes are sampled on Linux only".to_owned();
                sink.note(EventKind::SourceMissing { source: EvidenceSource::Stacks, pid: None, reason });
            }
        })?;
        Ok(Self(thread))
    }

    /// Stops sampling until [`resume`](Self::resume). A sample that is being taken is still recorded.
    pub fn pause(&self) {
        self.0.pause();
    }

    /// Goes on sampling.
    pub fn resume(&self) {
        self.0.resume();
    }

    /// Ends sampling and returns the samples, with what could not be sampled.
    #[must_use]
    pub fn stop(self) -> Recording {
        self.0.stop()
    }
}
