//! Watches the connections that processes make, from outside, by the kernel's socket diagnostics.
//!
//! The processes are one process and its descendants, as they come and go; their language does not matter, and they notice
//! nothing. A look reads the processes' descriptors (proc_pid_fd(5)) and asks for all sockets only where a descriptor is new,
//! because a list of all sockets is costly on machines with much memory. Between two looks, the kernel tells of each TCP
//! connection that it destroys, so that no ended TCP connection is missed. A connection that began and ended between two
//! looks is told without its process, and only where a process was seen to reach the address as well: it may belong to
//! another program that reaches that address.
//!
//! Deliberately absent: UDP, UNIX sockets that are open for less than a period, data on UNIX sockets, connections of other
//! network namespaces, and names of hosts.

#[cfg(target_os = "linux")]
mod watch_loop;

use std::net::SocketAddr;
use std::time::Duration;

use mcpace_record::Recording;

use crate::NetError;
use crate::sampling_thread::SamplingThread;

/// The period is at least this many times as long as one look takes.
const LEAST_RATIO: u32 = 50;

/// Watches connections until it is dropped or stopped.
pub struct SocketWatcher(SamplingThread);

impl SocketWatcher {
    /// Watches `root` and its descendants each `period`; of this process, the descendants only. Connections to the addresses `ignored` are left out.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn start(root: u32, period: Duration, ignored: Vec<SocketAddr>) -> Result<Self, NetError> {
        let thread = SamplingThread::start("mcpace-sockets", (period, LEAST_RATIO), move |sink, pace| {
            #[cfg(target_os = "linux")]
            watch_loop::watch_until_ended(sink, root, &ignored, pace);
            #[cfg(not(target_os = "linux"))]
            {
                use mcpace_record::{EventKind, EvidenceSource};
                let (_, _) = (root, (ignored, pace));
                let reason = "the connections of processes are watched on Linux only".to_owned();
                sink.note(EventKind::SourceMissing { source: EvidenceSource::Sockets, pid: None, reason });
            }
        })?;
        Ok(Self(thread))
    }

    /// Ends watching and returns the connections. Those that are still open have no end.
    #[must_use]
    pub fn stop(self) -> Recording {
        self.0.stop()
    }
}
