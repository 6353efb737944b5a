//! MCP over the stdin and stdout of a process of our own.
//!
//! The process gets a group of its own, so that what it starts ends with it. It never outlives its owner: shutdown is
//! orderly (stdin closed, then SIGTERM, then SIGKILL, each with a limit), a drop is SIGKILL at once.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio as Pipe};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mcpace_record::{Body, EventKind, LineFrom, MessageNote, Nanos, Side, digest};
use mcpace_wire::lines;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::ClientError;
use super::error::quoted;
use super::message::{Answer, Outgoing};
use super::router::Router;
use super::task::Task;
use crate::{Sink, now};

/// Bytes of one line of stderr, and of stderr as a whole, that are recorded.
const STDERR_LINE: usize = 64 * 1024;
const STDERR_TOTAL: usize = 1024 * 1024;
/// Bytes of stderr's end that an error tells.
const STDERR_TOLD: usize = 2000;
/// How long the process's last lines may take to be read after its end: something it started may hold the pipe.
const LAST_LINES: Duration = Duration::from_millis(500);

/// A running server process.
pub(crate) struct Stdio {
    shared: Arc<Shared>,
    pid: Pid,
    ended: watch::Receiver<Option<ExitStatus>>,
    /// They read stdout and stderr to their end.
    _readers: [Task; 2],
    program: String,
}

struct Shared {
    sink: Arc<Sink>,
    router: Router,
    /// `None` once it is closed.
    stdin: AsyncMutex<Option<ChildStdin>>,
    stderr_end: Mutex<Vec<u8>>,
    /// The limit, once a line was longer.
    oversized: OnceLock<usize>,
    /// How many of stdout and stderr are still being read.
    open: watch::Sender<u8>,
}

impl Stdio {
    /// Starts a program; its pipes, its group and its end are ours to see to.
    pub(crate) fn start(mut command: Command, message_limit: usize, sink: &Arc<Sink>) -> Result<Self, ClientError> {
        let program = command.as_std().get_program();
        let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
        let failed = |reason| ClientError::Start { program: name.clone(), reason };
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn().map_err(failed)?;
        let lost = || failed(std::io::Error::other("it was gone at once"));
        let raw = child.id().ok_or_else(lost)?;
        let pid = i32::try_from(raw).ok().and_then(Pid::from_raw).ok_or_else(lost)?;
        sink.note(EventKind::ProcessStarted { pid: raw, program: name.clone() });
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let shared = Arc::new(Shared {
            sink: Arc::clone(sink),
            router: Router::default(),
            stdin: AsyncMutex::new(stdin),
            stderr_end: Mutex::default(),
            oversized: OnceLock::new(),
            open: watch::Sender::new(2),
        });
        let (tell, ended) = watch::channel(None);
        let (stdout, stderr) = (stdout.ok_or_else(lost)?, stderr.ok_or_else(lost)?);
        let read = Arc::clone(&shared);
        let stdout = Task::spawn(async move {
            read_stdout(&read, stdout, message_limit).await;
            read.open.send_modify(|open| *open -= 1);
        });
        let read = Arc::clone(&shared);
        let stderr = Task::spawn(async move {
            read_stderr(&read, stderr).await;
            read.open.send_modify(|open| *open -= 1);
        });
        // Not tied to us: it must see the process's end even when we are dropped first.
        drop(tokio::spawn(watch_process(child, pid, tell, Arc::clone(sink))));
        Ok(Self { shared, pid, ended, _readers: [stdout, stderr], program: name })
    }

    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(&self, message: &Outgoing) -> Result<Answer, ClientError> {
        let Some(id) = &message.id else { return Err(ClientError::NotConnected) };
        let answer = self.shared.router.expect(id);
        self.notify(message).await?;
        match answer.await {
            Ok(answer) => Ok(answer),
            Err(_) => Err(self.gone(message.method).await),
        }
    }

