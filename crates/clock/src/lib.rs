//! The clock that all processes of a machine share, and the processor time of a thread.
//!
//! Design constraint: a stamp of this clock is comparable with a stamp of another program on the same machine. Python's
//! `time.perf_counter_ns` reads the same clock on Linux, macOS and Windows.
//!
//! Deliberately absent: the time of day.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Now, in nanoseconds: `CLOCK_MONOTONIC` on Linux, `CLOCK_UPTIME_RAW` on macOS, the performance counter on Windows.
#[must_use]
#[inline]
pub fn monotonic_ns() -> u64 {
    system::monotonic_ns()
}

/// Processor time that this thread has used so far, in nanoseconds. Windows counts it in steps of about 16 ms.
#[must_use]
#[inline]
pub fn thread_processor_ns() -> u64 {
    system::thread_processor_ns()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_clock_advances_as_much_as_the_system_says() {
        let (instant, begin) = (Instant::now(), monotonic_ns());
        std::thread::sleep(Duration::from_millis(20));
        let (inner, outer) = (monotonic_ns() - begin, instant.elapsed());
        assert!(inner >= 19_000_000 && u128::from(inner) <= outer.as_nanos() + 1_000_000, "{inner} {outer:?}");
    }

    #[test]
    fn a_thread_that_computes_uses_processor_time_and_one_that_sleeps_does_not() {
        let begin = thread_processor_ns();
        std::thread::sleep(Duration::from_millis(100));
        let slept = thread_processor_ns() - begin;
        assert!(slept < 50_000_000, "{slept}");
        let limit = Instant::now() + Duration::from_secs(60);
        let mut number = 0_u64;
        while thread_processor_ns() - begin < 100_000_000 {
            assert!(Instant::now() < limit, "the thread's time does not advance");
            for step in 0..100_000_u64 {
                number = black_box(number.wrapping_mul(31).wrapping_add(step));
            }
        }
    }
}
