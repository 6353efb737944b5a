//! One connection's stamps, who waits for them, and a note of who closed it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpace_record::{Closer, ConnectionId, EventKind, Nanos, Side, TcpInfo};
use tokio::net::TcpStream;

use super::shared::RecorderShared;
use super::tcp_sampler::TcpSampler;
use crate::lock::lock_mutex;
use crate::tap::Watch;
use crate::{Sink, monotonic_now, socket_options};

/// Receiver of the moments at which its bytes reach the socket. It stamps and analyses the bytes after they are on
/// their way.
pub(super) trait Handover: Send + Sync {
    /// All bytes so far are with the socket: the first since [`Meter::expect_handover`] at `first`, the last at `last`.
    /// Returns whether this was the end and nothing more will follow.
    fn bytes_flushed(&self, first: Nanos, last: Nanos) -> bool;
    /// The connection ended before the rest could be handed over.
    fn connection_ended(&self);
}

/// The stamps of one connection, shared between the socket and whoever handles its exchanges.
pub(super) struct Meter {
    sink: Arc<Sink>,
    side: Side,
    conn: ConnectionId,
    /// An experiment's switch: acknowledge at once, so that a peer's Nagle stall vanishes. Never on otherwise.
    quickack: bool,
    first_read: AtomicU64,
    last_read: AtomicU64,
    first_write: AtomicU64,
    last_write: AtomicU64,
    reset: AtomicBool,
    expecting: AtomicBool,
    handover: Mutex<Option<Arc<dyn Handover>>>,
    closing: Mutex<Closing>,
    sampler: Option<TcpSampler>,
}

#[derive(Default)]
struct Closing {
    noted: bool,
    /// When our own end of the socket was closed, while it is still open whose doing that was.
    unsettled: Option<Nanos>,
    reset_by_peer: bool,
    /// Side that announced the close (`Connection: close`), whichever side then shuts the socket first.
    declared: Option<Closer>,
    /// Why the instrument closes, where it does so for a reason of its own.
    reason: Option<String>,
}

impl Meter {
    pub(super) fn new(shared: &RecorderShared, side: Side, conn: ConnectionId, quickack: bool) -> Arc<Self> {
        let opened = monotonic_now().0;
        Arc::new(Self {
            sink: Arc::clone(&shared.sink),
            side,
            conn,
            quickack,
            first_read: AtomicU64::new(0),
            last_read: AtomicU64::new(opened),
            first_write: AtomicU64::new(0),
            last_write: AtomicU64::new(opened),
            reset: AtomicBool::new(false),
            expecting: AtomicBool::new(false),
            handover: Mutex::new(None),
            closing: Mutex::new(Closing::default()),
            sampler: shared.diagnostics.clone().map(TcpSampler::new),
        })
    }

