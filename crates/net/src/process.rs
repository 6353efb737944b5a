//! A server process and what passes through its pipes.
//!
//! Design constraints: the process runs in a group of its own, so that what it starts ends with it; whoever drops it kills
//! the group. No shell: a command is a program and its arguments.

use std::future::poll_fn;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::Context;

use mcpace_record::{EventKind, LineFrom, Nanos, Side, digest};
use mcpace_wire::lines;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::{Sink, now};

/// How a server process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal number, where one ended it.
    pub signal: Option<i32>,
}

impl ProcessEnd {
    /// The exit code to pass on, as a shell would: 128 + the signal where one ended it.
    #[must_use]
    pub fn exit_code(self) -> i32 {
        self.code.unwrap_or(128 + self.signal.unwrap_or(0))
    }
}

/// A running process; dropped, it is killed with all that it started.
pub(crate) struct Process {
    child: Child,
    pid: u32,
    group: Group,
    sink: Arc<Sink>,
}

/// The pipes to a process.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A process and what it started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group(Pid);

impl Group {
    pub(crate) fn signal(self, signal: Signal) {
        // Nobody left in the group is what we want.
        let _ = kill_process_group(self.0, signal);
    }
}

impl Process {
    /// Starts a program and notes that.
    pub(crate) fn spawn(mut command: Command, sink: &Arc<Sink>) -> io::Result<(Self, Pipes)> {
        let program = name_of(&command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let lost = || io::Error::other("it was gone at once");
        let pid = child.id().ok_or_else(lost)?;
        let group = Group(i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(lost)?);
        sink.note(EventKind::ProcessStarted { pid, program });
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { child, pid, group, sink: Arc::clone(sink) };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else { return Err(lost()) };
        Ok((process, Pipes { stdin, stdout, stderr }))
    }

    pub(crate) fn group(&self) -> Group {
        self.group
    }

    /// Waits for its end and notes it. What it started goes on until this is dropped. Can be given up and asked again.
    pub(crate) async fn wait(&mut self) -> io::Result<ProcessEnd> {
        let status = self.child.wait().await?;
        let (code, signal) = (status.code(), status.signal());
        self.sink.note(EventKind::ProcessExited { pid: self.pid, code, signal });
        Ok(ProcessEnd { code, signal })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

/// A program's name without its folders.
pub(crate) fn name_of(command: &Command) -> String {
    let program = command.as_std().get_program();
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

/// Writes it all and returns when the last of it was handed to the pipe.
pub(crate) async fn hand_over(target: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> io::Result<Nanos> {
    let mut at = now();
    while !bytes.is_empty() {
        let write = |cx: &mut Context<'_>| {
            // Stamped before the call: the other process may already be running when it returns.
            at = now();
            Pin::new(&mut *target).poll_write(cx, bytes)
        };
        match poll_fn(write).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            size => bytes = &bytes[size..],
        }
    }
    target.flush().await?;
    Ok(at)
}

/// Makes lines out of what was read, each with the time of its first byte.
pub(crate) struct TimedLines {
    decoder: lines::Decoder,
    /// When the first byte of the line in progress was there.
    began: Option<Nanos>,
    /// The last read.
    at: Nanos,
}

impl TimedLines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { decoder: lines::Decoder::new(limit), began: None, at: Nanos::ZERO }
    }

    /// The next bytes, read at `at`. Take all lines out before the next ones.
    pub(crate) fn feed(&mut self, at: Nanos, bytes: &[u8]) {
        self.at = at;
        self.decoder.feed(bytes);
    }

    /// The next whole line.
    pub(crate) fn next(&mut self) -> Result<Option<(Nanos, Vec<u8>)>, lines::LineError> {
        // A line past the limit leaves no beginning behind for the one after it.
        let line = self.decoder.next_line().inspect_err(|_| self.began = None)?;
        if line.is_none() {
            self.began = self.decoder.is_mid_line().then(|| self.began.unwrap_or(self.at));
        }
        Ok(line.map(|line| (self.began.take().unwrap_or(self.at), line)))
    }

    /// A last line without its end.
    pub(crate) fn finish(&mut self) -> Option<(Nanos, Vec<u8>)> {
        let line = self.decoder.finish()?;
        Some((self.began.take().unwrap_or(self.at), line))
    }
}

/// A line as it was first seen, on `side`.
pub(crate) fn line_event(sink: &Sink, side: Side, from: LineFrom, began: Nanos, line: &[u8]) -> EventKind {
    let (content_type, messages) = match from {
        LineFrom::ServerStderr => ("text/plain", Vec::new()),
        LineFrom::Client | LineFrom::Server => ("application/json", sink.redactor().messages(line)),
    };
    let body = sink.redactor().body(content_type, line, sink.body_limit());
    let (bytes, digest) = (line.len() as u64, digest(line));
    EventKind::StdioLine { side, from, began, bytes, digest, messages, body, blocked: Nanos::ZERO }
}
