//! The recorder: a proxy between any MCP client and an HTTP server that notes when everything passed, on both sides.
//!
//! Design constraints. *Transparent*: each front connection has back connections of its own, opened at its first
//! request, and they end together; bodies pass chunk by chunk, unchanged; a peer's stalls stay visible. *Stamps first*:
//! a time is taken at the socket (`tap`), what the bytes mean is worked out after they were passed on. *No open proxy*:
//! only the upstream and the servers that its own OAuth metadata names can be reached, and only under the recorder's own
//! address.
//!
//! OAuth works through it because metadata, challenges and redirects are changed to lead through the recorder
//! (`url_map`, `oauth`); a person's browser is sent to the authorization server directly, for its pages only work
//! there. MCP's own bodies are never touched.
//!
//! Deliberately absent: HTTP/2, upgrades, TLS in front, passing on 1xx replies (hyper answers `Expect` by itself).

mod ahead;
mod client_connection;
mod exchange;
mod hop_by_hop;
mod known_origins;
mod lateness;
mod meter;
mod oauth;
mod reply;
mod request;
mod route;
mod shared;
mod source;
mod tcp_info;
mod tcp_sampler;
mod upstream_connection;
mod url_map;
mod worker;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::watch;
use url::Url;

use crate::lock::lock_mutex;
use crate::{Dialer, NetError, Origin, Sink};

/// How long [`Recorder::stop`] waits for the threads. They only drop what is open, so this is a backstop.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Whom to record, and the recorder's limits.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The server.
    pub upstream: Url,
    /// Where clients connect; loopback and a free port unless changed.
    pub listen: SocketAddr,
    /// For name look-up, TCP and TLS to the server together.
    pub connect_limit: Duration,
    /// From a request's first byte to the end of its head.
    pub head_limit: Duration,
    /// For a connection on which nothing moves, on either side. Long: servers keep silent streams open.
    pub idle_limit: Duration,
    /// For one exchange, to the end of its reply.
    pub exchange_limit: Duration,
    /// Bytes of one request's or reply's body; past them the exchange is broken off.
    pub body_limit: u64,
    /// Front connections at one time; further ones are closed at once.
    pub max_connections: usize,
    /// A PEM certificate to trust beside the system's.
    pub extra_root: Option<String>,
    /// An experiment: sets `TCP_QUICKACK` towards the server, which makes a server's delayed-ACK stall vanish.
    pub quickack: bool,
    /// Headers that are added to each request to the upstream, in the place of the client's of the same names. The
    /// recording has the client's own headers only.
    pub headers: HeaderMap,
    /// Begin a trace with each request to the upstream that has no `traceparent` header, so that spans of the server lead to
    /// the request. The recording has the header.
    pub traceparent: bool,
    /// Process id of the server, whose processor time is then read at each exchange.
    pub watch: Option<u32>,
    /// Threads that serve connections.
    pub threads: usize,
}

impl RecorderOptions {
    /// The usual limits, for `upstream`.
    #[must_use]
    pub fn new(upstream: Url) -> Self {
        Self {
            upstream,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            connect_limit: Duration::from_secs(10),
            head_limit: Duration::from_secs(30),
            idle_limit: Duration::from_secs(15 * 60),
            exchange_limit: Duration::from_secs(60 * 60),
            body_limit: 1024 * 1024 * 1024,
            max_connections: 20_000,
            extra_root: None,
            quickack: false,
            headers: HeaderMap::new(),
            traceparent: false,
            watch: None,
            threads: std::thread::available_parallelism().map_or(1, |cores| cores.get().min(2)),
        }
    }
}

/// A running recorder. Dropping it stops it.
pub struct Recorder {
    url: String,
    sink: Arc<Sink>,
    stopping: Arc<AtomicBool>,
    unreachable: Arc<Mutex<Option<String>>>,
    stop: watch::Sender<bool>,
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Recorder {
    /// Listens, and serves on threads of its own. Needs no runtime of the caller. Events go to `sink`, which the caller
    /// finishes.
    ///
    /// # Errors
    /// [`NetError::BadUrl`], [`NetError::Listen`], [`NetError::Tls`] for a bad extra root, [`NetError::Io`] where the
    /// system refuses threads.
    pub fn start(options: RecorderOptions, sink: Arc<Sink>) -> Result<Self, NetError> {
        let upstream = Origin::from_url(&options.upstream)?;
        let dialer = Dialer::new(Arc::clone(&sink), options.connect_limit, options.extra_root.as_deref())?;
        let refused = |reason| NetError::Listen { address: options.listen.to_string(), reason };
        let listener = TcpListener::bind(options.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let url = front_url(address, &options.upstream);
        if let Some(pid) = options.watch {
            sink.watch_process(pid);
        }
        let stopping = Arc::new(AtomicBool::new(false));
        let unreachable = Arc::default();
        let threads = options.threads.max(1);
        let shared = Arc::new(shared::RecorderShared {
            options,
            upstream,
            port: address.port(),
            sink: Arc::clone(&sink),
            dialer,
            known: known_origins::KnownOrigins::default(),
            diagnostics: tcp_info::SocketDiagnostics::open_channel().map(Arc::new),
            stopping: Arc::clone(&stopping),
            connections: AtomicUsize::new(0),
            unreachable: Arc::clone(&unreachable),
        });
        let (stop, stopped) = watch::channel(false);
        let (ended, all_ended) = mpsc::channel();
        for _ in 0..threads {
            let failed = |reason| NetError::Io { what: "could not share the recorder's port", reason };
            let listener = listener.try_clone().map_err(failed)?;
            worker::start_thread(listener, Arc::clone(&shared), stopped.clone(), ended.clone())?;
        }
        Ok(Self { url, sink, stopping, unreachable, stop, ended: Mutex::new(all_ended) })
    }

    /// Why the server could not be reached when a connection to it was last tried; `None` where it could. A client is
    /// told 502, and says no more of it.
    #[must_use]
    pub fn unreachable(&self) -> Option<String> {
        lock_mutex(&self.unreachable).clone()
    }

    /// Where clients connect in the upstream's place: the recorder's address with the upstream's path and query.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its events go.
    #[must_use]
    pub fn sink(&self) -> &Arc<Sink> {
        &self.sink
    }

    /// Closes the port and every connection; what is open is recorded as cut. Blocks for a moment, 3 s at the most.
    ///
    /// # Errors
    /// [`NetError::TimeLimit`] where a thread did not end.
    pub fn stop(&self) -> Result<(), NetError> {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        let ended = lock_mutex(&self.ended);
        // Nothing is ever sent: the channel closes when the last thread has dropped its end.
        match ended.recv_timeout(STOP_LIMIT) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(NetError::TimeLimit { what: "stopping the recorder", limit: STOP_LIMIT })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Dropping a recorder without stopping it does not wait for it either; the threads end by themselves.
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
    }
}

/// A client can't connect to "any address": it is told loopback.
fn front_url(address: SocketAddr, upstream: &Url) -> String {
    let mut host = address;
    if host.ip().is_unspecified() {
        host.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let query = upstream.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("http://{host}{}{query}", upstream.path())
}
