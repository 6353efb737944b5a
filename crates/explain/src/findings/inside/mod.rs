//! The code of a tool and its dependencies. Here are the facts that each finding tells its reader.
//!
//! Rules look at calls that were alone at the server. The first call of each process is left out where there are enough others:
//! it loads code and opens connections that the later ones have.

mod alternatives;
pub(super) mod blocking_call_in_event_loop;
pub(super) mod client_built_per_call;
mod contention_finding;
pub(super) mod costly_library;
pub(super) mod data_cost;
mod data_work;
pub(super) mod dependency_connection_per_call;
pub(super) mod gc_pauses;
pub(super) mod import_in_call;
pub(super) mod lock_wait;
pub(super) mod pool_wait;
pub(super) mod repeated_dependency_call;
pub(super) mod serial_dependencies;
pub(super) mod slow_dependency;
mod stack_times;
pub(super) mod timer_wait;
mod tool_finding;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use crate::inside::WarmCalls;
use crate::{DependencyKind, Language, SourceLine};

/// Times of one call of a tool: means over its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct CallTimes {
    /// Time that a call takes at the server.
    #[serde(rename = "server_ns")]
    pub server: Nanos,
    /// Time of a call that the cause takes.
    #[serde(rename = "cause_ns")]
    pub cause: Nanos,
    /// Time of a call that the advised change would save.
    #[serde(rename = "gain_ns")]
    pub gain: Nanos,
}

impl CallTimes {
    /// From sums over the calls of a tool.
    fn of_calls(tool: &WarmCalls<'_, '_>, cause: Nanos, gain: Nanos) -> Self {
        Self { server: tool.mean(tool.server_time()), cause: tool.mean(cause), gain: tool.mean(gain) }
    }
}

