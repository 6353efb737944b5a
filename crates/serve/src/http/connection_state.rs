//! Signs of life of one connection, and the orders that it is given.
//!
//! No request costs a timer: a connection leaves marks here, and its worker looks at all of them once an interval. Counters that are
//! only compared for change are updated with relaxed loads and stores: concurrent HTTP/2 streams may lose an increment, which the
//! next one makes up for. The number of requests in progress is exact.
//!
//! A request is in progress from the end of its head until the last byte of its reply has left our buffers. A connection is idle
//! while no request is in progress and no byte moves. The states, and the order that ends each:
//!
//! | state | lasts at most | then |
//! |---|---|---|
//! | a request's head has begun (HTTP/1.1 only: between HTTP/2 requests there are frames, not heads) | `head` | cut |
//! | idle | `idle` | finish: in HTTP/2 a GOAWAY |
//! | a finish is ordered and no request is in progress | `head` | cut |
//! | the socket is full and takes nothing | `write` | cut |
//! | an HTTP/2 stream has bytes to send and none goes | `write` | the stream is reset |
//! | the same, and its last bytes are queued in h2, which resets no stream that has ended | `write` | finish, then cut |

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use super::held_results::ReplyAccount;

/// A transfer at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferProgress {
    /// It moves, or there is nothing to send.
    Moves,
    /// It has been blocked for this many looks.
    Blocked { looks: u32, is_queued: bool },
}

/// A reply on its way to the client, which the connection's idle check looks at.
pub(super) trait WatchedTransfer: std::fmt::Debug + Send + Sync {
    /// Looks at the transfer, once an interval.
    fn check_progress(&self) -> TransferProgress;

    /// Resets the stream.
    fn reset_stream(&self);
}

/// The order that a connection has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownMode {
    /// Go on.
    Serve,
    /// Finish what is in flight, take nothing new.
    Finish,
    /// Stop at once.
    Cut,
}

/// Liveness state of one connection, shared between its task and its worker's look.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// Bytes of replies that wait for the client.
    account: Arc<ReplyAccount>,
    /// The client's address and the one that it reached; none between processes.
    ends: OnceLock<(SocketAddr, Option<SocketAddr>)>,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// Bytes came or went; counts up.
    moves: AtomicU32,
    /// Requests begun; counts up.
    calls: AtomicU32,
    /// Requests that a handler is busy with.
    busy: AtomicU32,
    /// Bytes of a head came, and its request has not begun.
    in_head: AtomicBool,
    /// A request's body is being read.
    in_body: AtomicBool,
    /// It takes too long.
    body_expired: AtomicBool,
    /// The client's side of the socket is full.
    blocked: AtomicBool,
    /// It speaks HTTP/2: bytes between requests are frames.
    is_http2: AtomicBool,
    /// Replies of HTTP/2 streams.
    transfers: Mutex<Vec<Weak<dyn WatchedTransfer>>>,
}

/// Transfers that ended are forgotten at each look, and whenever there are this many.
const TRANSFERS: usize = 256;

