//! Systems on which no program can be called.

use std::convert::Infallible;
use std::io;
use std::process::Child;

use crate::plan::LoadTarget;
use crate::poller::Poller;

/// Nothing: no program can be called.
#[derive(Debug)]
pub(crate) struct ProgramPipes(Infallible);

impl ProgramPipes {
    /// Always an error.
    pub(crate) fn spawn(_: &LoadTarget, _: &Poller, _: u64) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never called.
    pub(crate) fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }

    /// Never called.
    pub(crate) fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    /// Never called.
    pub(crate) fn ask_to_end(self) -> Option<Child> {
        match self.0 {}
    }
}

/// Never called.
pub(crate) fn is_running(_: &mut Child) -> bool {
    false
}

/// Never called.
pub(crate) fn end_program(_: &mut Child) {}
