//! How the transport is to behave. Resolved once, in [`super::serve`]; nothing further in reads these types.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::access_log::AccessLog;
use super::auth::Authorization;
use super::mounted_service::MountedService;
use super::session_affinity::WorkerGroup;
use super::tls::Tls;
use crate::store::Stores;

/// Options of the HTTP transport. [`Options::default`] is safe: loopback only, bounded everywhere.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen. Port 0 lets the system choose; [`super::ServerHandle::address`] tells.
    pub address: SocketAddr,
    /// Shares the port with other processes of this user that do too: the kernel spreads connections over them.
    pub shared_port: bool,
    /// The processes that share the port, where sessions are to work over all of them.
    pub family: Option<WorkerGroup>,
    /// Where sessions and streams are kept that several processes share; each keeps its own in memory where there is none.
    pub store: Option<Stores>,
    /// The endpoint's path.
    pub path: String,
    /// How requests are answered.
    pub response: ResponseMode,
    /// No sessions for the legacy revisions: each request stands alone. 2026-07-28 is always so.
    pub stateless: bool,
    /// How many threads serve; as many as there are cores if not said.
    pub workers: Option<NonZeroUsize>,
    /// Host names that may stand in `Host`, beside the loopback names and the bound address. With a port, only that port
    /// fits. `*` allows all, which gives up the protection against DNS rebinding.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call, such as `https://app.example`, beside those of loopback. `*` allows all.
    pub allowed_origins: Vec<String>,
    /// Speaks TLS; otherwise clear text.
    pub tls: Option<Tls>,
    /// Wants a bearer token with each request.
    pub authorization: Option<Authorization>,
    /// Tells how long the layers took in a `Server-Timing` header of each reply.
    pub server_timing: bool,
    /// Is told of each request.
    pub access_log: Option<AccessLog>,
    /// Also offers the two endpoints of 2024-11-05: GET `/sse` and POST `/messages`.
    pub legacy_sse: bool,
    /// Streams of a session have event ids, and a lost one can be taken up again with `Last-Event-ID`.
    pub resumable: bool,
    /// How long a client that lost a resumable stream is to wait before it comes back.
    pub retry: Duration,
    /// After how much silence a stream of events sends a comment. Also: how long `auto` waits for a result before it
    /// begins a stream, so that no proxy takes the silence for a failure.
    pub keep_alive: Duration,
    /// Answers for the paths that are not MCP's.
    pub beside: Option<MountedService>,
    /// A wrapper that each serving thread runs within.
    pub around: Option<Around>,
    /// How much is too much.
    pub limits: Limits,
}

/// Something that has to be there for as long as a thread serves: handed the thread's whole work, it runs it. For
/// languages that want to know the threads that call them.
#[derive(Clone)]
pub struct Around(Arc<dyn Fn(ThreadWork) + Send + Sync>);

/// A thread's work.
type ThreadWork = Box<dyn FnOnce() + Send>;

impl Around {
    /// `run` runs what it is given, once, before it returns.
    #[must_use]
    pub fn new(run: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(run))
    }

    pub(super) fn run_around(&self, work: impl FnOnce() + Send + 'static) {
        (self.0)(Box::new(work));
    }
}

impl std::fmt::Debug for Around {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Around")
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 8000)),
            shared_port: false,
            family: None,
            store: None,
            path: "/mcp".to_owned(),
            response: ResponseMode::Auto,
            stateless: false,
            workers: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls: None,
            authorization: None,
            server_timing: false,
            access_log: None,
            legacy_sse: false,
            resumable: true,
            retry: Duration::from_secs(1),
            keep_alive: Duration::from_secs(15),
            beside: None,
            around: None,
            limits: Limits::default(),
        }
    }
}

/// How requests are answered, where the client takes both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResponseMode {
    /// One JSON body, except for `subscriptions/listen`, which is always a stream. Messages that a handler sends before its
    /// result go to the session's standalone stream, or are dropped. A request to the client waits a while for that stream to
    /// open ([`crate::Limits::stream_time`]).
    Json,
    /// Always a stream of events.
    Sse,
    /// JSON, unless the handler speaks before its result.
    #[default]
    Auto,
}

/// Bounds on what peers can make the server do. Sizes in bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A request's body; 413 past it.
    pub body: usize,
    /// A request's line and headers; 431 past it. At least 8 KiB.
    pub head: usize,
    /// Levels of nesting in a body; 400 past it.
    pub nesting: usize,
    /// Messages in a batch; 400 past it.
    pub batch: usize,
    /// Connections at a time, over all workers. More are closed as they come.
    pub connections: usize,
    /// Requests at a time on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Sessions at a time; 503 past it.
    pub sessions: usize,
    /// Standalone (GET) streams of one session; 409 past it.
    pub standalone_streams: usize,
    /// Resumable streams of one session that are still being written; 429 past it.
    pub session_streams: usize,
    /// Events that a stream holds for a client that does not read.
    pub stream_events: usize,
    /// Bytes that a stream holds for a client that does not read.
    pub stream_bytes: usize,
    /// Bytes of finished results that wait for the client of one connection, and of one stream of 2024-11-05. A result that doesn't fit
    /// is dropped and answered with an error, and new requests get 429 until half of it is free.
    pub connection_reply_bytes: usize,
    /// Bytes of finished results that may wait for one session's client, over all its connections.
    pub session_reply_bytes: usize,
    /// Bytes of ended streams that one session keeps for resumption.
    pub session_replay_bytes: usize,
    /// Bytes of ended streams that all sessions together keep for resumption.
    pub replay_bytes: usize,
    /// A session that nobody used for this long is over.
    pub session_idle: Duration,
    /// A session is over after this time, however much it is used.
    pub session_life: Option<Duration>,
    /// How long a stream that has ended is kept in a store, to be sent again by any process.
    pub replay_time: Duration,
    /// A connection that carried nothing for this long is closed.
    pub connection_idle: Duration,
    /// A request's head must come within this time.
    pub head_time: Duration,
    /// A request's body must come within this time; 408 past it.
    pub body_time: Duration,
    /// A client that reads nothing for this long while there is something to read is cut off.
    pub write_stall: Duration,
    /// How long [`super::ServerHandle::stop`] waits for what is in flight.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            head: 32 << 10,
            nesting: 128,
            batch: mcpace_wire::jsonrpc::DEFAULT_BATCH_LIMIT,
            connections: 65_536,
            http2_streams: 100,
            sessions: 100_000,
            standalone_streams: 1,
            session_streams: 128,
            stream_events: 1024,
            stream_bytes: 1 << 20,
            connection_reply_bytes: 64 << 20,
            session_reply_bytes: 256 << 20,
            session_replay_bytes: 64 << 10,
            replay_bytes: 64 << 20,
            session_idle: Duration::from_secs(30 * 60),
            session_life: None,
            replay_time: Duration::from_secs(5 * 60),
            connection_idle: Duration::from_secs(120),
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(30),
            write_stall: Duration::from_secs(60),
            stop: Duration::from_secs(10),
        }
    }
}
