//! A program in a process group of its own, with pipes that don't block.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::STDIN_BIT;
use crate::plan::LoadTarget;
use crate::poller::Poller;

/// A program that speaks over its pipes.
#[derive(Debug)]
pub(crate) struct ProgramPipes {
    /// Always there, but while it is handed over.
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
}

impl ProgramPipes {
    /// Starts a program, in a process group of its own. Events with `number` tell of its output, and those with
    /// [`STDIN_BIT`] as well of its input.
    pub(crate) fn spawn(target: &LoadTarget, poller: &Poller, number: u64) -> io::Result<Self> {
        let LoadTarget::Stdio { command, env, cwd } = target else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let process = Self { child: Some(child), stdin: Some(stdin), stdout };
        rustix::io::ioctl_fionbio(&process.stdout, true)?;
        poller.add_reader(&process.stdout, number)?;
        if let Some(stdin) = &process.stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
            poller.add_writer(stdin, number | STDIN_BIT)?;
        }
        Ok(process)
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stdout.read(buffer)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stdin {
            Some(stdin) => stdin.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes its input, which asks it to end, and hands it over.
    pub(crate) fn ask_to_end(mut self) -> Option<Child> {
        self.stdin = None;
        self.child.take()
    }
}

impl Drop for ProgramPipes {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end_program(child);
        }
    }
}

/// Whether a program still runs. The descendants of one that has ended are killed before its process id is released:
/// until then, the id of its group belongs to nobody else.
pub(crate) fn is_running(child: &mut Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let waited = Pid::from_raw(child.id().cast_signed()).map(|pid| waitid(WaitId::Pid(pid), options));
    if let Some(Ok(None)) = waited {
        return true;
    }
    end_program(child);
    false
}

/// Ends a program that nobody has waited for, and its descendants.
pub(crate) fn end_program(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // An empty group is no error.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn descendants_of_a_program_that_ends_by_itself_are_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 7777 & echo ready"]).process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        while is_running(&mut child) {
            std::thread::yield_now();
        }
        // The descendant holds the pipe open as long as it lives.
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ready\n");
    }
}
