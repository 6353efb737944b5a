//! A child process in a group of its own: started, watched and ended in steps.
//!
//! A group is a process group on Unix and a job object on Windows.
//!
//! Design constraints: processes that the child starts end with it, because they are in its group. A dropped
//! [`ChildProcess`] kills the group at once. No shell: a command is a program and its arguments.
//!
//! Deliberately absent: the contents of the pipes, which belong to the caller.

mod group;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::quote_printable;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::watch;

#[cfg(windows)]
pub use group::JobObject;
use group::{ProcessGroup, signal_number};

/// Bytes that an [`OutputTail`] keeps.
const TAIL_BYTES: usize = 2000;
/// Lines of an [`OutputTail`] that a message shows.
const TAIL_LINES: usize = 3;
/// Time that a killed process has to end.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Exit code, if the process exited.
    pub code: Option<i32>,
    /// Signal number, if a signal ended the process.
    pub signal: Option<i32>,
}

impl ProcessEnd {
    /// The exit code to pass on, as a shell would: 128 and the signal's number if a signal ended the process.
    #[must_use]
    pub fn exit_code(self) -> i32 {
        self.code.unwrap_or(128 + self.signal.unwrap_or(0))
    }
}

impl From<ExitStatus> for ProcessEnd {
    fn from(status: ExitStatus) -> Self {
        Self { code: status.code(), signal: signal_number(status) }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("for an unknown reason"),
        }
    }
}

/// Start and end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// The process runs.
    Started {
        /// Process id.
        pid: u32,
        /// The program's name without its folders.
        program: String,
    },
    /// The process ended.
    Ended {
        /// Process id.
        pid: u32,
        /// How it ended.
        end: ProcessEnd,
    },
}

/// The pipes to a process.
#[derive(Debug)]
pub struct Pipes {
    /// Standard input.
    pub stdin: ChildStdin,
    /// Standard output.
    pub stdout: ChildStdout,
    /// Standard error.
    pub stderr: ChildStderr,
}

/// When processes that the child started and left behind are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descendants {
    /// As soon as the child has ended: nobody else holds its pipes open then.
    EndWithChild,
    /// When the [`ChildProcess`] is dropped: their last output can be read.
    EndOnDrop,
}

/// A running process.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    group: Arc<ProcessGroup>,
    descendants: Descendants,
    end: watch::Receiver<Option<ProcessEnd>>,
}

