//! Settings that Linux has.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;

use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// Number of cores that a thread can be pinned to, counted from 0.
pub(crate) const CORES: Option<usize> = Some(CpuSet::MAX_CPU);

/// Lets this thread run on one core only.
pub(crate) fn pin_thread(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets waits of this thread end on time. The default of 50 µs is how late each arrival would be. A kernel that refuses leaves
/// it so, and the figures say it.
pub(crate) fn lower_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Acknowledges what came at once. It is a wish; a dying socket says so when it is read.
pub(crate) fn acknowledge_now(socket: impl AsFd) {
    let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
}
