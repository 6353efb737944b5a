//! A server that runs, and how it stops.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::http_server::HttpServer;
use super::worker_socket::WorkerListener;
use super::{Options, ServeError, auth, listen, worker};
use crate::Server;

/// Serves `server` over HTTP on threads of its own, one a core unless said otherwise, until [`ServerHandle::stop`].
///
/// # Errors
/// [`ServeError`]: the options can't be, or the address can't be listened on.
pub fn serve(server: Server, options: Options) -> Result<ServerHandle, ServeError> {
    let workers = options.workers.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    if let Some(authorization) = &options.authorization {
        auth::check_reach(authorization, options.address)?;
    }
    let (listeners, address) = listen::bind_workers(options.address, options.shared_port, workers)?;
    let mut relayed = options.family.as_ref().map(|family| WorkerListener::bind(family.own_socket())).transpose()?;
    let around = options.around.clone();
    let http_server = HttpServer::new_registered(server, options, address)?;
    let stop = CancellationToken::new();
    let open = Arc::new(AtomicUsize::new(0));
    let cut = Arc::new(AtomicUsize::new(0));
    let mut running = ServerHandle {
        address,
        http_server: Arc::clone(&http_server),
        stop: stop.clone(),
        workers: Vec::new(),
        open: Arc::clone(&open),
        cut: Arc::clone(&cut),
    };
    for (index, listener) in listeners.into_iter().enumerate() {
        let shared = (Arc::clone(&http_server), Arc::clone(&open), Arc::clone(&cut));
        let worker = worker::start_worker(index, (listener, relayed.take()), shared, stop.clone(), around.clone());
        // On failure the ones that were started stop with `running`.
        running.workers.push(worker.map_err(ServeError::Worker)?);
    }
    tracing::info!(%address, workers, "serving");
    Ok(running)
}

/// How long the end waits for the store to take what handlers said last.
const FLUSH: Duration = Duration::from_secs(1);

/// A server that runs. Dropping it stops it without waiting. Stopping also closes the [`Server`] ([`Server::close`]).
pub struct ServerHandle {
    address: SocketAddr,
    http_server: Arc<HttpServer>,
    stop: CancellationToken,
    workers: Vec<JoinHandle<()>>,
    /// Open connections of all workers.
    open: Arc<AtomicUsize>,
    /// Connections that were cut off at the end.
    cut: Arc<AtomicUsize>,
}

impl ServerHandle {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections of clients are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// How many legacy sessions there are.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.http_server.sessions.len()
    }

    /// How many messages to clients were dropped here because the store was away for too long ([`Options::store`]).
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.http_server.sharing.as_ref().map_or(0, |sharing| sharing.dropped_messages())
    }

    /// How many messages of calls were dropped since their client had no stream open that takes them ([`super::ResponseMode::Json`]), and
    /// opened none in time.
    #[must_use]
    pub fn unheard(&self) -> u64 {
        self.http_server.stream_bounds.unheard.dropped_messages()
    }

    /// Takes nothing new, finishes what is in flight within [`super::Limits::stop`], and ends the rest. Blocks for as long.
    /// Returns how many connections were cut off.
    #[allow(clippy::must_use_candidate, reason = "it stops all the same")]
    pub fn stop(mut self) -> usize {
        self.order_stop();
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so already, and has nothing left to finish.
            let _ = worker.join();
        }
        if let Some(sharing) = &self.http_server.sharing {
            sharing.flush_writes(FLUSH);
        }
        self.cut.load(Relaxed)
    }

    /// Blocks until the server has stopped, which nobody but the process's end may ever cause.
    pub fn wait(mut self) {
        for worker in std::mem::take(&mut self.workers) {
            let _ = worker.join();
        }
    }

    fn order_stop(&self) {
        self.stop.cancel();
        // Streams that only wait would delay a stop for ever: subscriptions, standalone streams, streams of 2024-11-05.
        self.http_server.server.close();
        self.http_server.sessions.end_standalone_streams();
        if let Some(sharing) = &self.http_server.sharing {
            sharing.end_feeds();
        }
        if let Some(legacy) = &self.http_server.legacy {
            legacy.end_all();
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.order_stop();
    }
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle").field("address", &self.address).finish_non_exhaustive()
    }
}
