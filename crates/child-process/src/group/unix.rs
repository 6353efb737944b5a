//! Process groups of Unix.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A process group, by its leader's process id.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Pid);

impl ProcessGroup {
    /// Starts the program as the leader of a group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("it was gone at once"))?;
        Ok((child, Self(leader)))
    }

    /// Asks all processes of the group to end: SIGTERM.
    pub(crate) fn terminate(&self) {
        self.send_signal(Signal::TERM);
    }

    /// Kills all processes of the group: SIGKILL.
    pub(crate) fn kill(&self) {
        self.send_signal(Signal::KILL);
    }

    fn send_signal(&self, signal: Signal) {
        // An empty group is no error.
        let _ = kill_process_group(self.0, signal);
    }
}

/// Number of the signal that ended a process, if a signal ended it.
pub(crate) fn signal_number(status: ExitStatus) -> Option<i32> {
    status.signal()
}
