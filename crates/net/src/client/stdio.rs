//! MCP over the stdin and stdout of a process of our own.
//!
//! The process gets a group of its own, so that what it starts ends with it. It never outlives its owner: shutdown is
//! orderly (stdin closed, then SIGTERM, then SIGKILL, each with a limit), a drop is SIGKILL at once.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use mcpace_child_process::{ChildProcess, Descendants, OutputTail, Pipes, program_name};
use mcpace_client_protocol::inbound::PendingRequests;
use mcpace_client_protocol::{Answer, Outgoing, stderr_end};
use mcpace_record::{LineFrom, Nanos, Side};
use mcpace_wire::lines;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, Command};
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::ClientError;
use super::inbound::Received;
use super::task::BackgroundTask;
use crate::lock::lock_mutex;
use crate::stdio_lines::{TimedLines, hand_over, line_event, start_server};
use crate::{Sink, monotonic_now};

/// Bytes of one line of stderr, and of stderr as a whole, that are recorded.
const STDERR_LINE: usize = 64 * 1024;
const STDERR_TOTAL: usize = 1024 * 1024;
/// How long the process's last lines may take to be read after its end: something it started may hold the pipe.
const LAST_LINES: Duration = Duration::from_millis(500);
/// How long a process that closed its stdout may take to end. A Python program that fails takes some of this to unload.
const END_AFTER_STDOUT: Duration = Duration::from_secs(2);

/// A running server process.
pub(crate) struct Stdio {
    shared: Arc<StdioShared>,
    child: ChildProcess,
    /// They read stdout and stderr to their end.
    _readers: [BackgroundTask; 2],
}

struct StdioShared {
    sink: Arc<Sink>,
    pending: PendingRequests,
    /// `None` once it is closed, and while somebody writes: who is given up in the middle of a message leaves it closed,
    /// since nothing could follow half a message.
    stdin: AsyncMutex<Option<ChildStdin>>,
    stderr_tail: Mutex<OutputTail>,
    /// The limit, once a line was longer.
    oversized: OnceLock<usize>,
    /// How many of stdout and stderr are still being read.
    open: watch::Sender<u8>,
}

impl Stdio {
    /// Starts a program; its pipes, its group and its end are ours to see to.
    pub(crate) fn start_program(command: Command, message_limit: usize, sink: &Arc<Sink>) -> Result<Self, ClientError> {
        let program = program_name(&command);
        let (child, Pipes { stdin, stdout, stderr }) = start_server(command, Descendants::EndWithChild, sink)
            .map_err(|reason| ClientError::Start { program, reason })?;
        let shared = Arc::new(StdioShared {
            sink: Arc::clone(sink),
            pending: PendingRequests::default(),
            stdin: AsyncMutex::new(Some(stdin)),
            stderr_tail: Mutex::default(),
            oversized: OnceLock::new(),
            open: watch::Sender::new(2),
        });
        let read = Arc::clone(&shared);
        let stdout = BackgroundTask::spawn(async move {
            read_stdout(&read, stdout, message_limit).await;
            read.open.send_modify(|open| *open -= 1);
        });
        let read = Arc::clone(&shared);
        let stderr = BackgroundTask::spawn(async move {
            read_stderr(&read, stderr).await;
            read.open.send_modify(|open| *open -= 1);
        });
        Ok(Self { shared, child, _readers: [stdout, stderr] })
    }

