//! The clock that the kernel of Linux has of each process.

use mcpace_record::Nanos;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

pub(super) use crate::descendants::child_pids;

/// Processor time that the process has used so far; `None` where the process has ended.
pub(crate) fn process_time(pid: u32) -> Option<Nanos> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    let time = clock_gettime(clock).ok()?;
    Some(Nanos(time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs()))
}
