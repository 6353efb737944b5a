//! A program and the processes that it starts, which are signalled and killed together.
//!
//! Unix has process groups. Windows has job objects, and no signal that asks a program to end.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{ProcessGroup, signal_number};
#[cfg(windows)]
pub use windows::JobObject;
#[cfg(windows)]
pub(crate) use windows::{ProcessGroup, signal_number};
