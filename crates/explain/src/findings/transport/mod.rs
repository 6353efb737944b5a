//! Connections and what travels on them. Here are the facts that each finding tells its reader.

pub(super) mod connection_per_request;

use mcpace_record::Closer;
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