/// See [`Cause::ClientBuiltPerCall`](crate::Cause::ClientBuiltPerCall).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ClientBuiltPerCall {
    /// The tool.
    pub tool: String,
    /// The class or the function that builds it, with its package: `httpx.AsyncClient`.
    pub client: String,
    /// How often it is built in one call, nearly: the median.
    pub built: u64,
    /// The line of the server's own code that builds it.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The function in which building it takes the most time: `create_default_context`.
    pub slowest_function: String,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::RepeatedDependencyCall`](crate::Cause::RepeatedDependencyCall).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RepeatedDependencyCall {
    /// The tool.
    pub tool: String,
    /// The kind of the dependency.
    pub kind: DependencyKind,
    /// The dependency that is asked.
    pub dependency: String,
    /// The request or the statement, without the parts that differ.
    pub pattern: String,
    /// How often it is sent in one call: the median.
    pub requests: u64,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::SerialDependencies`](crate::Cause::SerialDependencies).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SerialDependencies {
    /// The tool.
    pub tool: String,
    /// The dependencies that are asked, in the order of the first request to each.
    pub dependencies: Vec<String>,
    /// Requests in one call: the median.
    pub requests: u64,
    /// The time of the longest request of a call: the mean.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// The language of the tool; `None` where no stack tells.
    pub language: Option<Language>,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::BlockingCallInEventLoop`](crate::Cause::BlockingCallInEventLoop).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct BlockingCallInEventLoop {
    /// The tool.
    pub tool: String,
    /// The line of the server's own code that blocks.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The function of a library that the line calls; `None` where the line itself blocks.
    pub callee: Option<String>,
    /// Times of one call. The gain belongs to other calls, which are served meanwhile.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::SlowDependency`](crate::Cause::SlowDependency).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SlowDependency {
    /// The tool.
    pub tool: String,
    /// The kind of the dependency.
    pub kind: DependencyKind,
    /// The dependency that is asked.
    pub dependency: String,
    /// The request or the statement that takes the most time, without the parts that differ.
    pub pattern: String,
    /// Requests to it in one call: the median.
    pub requests: u64,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::CostlyLibrary`](crate::Cause::CostlyLibrary).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CostlyLibrary {
    /// The tool.
    pub tool: String,
    /// The library that takes the time.
    pub library: String,
    /// The quicker library with the same use.
    pub alternative: String,
    /// Processor time of the library for the measured use, divided by that of the alternative.
    pub factor: f64,
    /// The use of both libraries that was measured.
    pub measured_use: String,
    /// The releases that were measured, and the interpreter.
    pub measured_versions: String,
    /// The day of the measurement.
    pub measured: String,
    /// The line of the server's own code that spends the most time there.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The function of the library that the line calls.
    pub callee: Option<String>,
    /// Processor time of one call.
    #[serde(rename = "processor_ns")]
    pub processor: Nanos,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::ValidationCost`](crate::Cause::ValidationCost).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ValidationCost {
    /// The tool.
    pub tool: String,
    /// The library that checks.
    pub library: String,
    /// The line of the server's own code that has the values checked; absent where the server's framework checks them.
    #[serde(flatten)]
    pub line: Option<SourceLine>,
    /// The function that the line calls.
    pub callee: Option<String>,
    /// Time of a call in which models or schemas are built, as opposed to used.
    #[serde(rename = "built_ns")]
    pub built: Nanos,
    /// Processor time of one call.
    #[serde(rename = "processor_ns")]
    pub processor: Nanos,
    /// Times of one call. The gain is that of building once, where building is most of it, and else that of no check.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::SerializationCost`](crate::Cause::SerializationCost).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SerializationCost {
    /// The tool.
    pub tool: String,
    /// The library that writes or reads.
    pub library: String,
    /// The line of the server's own code that has it done; absent where the server's framework does it.
    #[serde(flatten)]
    pub line: Option<SourceLine>,
    /// The function that the line calls.
    pub callee: Option<String>,
    /// Processor time of one call.
    #[serde(rename = "processor_ns")]
    pub processor: Nanos,
    /// Times of one call. The gain is that of not doing it.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::ImportInCall`](crate::Cause::ImportInCall).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ImportInCall {
    /// The tool.
    pub tool: String,
    /// The library or the file that takes the most time to load; `None` where it is not found at all.
    pub module: Option<String>,
    /// Whether only the first call of each process loads it.
    pub in_first_call: bool,
    /// The line of the server's own code that loads it.
    #[serde(flatten)]
    pub line: SourceLine,
    /// Times of one call; of a first call where only those load.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::GcPauses`](crate::Cause::GcPauses).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct GcPauses {
    /// The tool.
    pub tool: String,
    /// Pauses in one call: the mean.
    pub pauses: f64,
    /// The longest pause.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// The line of the server's own code that pauses interrupt for the longest time.
    #[serde(flatten)]
    pub line: Option<SourceLine>,
    /// Times of one call. The gain is that of no pause.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::DependencyConnectionPerCall`](crate::Cause::DependencyConnectionPerCall).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct DependencyConnectionPerCall {
    /// The tool.
    pub tool: String,
    /// Address of the dependency: `10.0.0.5:5432`.
    pub address: String,
    /// New connections in one call: the median.
    pub connections: u64,
    /// Whether the dependency closes the connections, so that the tool cannot keep them.
    pub dependency_closes: bool,
    /// Whether a TLS handshake was seen.
    pub handshake: bool,
    /// The way to the dependency and back, as the kernel measured it: the median; zero where it is unknown.
    #[serde(rename = "round_trip_ns")]
    pub round_trip: Nanos,
    /// The line of the server's own code that connects, where it was seen; otherwise empty.
    #[serde(flatten)]
    pub line: SourceLine,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::PoolWait`](crate::Cause::PoolWait).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct PoolWait {
    /// The tool.
    pub tool: String,
    /// The package of the pool.
    pub pool: String,
    /// The line of the server's own code that waits the longest.
    #[serde(flatten)]
    pub line: SourceLine,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::LockWait`](crate::Cause::LockWait).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct LockWait {
    /// The tool.
    pub tool: String,
    /// Whether the lock is that of the interpreter.
    pub interpreter: bool,
    /// Threads that take turns at one time, nearly.
    pub threads: u64,
    /// The line of the server's own code that waits the longest.
    #[serde(flatten)]
    pub line: SourceLine,
    /// File of the line that others wait for, where it was seen.
    pub holder_file: Option<String>,
    /// Number of that line.
    pub holder_line: Option<u32>,
    /// Times of one call.
    #[serde(flatten)]
    pub times: CallTimes,
}

/// See [`Cause::TimerWait`](crate::Cause::TimerWait).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct TimerWait {
    /// The tool.
    pub tool: String,
    /// Timers in one call: the median.
    pub timers: u64,
    /// The library that sets the timers; `None` where the server's own code does.
    pub library: Option<String>,
    /// The line of the server's own code that waits the longest.
    #[serde(flatten)]
    pub line: SourceLine,
    /// Times of one call. The gain is that of no wait.
    #[serde(flatten)]
    pub times: CallTimes,
}
