//! One front connection and the back connections that serve it: they live and die together.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcpace_record::{ConnectionId, EventKind, Nanos, Side};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::back::Back;
use super::exchange;
use super::meter::Meter;
use super::worker::Shared;
use crate::lock::lock;
use crate::tap::Tap;
use crate::{NetError, Origin, now};

/// A front connection's state.
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) front: Arc<Meter>,
    /// Since when an exchange is open; 0 for none.
    pub(super) open_since: Arc<AtomicU64>,
    backs: Mutex<Vec<Back>>,
    /// The back connection of the latest exchange: the front connection ends with it.
    latest: Mutex<Option<ConnectionId>>,
    ended: Notify,
}

/// Serves one client's connection until either side ends it or a limit runs out.
pub(super) async fn serve(stream: TcpStream, address: SocketAddr, shared: Arc<Shared>) {
    // Small replies must leave at once; failing here would only make a socket slower that is already broken.
    let _ = stream.set_nodelay(true);
    let conn = shared.sink.connection();
    let opened = EventKind::ConnectionOpened { side: Side::Front, conn, address: address.to_string(), serves: None };
    shared.sink.note(opened);
    let meter = Meter::new(Arc::clone(&shared.sink), Side::Front, conn, false);
    let tap = Tap::new(stream, Arc::clone(&meter));
    let link = Link::new(shared, meter);
    let service = {
        let link = Arc::clone(&link);
        // Boxed, so that a long stream doesn't keep the room of the steps before it.
        service_fn(move |request| Box::pin(exchange::pass(Arc::clone(&link), request)))
    };
    let mut http = http1::Builder::new();
    http.preserve_header_case(true).auto_date_header(false);
    let mut http = pin!(http.serve_connection(TokioIo::new(tap), service));
    let mut watchdog = pin!(tokio::time::sleep_until(link.look_again(now())));
    let mut ending = false;
    loop {
        tokio::select! {
            // How it ended was noted by the tap and by the exchange that was open.
            _ = http.as_mut() => break,
            () = link.ended.notified(), if !ending => {
                ending = true;
                link.front.close_because("the server closed its connection");
                http.as_mut().graceful_shutdown();
            }
            () = watchdog.as_mut() => match link.overdue(now()) {
                Some(reason) => {
                    link.front.close_because(reason);
                    break;
                }
                None => watchdog.as_mut().reset(link.look_again(now())),
            },
        }
    }
}

impl Link {
    fn new(shared: Arc<Shared>, front: Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            shared,
            front,
            open_since: Arc::new(AtomicU64::new(0)),
            backs: Mutex::new(Vec::new()),
            latest: Mutex::new(None),
            ended: Notify::new(),
        })
    }

    pub(super) fn conn(&self) -> ConnectionId {
        self.front.conn()
    }

    /// A standing connection to `origin`, or a new one. Give it back with [`Link::keep`] once its reply has begun.
    pub(super) async fn back(self: &Arc<Self>, origin: &Origin) -> Result<Back, NetError> {
        let standing = {
            let mut backs = lock(&self.backs);
            backs.retain(|back| !back.is_closed());
            backs.iter().position(|back| back.origin == *origin).map(|at| backs.swap_remove(at))
        };
        match standing {
            Some(back) => {
                *lock(&self.latest) = Some(back.meter.conn());
                Ok(back)
            }
            None => self.fresh_back(origin).await,
        }
    }

    /// A new connection to `origin`.
    pub(super) async fn fresh_back(self: &Arc<Self>, origin: &Origin) -> Result<Back, NetError> {
        let opened = Back::open(&self.shared, origin, self).await;
        if *origin == self.shared.upstream {
            *lock(&self.shared.unreachable) = opened.as_ref().err().map(ToString::to_string);
        }
        let back = opened?;
        *lock(&self.latest) = Some(back.meter.conn());
        Ok(back)
    }

    /// Keeps a connection for the next exchange.
    pub(super) fn keep(&self, back: Back) {
        lock(&self.backs).push(back);
    }

    /// A back connection is gone. A client that talked to the server directly would see that, so ours does too.
    pub(super) fn back_ended(&self, conn: ConnectionId) {
        if *lock(&self.latest) == Some(conn) {
            self.ended.notify_one();
        }
    }

    /// Which limit has run out.
    fn overdue(&self, at: Nanos) -> Option<&'static str> {
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

    /// When the next limit can run out at the earliest.
    fn look_again(&self, at: Nanos) -> Instant {
        let limits = &self.shared.options;
        let idle = Nanos::from(limits.idle_limit) - at.since(self.last_activity());
        let open_since = Nanos(self.open_since.load(Ordering::Relaxed));
        let open_for = if open_since == Nanos::ZERO { Nanos::ZERO } else { at.since(open_since) };
        let exchange = Nanos::from(limits.exchange_limit) - open_for;
        let wait = idle.min(exchange).min(Nanos::from(limits.head_limit)).max(Nanos::from_millis(1));
        Instant::now() + Duration::from_nanos(wait.0)
    }

    fn last_activity(&self) -> Nanos {
        let backs = lock(&self.backs);
        backs.iter().map(|back| back.meter.last_activity()).fold(self.front.last_activity(), Nanos::max)
    }
}
