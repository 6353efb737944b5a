//! A socket with a stamp on every read and write, and a note of who closed it.
//!
//! Deliberately absent: buffering. The tap sees the bytes' times and the connection's end, never the bytes.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use mcpace_record::{Closer, ConnectionId, EventKind, Nanos, Side};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::lock::lock;
use crate::{Sink, Stream, now};

/// What waits for its bytes to be handed to the socket, to stamp and analyse them after they are on their way.
pub(super) trait Handover: Send + Sync {
    /// All bytes so far are with the socket: the first since [`Meter::expect`] at `first`, the last at `last`.
    /// Returns whether this was the end and nothing more will follow.
    fn flushed(&self, first: Nanos, last: Nanos) -> bool;
    /// The connection ended before the rest could be handed over.
    fn abandoned(&self);
}

/// The stamps of one connection, shared between the socket and whoever handles its exchanges.
pub(super) struct Meter {
    sink: Arc<Sink>,
    side: Side,
    conn: ConnectionId,
    first_read: AtomicU64,
    last_read: AtomicU64,
    first_write: AtomicU64,
    last_write: AtomicU64,
    reset: AtomicBool,
    expecting: AtomicBool,
    handover: Mutex<Option<Arc<dyn Handover>>>,
    closing: Mutex<Closing>,
}

#[derive(Default)]
struct Closing {
    noted: bool,
    /// When our own end of the socket was closed, while it is still open whose doing that was.
    unsettled: Option<Nanos>,
    reset_by_peer: bool,
    /// Who asked for the close in words (`Connection: close`), whoever then shuts the socket first.
    declared: Option<Closer>,
    /// Why the instrument closes, where it does so for a reason of its own.
    reason: Option<String>,
}

impl Meter {
    pub(super) fn new(sink: Arc<Sink>, side: Side, conn: ConnectionId) -> Arc<Self> {
        let opened = now().0;
        Arc::new(Self {
            sink,
            side,
            conn,
            first_read: AtomicU64::new(0),
            last_read: AtomicU64::new(opened),
            first_write: AtomicU64::new(0),
            last_write: AtomicU64::new(opened),
            reset: AtomicBool::new(false),
            expecting: AtomicBool::new(false),
            handover: Mutex::new(None),
            closing: Mutex::new(Closing::default()),
        })
    }

    pub(super) fn conn(&self) -> ConnectionId {
        self.conn
    }

    /// When the first byte since [`Meter::await_head`] was read; `None` where there was none yet.
    pub(super) fn first_read(&self) -> Option<Nanos> {
        match self.first_read.load(Ordering::Relaxed) {
            0 => None,
            at => Some(Nanos(at)),
        }
    }

    /// A message's last byte was taken: the next byte read starts the next message.
    pub(super) fn await_head(&self) {
        self.first_read.store(0, Ordering::Relaxed);
    }

    pub(super) fn last_read(&self) -> Nanos {
        Nanos(self.last_read.load(Ordering::Relaxed))
    }

    /// The last time that anything moved, either way.
    pub(super) fn last_activity(&self) -> Nanos {
        self.last_read().max(Nanos(self.last_write.load(Ordering::Relaxed)))
    }

    /// From now on bytes written belong to `handover`; what waited before is told that its own are out.
    pub(super) fn expect(&self, handover: Arc<dyn Handover>) {
        let before = lock(&self.handover).replace(handover);
        if let Some(before) = before {
            before.flushed(self.first_written(), Nanos(self.last_write.load(Ordering::Relaxed)));
        }
        self.first_write.store(0, Ordering::Relaxed);
        self.expecting.store(true, Ordering::Release);
    }

    /// `closer` said that the connection ends after this exchange.
    pub(super) fn declare_close(&self, closer: Closer) {
        lock(&self.closing).declared.get_or_insert(closer);
    }

    /// The instrument is about to close, because of `reason`.
    pub(super) fn close_because(&self, reason: &str) {
        lock(&self.closing).reason.get_or_insert_with(|| reason.to_owned());
    }

    /// Whether the peer's end was a reset rather than an orderly close.
    pub(super) fn was_reset(&self) -> bool {
        lock(&self.closing).reset_by_peer
    }

    /// Closing will reset the connection, as the other side's peer did.
    pub(super) fn reset_at_close(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }

    fn first_written(&self) -> Nanos {
        match self.first_write.load(Ordering::Relaxed) {
            0 => now(),
            at => Nanos(at),
        }
    }

    fn read(&self, at: Nanos) {
        self.last_read.store(at.0, Ordering::Relaxed);
        if self.first_read.load(Ordering::Relaxed) == 0 {
            self.first_read.store(at.0, Ordering::Relaxed);
        }
    }

