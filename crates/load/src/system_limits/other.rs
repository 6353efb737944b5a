//! Systems other than Linux: threads are not pinned, waits have no slack that can be set, and acknowledgements can't be asked for.

use std::io;

/// Threads can't be pinned to cores.
pub(crate) const CORES: Option<usize> = None;

/// Always an error.
pub(crate) fn pin_thread(_: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing.
pub(crate) fn lower_timer_slack() {}

/// Nothing.
pub(crate) fn acknowledge_now<S>(_: &S) {}
