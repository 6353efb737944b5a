//! Sockets that don't block, and a wait for all that happens to them.
//!
//! Design constraint: an event tells of a change, and comes once. The receiver of an event reads and writes until the socket
//! would block. On Linux the wait is in nanoseconds, and a call takes one system call to send, one to receive and one to
//! wait. mio, which serves the other systems, waits in whole milliseconds on Linux and Windows: arrivals would be late.
//!
//! The feature `portable-poller` takes mio on Linux, too, so that it can be tested there.

#[cfg(all(target_os = "linux", not(feature = "portable-poller")))]
mod epoll;
#[cfg(not(all(target_os = "linux", not(feature = "portable-poller"))))]
mod portable;

#[cfg(all(target_os = "linux", not(feature = "portable-poller")))]
pub(crate) use epoll::{Events, Poller, Readiness, SHORT_READ_EMPTIES, Socket, receive, send};
#[cfg(not(all(target_os = "linux", not(feature = "portable-poller"))))]
pub(crate) use portable::{Events, Poller, Readiness, SHORT_READ_EMPTIES, Socket, receive, send};
