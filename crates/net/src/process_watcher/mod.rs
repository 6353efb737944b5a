//! Watches when the programs that a server starts compute, from outside: `git`, a browser.
//!
//! A look reads the processor clock of each descendant of the server's process. A descendant computes where its clock gains at
//! least a quarter of the time between two looks. Processes of any language are watched, and they notice nothing.
//!
//! Deliberately absent: waits of a program for its disk or its network, and programs that live for less than two looks.

#[cfg(target_os = "linux")]
mod watching;

use std::time::Duration;

use mcpace_record::Recording;

use crate::NetError;
use crate::sampling_thread::SamplingThread;

/// The period is at least this many times as long as one look takes.
const LEAST_RATIO: u32 = 50;

/// Watches until it is dropped or stopped.
pub struct ProcessWatcher(SamplingThread);

impl ProcessWatcher {
    /// Watches the descendants of `root` each `period` or less often.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn start(root: u32, period: Duration) -> Result<Self, NetError> {
        let thread = SamplingThread::start("mcpace-programs", (period, LEAST_RATIO), move |sink, pace| {
            #[cfg(target_os = "linux")]
            watching::watch_until_ended(sink, root, pace);
            #[cfg(not(target_os = "linux"))]
            {
                use mcpace_record::{EventKind, EvidenceSource};
                let (_, _) = (root, pace);
                let reason = "programs that a server starts are watched on Linux only".to_owned();
                sink.note(EventKind::SourceMissing { source: EvidenceSource::Processes, pid: None, reason });
            }
        })?;
        Ok(Self(thread))
    }

    /// Ends watching and returns when the programs computed.
    #[must_use]
    pub fn stop(self) -> Recording {
        self.0.stop()
    }
}
