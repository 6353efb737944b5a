//! Lines that pass through a server's pipes, with the times at which they passed.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

use mcpace_child_process::{ChildProcess, Descendants, Pipes, ProcessEvent};
use mcpace_record::{EventKind, LineFrom, Nanos, Side, digest_bytes};
use mcpace_wire::lines;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::process::Command;
use tokio::runtime::Handle;

use crate::{Sink, monotonic_now};

/// Starts a server's program. Its start and its end are recorded.
pub(crate) fn start_server(
    command: Command,
    descendants: Descendants,
    sink: &Arc<Sink>,
) -> io::Result<(ChildProcess, Pipes)> {
    let sink = Arc::clone(sink);
    ChildProcess::spawn(command, descendants, &Handle::current(), move |event| {
        sink.note(match event {
            ProcessEvent::Started { pid, program } => {
                sink.watch_process(pid);
                EventKind::ProcessStarted { pid, program }
            }
            ProcessEvent::Ended { pid, end } => {
                sink.forget_process(pid);
                EventKind::ProcessExited { pid, code: end.code, signal: end.signal }
            }
        });
    })
}

/// Writes it all and returns when the last of it was handed to the pipe.
pub(crate) async fn hand_over(target: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> io::Result<Nanos> {
    let mut at = monotonic_now();
    while !bytes.is_empty() {
        let write = |cx: &mut Context<'_>| {
            // Stamped before the call: the other process may already be running when it returns.
            at = monotonic_now();
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
    pub(crate) fn feed_bytes(&mut self, at: Nanos, bytes: &[u8]) {
        self.at = at;
        self.decoder.feed(bytes);
    }

    /// The next whole line.
    pub(crate) fn next_line(&mut self) -> Result<Option<(Nanos, Vec<u8>)>, lines::LineError> {
        // A line past the limit leaves no beginning behind for the one after it.
        let line = self.decoder.next_line().inspect_err(|_| self.began = None)?;
        if line.is_none() {
            self.began = self.decoder.is_mid_line().then(|| self.began.unwrap_or(self.at));
        }
        Ok(line.map(|line| (self.began.take().unwrap_or(self.at), line)))
    }

    /// A last line without its end.
    pub(crate) fn take_rest(&mut self) -> Option<(Nanos, Vec<u8>)> {
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
    let (bytes, digest) = (line.len() as u64, digest_bytes(line));
    EventKind::StdioLine { side, from, began, bytes, digest, messages, body, blocked: Nanos::ZERO }
}
