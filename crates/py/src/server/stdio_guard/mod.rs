//! stdin and stdout for the protocol alone, for as long as it is served.
//!
//! Constraint: what an author's code prints, in Python or in a child process, must not end up between messages, and what it
//! reads must not be a message. So the two descriptors are moved away, and in their places are stderr and nothing.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::OwnStdio;
#[cfg(windows)]
pub(crate) use windows::OwnStdio;
