//! Calls that wait for the wrong thing. Here are the facts that each finding tells its reader.

pub(super) mod auth_deadlock;
pub(super) mod late_delivery;
pub(super) mod stream_not_drained;
pub(super) mod waits_for_get;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Cause::LateDelivery`](crate::Cause::LateDelivery).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct LateDelivery {
    /// Calls with it.
    pub calls: u64,
    /// Calls of the same operation.
    pub of_calls: u64,
    /// The event that the client seems to have waited for.
    pub released_by: Released,
    /// The longest time between the result and the client's next act that nothing else explains.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// The event that a client with a complete result waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Released {
    /// The end of the reply's stream.
    ReplyEnd,
    /// The close of the connection.
    ConnectionClose,
    /// Nothing that is on the wire.
    NothingSeen,
}

/// See [`Cause::WaitsForGet`](crate::Cause::WaitsForGet).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct WaitsForGet {
    /// Times that requests were held.
    pub occurrences: u64,
    /// Which of the two known reasons fits.
    pub gate: HoldReason,
    /// The longest wait.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// Why a client holds its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldReason {
    /// Authentication is on: a lock in the authentication code is held across the GET.
    AuthorizationLock,
    /// No authentication: the client opens the stream before anything else, by design.
    StreamFirst,
}

/// See [`Cause::AuthDeadlock`](crate::Cause::AuthDeadlock).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AuthDeadlock {
    /// Calls that stood still.
    pub calls: u64,
    /// Calls of the same operation.
    pub of_calls: u64,
    /// The longest silence after the token.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::StreamNotDrained`](crate::Cause::StreamNotDrained).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct StreamNotDrained {
    /// Requests of the sessions concerned.
    pub requests: u64,
    /// Connections that they used.
    pub connections: u64,
    /// Connections that were opened because the one before was spoiled, or although another was free.
    pub needless: u64,
    /// Replies that the client broke off.
    pub left_early: u64,
}
