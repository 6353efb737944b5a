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

/// As many descriptors as this process may have: a user takes one. Where that is refused, users without one are counted as
/// `exhausted`. Windows has no such limit.
pub(crate) fn raise_descriptors() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        }
    }
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