    pub(crate) fn program(&self) -> &str {
        self.child.name()
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(&self, message: &Outgoing) -> Result<Answer, ClientError> {
        let Some(id) = message.id else { return Err(ClientError::NotConnected) };
        let answer = self.shared.pending.expect_answer(id);
        self.notify(message).await?;
        match answer.await {
            Some(answer) => Ok(answer),
            None => Err(self.lost_answer(message.method).await),
        }
    }

    /// Sends a message that has no answer.
    pub(crate) async fn notify(&self, message: &Outgoing) -> Result<(), ClientError> {
        match self.shared.write_line(&message.body).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.lost_answer(message.method).await),
        }
    }

    /// Ends the process: stdin closed, then SIGTERM, then SIGKILL, each after `limit`.
    pub(crate) async fn shutdown(self, limit: Duration) {
        // An answer of ours that the server doesn't read may hold the pipe: then there is no orderly way.
        let closed = tokio::time::timeout(limit, self.shared.stdin.lock()).await.map(|mut stdin| drop(stdin.take()));
        let exit_limit = if closed.is_ok() { limit } else { Duration::ZERO };
        self.child.shut_down(exit_limit, limit).await;
        self.last_lines().await;
    }

    /// Error of a request that the end of the process left without an answer.
    async fn lost_answer(&self, method: &str) -> ClientError {
        if let Some(limit) = self.shared.oversized.get() {
            return ClientError::TooLarge { what: "a line of the server", limit: *limit };
        }
        let end = self.child.wait_end_within(END_AFTER_STDOUT).await;
        if end.is_some() {
            self.last_lines().await;
        }
        let stderr = lock_mutex(&self.shared.stderr_tail).last_lines();
        match end {
            Some(end) => ClientError::ProcessEnded { program: self.program().to_owned(), how: end.to_string(), stderr },
            None => {
                let reason = self.shared.pending.close_reason().unwrap_or_else(|| "it reads no more".to_owned());
                ClientError::BrokeOff { method: method.to_owned(), reason: format!("{reason}{}", stderr_end(&stderr)) }
            }
        }
    }

    async fn last_lines(&self) {
        let mut open = self.shared.open.subscribe();
        drop(tokio::time::timeout(LAST_LINES, open.wait_for(|open| *open == 0)).await);
    }
}

async fn read_stdout(shared: &StdioShared, mut stdout: impl AsyncRead + Unpin, limit: usize) {
    let mut lines = TimedLines::new(limit);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = stdout.read(&mut buffer).await.unwrap_or(0);
        let at = monotonic_now();
        lines.feed_bytes(at, &buffer[..read]);
        loop {
            match lines.next_line() {
                Ok(Some((began, line))) => shared.receive_line(at, began, &line).await,
                Ok(None) => break,
                Err(lines::LineError::TooLong { limit }) => {
                    // Set before anybody hears of the end, so that they hear of the reason too.
                    shared.oversized.get_or_init(|| limit);
                    return shared.pending.close("it wrote a line past the limit");
                }
            }
        }
        if read == 0 {
            if let Some((began, line)) = lines.take_rest() {
                shared.receive_line(at, began, &line).await;
            }
            return shared.pending.close("it closed its stdout");
        }
    }
}

async fn read_stderr(shared: &StdioShared, mut stderr: impl AsyncRead + Unpin) {
    let mut lines = TimedLines::new(STDERR_LINE);
    let mut buffer = vec![0; 16 * 1024];
    let mut total = 0;
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let at = monotonic_now();
        lock_mutex(&shared.stderr_tail).append(&buffer[..read]);
        total += read;
        if total > STDERR_TOTAL {
            // Read on, so that the process is never held up by a full pipe, and forget.
            continue;
        }
        lines.feed_bytes(at, &buffer[..read]);
        loop {
            match lines.next_line() {
                Ok(Some((began, line))) => shared.note_line(at, began, LineFrom::ServerStderr, &line),
                Ok(None) => break,
                Err(_) => {}
            }
        }
    }
    if let Some((began, line)) = lines.take_rest() {
        shared.note_line(monotonic_now(), began, LineFrom::ServerStderr, &line);
    }
}

impl StdioShared {
    async fn write_line(&self, json: &[u8]) -> std::io::Result<()> {
        let mut line = Vec::with_capacity(json.len() + 1);
        lines::encode_line(json, &mut line);
        let mut stdin = self.stdin.lock().await;
        let Some(mut pipe) = stdin.take() else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
        let began = monotonic_now();
        let at = hand_over(&mut pipe, &line).await?;
        *stdin = Some(pipe);
        drop(stdin);
        self.note_line(at, began, LineFrom::Client, &line[..line.len() - 1]);
        Ok(())
    }

    async fn receive_line(&self, at: Nanos, began: Nanos, line: &[u8]) {
        let received = Received::from_text(&Bytes::copy_from_slice(line), None, Some(&self.pending));
        self.note_line(at, began, LineFrom::Server, line);
        for reply in received.unwrap_or_default().replies {
            // A server that doesn't read our answer has asked for nothing.
            drop(self.write_line(&reply.body).await);
        }
    }

    fn note_line(&self, at: Nanos, began: Nanos, from: LineFrom, line: &[u8]) {
        self.sink.note_at(at, line_event(&self.sink, Side::Back, from, began, line));
    }
}
