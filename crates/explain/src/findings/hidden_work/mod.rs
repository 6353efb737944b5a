//! Work that is done twice, or that nobody asked for. Here are the facts that each finding tells its reader.

pub(super) mod amplification;
pub(super) mod constant_cost_per_request;
pub(super) mod discovery_repeated;
pub(super) mod duplicate_request;
pub(super) mod hidden_listing;
pub(super) mod repeated_listing;
pub(super) mod retried_execution;
pub(super) mod serial_fan_out;
pub(super) mod session_per_call;

use std::collections::BTreeMap;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Cause::DuplicateRequest`](crate::Cause::DuplicateRequest).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct DuplicateRequest {
    /// JSON-RPC methods that were repeated, each once, sorted.
    pub methods: Vec<String>,
    /// Repeated requests.
    pub repeats: u64,
    /// Repeated requests that executed a tool (`tools/call`).
    pub executions: u64,
    /// Repeated requests that left only after the whole first reply: the client drained that reply and dropped it.
    pub after_reply_end: u64,
    /// Repeated GETs for the server's own stream; `total.requests` counts them too.
    pub streams: u64,
    /// Whether the repeated requests carried an `authorization` header.
    pub authenticated: bool,
}

/// See [`Cause::HiddenListing`](crate::Cause::HiddenListing).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct HiddenListing {
    /// Calls with one.
    pub calls: u64,
    /// Calls of the same operation.
    pub of_calls: u64,
    /// Listings (their pages included).
    pub listings: u64,
}

/// See [`Cause::SessionPerCall`](crate::Cause::SessionPerCall).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SessionPerCall {
    /// Tool calls.
    pub tool_calls: u64,
    /// Sessions begun for them.
    pub sessions: u64,
    /// Server processes spawned for them.
    pub processes: u64,
}

/// See [`Cause::DiscoveryRepeated`](crate::Cause::DiscoveryRepeated).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct DiscoveryRepeated {
    /// The documents' paths, each once, sorted.
    pub targets: Vec<String>,
    /// Needless fetches.
    pub repeats: u64,
}

/// See [`Cause::RetriedExecution`](crate::Cause::RetriedExecution).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RetriedExecution {
    /// The tool, the first one where there are several.
    pub tool: Option<String>,
    /// Calls that were made again.
    pub repeats: u64,
    /// Repeated calls where both calls were answered: both ran.
    pub both_answered: u64,
    /// The event that caused the second call.
    pub trigger: Trigger,
    /// How long the first was waited for, where it was given up.
    #[serde(rename = "timeout_ns")]
    pub timeout: Option<Nanos>,
}

/// The event that causes a second call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// A time-out: the client gave the first one up.
    TimeOut,
    /// Nothing: both left at the same moment.
    AtOnce,
}

/// See [`Cause::RepeatedListing`](crate::Cause::RepeatedListing).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RepeatedListing {
    /// JSON-RPC methods, each once, sorted.
    pub methods: Vec<String>,
    /// Listings that brought what was known.
    pub repeats: u64,
    /// Tool calls of the same sessions.
    pub tool_calls: u64,
    /// The largest of them.
    pub largest_bytes: u64,
}

/// See [`Cause::Amplification`](crate::Cause::Amplification).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Amplification {
    /// Calls that the gateway had alone.
    pub calls: u64,
    /// Requests that it sent for them.
    pub requests: u64,
    /// Requests that the gateway sent for the typical call.
    pub typical: u64,
    /// Sessions that it began for them.
    pub sessions: u64,
    /// Requests by JSON-RPC method, or HTTP method where there is none.
    pub methods: BTreeMap<String, u64>,
}

/// See [`Cause::SerialFanOut`](crate::Cause::SerialFanOut).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SerialFanOut {
    /// Requests that the gateway answered so.
    pub requests: u64,
    /// Servers that it asked for one.
    pub servers: u64,
    /// JSON-RPC methods that the gateway asked the servers for, each once, sorted.
    pub methods: Vec<String>,
    /// The longest that such a request took at the gateway.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// The time that the request would have taken with the servers asked at the same time.
    #[serde(rename = "at_once_ns")]
    pub at_once: Nanos,
}

/// See [`Cause::ConstantCostPerRequest`](crate::Cause::ConstantCostPerRequest).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ConstantCostPerRequest {
    /// The part of a request that the cost depends on.
    pub follows: Follows,
    /// Requests and notifications that paid it.
    pub requests: u64,
    /// Kinds of them.
    pub kinds: u64,
    /// The least that the server took for any.
    #[serde(rename = "floor_ns")]
    pub floor: Nanos,
    /// The time that the server took for a request without that part.
    #[serde(rename = "without_ns")]
    pub without: Nanos,
}

/// The part of a request that a constant cost depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Follows {
    /// The token: looked up or verified at a cost, each time.
    Token,
    /// The session's id: opened or looked up at a cost, each time.
    Session,
    /// Nothing: every request takes it, though the way to the server is short.
    Everything,
    /// Nothing: every request costs the server's process that much processor time.
    ProcessorTime,
}