    fn wrote(&self, at: Nanos) {
        self.last_write.store(at.0, Ordering::Relaxed);
        if self.first_write.load(Ordering::Relaxed) == 0 {
            self.first_write.store(at.0, Ordering::Relaxed);
        }
    }

    fn flushed(&self) {
        let first = self.first_write.load(Ordering::Relaxed);
        if first == 0 || !self.expecting.load(Ordering::Acquire) {
            return;
        }
        let waiting = lock(&self.handover).clone();
        let Some(waiting) = waiting else { return };
        if waiting.flushed(Nanos(first), Nanos(self.last_write.load(Ordering::Relaxed))) {
            self.expecting.store(false, Ordering::Release);
            lock(&self.handover).take();
        }
    }

    fn peer_ended(&self, reason: Option<&io::Error>) {
        let mut closing = lock(&self.closing);
        closing.reset_by_peer |= reason.is_some_and(|e| e.kind() == io::ErrorKind::ConnectionReset);
        if std::mem::replace(&mut closing.noted, true) {
            return;
        }
        let by = match self.side {
            Side::Front => Closer::Client,
            Side::Back => Closer::Server,
        };
        let reason = reason.map(ToString::to_string);
        self.sink.note(EventKind::ConnectionClosed { side: self.side, conn: self.conn, by, reason });
    }

    /// Notes the close of our own end, now that everybody has said what they know of it.
    pub(super) fn settle(&self) {
        let mut closing = lock(&self.closing);
        let Some(at) = closing.unsettled.take() else {
            return;
        };
        let by = closing.declared.unwrap_or(Closer::Instrument);
        let reason = closing.reason.take();
        self.sink.note_at(at, EventKind::ConnectionClosed { side: self.side, conn: self.conn, by, reason });
    }

    fn closed(&self) {
        {
            let mut closing = lock(&self.closing);
            if !std::mem::replace(&mut closing.noted, true) {
                closing.unsettled = Some(now());
            }
        }
        // The reply that announces a close may still be on its way to the exchange: see `back::drive`.
        if self.side == Side::Front {
            self.settle();
        }
        if let Some(waiting) = lock(&self.handover).take() {
            waiting.abandoned();
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.settle();
    }
}

/// A stream that has a TCP socket at its bottom.
pub(super) trait OverTcp: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    fn tcp(&self) -> &TcpStream;
}

impl OverTcp for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl OverTcp for Stream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// The socket itself, stamped.
pub(super) struct Tap<S: OverTcp> {
    stream: S,
    meter: Arc<Meter>,
    /// An experiment's switch: acknowledge at once, so that a peer's Nagle stall vanishes. Never on otherwise.
    quickack: bool,
}

impl<S: OverTcp> Tap<S> {
    pub(super) fn new(stream: S, meter: Arc<Meter>, quickack: bool) -> Self {
        let tap = Self { stream, meter, quickack };
        tap.acknowledge_at_once();
        tap
    }

    /// The kernel takes the option back by itself, so it is set again after each read (tcp(7)).
    fn acknowledge_at_once(&self) {
        if self.quickack {
            // Only an experiment's precision is lost where it fails.
            let _ = rustix::net::sockopt::set_tcp_quickack(self.stream.tcp(), true);
        }
    }
}

impl<S: OverTcp> AsyncRead for Tap<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_read(cx, buffer));
        match &outcome {
            Ok(()) if buffer.filled().len() > before => {
                tap.meter.read(now());
                tap.acknowledge_at_once();
            }
            Ok(()) if buffer.remaining() > 0 => tap.meter.peer_ended(None),
            Ok(()) => {}
            Err(error) => tap.meter.peer_ended(Some(error)),
        }
        Poll::Ready(outcome)
    }
}

impl<S: OverTcp> AsyncWrite for Tap<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        // Stamped before the call: on loopback the peer may already be running when it returns.
        let at = now();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_write(cx, bytes));
        tap.after_write(at, &outcome);
        Poll::Ready(outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        let at = now();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_write_vectored(cx, slices));
        tap.after_write(at, &outcome);
        Poll::Ready(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_flush(cx));
        if outcome.is_ok() {
            tap.meter.flushed();
        }
        Poll::Ready(outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl<S: OverTcp> Tap<S> {
    fn after_write(&self, at: Nanos, outcome: &io::Result<usize>) {
        match outcome {
            Ok(_) => self.meter.wrote(at),
            Err(error) => self.meter.peer_ended(Some(error)),
        }
    }
}

impl<S: OverTcp> Drop for Tap<S> {
    fn drop(&mut self) {
        if self.meter.reset.load(Ordering::Relaxed) {
            // Without it the close is an orderly one: the client sees an end where it should see a reset.
            let _ = rustix::net::sockopt::set_socket_linger(self.stream.tcp(), Some(std::time::Duration::ZERO));
        }
        self.meter.closed();
    }
}
