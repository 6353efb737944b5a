//! Stamps what passes through a connection, right where bytes are read from and handed to the socket.
//!
//! hyper reads ahead and writes when it likes; the stamps that count are the socket's, so they are taken below it. Who
//! ended the connection is seen here too: the server where a read came to an end or failed first, else the client.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use mcpace_record::{Closer, ConnectionId, EventKind, Nanos, Side};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{Sink, Stream, now};

/// A connection to a server with its stamps.
pub(super) struct Tap {
    stream: Stream,
    stamps: Stamps,
    sink: Arc<Sink>,
    conn: ConnectionId,
}

/// The stamps of a connection, shared with whoever uses it.
#[derive(Clone, Default)]
pub(super) struct Stamps(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    first_write: Option<Nanos>,
    last_write: Option<Nanos>,
    head_end: Option<Nanos>,
    last_read: Option<Nanos>,
    head: HeadScan,
    closed: bool,
    closer: Option<Closer>,
}

/// When a request was written, as far as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// Its first byte was handed to the socket.
    pub(super) began: Nanos,
    /// Its last byte was taken by the socket.
    pub(super) ended: Nanos,
}

impl Stamps {
    /// The next bytes written are those of a new request, the next ones read those of its reply.
    pub(super) fn arm(&self) {
        let mut state = self.state();
        state.first_write = None;
        state.last_write = None;
        state.head_end = None;
        state.head = HeadScan::default();
    }

    /// `None` where nothing was written since [`Stamps::arm`].
    pub(super) fn written(&self) -> Option<Written> {
        let state = self.state();
        let began = state.first_write?;
        Some(Written { began, ended: state.last_write.unwrap_or(began) })
    }

    /// When the last byte of the reply's head was read.
    pub(super) fn head_end(&self) -> Nanos {
        self.state().head_end.unwrap_or_else(now)
    }

    /// When bytes, or the end, were last read.
    pub(super) fn last_read(&self) -> Nanos {
        self.state().last_read.unwrap_or_else(now)
    }

    /// Whom the connection's end is put down to, unless the server ends it first.
    pub(super) fn closes(&self, by: Closer) {
        self.state().closer = Some(by);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a plain assignment, so a poisoned lock is sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap {
    pub(super) fn new(stream: Stream, sink: Arc<Sink>, conn: ConnectionId) -> (Self, Stamps) {
        let stamps = Stamps::default();
        (Self { stream, stamps: stamps.clone(), sink, conn }, stamps)
    }

    fn ended(&self, at: Nanos, by: Closer, reason: Option<String>) {
        if std::mem::replace(&mut self.stamps.state().closed, true) {
            return;
        }
        self.sink.note_at(at, EventKind::ConnectionClosed { side: Side::Back, conn: self.conn, by, reason });
    }

    fn wrote(&self, began: Nanos, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Ready(Ok(_)) => {
                let mut state = self.stamps.state();
                state.first_write.get_or_insert(began);
                state.last_write = Some(now());
            }
            Poll::Ready(Err(error)) => self.ended(now(), Closer::Server, Some(error.to_string())),
            Poll::Pending => {}
        }
    }
}

impl AsyncRead for Tap {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut this.stream).poll_read(cx, buffer);
        match &outcome {
            Poll::Ready(Ok(())) => {
                let at = now();
                let fresh = &buffer.filled()[before..];
                let mut state = this.stamps.state();
                state.last_read = Some(at);
                if state.head_end.is_none() && state.head.ends_in(fresh) {
                    state.head_end = Some(at);
                }
                drop(state);
                if fresh.is_empty() {
                    this.ended(at, Closer::Server, None);
                }
            }
            Poll::Ready(Err(error)) => {
                let at = now();
                this.stamps.state().last_read = Some(at);
                this.ended(at, Closer::Server, Some(error.to_string()));
            }
            Poll::Pending => {}
        }
        outcome
    }
}

impl AsyncWrite for Tap {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let began = now();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.wrote(began, &outcome);
        outcome
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let began = now();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.wrote(began, &outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let by = this.stamps.state().closer.unwrap_or(Closer::Client);
        this.ended(now(), by, None);
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let by = self.stamps.state().closer.unwrap_or(Closer::Client);
        self.ended(now(), by, None);
    }
}

/// Finds the end of a reply's head (RFC 9112 §2.1), passing over interim replies (1xx).
#[derive(Default)]
struct HeadScan {
    /// The first bytes of the status line: enough for `HTTP/1.1 1`.
    start: [u8; 10],
    length: usize,
    /// Only line ends since the last newline: 0 none yet, 1 after `\n`, 2 after `\n\r`.
    line_end: u8,
}

impl HeadScan {
    /// Whether the head ends in these next bytes.
    fn ends_in(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.next(*byte))
    }

    fn next(&mut self, byte: u8) -> bool {
        if let Some(place) = self.start.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
        match (byte, self.line_end) {
            (b'\n', 1 | 2) => {
                let interim = self.start[9] == b'1';
                *self = Self::default();
                !interim
            }
            (b'\n', _) => {
                self.line_end = 1;
                false
            }
            (b'\r', 1) => {
                self.line_end = 2;
                false
            }
            _ => {
                self.line_end = 0;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HeadScan;

    #[test]
    fn the_head_ends_at_the_empty_line_however_it_is_cut() {
        let head = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n";
        for cut in 0..head.len() {
            let mut scan = HeadScan::default();
            assert!(!scan.ends_in(&head[..cut]));
            assert!(scan.ends_in(&head[cut..]), "{cut}");
        }
        assert!(HeadScan::default().ends_in(b"HTTP/1.1 200 OK\nA: b\n\n{}"));
    }

    #[test]
    fn interim_replies_are_passed_over() {
        let mut scan = HeadScan::default();
        assert!(!scan.ends_in(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"));
        assert!(scan.ends_in(b"HTTP/1.1 200 OK\r\n\r\n"));
    }
}
