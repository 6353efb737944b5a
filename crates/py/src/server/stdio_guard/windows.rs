//! The descriptors of the C runtime, which keep the standard handles of Windows in step.

use std::fs::File;
use std::io::{self, stdin, stdout};
use std::os::windows::io::{AsHandle as _, OwnedHandle};

use pyo3::prelude::*;

/// The streams as they were. They are again once this is dropped.
pub(crate) struct OwnStdio {
    input: OwnedHandle,
    output: OwnedHandle,
    /// Descriptors of the C runtime for the same streams.
    saved: [i32; 2],
}

const STDIN: i32 = 0;
const STDOUT: i32 = 1;
const STDERR: i32 = 2;

impl OwnStdio {
    pub(crate) fn take_stdio(py: Python<'_>) -> io::Result<Self> {
        let (input, output) = (stdin().as_handle().try_clone_to_owned()?, stdout().as_handle().try_clone_to_owned()?);
        let saved = replace_descriptors(py)?;
        Ok(Self { input, output, saved })
    }

    /// For the protocol: input and output.
    pub(crate) fn files(&self) -> io::Result<(File, File)> {
        Ok((self.input.try_clone()?.into(), self.output.try_clone()?.into()))
    }
}

/// Puts nothing in the place of stdin and stderr in the place of stdout. Returns descriptors of what was there.
fn replace_descriptors(py: Python<'_>) -> PyResult<[i32; 2]> {
    let os = py.import("os")?;
    let duplicate = |descriptor: i32| os.call_method1("dup", (descriptor,))?.extract::<i32>();
    let saved = [duplicate(STDIN)?, duplicate(STDOUT)?];
    let nothing = os.call_method1("open", (os.getattr("devnull")?, os.getattr("O_RDWR")?))?;
    os.call_method1("dup2", (&nothing, STDIN))?;
    // Without a stderr there is nobody to read what is printed.
    os.call_method1("dup2", (STDERR, STDOUT)).or_else(|_| os.call_method1("dup2", (&nothing, STDOUT)))?;
    os.call_method1("close", (nothing,))?;
    Ok(saved)
}

impl Drop for OwnStdio {
    fn drop(&mut self) {
        let saved = self.saved;
        // Where that fails there is nothing left to do about it.
        let _ = Python::try_attach(|py| {
            let os = py.import("os")?;
            for (from, to) in saved.into_iter().zip([STDIN, STDOUT]) {
                os.call_method1("dup2", (from, to))?;
                os.call_method1("close", (from,))?;
            }
            Ok::<_, PyErr>(())
        });
    }
}
