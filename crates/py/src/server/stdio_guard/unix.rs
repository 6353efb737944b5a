//! The three descriptors that have a meaning by their number.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use pyo3::Python;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// The streams as they were. They are again once this is dropped.
pub(crate) struct OwnStdio {
    input: OwnedFd,
    output: OwnedFd,
}

/// Past those that have a meaning by their number.
const FIRST_FREE: i32 = 3;

impl OwnStdio {
    pub(crate) fn take_stdio(_: Python<'_>) -> io::Result<Self> {
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        let taken = Self {
            input: fcntl_dupfd_cloexec(stdin(), FIRST_FREE)?,
            output: fcntl_dupfd_cloexec(stdout(), FIRST_FREE)?,
        };
        dup2_stdin(&nothing)?;
        // Without a stderr there is nobody to read what is printed.
        dup2_stdout(stderr()).or_else(|_| dup2_stdout(&nothing))?;
        Ok(taken)
    }

    /// For the protocol: input and output.
    pub(crate) fn files(&self) -> io::Result<(File, File)> {
        Ok((self.input.try_clone()?.into(), self.output.try_clone()?.into()))
    }
}

impl Drop for OwnStdio {
    fn drop(&mut self) {
        // Where that fails there is nothing left to do about it.
        let _ = dup2_stdin(&self.input);
        let _ = dup2_stdout(&self.output);
    }
}
