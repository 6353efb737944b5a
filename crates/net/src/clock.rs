//! The one clock, and a thread's own.

use mcpace_record::Nanos;

/// Now on the clock that all processes of the machine share. Python's `time.perf_counter_ns` reads it, too; on Linux, so do
/// Go's runtime and Node's `process.hrtime`. On macOS, `process.hrtime` also counts the time in which the machine sleeps.
#[must_use]
pub fn monotonic_now() -> Nanos {
    Nanos(mcpace_clock::monotonic_ns())
}

/// Processor time that this thread has used so far.
pub(crate) fn processor_time() -> Nanos {
    Nanos(mcpace_clock::thread_processor_ns())
}
