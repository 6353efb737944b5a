//! Calls that wait for the wrong thing. Here are the facts that each finding tells its reader.

pub(super) mod auth_deadlock;
pub(super) mod client_time_out;
pub(super) mod late_delivery;
pub(super) mod progress_ignored;
pub(super) mod stream_not_drained;
pub(super) mod time_outs;
pub(super) mod waits_for_get;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::CountedFrom;

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

/// See [`Cause::ClientTimeOut`](crate::Cause::ClientTimeOut).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ClientTimeOut {
    /// Requests that the client gave up after this time.
    pub calls: u64,
    /// Requests for the same.
    pub of_calls: u64,
    /// The tool, prompt or resource, if all of them asked for one.
    pub tool: Option<String>,
    /// The time-out: the median of the times after which the client gave up.
    #[serde(rename = "time_out_ns")]
    pub time_out: Nanos,
    /// The event that the time-out counts from.
    pub counted_from: CountedFrom,
    /// The stage of the request at which the client gave up most of them.
    pub layer: GiveUpLayer,
    /// How the client gave up most of them.
    pub sign: GiveUpSign,
    /// Requests whose answer came after the client had given them up.
    pub answered_later: u64,
    /// The longest time from a request to such an answer.
    #[serde(rename = "longest_answer_ns")]
    pub longest_answer: Option<Nanos>,
}

/// The stage of a request at which a client gives it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GiveUpLayer {
    /// The call itself: the client said or showed that it waits no longer, and closed nothing.
    Call,
    /// The head of the reply had not come.
    Head,
    /// The head of the reply had come, and the answer had not.
    Body,
}

/// How a client gives a request up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GiveUpSign {
    /// It sent `notifications/cancelled`.
    Cancelled,
    /// It closed the reply's stream or its connection.
    Closed,
    /// It sent the same call again.
    Repeated,
    /// Its call failed.
    CallFailed,
}

/// See [`Cause::ProgressIgnored`](crate::Cause::ProgressIgnored).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ProgressIgnored {
    /// Requests with progress that the client gave up.
    pub calls: u64,
    /// The tool, prompt or resource, if all of them asked for one.
    pub tool: Option<String>,
    /// The time after which the client gave up, from the request.
    #[serde(rename = "time_out_ns")]
    pub time_out: Nanos,
    /// Progress notifications of these requests.
    pub notifications: u64,
    /// The longest time from the last progress to the end of a request's wait.
    #[serde(rename = "silence_ns")]
    pub silence: Nanos,
    /// Requests without progress that the client gave up after the same time.
    pub without_progress: u64,
}
