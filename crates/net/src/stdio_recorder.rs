//! The recorder for stdio: it sits between a client and a server process that it starts itself.
//!
//! Design constraints: bytes pass at once and unchanged, lines are only made out afterwards, for the recording. The
//! server runs in a process group of its own and never outlives the recorder. No shell: the command is a list of words.

use std::future::{Future, pending};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpace_child_process::{ChildProcess, Descendants, Pipes};
use mcpace_record::{EventKind, LineFrom, Nanos, Side, digest_bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::end_signals::asked_to_end;
use crate::stdio_lines::{TimedLines, hand_over, line_event, start_server};
use crate::{NetError, Sink, monotonic_now};

pub use mcpace_child_process::ProcessEnd;

/// Lines past this size pass, but are recorded as lost.
const LINE_LIMIT: usize = 16 * 1024 * 1024;

const CHUNK: usize = 64 * 1024;

/// For what a process has left in its pipes when it is gone, and for a killed one to be reaped.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(1);

/// From SIGTERM to SIGKILL for the server where a signal ends the recorder itself: shorter than the 2 s that clients give
/// us in the same place, or we would be killed first and the server outlive us.
const STOPPED_LIMIT: Duration = Duration::from_secs(1);

/// Which server to start, and the limits at its end.
#[derive(Clone, Debug)]
pub struct StdioOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// From the close of the server's stdin to SIGTERM.
    pub exit_limit: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminate_limit: Duration,
    /// Bytes of stderr that are recorded; all of it is passed on.
    pub stderr_limit: usize,
}

impl StdioOptions {
    /// The usual limits, for `command`.
    #[must_use]
    pub fn new(command: Vec<String>) -> Self {
        let (exit_limit, terminate_limit) = (Duration::from_secs(5), Duration::from_secs(2));
        Self { command, exit_limit, terminate_limit, stderr_limit: 1024 * 1024 }
    }
}

/// Records between this process's own stdin and stdout and the server, until either ends or SIGINT, SIGTERM or SIGHUP
/// asks this process to. Blocks. From then on, those signals do nothing more to this process than they did before.
///
/// # Errors
/// As [`record_stdio`]; [`NetError::Io`] where the system refuses a runtime or its signals.
pub fn record_own_stdio(options: &StdioOptions, sink: &Arc<Sink>) -> Result<ProcessEnd, NetError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|reason| NetError::Io { what: "could not start the recorder's runtime", reason })?;
    let (input, output, errors) = (tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
    let end = runtime.block_on(async {
        let stop = asked_to_end()
            .map_err(|reason| NetError::Io { what: "could not listen for the end of the recording", reason })?;
        record_until(options, Arc::clone(sink), input, output, errors, stop).await
    });
    // A thread may still hang in a read of our stdin, which no limit can end.
    runtime.shutdown_background();
    end
}

