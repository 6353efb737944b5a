//! Work that is done twice, or that nobody asked for. Here are the facts that each finding tells its reader.

pub(super) mod discovery_repeated;
pub(super) mod duplicate_request;
pub(super) mod hidden_listing;
pub(super) mod session_per_call;

use serde::Serialize;

/// See [`Cause::DuplicateRequest`](crate::Cause::DuplicateRequest).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DuplicateRequest {
    /// JSON-RPC methods that were repeated, each once, sorted.
    pub methods: Vec<String>,
    /// Repeated requests.
    pub repeats: u64,
    /// Of these, executions of a tool (`tools/call`).
    pub executions: u64,
    /// Of these, such that left only after the whole of the first reply: the reply was drained and thrown away.
    pub after_reply_end: u64,
    /// GETs for the server's own stream that were repeated likewise; counted among `total.requests`.
    pub streams: u64,
    /// Whether the repeated requests carried an `authorization` header.
    pub authenticated: bool,
}

/// See [`Cause::HiddenListing`](crate::Cause::HiddenListing).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HiddenListing {
    /// Calls with one.
    pub calls: u64,
    /// Calls of the same operation.
    pub of_calls: u64,
    /// Listings (their pages included).
    pub listings: u64,
}

/// See [`Cause::SessionPerCall`](crate::Cause::SessionPerCall).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionPerCall {
    /// Tool calls.
    pub tool_calls: u64,
    /// Sessions begun for them.
    pub sessions: u64,
    /// Server processes spawned for them.
    pub processes: u64,
}

/// See [`Cause::DiscoveryRepeated`](crate::Cause::DiscoveryRepeated).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiscoveryRepeated {
    /// The documents' paths, each once, sorted.
    pub targets: Vec<String>,
    /// Needless fetches.
    pub repeats: u64,
}
