//! Job objects of Windows.
//!
//! The system kills the processes of a job when the last handle to the job is closed, and this process has the only one.
//! A process that the program starts in the first moments, before the program is in its job, is not in the job.

use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::{Child, Command};
use win32job::{ExtendedLimitInfo, Job};

/// A job object, until its processes are killed. Dropping it kills them.
#[derive(Debug)]
pub struct JobObject(Mutex<Option<Job>>);

impl JobObject {
    /// A job without processes.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Job::create_with_limit_info(&limits).map_err(io::Error::other)?;
        Ok(Self(Mutex::new(Some(job))))
    }

    /// Puts a process into the job, by a handle of it, and with it the processes that it starts from now on.
    ///
    /// # Errors
    /// The system's; or that the processes of the job were killed.
    pub fn add_process(&self, handle: isize) -> io::Result<()> {
        match &*self.lock_job() {
            Some(job) => job.assign_process(handle).map_err(io::Error::other),
            None => Err(io::Error::other("the processes of the job were killed")),
        }
    }

    /// Kills all processes of the job.
    pub fn kill(&self) {
        drop(self.lock_job().take());
    }

    fn lock_job(&self) -> MutexGuard<'_, Option<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program and the processes that it starts.
#[derive(Debug)]
pub(crate) struct ProcessGroup(JobObject);

impl ProcessGroup {
    /// Starts the program in a job.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let job = JobObject::new()?;
        // The command kills a child that is dropped, so the program ends where it can't be added.
        let child = command.spawn()?;
        job.add_process(child.raw_handle().ok_or_else(|| io::Error::other("it was gone at once"))? as isize)?;
        Ok((child, Self(job)))
    }

    /// Kills all processes of the job: Windows has no signal that asks a program to end.
    pub(crate) fn terminate(&self) {
        self.kill();
    }

    /// Kills all processes of the job.
    pub(crate) fn kill(&self) {
        self.0.kill();
    }
}

/// Windows has no signals.
pub(crate) fn signal_number(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_descendant_is_killed_with_the_group() {
        let mut command = Command::new("cmd");
        command.args(["/c", "ping -n 600 127.0.0.1"]).stdout(Stdio::piped()).kill_on_drop(true);
        let (mut child, group) = ProcessGroup::spawn(&mut command).unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The first byte is the descendant's, which holds the pipe open as long as it lives.
        tokio::time::timeout(LONG, stdout.read_u8()).await.unwrap().unwrap();
        group.kill();
        let mut rest = Vec::new();
        tokio::time::timeout(LONG, stdout.read_to_end(&mut rest)).await.unwrap().unwrap();
        tokio::time::timeout(LONG, child.wait()).await.unwrap().unwrap();
        assert!(group.0.add_process(0).is_err());
    }
}