    pub(super) fn connection_id(&self) -> ConnectionId {
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
    pub(super) fn expect_handover(&self, handover: Arc<dyn Handover>) {
        let before = lock_mutex(&self.handover).replace(handover);
        if let Some(before) = before {
            before.bytes_flushed(self.first_written(), Nanos(self.last_write.load(Ordering::Relaxed)));
        }
        self.first_write.store(0, Ordering::Relaxed);
        self.expecting.store(true, Ordering::Release);
    }

    /// `closer` said that the connection ends after this exchange.
    pub(super) fn declare_close(&self, closer: Closer) {
        lock_mutex(&self.closing).declared.get_or_insert(closer);
    }

    /// The instrument is about to close, because of `reason`.
    pub(super) fn close_because(&self, reason: &str) {
        lock_mutex(&self.closing).reason.get_or_insert_with(|| reason.to_owned());
    }

    /// Whether the peer's end was a reset rather than an orderly close.
    pub(super) fn was_reset(&self) -> bool {
        lock_mutex(&self.closing).reset_by_peer
    }

    /// Closing will reset the connection, as the other side's peer did.
    pub(super) fn reset_at_close(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }

    /// Notes the kernel's statistics of this connection, unless the last sample before `at` is too recent.
    pub(super) fn sample_socket(&self, at: Nanos) {
        if let Some(info) = self.sampler.as_ref().and_then(|sampler| sampler.take_sample(at)) {
            self.note_sample(info);
        }
    }

    fn note_sample(&self, info: TcpInfo) {
        self.sink.note(EventKind::TcpInfo { side: self.side, conn: self.conn, info });
    }

    fn first_written(&self) -> Nanos {
        match self.first_write.load(Ordering::Relaxed) {
            0 => monotonic_now(),
            at => Nanos(at),
        }
    }

    /// The kernel takes the option back by itself, so it is set again after each read (tcp(7)).
    fn acknowledge_at_once(&self, socket: &TcpStream) {
        if self.quickack {
            socket_options::acknowledge_now(socket);
        }
    }

    /// Notes the close of our own end, now that everybody has said what they know of it.
    pub(super) fn note_close(&self) {
        let mut closing = lock_mutex(&self.closing);
        let Some(at) = closing.unsettled.take() else {
            return;
        };
        let by = closing.declared.unwrap_or(Closer::Instrument);
        let reason = closing.reason.take();
        self.sink.note_at(at, EventKind::ConnectionClosed { side: self.side, conn: self.conn, by, reason });
    }
}

impl Watch for Meter {
    fn on_open(&self, socket: &TcpStream) {
        if let Some(sampler) = &self.sampler {
            sampler.set_socket(socket);
        }
        self.acknowledge_at_once(socket);
    }

    fn on_read(&self, socket: &TcpStream, at: Nanos, _: &[u8]) {
        self.last_read.store(at.0, Ordering::Relaxed);
        if self.first_read.load(Ordering::Relaxed) == 0 {
            self.first_read.store(at.0, Ordering::Relaxed);
        }
        self.acknowledge_at_once(socket);
    }

    fn on_write(&self, at: Nanos) {
        self.last_write.store(at.0, Ordering::Relaxed);
        if self.first_write.load(Ordering::Relaxed) == 0 {
            self.first_write.store(at.0, Ordering::Relaxed);
        }
    }

    fn on_flush(&self) {
        let first = self.first_write.load(Ordering::Relaxed);
        if first == 0 || !self.expecting.load(Ordering::Acquire) {
            return;
        }
        let waiting = lock_mutex(&self.handover).clone();
        let Some(waiting) = waiting else { return };
        let last = Nanos(self.last_write.load(Ordering::Relaxed));
        if waiting.bytes_flushed(Nanos(first), last) {
            self.expecting.store(false, Ordering::Release);
            lock_mutex(&self.handover).take();
        }
        if self.side == Side::Front {
            self.sample_socket(last);
        }
    }

    fn peer_ended(&self, at: Nanos, reason: Option<&io::Error>) {
        let mut closing = lock_mutex(&self.closing);
        closing.reset_by_peer |= reason.is_some_and(|e| e.kind() == io::ErrorKind::ConnectionReset);
        if std::mem::replace(&mut closing.noted, true) {
            return;
        }
        let by = match self.side {
            Side::Front => Closer::Client,
            Side::Back => Closer::Server,
        };
        let reason = reason.map(ToString::to_string);
        self.sink.note_at(at, EventKind::ConnectionClosed { side: self.side, conn: self.conn, by, reason });
    }

    fn on_close(&self, socket: &TcpStream) {
        if let Some(info) = self.sampler.as_ref().and_then(TcpSampler::take_last_sample) {
            self.note_sample(info);
        }
        if self.reset.load(Ordering::Relaxed) {
            // Without it the close is an orderly one: the client sees an end where it should see a reset.
            socket_options::reset_on_close(socket);
        }
        {
            let mut closing = lock_mutex(&self.closing);
            if !std::mem::replace(&mut closing.noted, true) {
                closing.unsettled = Some(monotonic_now());
            }
        }
        // The reply that announces a close may still be on its way to the exchange: see `upstream_connection::drive`.
        if self.side == Side::Front {
            self.note_close();
        }
        if let Some(waiting) = lock_mutex(&self.handover).take() {
            waiting.connection_ended();
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.note_close();
    }
}
