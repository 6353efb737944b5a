//! Counts of the traffic at one moment.

use mcpace_record::ReplyEnding;
use serde::Serialize;

/// Counts of the traffic at one moment. Numbers without a unit are counts since the start, or of what is open now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSnapshot {
    /// Durations of requests.
    pub durations: Vec<DurationSeries>,
    /// Requests whose duration is unknown: no answer to them was seen, or too many were open.
    pub unmeasured_requests: u64,
    /// Exchanges that ended.
    pub exchanges: Vec<ExchangeCount>,
    /// Exchanges without the end of their reply.
    pub open_exchanges: u64,
    /// Those of them whose reply is an event stream.
    pub open_streams: u64,
    /// Bytes of requests' bodies.
    pub request_bytes: u64,
    /// Bytes of replies' bodies, up to the last event of open streams.
    pub reply_bytes: u64,
    /// Open connections of clients.
    pub client_connections: u64,
    /// Open connections to servers.
    pub server_connections: u64,
    /// Connections of clients that were opened.
    pub client_connections_opened: u64,
    /// Connections to servers that were opened.
    pub server_connections_opened: u64,
    /// Connections to servers that could not be made.
    pub failed_connects: u64,
    /// Events of the traffic.
    pub events: u64,
    /// Events that are not in the recording: there was no room for them, or writing failed.
    pub lost_events: u64,
}

/// Durations of the requests of one kind, from when a request had been read until its answer had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DurationSeries {
    /// Method of the protocol.
    pub method: String,
    /// The tool; empty where there is none.
    pub tool: String,
    /// The prompt; empty where there is none.
    pub prompt: String,
    /// Code of the failure; empty where there is none.
    pub error: String,
    /// Number of requests in each bucket. Not cumulative.
    pub buckets: Vec<u64>,
    /// The latest request of each bucket that belongs to a trace.
    pub exemplars: Vec<Option<Exemplar>>,
    /// All durations together, in seconds.
    pub sum: f64,
}

/// One request, and the trace that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exemplar {
    /// The trace, in hexadecimal digits.
    pub trace_id: String,
    /// The span that the request was sent from.
    pub span_id: String,
    /// Duration in seconds.
    pub value: f64,
    /// When the request was answered, in seconds of Unix time.
    pub timestamp: f64,
}

/// Number of exchanges that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExchangeCount {
    /// Method of HTTP; `_OTHER` for one that is not of the standard.
    pub method: &'static str,
    /// Class of the status, such as `2xx`; empty where there was no reply.
    pub status: String,
    /// How the reply ended.
    pub ending: ReplyEnding,
    /// How many.
    pub count: u64,
}
