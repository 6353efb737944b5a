//! The performance counter and the thread times of Windows.

use std::sync::OnceLock;

use winsafe::{FILETIME, HTHREAD, QueryPerformanceCounter, QueryPerformanceFrequency};

const SECOND_NS: u128 = 1_000_000_000;

/// Each Windows since XP has the counter.
pub(crate) fn monotonic_ns() -> u64 {
    static FREQUENCY: OnceLock<u128> = OnceLock::new();
    let frequency = *FREQUENCY
        .get_or_init(|| QueryPerformanceFrequency().map_or(SECOND_NS, |ticks| u128::from(ticks.unsigned_abs().max(1))));
    let ticks = u128::from(QueryPerformanceCounter().unwrap_or_default().unsigned_abs());
    u64::try_from(ticks * SECOND_NS / frequency).unwrap_or(u64::MAX)
}

pub(crate) fn thread_processor_ns() -> u64 {
    let times = HTHREAD::GetCurrentThread().GetThreadTimes();
    times.map_or(0, |(_, _, kernel, user)| 100 * (hundreds_of_ns(kernel) + hundreds_of_ns(user)))
}

/// A `FILETIME` counts units of 100 ns.
fn hundreds_of_ns(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}
