//! Job objects of Windows, for programs that Python starts.

use mcpace_child_process::JobObject as Job;
use pyo3::prelude::*;

/// A job object, whose processes are killed together.
#[pyclass(frozen)]
pub(crate) struct JobObject(Job);

#[pymethods]
impl JobObject {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Job::new()?))
    }

    /// Puts a process into the job, by a handle of it.
    fn add(&self, handle: isize) -> PyResult<()> {
        Ok(self.0.add_process(handle)?)
    }

    /// Kills all processes of the job.
    fn kill(&self) {
        self.0.kill();
    }
}