    /// Sends a message that has no answer.
    pub(crate) async fn notify(&self, message: &Outgoing) -> Result<(), ClientError> {
        match self.shared.write(&message.body).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.gone(message.method).await),
        }
    }

    /// Ends the process: stdin closed, then SIGTERM, then SIGKILL, each after `limit`.
    pub(crate) async fn shutdown(mut self, limit: Duration) {
        self.shared.stdin.lock().await.take();
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = signal {
                self.signal(signal);
            }
            if tokio::time::timeout(limit, self.ended.wait_for(Option::is_some)).await.is_ok() {
                break;
            }
        }
        self.last_lines().await;
    }

    /// What its end looks like to a request that got no answer.
    async fn gone(&self, method: &str) -> ClientError {
        if let Some(limit) = self.shared.oversized.get() {
            return ClientError::TooLarge { what: "a line of the server", limit: *limit };
        }
        let mut ended = self.ended.clone();
        let status = tokio::time::timeout(LAST_LINES, ended.wait_for(Option::is_some)).await;
        let status = status.ok().and_then(|status| status.ok().and_then(|status| *status));
        match status {
            Some(status) => {
                self.last_lines().await;
                let stderr = self.shared.stderr_text();
                ClientError::ProcessEnded { program: self.program.clone(), how: how(status), stderr }
            }
            None => {
                let reason = self.shared.router.closed().unwrap_or_else(|| "it reads no more".to_owned());
                ClientError::BrokeOff { method: method.to_owned(), reason }
            }
        }
    }

    async fn last_lines(&self) {
        let mut open = self.shared.open.subscribe();
        drop(tokio::time::timeout(LAST_LINES, open.wait_for(|open| *open == 0)).await);
    }

    fn signal(&self, signal: Signal) {
        if self.ended.borrow().is_none() {
            // It may have ended in this very moment: then there is nobody to signal.
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Waits for the process's end, then ends what it left behind in its group.
async fn watch_process(mut child: Child, pid: Pid, tell: watch::Sender<Option<ExitStatus>>, sink: Arc<Sink>) {
    let Ok(status) = child.wait().await else { return };
    let raw = pid.as_raw_nonzero().get().unsigned_abs();
    sink.note(EventKind::ProcessExited { pid: raw, code: status.code(), signal: status.signal() });
    let _ = kill_process_group(pid, Signal::KILL);
    // Nobody may be listening any more.
    let _ = tell.send(Some(status));
}

async fn read_stdout(shared: &Shared, mut stdout: impl AsyncRead + Unpin, limit: usize) {
    let mut decoder = lines::Decoder::new(limit);
    let mut buffer = vec![0; 64 * 1024];
    let mut began: Option<Nanos> = None;
    loop {
        let read = stdout.read(&mut buffer).await.unwrap_or(0);
        let at = now();
        decoder.feed(&buffer[..read]);
        loop {
            match decoder.next_line() {
                Ok(Some(line)) => shared.received(at, began.take().unwrap_or(at), &line).await,
                Ok(None) => break,
                Err(lines::LineError::TooLong { limit }) => {
                    // Set before anybody hears of the end, so that they hear of the reason too.
                    shared.oversized.get_or_init(|| limit);
                    return shared.router.close("it wrote a line past the limit");
                }
            }
        }
        began = decoder.is_mid_line().then(|| began.unwrap_or(at));
        if read == 0 {
            if let Some(line) = decoder.finish() {
                shared.received(at, began.unwrap_or(at), &line).await;
            }
            return shared.router.close("it closed its stdout");
        }
    }
}

async fn read_stderr(shared: &Shared, mut stderr: impl AsyncRead + Unpin) {
    let mut decoder = lines::Decoder::new(STDERR_LINE);
    let mut buffer = vec![0; 16 * 1024];
    let mut total = 0;
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let at = now();
        shared.keep_stderr(&buffer[..read]);
        total += read;
        if total > STDERR_TOTAL {
            // Read on, so that the process is never held up by a full pipe, and forget.
            continue;
        }
        decoder.feed(&buffer[..read]);
        loop {
            match decoder.next_line() {
                Ok(Some(line)) => shared.note(at, at, LineFrom::ServerStderr, &line),
                Ok(None) => break,
                Err(_) => {}
            }
        }
    }
    if let Some(line) = decoder.finish() {
        let at = now();
        shared.note(at, at, LineFrom::ServerStderr, &line);
    }
}

impl Shared {
    async fn write(&self, json: &[u8]) -> std::io::Result<()> {
        let mut line = Vec::with_capacity(json.len() + 1);
        lines::encode(json, &mut line);
        let mut stdin = self.stdin.lock().await;
        let Some(pipe) = stdin.as_mut() else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
        let began = now();
        pipe.write_all(&line).await?;
        pipe.flush().await?;
        let at = now();
        drop(stdin);
        self.note(at, began, LineFrom::Client, &line[..line.len() - 1]);
        Ok(())
    }

    async fn received(&self, at: Nanos, began: Nanos, line: &[u8]) {
        let replies = self.router.deliver(line);
        self.note(at, began, LineFrom::Server, line);
        for reply in replies {
            // A server that doesn't read our answer has asked for nothing.
            drop(self.write(&reply.body).await);
        }
    }

    fn note(&self, at: Nanos, began: Nanos, from: LineFrom, line: &[u8]) {
        let is_stderr = from == LineFrom::ServerStderr;
        let kind = if is_stderr { "text/plain" } else { "application/json" };
        let body: Option<Body> = self.sink.redactor().body(kind, line, self.sink.body_limit());
        let messages = if is_stderr { Vec::new() } else { MessageNote::of(line) };
        let (side, bytes, digest) = (Side::Back, line.len() as u64, digest(line));
        self.sink.note_at(at, EventKind::StdioLine { side, from, began, bytes, digest, messages, body });
    }

    fn keep_stderr(&self, text: &[u8]) {
        let mut end = self.stderr_end.lock().unwrap_or_else(PoisonError::into_inner);
        end.extend_from_slice(text);
        let surplus = end.len().saturating_sub(STDERR_TOLD);
        end.drain(..surplus);
    }

    fn stderr_text(&self) -> String {
        let end = self.stderr_end.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&end).into_owned();
        // The last lines say what happened; an error has room for a few.
        let lines: Vec<&str> = text.trim_end().lines().rev().take(3).collect();
        quoted(&lines.into_iter().rev().collect::<Vec<_>>().join(" | "))
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}
