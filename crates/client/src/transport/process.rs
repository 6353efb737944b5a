//! A server's process: in a group of its own, so that what it starts ends with it; its stderr passed on, its end told.
//!
//! Orderly end: stdin closed, then SIGTERM, then SIGKILL, each with a limit. Dropped, it is SIGKILL at once.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_wire::quoted;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::task::Task;
use crate::ClientError;
use crate::lock::lock;

/// Bytes of stderr's end that an error tells.
const STDERR_TOLD: usize = 2000;
/// How long the process's last words may take to be read after its end: something it started may hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A program to start as a server. No shell is involved.
#[derive(Clone, Debug)]
pub struct Program {
    /// Looked up in `PATH` where it has no slash.
    pub program: OsString,
    /// Its arguments, as they are.
    pub args: Vec<OsString>,
    /// Variables to set, beside those of this process unless `only_environment`.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether `environment` is all that it gets.
    pub only_environment: bool,
    /// Where it runs; here where not said.
    pub folder: Option<PathBuf>,
    /// Whether its stderr goes to ours; its end is kept for errors in any case.
    pub forward_stderr: bool,
}

impl Program {
    /// A program and its arguments.
    pub fn new<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            only_environment: false,
            folder: None,
            forward_stderr: true,
        }
    }

    fn name(&self) -> String {
        Path::new(&self.program).file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// A running server process.
pub(super) struct Process {
    name: String,
    group: Pid,
    ended: watch::Receiver<Option<ExitStatus>>,
    stderr_end: Arc<Mutex<Vec<u8>>>,
    stderr: watch::Receiver<bool>,
    _stderr: Task,
}

impl Process {
    pub(super) fn start(program: &Program, runtime: &Handle) -> Result<(Self, ChildStdin, ChildStdout), ClientError> {
        let failed = |reason: io::Error| ClientError::Start { program: program.name(), reason };
        let mut command = Command::new(&program.program);
        command.args(&program.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if program.only_environment {
            command.env_clear();
        }
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        let mut child = command.process_group(0).kill_on_drop(true).spawn().map_err(failed)?;
        let lost = || failed(io::Error::other("it was gone at once"));
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).ok_or_else(lost)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else { return Err(lost()) };
        let (tell, ended) = watch::channel(None);
        // Not tied to us: it must see the process's end even when we are dropped first.
        drop(runtime.spawn(watch_end(child, group, tell)));
        let stderr_end = Arc::new(Mutex::new(Vec::new()));
        let (kept, forward) = (Arc::clone(&stderr_end), program.forward_stderr);
        let (read, heard) = watch::channel(false);
        let reading = Task::spawn(runtime, async move {
            keep_stderr(stderr, &kept, forward).await;
            let _ = read.send(true);
        });
        Ok((Self { name: program.name(), group, ended, stderr_end, stderr: heard, _stderr: reading }, stdin, stdout))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its end, as an error; `None` where it still runs after a moment.
    pub(super) async fn ended(&self) -> Option<ClientError> {
        let mut ended = self.ended.clone();
        let end = tokio::time::timeout(LAST_WORDS, ended.wait_for(Option::is_some)).await.ok()?;
        let status = (*end.ok()?)?;
        drop(tokio::time::timeout(LAST_WORDS, self.stderr.clone().wait_for(|read| *read)).await);
        Some(ClientError::ProcessEnded { program: self.name.clone(), how: how(status), stderr: self.last_words() })
    }

    /// Ends it, its stdin being closed already.
    pub(super) async fn end(&self, limit: Duration) {
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = signal {
                self.signal(signal);
            }
            let mut ended = self.ended.clone();
            if tokio::time::timeout(limit, ended.wait_for(Option::is_some)).await.is_ok() {
                break;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if self.ended.borrow().is_none() {
            // Nobody left in the group is what we want.
            let _ = kill_process_group(self.group, signal);
        }
    }

    fn last_words(&self) -> String {
        let end = lock(&self.stderr_end);
        let text = String::from_utf8_lossy(&end).into_owned();
        // The last lines say what happened; an error has room for a few.
        let lines: Vec<&str> = text.trim_end().lines().rev().take(3).collect();
        quoted(&lines.into_iter().rev().collect::<Vec<_>>().join(" | "))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Waits for the process's end, then ends what it left behind in its group.
async fn watch_end(mut child: Child, group: Pid, tell: watch::Sender<Option<ExitStatus>>) {
    let Ok(status) = child.wait().await else { return };
    let _ = kill_process_group(group, Signal::KILL);
    // Nobody may be listening any more.
    let _ = tell.send(Some(status));
}

async fn keep_stderr(mut stderr: ChildStderr, end: &Mutex<Vec<u8>>, forward: bool) {
    let mut ours = tokio::io::stderr();
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        {
            let mut end = lock(end);
            end.extend_from_slice(&buffer[..read]);
            let surplus = end.len().saturating_sub(STDERR_TOLD);
            end.drain(..surplus);
        }
        if forward {
            // A closed stderr of ours is no reason to hold the server up.
            drop(ours.write_all(&buffer[..read]).await);
        }
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}