impl ChildProcess {
    /// Starts a program with three pipes. A task of `runtime` waits for its end, also after this value was dropped.
    /// `observe` is called with the start and then with the end, before anybody else hears of it.
    ///
    /// # Errors
    /// The system's, if the program can't be started.
    pub fn spawn(
        mut command: Command,
        descendants: Descendants,
        runtime: &Handle,
        observe: impl Fn(ProcessEvent) + Send + 'static,
    ) -> io::Result<(Self, Pipes)> {
        let name = program_name(&command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let _entered = runtime.enter();
        let (mut child, group) = ProcessGroup::spawn(command.kill_on_drop(true))?;
        let group = Arc::new(group);
        let gone = || io::Error::other("it was gone at once");
        let pid = child.id().ok_or_else(gone)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else { return Err(gone()) };
        observe(ProcessEvent::Started { pid, program: name.clone() });
        let (sender, end) = watch::channel(None);
        let own = Arc::clone(&group);
        drop(runtime.spawn(async move {
            let Some(end) = wait_child(child).await else { return };
            if descendants == Descendants::EndWithChild {
                own.kill();
            }
            observe(ProcessEvent::Ended { pid, end });
            // The owner may be gone.
            let _ = sender.send(Some(end));
        }));
        Ok((Self { name, group, descendants, end }, Pipes { stdin, stdout, stderr }))
    }

    /// The program's name without its folders.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the end. The wait can be given up and begun again. `None` if the system can't say how it ended.
    pub async fn wait_end(&self) -> Option<ProcessEnd> {
        let mut end = self.end.clone();
        // The value is copied out before the next await: it is a lock.
        end.wait_for(Option::is_some).await.ok().and_then(|end| *end)
    }

    /// Waits for the end, within a limit.
    pub async fn wait_end_within(&self, limit: Duration) -> Option<ProcessEnd> {
        tokio::time::timeout(limit, self.wait_end()).await.ok().flatten()
    }

    /// Ends the process, whose stdin the caller has closed: waits `exit_limit`, sends SIGTERM, waits `terminate_limit`,
    /// sends SIGKILL. Windows kills in place of SIGTERM. `None` if the process did not end even then.
    pub async fn shut_down(&self, exit_limit: Duration, terminate_limit: Duration) -> Option<ProcessEnd> {
        let steps = [ProcessGroup::terminate, ProcessGroup::kill];
        for (limit, end_group) in [exit_limit, terminate_limit].into_iter().zip(steps) {
            if let Some(end) = self.wait_end_within(limit).await {
                return Some(end);
            }
            self.unless_ended(end_group);
        }
        self.wait_end_within(KILL_LIMIT).await
    }

    /// Applies `end_group` to the process and its descendants, unless the process has ended.
    fn unless_ended(&self, end_group: fn(&ProcessGroup)) {
        if self.end.borrow().is_none() {
            end_group(&self.group);
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.descendants == Descendants::EndOnDrop {
            self.group.kill();
        }
        self.unless_ended(ProcessGroup::kill);
    }
}

async fn wait_child(mut child: Child) -> Option<ProcessEnd> {
    child.wait().await.ok().map(ProcessEnd::from)
}

/// A program's name without its folders.
#[must_use]
pub fn program_name(command: &Command) -> String {
    let program = command.as_std().get_program();
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

/// The last output of a process, for a message about its end.
#[derive(Debug, Default)]
pub struct OutputTail(Vec<u8>);

impl OutputTail {
    /// Appends output. Older output is forgotten.
    pub fn append(&mut self, output: &[u8]) {
        self.0.extend_from_slice(output);
        let surplus = self.0.len().saturating_sub(TAIL_BYTES);
        self.0.drain(..surplus);
    }

    /// The last lines on one line, without empty ones. Where an exception ended Node.js, the line is its message.
    #[must_use]
    pub fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        quote_printable(&node_exception(&lines).map_or_else(|| last.join(" | "), str::to_owned))
    }
}

/// The message of an exception that ended Node.js, which prints the stack and its version after it.
fn node_exception<'l>(lines: &[&'l str]) -> Option<&'l str> {
    lines.last().filter(|line| line.starts_with("Node.js v"))?;
    let names_error = |line: &&&str| line.split_once(": ").is_some_and(|(name, _)| name.contains("Error"));
    lines.iter().filter(|line| !line.starts_with(char::is_whitespace)).rfind(names_error).copied()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::sync::mpsc;

    use tokio::io::AsyncReadExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn spawn(script: &str, descendants: Descendants) -> (ChildProcess, Pipes, mpsc::Receiver<ProcessEvent>) {
        let (sender, events) = mpsc::channel();
        let observe = move |event| drop(sender.send(event));
        let (process, pipes) = ChildProcess::spawn(shell(script), descendants, &Handle::current(), observe).unwrap();
        (process, pipes, events)
    }

    #[tokio::test]
    async fn a_process_ends_by_itself_when_its_stdin_is_closed() {
        let (process, pipes, events) = spawn("cat; exit 3", Descendants::EndWithChild);
        assert_eq!(process.name(), "sh");
        drop(pipes.stdin);
        let end = process.shut_down(LONG, LONG).await.unwrap();
        assert_eq!((end.code, end.signal, end.exit_code()), (Some(3), None, 3));
        assert_eq!(end.to_string(), "exit code 3");
        let ProcessEvent::Started { pid, .. } = events.try_recv().unwrap() else { panic!("no start") };
        assert_eq!(events.try_recv(), Ok(ProcessEvent::Ended { pid, end }));
    }

    #[tokio::test]
    async fn sigterm_and_sigkill_follow_in_turn() {
        let (process, pipes, _) = spawn("echo ready; exec sleep 60", Descendants::EndWithChild);
        let end = process.shut_down(Duration::ZERO, LONG).await.unwrap();
        assert_eq!((end.signal, end.exit_code()), (Some(15), 143));
        drop(pipes);
        let (process, mut pipes, _) =
            spawn("trap '' TERM; echo ready; while :; do sleep 60; done", Descendants::EndWithChild);
        let mut ready = [0; 6];
        pipes.stdout.read_exact(&mut ready).await.unwrap();
        let end = process.shut_down(Duration::ZERO, Duration::from_millis(50)).await.unwrap();
        assert_eq!((end.signal, end.to_string().as_str()), (Some(9), "signal 9"));
    }

    #[tokio::test]
    async fn descendants_end_with_the_child_or_when_it_is_dropped() {
        // A descendant that lives holds stdout open.
        let script = "sleep 60 & echo ready";
        let (process, mut pipes, _) = spawn(script, Descendants::EndWithChild);
        process.wait_end_within(LONG).await.unwrap();
        let mut text = String::new();
        tokio::time::timeout(LONG, pipes.stdout.read_to_string(&mut text)).await.unwrap().unwrap();
        assert_eq!(text, "ready\n");
        let (process, mut pipes, _) = spawn(script, Descendants::EndOnDrop);
        process.wait_end_within(LONG).await.unwrap();
        let mut ready = [0; 6];
        pipes.stdout.read_exact(&mut ready).await.unwrap();
        let mut rest = Vec::new();
        let early = tokio::time::timeout(Duration::from_millis(100), pipes.stdout.read_to_end(&mut rest)).await;
        assert!(early.is_err());
        drop(process);
        tokio::time::timeout(LONG, pipes.stdout.read_to_end(&mut rest)).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_dropped_process_is_killed() {
        let (process, mut pipes, _) = spawn("exec sleep 60", Descendants::EndWithChild);
        drop(process);
        let mut rest = Vec::new();
        tokio::time::timeout(LONG, pipes.stdout.read_to_end(&mut rest)).await.unwrap().unwrap();
    }

    #[test]
    fn a_tail_keeps_the_last_lines() {
        let mut tail = OutputTail::default();
        for number in 0..1000 {
            tail.append(format!("line {number}\n").as_bytes());
        }
        assert_eq!(tail.last_lines(), "line 997 | line 998 | line 999");
        assert!(tail.0.len() <= TAIL_BYTES);
    }

    #[test]
    fn a_tail_has_the_message_of_an_exception_that_ended_node() {
        let stack = "node:internal/modules/run_main:123\n    triggerUncaughtException(\n    ^\n\n\
                     Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'x' imported from y\n\
                     \x20   at Error: nested (node:internal)\n    at load (z.js:1:1) {\n  code: 'ERR'\n}\n\n";
        let said = "Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'x' imported from y";
        for (output, expected) in [
            (format!("{stack}Node.js v20.20.2\n"), said),
            (stack.to_owned(), "at load (z.js:1:1) { |   code: 'ERR' | }"),
            ("one\n\n\ntwo\n\n".to_owned(), "one | two"),
            ("no message\nNode.js v22.1.0\n".to_owned(), "no message | Node.js v22.1.0"),
            (String::new(), ""),
        ] {
            let mut tail = OutputTail::default();
            tail.append(output.as_bytes());
            assert_eq!(tail.last_lines(), expected);
        }
    }
}
