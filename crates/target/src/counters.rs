//! Counts of a target's requests, so that a test can compare a recorder's story with the server's.
//!
//! Every count is of facts on the server's side. Deliberately absent: times, which belong to
//! recordings.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpace_wire::jsonrpc::{Message, Payload};
use mcpace_wire::mcp::ParamsOutline;
use serde::Serialize;

use crate::recorded::{Closeness, RecordedServer};

/// Counts since the target was started. All only grow, but [`Counters::open_connections`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// TCP connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open_connections: u64,
    /// Connections closed at once because too many were open.
    pub refused_connections: u64,
    /// TLS handshakes that failed.
    pub failed_handshakes: u64,
    /// HTTP requests of any kind, to any path.
    pub http_requests: u64,
    /// JSON-RPC requests that were served, by method; unknown methods are counted under `other`.
    pub requests: BTreeMap<String, u64>,
    /// JSON-RPC notifications that were accepted.
    pub notifications: u64,
    /// Tool executions, by tool: a call that reaches its tool twice counts twice.
    pub tools: BTreeMap<String, u64>,
    /// HTTP replies by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Standalone GET streams opened.
    pub standalone_streams: u64,
    /// Sessions begun.
    pub sessions_begun: u64,
    /// Sessions ended by DELETE.
    pub sessions_ended: u64,
    /// Fetches of the protected resource's metadata.
    pub resource_metadata_fetches: u64,
    /// Fetches of the authorization server's metadata.
    pub authorization_metadata_fetches: u64,
    /// Dynamic client registrations that succeeded.
    pub registrations: u64,
    /// Authorization codes given out.
    pub authorizations: u64,
    /// Requests to the token endpoint, granted or not.
    pub token_requests: u64,
    /// Access tokens given out.
    pub tokens_issued: u64,
    /// Requests refused for want of a valid token.
    pub unauthorized: u64,
    /// Requests to a recording: `equal` to a recorded one, answered as the `nearest` one, or with `none` that fits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<&'static str, u64>,
}

/// The counters that a running target adds to.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Counters>);

impl Tally {
    /// Changes the counts.
    pub(crate) fn change_counts(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.lock_counters());
    }

    /// Counts the messages that a recording is asked with. Names that the recording doesn't have are not counted, so that
    /// memory stays bounded.
    pub(crate) fn count_messages(&self, payload: &Payload<'_>, recorded: &RecordedServer) {
        for message in payload.messages() {
            match message {
                Message::Request(request) => {
                    let method = if recorded.knows_method(&request.method) { &request.method } else { "other" };
                    let is_call = request.method == "tools/call";
                    let outline = is_call.then(|| ParamsOutline::parse_routing(request.params).unwrap_or_default());
                    let tool = outline.and_then(|outline| outline.name);
                    let tool = tool.filter(|tool| recorded.knows_name(&request.method, tool));
                    self.change_counts(|counters| {
                        count_one(&mut counters.requests, method);
                        if let Some(tool) = tool {
                            count_one(&mut counters.tools, tool);
                        }
                    });
                }
                Message::Notification(_) => self.change_counts(|counters| counters.notifications += 1),
                Message::Response(_) => {}
            }
        }
    }

    /// Counts how near the recorded request was.
    pub(crate) fn count_match(&self, closeness: Closeness) {
        self.change_counts(|counters| count_one(&mut counters.matches, closeness.as_str()));
    }

    /// The counts as they are now.
    pub(crate) fn snapshot(&self) -> Counters {
        self.lock_counters().clone()
    }

    fn lock_counters(&self) -> MutexGuard<'_, Counters> {
        // Counts are whole at every instant, so a poisoned lock is sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds one under a name.
pub(crate) fn count_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: impl Into<K>) {
    *counts.entry(key.into()).or_default() += 1;
}
