//! The clocks of POSIX.

use rustix::time::{ClockId, Timespec, clock_gettime};

#[cfg(not(target_vendor = "apple"))]
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// `CLOCK_MONOTONIC` of macOS goes on while the machine sleeps, and is not the clock of Python, Go and the standard library.
#[cfg(target_vendor = "apple")]
pub(crate) fn monotonic_ns() -> u64 {
    let clock = nix::time::ClockId::from_raw(nix::libc::CLOCK_UPTIME_RAW);
    // Each macOS since 10.12 has this clock.
    nix::time::clock_gettime(clock)
        .map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

#[inline]
pub(crate) fn thread_processor_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Neither part is ever negative: these clocks count from the start of the machine and of the thread.
#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
