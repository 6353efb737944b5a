//! One front connection and the back connections that serve it: they live and die together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_record::{ConnectionId, Nanos};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::meter::Meter;
use super::shared::RecorderShared;
use super::upstream_connection::UpstreamConnection;
use crate::lock::lock_mutex;
use crate::{NetError, Origin};

/// A front connection's state.
pub(super) struct ClientConnection {
    pub(super) shared: Arc<RecorderShared>,
    pub(super) front: Arc<Meter>,
    /// Since when an exchange is open; 0 for none.
    pub(super) open_since: Arc<AtomicU64>,
    backs: Mutex<Vec<UpstreamConnection>>,
    /// The back connection of the latest exchange: the front connection ends with it.
    latest: Mutex<Option<ConnectionId>>,
    /// Notified when the connection has to end, because its latest upstream connection has ended.
    pub(super) ended: Notify,
}

impl ClientConnection {
    pub(super) fn new(shared: Arc<RecorderShared>, front: Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            shared,
            front,
            open_since: Arc::new(AtomicU64::new(0)),
            backs: Mutex::new(Vec::new()),
            latest: Mutex::new(None),
            ended: Notify::new(),
        })
    }

    pub(super) fn connection_id(&self) -> ConnectionId {
        self.front.connection_id()
    }

    /// An open connection to `origin`, or a new one. The caller returns it with [`ClientConnection::keep_upstream`] once its reply
    /// has begun.
    pub(super) async fn upstream_connection(self: &Arc<Self>, origin: &Origin) -> Result<UpstreamConnection, NetError> {
        let standing = {
            let mut backs = lock_mutex(&self.backs);
            backs.retain(|back| !back.is_closed());
            backs.iter().position(|back| back.origin == *origin).map(|at| backs.swap_remove(at))
        };
        match standing {
            Some(back) => {
                *lock_mutex(&self.latest) = Some(back.meter.connection_id());
                Ok(back)
            }
            None => self.open_upstream(origin).await,
        }
    }

    /// A new connection to `origin`.
    pub(super) async fn open_upstream(self: &Arc<Self>, origin: &Origin) -> Result<UpstreamConnection, NetError> {
        let client = Arc::downgrade(self);
        let on_end = move |conn| {
            if let Some(client) = client.upgrade() {
                client.upstream_ended(conn);
            }
        };
        let opened = UpstreamConnection::open_connection(&self.shared, origin, self.connection_id(), on_end).await;
        if *origin == self.shared.upstream {
            *lock_mutex(&self.shared.unreachable) = opened.as_ref().err().map(ToString::to_string);
        }
        let back = opened?;
        *lock_mutex(&self.latest) = Some(back.meter.connection_id());
        Ok(back)
    }

    /// Keeps a connection for the next exchange.
    pub(super) fn keep_upstream(&self, back: UpstreamConnection) {
        lock_mutex(&self.backs).push(back);
    }

    /// Ends the client's connection with the upstream connection of its latest exchange: a client that talked to the
    /// server directly would see that connection end, too.
    fn upstream_ended(&self, conn: ConnectionId) {
        if *lock_mutex(&self.latest) == Some(conn) {
            self.ended.notify_one();
        }
    }

    /// Reason to close the connection at `at`, if one of its limits has run out.
    pub(super) fn close_reason(&self, at: Nanos) -> Option<&'static str> {
        let limits = &self.shared.options;
        let past = |since: Nanos, limit: Duration| at.since(since) >= Nanos::from(limit);
        let open_since = Nanos(self.open_since.load(Ordering::Relaxed));
        let is_open = open_since != Nanos::ZERO;
        if is_open && past(open_since, limits.exchange_limit) {
            return Some("the exchange took longer than the recorder's limit");
        }
        if !is_open && self.front.first_read().is_some_and(|since| past(since, limits.head_limit)) {
            return Some("a request's head took longer than the recorder's limit");
        }
        past(self.last_activity(), limits.idle_limit).then_some("nothing moved for longer than the recorder's limit")
    }

    /// Earliest time at which the next limit can run out.
    pub(super) fn next_check(&self, at: Nanos) -> Instant {
        let limits = &self.shared.options;
        let idle = Nanos::from(limits.idle_limit) - at.since(self.last_activity());
        let open_since = Nanos(self.open_since.load(Ordering::Relaxed));
        let open_for = if open_since == Nanos::ZERO { Nanos::ZERO } else { at.since(open_since) };
        let exchange = Nanos::from(limits.exchange_limit) - open_for;
        let wait = idle.min(exchange).min(Nanos::from(limits.head_limit)).max(Nanos::from_millis(1));
        Instant::now() + Duration::from_nanos(wait.0)
    }

    fn last_activity(&self) -> Nanos {
        let backs = lock_mutex(&self.backs);
        backs.iter().map(|back| back.meter.last_activity()).fold(self.front.last_activity(), Nanos::max)
    }
}
