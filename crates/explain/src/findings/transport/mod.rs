//! Connections and what travels on them. Here are the facts that each finding tells its reader.

pub(super) mod address_fallback;
pub(super) mod buffered_stream;
pub(super) mod clustered_stream_lifetime;
pub(super) mod connection_limit;
pub(super) mod connection_per_request;
pub(super) mod connections;
pub(super) mod delayed_ack;
pub(super) mod redirect_per_request;
pub(super) mod transport_probing;

use mcpace_record::{Closer, Nanos};
use serde::Serialize;

/// See [`Cause::ConnectionPerRequest`](crate::Cause::ConnectionPerRequest).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionPerRequest {
    /// Requests of the sessions concerned.
    pub requests: u64,
    /// Connections that they used.
    pub connections: u64,
    /// Of these, opened though an earlier one of the session was free.
    pub needless: u64,
    /// Replies that the client broke off, which spoils their connections; it may have had to.
    pub left_early: u64,
    /// What the replies were.
    pub replies: ReplyKind,
    /// Who closed the connections that could have been used again; `None` where they stayed open, unused.
    pub closed_by: Option<Closer>,
}

/// What kind of reply bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyKind {
    /// JSON only.
    Json,
    /// Server-sent events only.
    Sse,
    /// Both.
    Mixed,
}

/// See [`Cause::RedirectPerRequest`](crate::Cause::RedirectPerRequest).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RedirectPerRequest {
    /// Requests that were sent on and asked again.
    pub redirects: u64,
    /// Requests that were served.
    pub of_requests: u64,
    /// HTTP status of the first redirect.
    pub status: u16,
    /// The path that was asked first.
    pub from: String,
    /// The path that serves.
    pub to: String,
}

/// See [`Cause::AddressFallback`](crate::Cause::AddressFallback).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AddressFallback {
    /// Connections that were tried at the wrong address first.
    pub tries: u64,
    /// The address that failed.
    pub from: String,
    /// The address that stood.
    pub to: String,
    /// The longest failed try.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::TransportProbing`](crate::Cause::TransportProbing).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransportProbing {
    /// Connects that began with a request that is refused.
    pub probes: u64,
    /// HTTP status of the last refusal.
    pub status: u16,
}

/// See [`Cause::DelayedAck`](crate::Cause::DelayedAck).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DelayedAck {
    /// Replies with a pause of the kernel's size.
    pub pauses: u64,
    /// Replies on connections that had carried one before.
    pub of_replies: u64,
    /// The median pause.
    #[serde(rename = "pause_ns")]
    pub typical: Nanos,
}

/// See [`Cause::BufferedStream`](crate::Cause::BufferedStream).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BufferedStream {
    /// Replies whose progress came at once.
    pub replies: u64,
    /// Progress notifications in them.
    pub events: u64,
    /// What the stream is packed in, where it is.
    pub encoding: Option<String>,
    /// The longest silence before.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::ClusteredStreamLifetime`](crate::Cause::ClusteredStreamLifetime).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusteredStreamLifetime {
    /// Streams that ended at that age.
    pub streams: u64,
    /// Of these, replies that ended without their result.
    pub without_result: u64,
    /// The age.
    #[serde(rename = "age_ns")]
    pub age: Nanos,
    /// What it counts from.
    pub counted_from: CountedFrom,
    /// Who closes.
    pub closed_by: Closer,
}

/// What a time-out counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedFrom {
    /// The stream's beginning.
    Beginning,
    /// The last that came on it.
    LastEvent,
}

/// See [`Cause::ConnectionLimit`](crate::Cause::ConnectionLimit).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionLimit {
    /// Replies that are open at one time, and never more.
    pub limit: u64,
    /// Operations whose request had to wait.
    pub held: u64,
    /// Of these, such whose request never left.
    pub never_left: u64,
    /// The longest wait.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}
