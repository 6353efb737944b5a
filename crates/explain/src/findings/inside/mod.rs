//! The code of a tool and its dependencies. Here are the facts that each finding tells its reader.
//!
//! Rules look at calls that were alone at the server. The first call of a tool is left out where there are enough others:
//! it loads code and opens connections that the later ones have.

pub(super) mod blocking_call_in_event_loop;
pub(super) mod client_built_per_call;
pub(super) mod repeated_dependency_call;
pub(super) mod serial_dependencies;
pub(super) mod slow_dependency;
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
