//! The stamps of one connection of the client: of the request that was last written, and of the reply to it.
//!
//! The side that ended the connection is noted here too: the server where a read came to an end or failed first, else the client.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use mcpace_record::{Closer, ConnectionId, EventKind, Nanos, Side};
use tokio::net::TcpStream;

use crate::lock::lock_mutex;
use crate::tap::Watch;
use crate::{Sink, monotonic_now};

/// Shared between the socket and whoever uses it.
pub(super) struct Stamps {
    sink: Arc<Sink>,
    conn: ConnectionId,
    state: Mutex<StampState>,
}

#[derive(Default)]
struct StampState {
    written: Option<Written>,
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
    /// Its last byte was handed to the socket.
    pub(super) ended: Nanos,
}

impl Stamps {
    pub(super) fn new(sink: Arc<Sink>, conn: ConnectionId) -> Arc<Self> {
        Arc::new(Self { sink, conn, state: Mutex::default() })
    }

    /// The next bytes written are those of a new request, the next ones read those of its reply.
    pub(super) fn expect_request(&self) {
        let mut state = self.lock_state();
        state.written = None;
        state.head_end = None;
        state.head = HeadScan::default();
    }

    /// `None` where nothing was written since [`Stamps::expect_request`].
    pub(super) fn write_times(&self) -> Option<Written> {
        self.lock_state().written
    }

    /// When the last byte of the reply's head was read.
    pub(super) fn head_end(&self) -> Nanos {
        self.lock_state().head_end.unwrap_or_else(monotonic_now)
    }

    /// When bytes, or the end, were last read.
    pub(super) fn last_read(&self) -> Nanos {
        self.lock_state().last_read.unwrap_or_else(monotonic_now)
    }

    /// Whom the connection's end is put down to, unless the server ends it first.
    pub(super) fn set_closer(&self, by: Closer) {
        self.lock_state().closer = Some(by);
    }

    fn lock_state(&self) -> MutexGuard<'_, StampState> {
        lock_mutex(&self.state)
    }

    fn note_end(&self, at: Nanos, by: Closer, reason: Option<String>) {
        if std::mem::replace(&mut self.lock_state().closed, true) {
            return;
        }
        self.sink.note_at(at, EventKind::ConnectionClosed { side: Side::Back, conn: self.conn, by, reason });
    }
}

impl Watch for Stamps {
    fn on_read(&self, _: &TcpStream, at: Nanos, bytes: &[u8]) {
        let mut state = self.lock_state();
        state.last_read = Some(at);
        if state.head_end.is_none() && state.head.ends_in(bytes) {
            state.head_end = Some(at);
        }
    }

    fn on_write(&self, at: Nanos) {
        let mut state = self.lock_state();
        state.written.get_or_insert(Written { began: at, ended: at }).ended = at;
    }

    fn peer_ended(&self, at: Nanos, error: Option<&io::Error>) {
        self.lock_state().last_read = Some(at);
        self.note_end(at, Closer::Server, error.map(ToString::to_string));
    }

    fn on_close(&self, _: &TcpStream) {
        let by = self.lock_state().closer.unwrap_or(Closer::Client);
        self.note_end(monotonic_now(), by, None);
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
        bytes.iter().any(|byte| self.scan_byte(*byte))
    }

    fn scan_byte(&mut self, byte: u8) -> bool {
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
