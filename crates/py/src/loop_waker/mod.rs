//! Wakes a Python event loop from any thread.
//!
//! Constraint: a wake-up needs no interpreter on the thread that sends it. On Unix, a byte on a socket pair wakes the loop.
//! The event loop of Windows watches no sockets by number, so a thread of its own calls the loop there. The feature
//! `portable` takes that thread on Unix, too, so that it can be tested there.

#[cfg(all(unix, not(feature = "portable")))]
mod socket_pair;
#[cfg(not(all(unix, not(feature = "portable"))))]
mod thread;

#[cfg(all(unix, not(feature = "portable")))]
pub(crate) use socket_pair::LoopWaker;
#[cfg(not(all(unix, not(feature = "portable"))))]
pub(crate) use thread::LoopWaker;
