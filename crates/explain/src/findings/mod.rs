//! The causes that a recording proves, each by a rule of its own beside this file.
//!
//! A rule never concludes from latency alone, and must stay silent on healthy traffic. Rules run in a fixed order and
//! claim the time that they explain, so that no stretch of a call is charged twice; `late-delivery`, which explains by
//! exclusion, comes last.

mod cause;
mod connection_per_request;
mod discovery_repeated;
mod duplicate_request;
mod hidden_listing;
mod late_delivery;
mod scene;
mod session_per_call;
mod slow_start;
mod tally;
mod waits_for_get;

use mcpace_record::{CallId, Nanos, Recording};
use serde::Serialize;

use crate::Ledger;
use crate::view::exchanges;

pub use cause::{
    Cause, ConnectionPerRequest, DiscoveryRepeated, DuplicateRequest, Gate, HiddenListing, LateDelivery, Released,
    ReplyKind, SessionPerCall, SlowStart, WaitsForGet,
};
use scene::Scene;

/// A cause with its cost and its proof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What is wrong.
    #[serde(flatten)]
    pub cause: Cause,
    /// How much it matters.
    pub severity: Severity,
    /// How sure this is.
    pub confidence: Confidence,
    /// The operation that it was seen in; `None` outside any call.
    pub operation: Option<String>,
    /// The cost to each call that paid for it.
    pub calls: Vec<CallCost>,
    /// The cost of all occurrences, those outside calls included.
    pub total: Cost,
    /// The events that prove it, those of the first occurrences.
    pub evidence: Vec<Evidence>,
    /// What would disprove it.
    pub disproof: Disproof,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Waste that is hardly felt.
    Low,
    /// At least 100 ms in a typical call, or a request that is sent twice.
    Medium,
    /// At least 1 s in a typical call, or wrong: a tool that runs twice.
    High,
}

/// How sure a finding is, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Confidence {
    /// How sure.
    pub level: Level,
    /// Why.
    pub reason: Reason,
}

/// Steps of sureness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Likely; another cause would look alike.
    Low,
    /// Probable; one thing is not seen.
    Medium,
    /// The events leave no other explanation.
    High,
}

/// Why a finding is as sure as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The same body with the same JSON-RPC id, after a success.
    IdenticalBytesAndId,
    /// The same body back to back, after a success; it has no id.
    IdenticalBytesBackToBack,
    /// The order of requests inside a call's window shows it.
    OrderInsideCall,
    /// Seen again and again.
    Repeated,
    /// Seen once: chance is not excluded.
    SeenOnce,
    /// The call returned when the reply's stream ended or its connection closed.
    ReturnFollowsEnd,
    /// Nothing on the wire says why the client held the result.
    NothingOnTheWire,
    /// Which layer used the time inside the process was not recorded.
    ProcessorTimeUnknown,
    /// The client left before the reply's end: whether the end was near is not seen.
    EndNotSeen,
    /// The recording is incomplete: what is missing may explain it.
    RecordingIncomplete,
}

/// The cost to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CallCost {
    /// The call.
    pub call: CallId,
    /// Time of the call that it explains, and that no other finding is charged with.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// Needless requests.
    pub requests: u64,
    /// Bytes of needless bodies, both ways.
    pub bytes: u64,
}

/// The cost of all occurrences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Time.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// Needless requests.
    pub requests: u64,
    /// Bytes of needless bodies, both ways.
    pub bytes: u64,
}

/// An event that proves a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Index into [`Recording::events`].
    pub event: usize,
    /// Its time (of the first byte, for a message's start).
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// What it shows.
    pub role: Role,
}

/// What an event shows in a finding's proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A request's first sending.
    FirstRequest,
    /// The result that it got.
    FirstResult,
    /// The end of the reply with it.
    FirstReplyEnd,
    /// The same request again.
    RepeatedRequest,
    /// The end of the second reply, or the result in it.
    RepeatedResult,
    /// The result of the call itself.
    Result,
    /// The end of the reply that held it.
    ReplyEnd,
    /// A listing that nobody asked for.
    Listing,
    /// Its result.
    ListingResult,
    /// The call started.
    CallStarted,
    /// The call returned.
    CallReturned,
    /// A connection was opened.
    ConnectionOpened,
    /// A connection ended.
    ConnectionClosed,
    /// A session was begun.
    SessionBegun,
    /// A tool was called.
    ToolCalled,
    /// Discovery, needed.
    Discovery,
    /// Discovery of what was known.
    RepeatedDiscovery,
    /// The server's own stream was asked for.
    StreamRequest,
    /// Its reply's head.
    StreamHead,
    /// The request that left after it.
    HeldRequest,
    /// A server process was spawned.
    ProcessStarted,
    /// Its first line on stderr.
    FirstStderr,
    /// Its first line on stdout.
    FirstOutput,
    /// Its answer to `initialize`.
    InitializeAnswered,
}

/// The experiment that would disprove a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disproof {
    /// Count executions in the server's own log: it is wrong if each request arrives once.
    CountExecutionsAtServer,
    /// Call a tool without an output schema, or list before: it is wrong if the listing stays.
    CallWithoutOutputSchema,
    /// Let the server end its reply right after the result: it is wrong if the call is as slow.
    EndReplyWithResult,
    /// Measure the client's processor time during the call: it is wrong if the client was computing.
    MeasureClientProcessorTime,
    /// Repeat with one client object for all requests: it is wrong if connections are still as many.
    ReuseOneClient,
    /// Repeat with one session held open for all calls: it is wrong if each call still begins its own.
    HoldOneSession,
    /// Connect twice with the same credentials and a warm cache: it is wrong if the second asks nothing.
    ConnectTwiceWithSameCredentials,
    /// Answer the GET with 405 at once: it is wrong if requests are still held.
    RefuseStandaloneStream,
    /// Repeat without authentication: it is wrong if requests are still held.
    RepeatWithoutAuthentication,
    /// Start again from a warm package cache and read the process's processor time: tells a download from imports.
    StartAgainWarm,
}

/// All causes that `recording` proves, worst first. `ledgers` are those of the same recording.
#[must_use]
pub fn findings(recording: &Recording, ledgers: &[Ledger]) -> Vec<Finding> {
    let view = exchanges(recording);
    let mut scene = Scene::new(&view, ledgers);
    let rules: [fn(&mut Scene<'_, '_>) -> Vec<Finding>; 8] = [
        duplicate_request::find,
        hidden_listing::find,
        session_per_call::find,
        discovery_repeated::find,
        waits_for_get::find,
        connection_per_request::find,
        slow_start::find,
        late_delivery::find,
    ];
    let mut found: Vec<Finding> = rules.iter().flat_map(|rule| rule(&mut scene)).collect();
    // Stable: equals stay in the order of the rules, then of their operations' first occurrence.
    found.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.total.time)));
    found
}