/// Changes a counter, without a locked instruction.
fn bump_relaxed(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

impl ConnectionState {
    /// `reply_bytes`: the limit of its account.
    pub(super) fn new(reply_bytes: usize) -> Self {
        Self {
            account: ReplyAccount::new(reply_bytes),
            ends: OnceLock::new(),
            order: AtomicU8::default(),
            waker: Mutex::default(),
            moves: AtomicU32::default(),
            calls: AtomicU32::default(),
            busy: AtomicU32::default(),
            in_head: AtomicBool::default(),
            in_body: AtomicBool::default(),
            body_expired: AtomicBool::default(),
            blocked: AtomicBool::default(),
            is_http2: AtomicBool::default(),
            transfers: Mutex::default(),
        }
    }

    pub(super) fn account(&self) -> &Arc<ReplyAccount> {
        &self.account
    }

    /// Says once, at the beginning, whose connection it is.
    pub(super) fn set_addresses(&self, client: SocketAddr, server: Option<SocketAddr>) {
        // Said a second time it would be the same.
        let _ = self.ends.set((client, server));
    }

    pub(super) fn ends(&self) -> Option<(SocketAddr, Option<SocketAddr>)> {
        self.ends.get().copied()
    }

    pub(super) fn shutdown_mode(&self) -> ShutdownMode {
        match self.order.load(Relaxed) {
            0 => ShutdownMode::Serve,
            1 => ShutdownMode::Finish,
            _ => ShutdownMode::Cut,
        }
    }

    /// Gives an order. A later one can't soften it.
    pub(super) fn order_shutdown(&self, order: ShutdownMode) {
        self.order.fetch_max(order as u8, Relaxed);
        self.wake_task();
    }

    pub(super) fn on_order(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    fn wake_task(&self) {
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
    }

    pub(super) fn has_read(&self) {
        bump_relaxed(&self.moves);
        if self.busy.load(Relaxed) == 0 && !self.is_http2.load(Relaxed) {
            self.in_head.store(true, Relaxed);
        }
    }

    /// From here on it speaks HTTP/2.
    pub(super) fn speaks_http2(&self) {
        self.is_http2.store(true, Relaxed);
        self.in_head.store(false, Relaxed);
    }

    /// Watches the reply of an HTTP/2 stream.
    pub(super) fn watch_transfer(&self, transfer: Weak<dyn WatchedTransfer>) {
        let mut transfers = self.lock_transfers();
        if transfers.len() >= TRANSFERS {
            transfers.retain(|transfer| transfer.strong_count() > 0);
        }
        transfers.push(transfer);
    }

    fn lock_transfers(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn WatchedTransfer>>> {
        // Nothing under the lock can panic half way.
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_written(&self) {
        bump_relaxed(&self.moves);
        self.blocked.store(false, Relaxed);
    }

    /// No buffer between this connection and its socket holds bytes.
    pub(super) fn is_flushed(&self) {
        self.blocked.store(false, Relaxed);
    }

    pub(super) fn is_blocked(&self) {
        self.blocked.store(true, Relaxed);
    }

    /// A request has begun; it has ended when the guard goes.
    pub(super) fn begin_request(&self) -> Busy<'_> {
        self.add_request();
        Busy(self)
    }

    /// A request has begun, until [`ConnectionState::end_request`].
    pub(super) fn add_request(&self) {
        bump_relaxed(&self.calls);
        self.busy.fetch_add(1, Relaxed);
        self.in_head.store(false, Relaxed);
    }

    pub(super) fn end_request(&self) {
        self.busy.fetch_sub(1, Relaxed);
    }

    /// A body is being read; until the guard goes.
    pub(super) fn begin_body(&self) -> InBody<'_> {
        self.body_expired.store(false, Relaxed);
        self.in_body.store(true, Relaxed);
        InBody(self)
    }
}

/// See [`ConnectionState::begin_request`].
pub(super) struct Busy<'p>(&'p ConnectionState);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// See [`ConnectionState::begin_body`].
pub(super) struct InBody<'p>(&'p ConnectionState);

impl InBody<'_> {
    pub(super) fn is_expired(&self) -> bool {
        self.0.body_expired.load(Relaxed)
    }
}

impl Drop for InBody<'_> {
    fn drop(&mut self) {
        self.0.in_body.store(false, Relaxed);
    }
}

/// How long a server that stops waits for a client that neither takes bytes nor completes a head.
const STOPPING: Duration = Duration::from_secs(2);

/// How long each state may last, in looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleTimeouts {
    /// How often to look.
    pub(super) interval: Duration,
    /// Head, body, idle and write time, for [`IdleTimeouts::while_stopping`].
    times: [Duration; 4],
    pub(super) head: u32,
    pub(super) body: u32,
    pub(super) idle: u32,
    pub(super) write: u32,
}

impl IdleTimeouts {
    pub(super) fn new(head: Duration, body: Duration, idle: Duration, write: Duration) -> Self {
        let shortest = head.min(body).min(idle).min(write);
        let interval = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
        // One look more than fits: the first may come right after the state began.
        let looks =
            |time: Duration| u32::try_from(time.as_nanos().div_ceil(interval.as_nanos())).unwrap_or(u32::MAX - 1) + 1;
        let times = [head, body, idle, write];
        Self { interval, times, head: looks(head), body: looks(body), idle: looks(idle), write: looks(write) }
    }

    /// While the server stops: no client that does nothing holds it up.
    pub(super) fn while_stopping(&self) -> Self {
        let [head, body, idle, write] = self.times;
        Self::new(head.min(STOPPING), body, idle, write.min(STOPPING))
    }
}

/// The counters as they were at the previous check, and for how many checks each state has lasted.
#[derive(Debug, Default)]
pub(super) struct IdleCheck {
    moves: u32,
    calls: u32,
    head: u32,
    body: u32,
    idle: u32,
    write: u32,
    finish: u32,
}

