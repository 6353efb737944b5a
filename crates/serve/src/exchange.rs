//! Types that pass between a transport and dispatch: the one contract of this crate's two halves.
//!
//! Dispatch never sees a socket, a header or a stream; a transport never sees a method, a tool or a result's inside.

use std::any::Any;
use std::future::Future;
use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use mcpace_wire::jsonrpc::Message;
use mcpace_wire::mcp::ParamsOutline;
use mcpace_wire::revision::Revision;
use rustc_hash::FxBuildHasher;
use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// One message for dispatch.
pub struct Incoming<'a> {
    /// The message; borrows from `body`.
    pub message: &'a Message<'a>,
    /// The bytes that it was parsed from: a slice of them can be kept without copying.
    pub body: &'a Bytes,
    /// Parameters that the transport has parsed already, where it had to.
    pub outline: Option<&'a ParamsOutline<'a>>,
    /// Sender of the message.
    pub peer: &'a Peer,
    /// The way back to the client, ahead of the reply.
    pub channel: &'a dyn Channel,
    /// When the transport had read the whole message: the start of the layer clocks.
    pub received: Instant,
    /// Whether the transport wants [`Reply::timing`] even where the request doesn't ask (`--server-timing`).
    pub timed: bool,
}

impl Incoming<'_> {
    /// A number that all messages of one client have in common, for whoever shares something between clients: by their session, else by
    /// their principal, else by their connection. 0 where there is no other client, or it isn't known whose the message is.
    pub(crate) fn client_key(&self) -> u64 {
        if self.channel.road() != TransportKind::Http {
            return 0;
        }
        match (&self.peer.session, &self.peer.principal) {
            (Some(session), _) => Arc::as_ptr(session).addr() as u64,
            (None, Some(principal)) => FxBuildHasher.hash_one(&principal.subject),
            (None, None) => self.channel.connection(),
        }
    }
}

/// Sender of a message.
#[derive(Clone)]
pub struct Peer {
    /// The revision that this message is to be read by.
    pub revision: Revision,
    /// The legacy session that it belongs to; `None` in 2026-07-28, in stateless mode and for `initialize`.
    pub session: Option<Arc<Session>>,
    /// Authenticated principal, if the request was authenticated.
    pub principal: Option<Principal>,
}

/// An authenticated caller. Two of the same subject and scopes are equal, whatever their details.
#[derive(Clone)]
pub struct Principal {
    /// Stable name, such as [`crate::Identity::subject`] makes of a token's `sub` or client id. Sessions are bound to it.
    pub subject: Arc<str>,
    /// Granted scopes.
    pub scopes: Arc<[String]>,
    /// Further details from the verifier, for handlers that know their type. Never logged.
    pub details: Option<Arc<dyn Any + Send + Sync>>,
    /// Until when the grant is good, where it has an end. Streams that the caller only listens on end then.
    pub expires: Option<SystemTime>,
}

impl Principal {
    /// A caller without details.
    #[must_use]
    pub fn new(subject: impl Into<Arc<str>>, scopes: impl Into<Arc<[String]>>) -> Self {
        Self { subject: subject.into(), scopes: scopes.into(), details: None, expires: None }
    }

    /// How long the grant is still good, where it has an end.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.expires.map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Whether two callers are one: of the same subject, or both unknown.
    pub(crate) fn are_one(one: Option<&Principal>, other: Option<&Principal>) -> bool {
        one.map(|one| &one.subject) == other.map(|other| &other.subject)
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.subject == other.subject && self.scopes == other.scopes
    }
}

impl Eq for Principal {}

impl std::hash::Hash for Principal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.subject.hash(state);
        self.scopes.hash(state);
    }
}

impl std::fmt::Debug for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Principal")
            .field("subject", &self.subject)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// The road that a request came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// HTTP, or one that isn't told: whoever it is comes from elsewhere.
    #[default]
    Http,
    /// The pipe of whoever started the server.
    Stdio,
    /// A client in the same process.
    Memory,
    /// None: a call within the process, which no client sent.
    Process,
}

impl TransportKind {
    /// `http`, `stdio`, `memory`, `process`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TransportKind::Http => "http",
            TransportKind::Stdio => "stdio",
            TransportKind::Memory => "memory",
            TransportKind::Process => "process",
        }
    }
}

/// The way back to the client for what a handler says before its result. Opened only when it speaks.
pub trait Channel {
    /// A handle that outlives the call into dispatch. Messages sent on it reach the client in order, before the reply.
    fn open(&self) -> Arc<dyn Outlet>;

    /// The id of the session that the message belongs to, where the transport has given it one.
    fn session_id(&self) -> Option<&str> {
        None
    }