/// Starts the server and passes `input` to it, its stdout to `output` and its stderr to `errors`, until the server ends.
///
/// The end of `input`, or an `output` that takes no more, closes the server's stdin; then SIGTERM, then SIGKILL follow
/// when their limits run out. Dropping the future kills the server and what it started.
///
/// # Errors
/// [`NetError::Io`] where the server can't be started or waited for.
pub async fn record_stdio(
    options: &StdioOptions,
    sink: Arc<Sink>,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    errors: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<ProcessEnd, NetError> {
    record_until(options, sink, input, output, errors, pending()).await
}

/// As [`record_stdio`]; once `stop` completes, the server gets SIGTERM at once and SIGKILL soon after.
async fn record_until(
    options: &StdioOptions,
    sink: Arc<Sink>,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    errors: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<ProcessEnd, NetError> {
    let mut stop = pin!(stop);
    let (server, Pipes { stdin, stdout, stderr }) = start_program(options, &sink)?;
    let mut pumps = JoinSet::new();
    let client = pumps.spawn(pump_bytes(input, stdin, LineRecorder::new(&sink, LineFrom::Client, usize::MAX)));
    pumps.spawn(pump_bytes(stdout, output, LineRecorder::new(&sink, LineFrom::Server, usize::MAX)));
    pumps.spawn(pump_bytes(stderr, errors, LineRecorder::new(&sink, LineFrom::ServerStderr, options.stderr_limit)));
    let stopped = [Duration::ZERO, STOPPED_LIMIT];
    let (mut ended, mut limits) = (None, [options.exit_limit, options.terminate_limit]);
    while ended.is_none() {
        tokio::select! {
            end = server.wait_end() => ended = Some(end),
            Some(pumped) = pumps.join_next() => if is_clients_end(&pumped) {
                break;
            },
            () = &mut stop => {
                limits = stopped;
                break;
            }
            else => break,
        }
    }
    client.abort();
    let ended = match ended {
        Some(ended) => ended,
        None if limits == stopped => server.shut_down(stopped[0], stopped[1]).await,
        None => tokio::select! {
            ended = server.shut_down(limits[0], limits[1]) => ended,
            () = stop => server.shut_down(stopped[0], stopped[1]).await,
        },
    };
    let lost = || io::Error::new(io::ErrorKind::TimedOut, "it did not end even when killed");
    let ended = ended.ok_or_else(|| NetError::Io { what: "could not wait for the server", reason: lost() })?;
    // A grandchild may hold the pipes open for ever.
    let rest = async { while pumps.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LEFTOVER_LIMIT, rest).await;
    Ok(ended)
}

fn start_program(options: &StdioOptions, sink: &Arc<Sink>) -> Result<(ChildProcess, Pipes), NetError> {
    let failed = |reason| NetError::Io { what: "could not start the server process", reason };
    let [program, arguments @ ..] = options.command.as_slice() else {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty")));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let named = |error: io::Error| failed(io::Error::new(error.kind(), format!("{program}: {error}")));
    start_server(command, Descendants::EndOnDrop, sink).map_err(named)
}

/// Whether the client is done, or takes no more.
fn is_clients_end(pumped: &Result<(LineFrom, Pumped), tokio::task::JoinError>) -> bool {
    matches!(pumped, Ok((LineFrom::Client, Pumped::SourceEnded) | (LineFrom::Server, Pumped::TargetEnded)))
}

enum Pumped {
    SourceEnded,
    TargetEnded,
}

/// Passes bytes as they come; drops `target` at the end, which closes it.
async fn pump_bytes(
    mut source: impl AsyncRead + Unpin,
    mut target: impl AsyncWrite + Unpin,
    mut lines: LineRecorder,
) -> (LineFrom, Pumped) {
    let from = lines.from;
    let mut chunk = vec![0; CHUNK];
    let ended = loop {
        let size = match source.read(&mut chunk).await {
            Ok(0) | Err(_) => break Pumped::SourceEnded,
            Ok(size) => size,
        };
        let read = monotonic_now();
        let handed = hand_over(&mut target, &chunk[..size]).await;
        lines.blocked = lines.blocked + monotonic_now().since(read);
        lines.pass_chunk(read, *handed.as_ref().unwrap_or(&read), &chunk[..size]);
        if handed.is_err() {
            break Pumped::TargetEnded;
        }
    };
    lines.end_stream();
    // The other end may be gone already.
    let _ = target.shutdown().await;
    (from, ended)
}

/// Makes events out of the lines that have passed.
struct LineRecorder {
    sink: Arc<Sink>,
    from: LineFrom,
    lines: TimedLines,
    /// Bytes that may still be recorded.
    room: usize,
    lost: u64,
    /// How long the other end has taken nothing, since the last whole line.
    blocked: Nanos,
}

impl LineRecorder {
    fn new(sink: &Arc<Sink>, from: LineFrom, room: usize) -> Self {
        Self { sink: Arc::clone(sink), from, lines: TimedLines::new(LINE_LIMIT), room, lost: 0, blocked: Nanos::ZERO }
    }

    fn pass_chunk(&mut self, read: Nanos, passed: Nanos, chunk: &[u8]) {
        self.lines.feed_bytes(read, chunk);
        loop {
            match self.lines.next_line() {
                Ok(Some((began, line))) => self.note_line(began, read, passed, &line),
                Ok(None) => break,
                Err(_) => self.lost += 1,
            }
        }
    }

    fn end_stream(&mut self) {
        if let Some((began, line)) = self.lines.take_rest() {
            let at = monotonic_now();
            self.note_line(began, at, at, &line);
        }
        if self.lost > 0 {
            self.sink.note(EventKind::EventsLost { count: self.lost });
        }
    }

    fn note_line(&mut self, began: Nanos, read: Nanos, passed: Nanos, line: &[u8]) {
        let Some(room) = self.room.checked_sub(line.len()) else {
            self.lost += 1;
            return;
        };
        self.room = room;
        let from = self.from;
        let (seen, other) = match from {
            LineFrom::Client => (Side::Front, Side::Back),
            LineFrom::Server | LineFrom::ServerStderr => (Side::Back, Side::Front),
        };
        self.sink.note_at(read, line_event(&self.sink, seen, from, began, line));
        // On the other side there are only stamps.
        let (bytes, digest, messages, body) = (line.len() as u64, digest_bytes(line), Vec::new(), None);
        let blocked = std::mem::take(&mut self.blocked);
        let kind = EventKind::StdioLine { side: other, from, began: passed, bytes, digest, messages, body, blocked };
        self.sink.note_at(passed, kind);
    }
}