impl IdleCheck {
    /// Looks, and orders what has to be.
    pub(super) fn check_idle(&mut self, connection_state: &ConnectionState, patience: &IdleTimeouts) {
        let (moves, calls) = (connection_state.moves.load(Relaxed), connection_state.calls.load(Relaxed));
        let same_call = calls == self.calls;
        let still = moves == self.moves;
        (self.moves, self.calls) = (moves, calls);
        let count = |looks: &mut u32, goes_on: bool| {
            *looks = if goes_on { *looks + 1 } else { 0 };
            *looks
        };
        if count(&mut self.head, connection_state.in_head.load(Relaxed) && same_call) >= patience.head {
            connection_state.order_shutdown(ShutdownMode::Cut);
        }
        if count(&mut self.write, connection_state.blocked.load(Relaxed) && still) >= patience.write {
            connection_state.order_shutdown(ShutdownMode::Cut);
        }
        let is_free = connection_state.busy.load(Relaxed) == 0;
        if count(&mut self.idle, is_free && still) >= patience.idle {
            connection_state.order_shutdown(ShutdownMode::Finish);
        }
        // Ours is done; the client doesn't end its side, or never acknowledges the GOAWAY.
        if count(&mut self.finish, is_free && connection_state.shutdown_mode() == ShutdownMode::Finish) >= patience.head
        {
            connection_state.order_shutdown(ShutdownMode::Cut);
        }
        connection_state.lock_transfers().retain(|transfer| {
            let Some(transfer) = transfer.upgrade() else { return false };
            match transfer.check_progress() {
                TransferProgress::Blocked { looks, is_queued: false } if looks >= patience.write => {
                    transfer.reset_stream()
                }
                TransferProgress::Blocked { looks, .. } if looks >= patience.write.saturating_mul(2) => {
                    connection_state.order_shutdown(ShutdownMode::Cut)
                }
                TransferProgress::Blocked { looks, .. } if looks >= patience.write => {
                    connection_state.order_shutdown(ShutdownMode::Finish)
                }
                TransferProgress::Blocked { .. } | TransferProgress::Moves => {}
            }
            true
        });
        if count(&mut self.body, connection_state.in_body.load(Relaxed) && same_call) >= patience.body {
            connection_state.body_expired.store(true, Relaxed);
            connection_state.wake_task();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> IdleTimeouts {
        let second = Duration::from_secs(1);
        IdleTimeouts::new(second, 2 * second, 4 * second, 3 * second)
    }

    fn looks_until(
        order: ShutdownMode,
        connection_state: &ConnectionState,
        mut between: impl FnMut(&ConnectionState),
    ) -> u32 {
        let mut observed = IdleCheck::default();
        (1..1000)
            .find(|_| {
                observed.check_idle(connection_state, &patience());
                between(connection_state);
                connection_state.shutdown_mode() == order
            })
            .unwrap()
    }

    #[test]
    fn a_head_that_trickles_is_cut() {
        let connection_state = ConnectionState::new(0);
        connection_state.has_read();
        let looks = looks_until(ShutdownMode::Cut, &connection_state, ConnectionState::has_read);
        assert!(looks >= patience().head && looks <= patience().head + 1, "{looks}");
    }

    #[test]
    fn a_connection_with_calls_is_never_slow() {
        let connection_state = ConnectionState::new(0);
        let mut observed = IdleCheck::default();
        for _ in 0..1000 {
            connection_state.has_read();
            drop(connection_state.begin_request());
            connection_state.has_written();
            observed.check_idle(&connection_state, &patience());
        }
        assert_eq!(connection_state.shutdown_mode(), ShutdownMode::Serve);
    }

    #[test]
    fn an_idle_connection_is_asked_to_finish_and_a_busy_one_is_not() {
        let connection_state = ConnectionState::new(0);
        let busy = connection_state.begin_request();
        let mut observed = IdleCheck::default();
        for _ in 0..1000 {
            observed.check_idle(&connection_state, &patience());
        }
        assert_eq!(connection_state.shutdown_mode(), ShutdownMode::Serve);
        drop(busy);
        looks_until(ShutdownMode::Finish, &connection_state, |_| {});
    }

    #[test]
    fn a_reader_that_stands_still_is_cut() {
        let connection_state = ConnectionState::new(0);
        let _busy = connection_state.begin_request();
        connection_state.is_blocked();
        looks_until(ShutdownMode::Cut, &connection_state, |_| {});
    }

    #[test]
    fn a_slow_body_expires_and_the_next_has_its_own_time() {
        let connection_state = ConnectionState::new(0);
        let _busy = connection_state.begin_request();
        let body = connection_state.begin_body();
        let mut observed = IdleCheck::default();
        for _ in 0..=patience().body {
            connection_state.has_read();
            observed.check_idle(&connection_state, &patience());
        }
        assert!(body.is_expired());
        drop(body);
        assert!(!connection_state.begin_body().is_expired());
    }
}
