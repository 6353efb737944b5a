//! What passes between a transport and dispatch: the one contract of this crate's two halves.
//!
//! Dispatch never sees a socket, a header or a stream; a transport never sees a method, a tool or a result's inside.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_wire::jsonrpc::Message;
use mcpace_wire::revision::Revision;

use crate::session::Session;

/// One message for dispatch.
pub struct Incoming<'a> {
    /// The message; borrows from `body`.
    pub message: &'a Message<'a>,
    /// The bytes that it was parsed from: a slice of them can be kept without copying.
    pub body: &'a Bytes,
    /// Who sent it.
    pub peer: &'a Peer,
    /// The way back to the client, ahead of the reply.
    pub channel: &'a dyn Channel,
    /// When the transport had read the whole message: the start of the layer clocks.
    pub received: Instant,
    /// Whether the transport wants [`Reply::timing`] even where the request doesn't ask (`--server-timing`).
    pub timed: bool,
}

/// Who sent a message.
#[derive(Clone)]
pub struct Peer {
    /// The revision that this message is to be read by.
    pub revision: Revision,
    /// The legacy session that it belongs to; `None` in 2026-07-28, in stateless mode and for `initialize`.
    pub session: Option<Arc<Session>>,
    /// Who is authenticated, where anybody is.
    pub principal: Option<Principal>,
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Stable name, e.g. the token's `sub` or client id. Sessions are bound to it.
    pub subject: Arc<str>,
    /// Granted scopes.
    pub scopes: Arc<[String]>,
}

/// The way back to the client for what a handler says before its result. Opened only when it speaks.
pub trait Channel {
    /// A handle that outlives the call into dispatch. Messages sent on it reach the client in order, before the reply.
    fn open(&self) -> Arc<dyn Outlet>;
}

/// Takes JSON-RPC messages to the client.
pub trait Outlet: Send + Sync {
    /// Hands a message over; never blocks, bounded inside.
    ///
    /// # Errors
    /// The client is gone, too slow, or this way carries nothing (a stateless JSON reply).
    fn send(&self, message: Bytes) -> Result<(), Gone>;

    /// Lets the client's connection go, not the call: the client takes the stream up again when it wants to know how the
    /// call went on (2025-11-25, polling). Where streams can't be taken up again nothing happens.
    fn release(&self) {}
}

/// Nobody is there to take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client can't be reached")]
pub struct Gone;

/// What became of a message.
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
    /// What it is as an HTTP status.
    pub status: ReplyStatus,
    /// The session that an `initialize` began; the transport stores it under an id of its own, or drops it.
    pub session: Option<Arc<Session>>,
    /// Whether the client took its request back, so that it expects no answer. The message is an error all the same, for
    /// transports that must end an HTTP exchange with something.
    pub cancelled: bool,
    /// How long the layers took, where asked for.
    pub timing: Option<Timing>,
}

/// The HTTP status that a JSON-RPC response travels with (2026-07-28, transports, error table). Legacy: always 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// 200.
    Ok,
    /// 400.
    BadRequest,
    /// 404: unknown method in 2026-07-28.
    NotFound,
}

/// Layer clocks of one call. Transport's own share is the rest up to the moment that the reply is handed to the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Look-up, validation, serialisation.
    pub dispatch: Duration,
    /// The author's code.
    pub service: Duration,
}
