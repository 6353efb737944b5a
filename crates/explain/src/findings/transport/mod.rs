//! Connections and what travels on them. Here are the facts that each finding tells its reader.

pub(super) mod address_fallback;
pub(super) mod buffered_stream;
pub(super) mod clustered_stream_lifetime;
pub(super) mod connection_limit;
pub(super) mod connection_per_request;
pub(super) mod connections;
pub(super) mod delayed_ack;
pub(super) mod distant_server;
pub(super) mod packet_loss;
pub(super) mod redirect_per_request;
pub(super) mod slow_reader;
pub(super) mod tcp_samples;
pub(super) mod transport_probing;

use mcpace_record::{Closer, Nanos, Side};
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Cause::ConnectionPerRequest`](crate::Cause::ConnectionPerRequest).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ConnectionPerRequest {
    /// Requests of the sessions concerned.
    pub requests: u64,
    /// Connections that they used.
    pub connections: u64,
    /// Connections that were opened although an earlier one of the session was free.
    pub needless: u64,
    /// Replies that the client broke off, which spoils their connections; it may have had to.
    pub left_early: u64,
    /// The kind of the reply bodies.
    pub replies: ReplyKind,
    /// The side that closed the connections that could have been used again; `None` where they stayed open, unused.
    pub closed_by: Option<Closer>,
}

/// Kinds of reply bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct TransportProbing {
    /// Connects that began with a request that is refused.
    pub probes: u64,
    /// HTTP status of the last refusal.
    pub status: u16,
}

/// See [`Cause::DelayedAck`](crate::Cause::DelayedAck).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct BufferedStream {
    /// Replies whose progress came at once.
    pub replies: u64,
    /// Progress notifications in them.
    pub events: u64,
    /// The content encoding of the stream, if there is one.
    pub encoding: Option<String>,
    /// The longest silence before.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::ClusteredStreamLifetime`](crate::Cause::ClusteredStreamLifetime).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ClusteredStreamLifetime {
    /// Streams that ended at that age.
    pub streams: u64,
    /// Streams that were replies and ended without their result.
    pub without_result: u64,
    /// The age.
    #[serde(rename = "age_ns")]
    pub age: Nanos,
    /// The event that the age counts from.
    pub counted_from: CountedFrom,
    /// The side that closes the streams.
    pub closed_by: Closer,
}

/// The event that a time-out counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedFrom {
    /// The stream's beginning.
    Beginning,
    /// The last that came on it.
    LastEvent,
}

/// See [`Cause::ConnectionLimit`](crate::Cause::ConnectionLimit).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ConnectionLimit {
    /// Replies that are open at one time, and never more.
    pub limit: u64,
    /// Operations whose request had to wait.
    pub held: u64,
    /// Held operations whose request never left.
    pub never_left: u64,
    /// The longest wait.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::PacketLoss`](crate::Cause::PacketLoss).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct PacketLoss {
    /// The way on which segments were lost.
    pub way: Way,
    /// Exchanges that stood still because of it.
    pub stalls: u64,
    /// Exchanges of the connections whose statistics are known.
    pub of_exchanges: u64,
    /// Segments that were sent again meanwhile.
    pub retransmitted: u64,
    /// The median pause.
    #[serde(rename = "pause_ns")]
    pub typical: Nanos,
}

/// A way that the recorder's segments take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Replies to the client.
    ToClient,
    /// Requests to the server.
    ToServer,
}

impl From<Side> for Way {
    fn from(side: Side) -> Self {
        match side {
            Side::Front => Way::ToClient,
            Side::Back => Way::ToServer,
        }
    }
}

/// See [`Cause::SlowReader`](crate::Cause::SlowReader).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SlowReader {
    /// Replies that waited for the client to read.
    pub replies: u64,
    /// Replies of the connections whose statistics are known.
    pub of_replies: u64,
    /// Bytes of the largest of those that waited.
    pub largest: u64,
    /// The median wait.
    #[serde(rename = "wait_ns")]
    pub typical: Nanos,
    /// The longest wait.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::DistantServer`](crate::Cause::DistantServer).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct DistantServer {
    /// The shortest round-trip time to the server.
    #[serde(rename = "round_trip_ns")]
    pub round_trip: Nanos,
    /// Round trips of a typical call.
    pub round_trips: u64,
    /// Connections that were opened for calls.
    pub connections: u64,
    /// Calls that were looked at.
    pub of_calls: u64,
    /// The median call.
    #[serde(rename = "call_ns")]
    pub typical: Nanos,
}
