//! Programs that speak over their pipes.
//!
//! Windows cannot poll the pipes of a program, so a plan with a program is refused there.

#[cfg(not(unix))]
mod missing;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use missing::{ProgramPipes, end_program, is_running};
#[cfg(unix)]
pub(crate) use unix::{ProgramPipes, end_program, is_running};

/// Whether programs can be called here.
pub(crate) const ARE_SUPPORTED: bool = cfg!(unix);

/// The bit of an event's number that says that it is about a program's standard input.
pub(crate) const STDIN_BIT: u64 = 1 << 63;
