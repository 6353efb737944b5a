//! What processes used, as samples from outside: processor time, memory, threads.

use std::collections::BTreeMap;

use mcpace_record::{EventKind, Nanos, Peer, Recording};
use serde::Serialize;

use super::Stamp;

/// One process over time.
#[derive(Debug, Serialize)]
pub struct Usage {
    /// Whose it is.
    pub of: Peer,
    /// Its process id.
    pub pid: u32,
    /// What was seen of it, earliest first; never empty.
    pub looks: Vec<Look>,
}

/// A process at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Look {
    /// When.
    pub at: Stamp,
    /// Processor time since its start.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Resident memory in bytes.
    pub resident: u64,
    /// Its threads.
    pub threads: u32,
}

pub(super) fn usage(recording: &Recording) -> Vec<Usage> {
    let mut processes: BTreeMap<(Peer, u32), Vec<Look>> = BTreeMap::new();
    for (event, seen) in recording.events().iter().enumerate() {
        if let EventKind::ProcessSample { of, pid, cpu, resident, threads } = seen.kind {
            let look = Look { at: Stamp { at: seen.at, event }, cpu, resident, threads };
            processes.entry((of, pid)).or_default().push(look);
        }
    }
    processes.into_iter().map(|((of, pid), looks)| Usage { of, pid, looks }).collect()
}
