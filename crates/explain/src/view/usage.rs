//! Resource use of processes, sampled from outside: processor time, memory, threads.

use std::collections::BTreeMap;

use mcpace_record::{EventKind, Nanos, Peer};

use super::Stamp;

/// One process over time.
#[derive(Debug)]
pub struct Usage {
    /// Whose it is.
    pub of: Peer,
    /// Its process id.
    pub pid: u32,
    /// Samples of the process, earliest first; never empty.
    pub looks: Vec<Look>,
}

/// A process at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When.
    pub at: Stamp,
    /// Processor time since its start.
    pub cpu: Nanos,
    /// Resident memory in bytes.
    pub resident: u64,
    /// Its threads.
    pub threads: u32,
}

#[derive(Default)]
pub(super) struct UsageJoin(BTreeMap<(Peer, u32), Vec<Look>>);

impl UsageJoin {
    pub(super) fn join_event(&mut self, at: Stamp, kind: &EventKind) {
        if let EventKind::ProcessSample { of, pid, cpu, resident, threads } = *kind {
            self.0.entry((of, pid)).or_default().push(Look { at, cpu, resident, threads });
        }
    }

    pub(super) fn finish_usage(self) -> Vec<Usage> {
        self.0.into_iter().map(|((of, pid), looks)| Usage { of, pid, looks }).collect()
    }
}
