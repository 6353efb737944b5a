//! A server's process, whose stderr is passed on and whose end becomes an error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_child_process::{ChildProcess, Descendants, OutputTail, Pipes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::task::BackgroundTask;
use crate::ClientError;
use crate::lock::lock_mutex;

/// Time in which the process's last output is read after its end: a descendant may hold the pipe.
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
pub(super) struct ServerProcess {
    child: ChildProcess,
    stderr_tail: Arc<Mutex<OutputTail>>,
    /// Whether stderr was read to its end.
    is_stderr_read: watch::Receiver<bool>,
    _stderr: BackgroundTask,
}

impl ServerProcess {
    pub(super) fn start_program(
        program: &Program,
        runtime: &Handle,
    ) -> Result<(Self, ChildStdin, ChildStdout), ClientError> {
        let mut command = Command::new(&program.program);
        command.args(&program.args);
        if program.only_environment {
            command.env_clear();
        }
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        let (child, Pipes { stdin, stdout, stderr }) =
            ChildProcess::spawn(command, Descendants::EndWithChild, runtime, |_| {})
                .map_err(|reason| ClientError::Start { program: program.name(), reason })?;
        let stderr_tail = Arc::new(Mutex::new(OutputTail::default()));
        let (tail, forward) = (Arc::clone(&stderr_tail), program.forward_stderr);
        let (sender, is_stderr_read) = watch::channel(false);
        let reading = BackgroundTask::spawn(runtime, async move {
            read_stderr(stderr, &tail, forward).await;
            let _ = sender.send(true);
        });
        Ok((Self { child, stderr_tail, is_stderr_read, _stderr: reading }, stdin, stdout))
    }

    pub(super) fn name(&self) -> &str {
        self.child.name()
    }

    /// The process's end as an error; `None` if the process still runs after a moment.
    pub(super) async fn end_error(&self) -> Option<ClientError> {
        let end = self.child.wait_end_within(LAST_WORDS).await?;
        drop(tokio::time::timeout(LAST_WORDS, self.is_stderr_read.clone().wait_for(|is_read| *is_read)).await);
        let (program, stderr) = (self.name().to_owned(), lock_mutex(&self.stderr_tail).last_lines());
        Some(ClientError::ProcessEnded { program, how: end.to_string(), stderr })
    }

    /// Ends the process, whose stdin is closed already.
    pub(super) async fn shut_down(&self, limit: Duration) {
        self.child.shut_down(limit, limit).await;
    }
}

async fn read_stderr(mut stderr: ChildStderr, tail: &Mutex<OutputTail>, forward: bool) {
    let mut ours = tokio::io::stderr();
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        lock_mutex(tail).append(&buffer[..read]);
        if forward {
            // A closed stderr of ours must not block the server.
            drop(ours.write_all(&buffer[..read]).await);
        }
    }
}
