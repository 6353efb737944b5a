//! Types that pass between a transport and dispatch: the one contract of this crate's two halves.
//!
//! Dispatch never sees a socket, a header or a stream; a transport never sees a method, a tool or a result's inside.

use std::future::Future;
use std::hash::BuildHasher as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_wire::jsonrpc::Message;
use mcpace_wire::mcp::ParamsOutline;
use mcpace_wire::revision::Revision;
use rustc_hash::FxBuildHasher;
use tokio_util::sync::CancellationToken;

use crate::headers::Headers;
use crate::outlet::Outlet;
use crate::principal::Principal;
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
        if self.channel.transport() != TransportKind::Http {
            return 0;
        }
        match (&self.peer.session, &self.peer.principal) {
            (Some(session), _) => Arc::as_ptr(session).addr() as u64,
            (None, Some(principal)) => FxBuildHasher.hash_one(&principal.subject),
            (None, None) => self.channel.connection_number(),
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

/// The transport of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// HTTP, or an unknown transport: the caller is outside of this process.
    #[default]
    Http,
    /// The pipes of the process that started the server.
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
    fn open_outlet(&self) -> Arc<dyn Outlet>;

    /// The id of the session that the message belongs to, where the transport has given it one.
    fn session_id(&self) -> Option<&str> {
        None
    }

    /// The headers that the message came with, where it came with any: carried to handlers that ask, not looked at.
    fn headers(&self) -> Option<Headers> {
        None
    }

    /// The transport of the message.
    fn transport(&self) -> TransportKind {
        TransportKind::default()
    }

    /// Fires when the connection ends, where nobody else could ask for the tasks that it began.
    fn connection_closed(&self) -> Option<CancellationToken> {
        None
    }

    /// A number that all messages of one connection have in common; 0 where it isn't known.
    fn connection_number(&self) -> u64 {
        0
    }
}

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
    pub challenge: Option<Challenge>,
}

/// Action that a refused client can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
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