    /// The headers that the message came with, where it came with any: carried to handlers that ask, not looked at.
    fn headers(&self) -> Option<Headers> {
        None
    }

    /// The road that the message came by.
    fn road(&self) -> TransportKind {
        TransportKind::default()
    }

    /// Fires when the connection ends, where nobody else could ask for the tasks that it began.
    fn closed(&self) -> Option<CancellationToken> {
        None
    }

    /// A number that all messages of one connection have in common; 0 where it isn't known.
    fn connection(&self) -> u64 {
        0
    }
}

/// The connection that a request came over, as far as the transport knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The client's address, or that of the proxy before it.
    pub client: Option<SocketAddr>,
    /// The address that the client reached.
    pub server: Option<SocketAddr>,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
}

/// The head of a request as it came, for handlers. Cheap to clone; read only where somebody looks.
#[derive(Clone)]
pub struct Headers {
    /// Path and query.
    target: Bytes,
    /// Lines, as HTTP/1.1 has them; without the request line.
    lines: Bytes,
    ends: Ends,
}

impl Headers {
    /// Takes a request target and header lines that an HTTP parser has accepted.
    pub(crate) fn new(target: Bytes, lines: Bytes, ends: Ends) -> Self {
        Self { target, lines, ends }
    }

    /// The path and query that the request is for.
    #[must_use]
    pub fn target(&self) -> &str {
        std::str::from_utf8(&self.target).unwrap_or_default()
    }

    /// The connection that the request came over.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// All of them, in their order: names as they came, values as bytes (RFC 9110 §5.5 knows no encoding).
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.lines.split(|&byte| byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?;
            Some((name, line[colon + 1..].trim_ascii()))
        })
    }

    /// The first of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// Values are shown to nobody: there are tokens among them.
impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Takes JSON-RPC messages to the client.
pub trait Outlet: Send + Sync {
    /// Hands a message over; never blocks, bounded inside.
    ///
    /// # Errors
    /// The client is gone, too slow, or this way carries nothing (a stateless JSON reply).
    fn send(&self, message: Bytes) -> Result<(), Gone>;

    /// Sends a message that accompanies the result of a call. May wait briefly until the client reads it.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    fn tell(&self, message: Bytes) -> Result<(), Gone> {
        self.send(message)
    }

    /// For a way that carries nothing yet, but may soon: ends once it carries more than it did. `None` where it never will.
    fn opens(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }

    /// Lets the client's connection go, not the call: the client takes the stream up again when it wants to know how the
    /// call went on (2025-11-25, polling). Where streams can't be taken up again nothing happens.
    fn release(&self) {}
}

/// Nobody is there to take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client can't be reached")]
pub struct Gone;

/// Outcome of a message.
pub enum Handled {
    /// It wants no answer: a notification or a response.
    Nothing,
    /// The answer.
    Now(Reply),
    /// The answer will come. Dropping the future cancels the handler; `subscriptions/listen` is one that lasts.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// An answer, ready for the wire.
pub struct Reply {
    /// The whole JSON-RPC response.
    pub message: Bytes,
    /// HTTP status of the reply.
    pub status: ReplyStatus,
    /// The session that an `initialize` began; the transport stores it under an id of its own, or drops it.
    pub session: Option<Arc<Session>>,
    /// Whether the client took its request back, so that it expects no answer. The message is an error all the same, for
    /// transports that must end an HTTP exchange with something.
    pub cancelled: bool,
    /// How long the layers took, where asked for.
    pub timing: Option<Timing>,
    /// Action that would help the client, if the request was refused.
    pub remedy: Option<Remedy>,
}

/// Action that a refused client can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Come with a token that grants these scopes, too.
    Scopes(Vec<Arc<str>>),
    /// Come back after this time.
    Wait(Duration),
}

/// The HTTP status that a JSON-RPC response travels with (2026-07-28, transports, error table). Legacy: 200, since clients of
/// those revisions (mcp 1.11 to 1.30 among them) take any other for the connection's end. But in 2025-11-25 a refusal that
/// another token would mend is 403 (basic/authorization, "Runtime Insufficient Scope Errors").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// 200.
    Ok,
    /// 400.
    BadRequest,
    /// 404: unknown method in 2026-07-28.
    NotFound,
    /// 403: whoever asks may not.
    Forbidden,
    /// 429: a rate limit is exceeded.
    TooManyRequests,
    /// 503: nobody can say whether a rate limit is exceeded.
    Unavailable,
}

/// Layer clocks of one call. Transport's own share is the rest up to the moment that the reply is handed to the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Look-up, validation, serialisation.
    pub dispatch: Duration,
    /// The author's code.
    pub service: Duration,
}
