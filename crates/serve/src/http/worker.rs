//! One thread with a runtime of its own, which accepts and serves. Workers share nothing but the site.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection;
use super::connection_state::{ConnectionState, IdleCheck, IdleTimeouts, ShutdownMode};
use super::http_server::HttpServer;
use super::options::Around;
use super::worker_socket::WorkerListener;

/// How long accepting rests after the system refused, for lack of descriptors say.
const ACCEPT_REST: Duration = Duration::from_millis(20);

/// Starts a worker. It ends when `stop` is cancelled and its connections are finished, or the limit for that is over:
/// how many that cuts is added to `cut`.
pub(super) fn start_worker(
    index: usize,
    (listener, relayed): (TcpListener, Option<WorkerListener>),
    (http_server, open, cut): (Arc<HttpServer>, Arc<AtomicUsize>, Arc<AtomicUsize>),
    stop: CancellationToken,
    around: Option<Around>,
) -> io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let worker = Worker {
        http_server,
        connections: Arc::new(WorkerConnections::new(open)),
        tracker: TaskTracker::new(),
        stop,
        cut,
    };
    let is_first = index == 0;
    thread::Builder::new().name(format!("mcpace-http-{index}")).spawn(move || {
        let work = move || runtime.block_on(worker.run_worker(listener, relayed, is_first));
        match around {
            Some(around) => around.run_around(work),
            None => work(),
        }
    })
}

struct Worker {
    http_server: Arc<HttpServer>,
    connections: Arc<WorkerConnections>,
    tracker: TaskTracker,
    stop: CancellationToken,
    cut: Arc<AtomicUsize>,
}

impl Worker {
    async fn run_worker(self, listener: TcpListener, relayed: Option<WorkerListener>, sweeps_sessions: bool) {
        // Registered with this thread's reactor, so it has to be made here.
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "a worker can't listen");
                return;
            }
        };
        tokio::spawn(watch_connections(Arc::clone(&self.connections), self.idle_timeouts(), self.stop.clone()));
        if sweeps_sessions {
            tokio::spawn(sweep_sessions(Arc::clone(&self.http_server)));
        }
        let accept = self.accept_connections(listener);
        let accept_relayed = self.accept_relayed(relayed);
        tokio::select! {
            () = accept => {}
            () = accept_relayed => {}
            () = self.stop.cancelled() => {}
        }
        self.finish_requests().await;
    }

    async fn accept_connections(&self, listener: tokio::net::TcpListener) {
        loop {
            let (stream, client) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "can't accept");
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            self.serve_connection(|http_server, connection_state| {
                connection_state.set_addresses(client, stream.local_addr().ok());
                connection::serve_connection(stream, http_server, connection_state)
            });
        }
    }

    /// From the other processes of a family. Never ends.
    async fn accept_relayed(&self, listener: Option<WorkerListener>) {
        let listener = listener.map(WorkerListener::register);
        let listener = match listener {
            Some(Ok(listener)) => listener,
            Some(Err(error)) => {
                tracing::error!(%error, "a worker can't listen for the other processes");
                return std::future::pending().await;
            }
            None => return std::future::pending().await,
        };
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "can't accept from another process");
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            self.serve_connection(|http_server, connection_state| {
                connection::serve_plain(stream, http_server, connection_state)
            });
        }
    }

    /// Serves a connection in a task of its own; closes it where there are as many as may be.
    fn serve_connection<S: Future<Output = ()> + Send + 'static>(
        &self,
        serving: impl FnOnce(Arc<HttpServer>, Arc<ConnectionState>) -> S,
    ) {
        let limits = &self.http_server.limits;
        if let Some(registered) =
            self.connections.register_connection(limits.connections, limits.connection_reply_bytes)
        {
            let serving = serving(Arc::clone(&self.http_server), Arc::clone(&registered.connection_state));
            self.tracker.spawn(async move {
                serving.await;
                drop(registered);
            });
        }
    }

    /// Gives requests in progress their time to finish; then drops the runtime, which cuts the rest.
    async fn finish_requests(self) {
        self.connections.order_all(ShutdownMode::Finish);
        self.tracker.close();
        let waited = tokio::time::timeout(self.http_server.limits.stop, self.tracker.wait()).await;
        if waited.is_err() {
            let left = self.tracker.len();
            tracing::warn!(left, "cut off what did not finish in time");
            self.cut.fetch_add(left, Relaxed);
        }
    }

    fn idle_timeouts(&self) -> IdleTimeouts {
        let limits = &self.http_server.limits;
        IdleTimeouts::new(limits.head_time, limits.body_time, limits.connection_idle, limits.write_stall)
    }
}

/// Looks at all connections of a worker, once an interval.
async fn watch_connections(connections: Arc<WorkerConnections>, patience: IdleTimeouts, stop: CancellationToken) {
    let looking = async {
        loop {
            tokio::time::sleep(patience.interval).await;
            connections.check_idle(&patience);
        }
    };
    tokio::select! {
        () = looking => {}
        () = stop.cancelled() => {}
    }
    let stopping = patience.while_stopping();
    loop {
        tokio::time::sleep(stopping.interval).await;
        connections.check_idle(&stopping);
    }
}

/// Ends sessions that nobody uses.
async fn sweep_sessions(http_server: Arc<HttpServer>) {
    let interval = (http_server.limits.session_idle / 8).clamp(Duration::from_millis(10), Duration::from_secs(30));
    loop {
        tokio::time::sleep(interval).await;
        http_server.sessions.sweep_idle(Instant::now());
    }
}

/// The connections of one worker.
struct WorkerConnections {
    known: Mutex<KnownConnections>,
    /// How many are open, in all workers.
    open: Arc<AtomicUsize>,
}

#[derive(Default)]
struct KnownConnections {
    last: u64,
    connections: HashMap<u64, (Arc<ConnectionState>, IdleCheck)>,
}

impl WorkerConnections {
    fn new(open: Arc<AtomicUsize>) -> Self {
        Self { known: Mutex::default(), open }
    }

    /// `None` when there are `limit` already.
    fn register_connection(self: &Arc<Self>, limit: usize, reply_bytes: usize) -> Option<ConnectionPlace> {
        if self.open.fetch_add(1, Relaxed) >= limit {
            self.open.fetch_sub(1, Relaxed);
            return None;
        }
        let mut known = self.lock_known();
        known.last += 1;
        let number = known.last;
        let connection_state = Arc::new(ConnectionState::new(reply_bytes));
        known.connections.insert(number, (Arc::clone(&connection_state), IdleCheck::default()));
        Some(ConnectionPlace { number, connection_state, of: Arc::clone(self) })
    }

    fn check_idle(&self, patience: &IdleTimeouts) {
        for (connection_state, observed) in self.lock_known().connections.values_mut() {
            observed.check_idle(connection_state, patience);
        }
    }

    fn order_all(&self, order: ShutdownMode) {
        for (connection_state, _) in self.lock_known().connections.values() {
            connection_state.order_shutdown(order);
        }
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownConnections> {
        // Nothing under the lock can panic half way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in [`WorkerConnections`], given back when dropped.
struct ConnectionPlace {
    number: u64,
    connection_state: Arc<ConnectionState>,
    of: Arc<WorkerConnections>,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.of.lock_known().connections.remove(&self.number);
        self.of.open.fetch_sub(1, Relaxed);
    }
}
