//! Settings of this process, of its threads and of its sockets that only some systems have.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

use std::io;

#[cfg(target_os = "linux")]
pub(crate) use linux::{CORES, acknowledge_now, lower_timer_slack, pin_thread};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{CORES, acknowledge_now, lower_timer_slack, pin_thread};

/// Most descriptors that the system gives a process, whatever its limit says: `OPEN_MAX` of macOS, which refuses a larger limit.
#[cfg(unix)]
const MOST_DESCRIPTORS: Option<u64> = if cfg!(target_vendor = "apple") { Some(10_240) } else { None };

/// As many descriptors as this process may have: a user takes one. Where that is refused, users without one are counted as
/// `exhausted`. Windows has no such limit.
pub(crate) fn raise_descriptors() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if let Some(current) = raised_limit(limit.current, limit.maximum, MOST_DESCRIPTORS) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
        }
    }
}

/// The limit to set, of which `None` is no limit; no value where the current limit is not below it. `most` is what the system
/// allows.
#[cfg(unix)]
fn raised_limit(current: Option<u64>, maximum: Option<u64>, most: Option<u64>) -> Option<Option<u64>> {
    let raised = [maximum, most].into_iter().flatten().min();
    current.is_some_and(|current| raised.is_none_or(|raised| current < raised)).then_some(raised)
}

/// Whether the system refused for lack of descriptors, ports or memory.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else { return false };
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let codes = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM, Errno::AGAIN];
        codes.contains(&Errno::from_raw_os_error(code))
    }
    // ERROR_NOT_ENOUGH_MEMORY, WSAEMFILE, WSAEADDRNOTAVAIL and WSAENOBUFS.
    #[cfg(not(unix))]
    [8, 10024, 10049, 10055].contains(&code)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_the_maximum_and_never_past_what_the_system_allows() {
        assert_eq!(raised_limit(Some(1_024), Some(4_096), None), Some(Some(4_096)));
        assert_eq!(raised_limit(Some(256), None, Some(10_240)), Some(Some(10_240)));
        assert_eq!(raised_limit(Some(256), None, None), Some(None));
        for (current, maximum, most) in
            [(Some(4_096), Some(4_096), None), (None, None, Some(10_240)), (Some(20_000), None, Some(10_240))]
        {
            assert_eq!(raised_limit(current, maximum, most), None);
        }
    }
}
