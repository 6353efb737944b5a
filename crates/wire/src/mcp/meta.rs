//! `_meta`: what a request of 2026-07-28 says about itself (2026-07-28, basic, "_meta").

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
    /// W3C Trace Context, what systems of tracing add.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage.
    pub const BAGGAGE: &str = "baggage";
    /// The name of the tasks extension in `capabilities.extensions`.
    pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
}
