//! The one clock, and a thread's own.

use mcpace_record::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Now on `CLOCK_MONOTONIC`, the clock that Python's `time.monotonic_ns`, Go's runtime and Node's `process.hrtime` read.
#[must_use]
pub fn monotonic_now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    // CLOCK_MONOTONIC counts from boot: neither part is ever negative.
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Processor time that this thread has used so far.
pub(crate) fn processor_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
