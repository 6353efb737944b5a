//! `_meta`: what a request of 2026-07-28 says about itself (2026-07-28, basic, "_meta").

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Extra, LoggingLevel};
use crate::jsonrpc::Id;

/// The keys of `_meta` that the specification reserves, and our own.
pub mod key {
    /// Ours. Requests: that the server tell how long its layers took; results: how long, in nanoseconds.
    pub const TIMING: &str = "dev.mcpace/timing";
    /// Requests: the revision spoken. Required since 2026-07-28.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Requests: what the client can do. Required since 2026-07-28.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Requests: who asks.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Requests: from which level on log messages are wanted; none without it.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Results: who answers.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Messages of a subscription: the id of its `subscriptions/listen` request.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Requests: where progress goes. All revisions.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C Trace Context.
    pub const TRACEPARENT: &str = "traceparent";
    /// The name of the tasks extension in `capabilities.extensions`.
    pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
}

/// A request's `_meta`, borrowed. Members that few calls need stay raw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestMeta<'a> {
    /// The revision spoken; a string, since a server must be able to name one that it doesn't know.
    #[serde(
        rename = "io.modelcontextprotocol/protocolVersion",
        borrow,
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub protocol_version: Option<Cow<'a, str>>,
    /// Capabilities of the client: [`super::ClientCapabilities`].
    #[serde(
        rename = "io.modelcontextprotocol/clientCapabilities",
        borrow,
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub client_capabilities: Option<&'a RawValue>,
    /// Name and version of the client: [`super::Implementation`].
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<&'a RawValue>,
    /// From which level on log messages are wanted.
    #[serde(rename = "io.modelcontextprotocol/logLevel", default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// Token that progress notifications repeat.
    #[serde(rename = "progressToken", default, skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<Id<'static>>,
    /// W3C Trace Context.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Cow<'a, str>>,
    /// W3C Trace Context.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<Cow<'a, str>>,
    /// W3C Baggage.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub baggage: Option<Cow<'a, str>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}
