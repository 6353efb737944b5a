//! Systems without a clock of other processes, and without a list of a process's children.

use mcpace_record::Nanos;

/// Always `None`.
pub(super) fn process_time(_: u32) -> Option<Nanos> {
    None
}

/// Always empty.
pub(super) fn child_pids(_: u32) -> Vec<u32> {
    Vec::new()
}
