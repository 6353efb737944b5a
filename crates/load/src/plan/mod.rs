//! Plan of a load run, read from JSON. `check` refuses plans that can't work.

mod check;
pub(crate) mod error;

pub use check::{MOST_OPERATIONS, MOST_USERS};
pub use error::PlanError;

use std::collections::BTreeMap;

use mcpace_wire::Revision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Endpoint or program that is called.
    pub target: LoadTarget,
    /// The revision that is spoken.
    pub revision: Revision,
    /// Media types of the `Accept` header.
    #[serde(default)]
    pub accept: Accept,
    /// How long a session lives.
    pub session: SessionMode,
    /// Load model: the rule for when the next call begins.
    pub model: LoadModel,
    /// Ramps: each from where the one before ended, the first from the model's own figure.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// The measured part, without the warm-up. `None` with stages.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Before the measured part, at the model's own figure: shown, and left out of all other figures.
    #[serde(default)]
    pub warm_up_s: f64,
    /// From a call's end to the next one's start, for a user of the closed model.
    #[serde(default)]
    pub think_s: f64,
    /// The run ends after so many calls, the warm-up's not counted.
    #[serde(default)]
    pub max_calls: Option<u64>,
    /// Operations to call.
    pub operations: Vec<LoadOperation>,
    /// In which order.
    #[serde(default)]
    pub order: Order,
    /// Values that `{{choice:NAME}}` chooses from, by name.
    #[serde(default)]
    pub data: BTreeMap<String, Vec<String>>,
    /// From the send to the reply's end.
    pub timeout_s: f64,
    /// How long calls under way may go on after the end.
    pub drain_s: f64,
    /// Threads of the engine.
    #[serde(default = "default_one")]
    pub threads: usize,
    /// The cores that the threads are pinned to, in turn.
    #[serde(default)]
    pub cores: Option<Vec<usize>>,
    /// Seed of the random choices: equal plans make equal choices.
    #[serde(default)]
    pub seed: u64,
    /// Acknowledge at once (`TCP_QUICKACK`): the experiment that makes a delayed-ACK stall vanish.
    #[serde(default)]
    pub quick_ack: bool,
    /// Every request has a connection of its own, closed by the engine after the reply.
    #[serde(default)]
    pub new_connections: bool,
    /// Every request has this id. For targets that look at nothing and answer the same bytes; only without sessions.
    #[serde(default)]
    pub fixed_id: Option<u64>,
    /// Bounds on what the target may send.
    #[serde(default)]
    pub limits: ReplyLimits,
    /// The part of this engine, where several engines make one load. All of them have the same plan otherwise.
    #[serde(default)]
    pub share: Option<EngineShare>,
}

/// The part of one engine in a load of several. Threads are numbered over all engines; users, arrivals, calls and random
/// values are divided among all threads, so the parts add up to the load of one engine with as many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineShare {
    /// Number of this engine's first thread.
    pub first_thread: usize,
    /// Threads of all engines.
    pub all_threads: usize,
    /// Start of the run, by [`mcpace_clock::monotonic_ns`]. A run whose start has passed begins at once.
    pub start_ns: u64,
}

/// Endpoint or program that is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadTarget {
    /// An endpoint of Streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Sent with each request.
        #[serde(default)]
        headers: Vec<(String, String)>,
        /// Certificates to trust beside the system's: PEM text.
        #[serde(default)]
        ca: Option<String>,
        /// Trust any certificate.
        #[serde(default)]
        insecure: bool,
    },
    /// A program that speaks over its standard input and output: one process a user.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Added to the environment.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Its working directory.
        #[serde(default)]
        cwd: Option<String>,
    },
}

/// Media types of the `Accept` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// JSON and event streams, as the protocol demands.
    #[default]
    Both,
    /// JSON only.
    Json,
    /// Event streams only.
    Sse,
}

/// How long a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// As long as its virtual user.
    User,
    /// One call.
    Call,
    /// There is none, and no `initialize`.
    None,
}

/// Load model: the rule for when the next call begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadModel {
    /// The target: a user calls again when its reply is there.
    Closed {
        /// How many users.
        vus: u32,
    },
    /// The clock: calls are due whether or not earlier ones have ended.
    Open {
        /// Calls a second.
        rate: f64,
        /// How they lie in time.
        #[serde(default)]
        arrivals: Arrivals,
        /// More are not under way at once: those that come then wait.
        max_in_flight: u32,
    },
}

/// How arrivals lie in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Equally far apart.
    #[default]
    Constant,
    /// Independent of each other, as people are.
    Poisson,
}

/// A ramp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// How long it takes.
    pub duration_s: f64,
    /// The users or the calls a second at its end.
    pub to: f64,
}

/// In which order operations are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By chance, by their weights.
    #[default]
    Weighted,
    /// Each user calls one after the other, as they stand, again and again.
    Sequence,
}

/// Something that is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOperation {
    /// Name of the operation in the outcome.
    pub name: String,
    /// Kind of operation.
    pub kind: OperationKind,
    /// The tool of a `call`.
    #[serde(default)]
    pub tool: Option<String>,
    /// The arguments of a `call`; strings may hold templates (see `crate::template`).
    #[serde(default)]
    pub arguments: Option<Value>,
    /// The method of a `raw` request.
    #[serde(default)]
    pub method: Option<String>,
    /// The parameters of a `raw` request, sent as they are.
    #[serde(default)]
    pub params: Option<Value>,
    /// How often it is chosen, compared with the others.
    #[serde(default = "one_f64")]
    pub weight: f64,
    /// The reply's message must have these bytes in it.
    #[serde(default, rename = "assert")]
    pub expect: Option<String>,
}

/// Kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// `tools/call`.
    Call,
    /// `tools/list`.
    List,
    /// `ping`.
    Ping,
    /// Any request, as it was recorded.
    Raw,
}

/// Bounds on what the target may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyLimits {
    /// A reply's body, or a line over stdio.
    pub body_bytes: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { body_bytes: 16 << 20 }
    }
}

impl Plan {
    /// Reads a plan and checks it.
    ///
    /// # Errors
    /// [`PlanError`]: one sentence for the user.
    pub fn parse(json: &str) -> Result<Self, PlanError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let plan: Self = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| PlanError::Unreadable(error.to_string()))?;
        deserializer.end().map_err(|error| PlanError::Unreadable(error.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// From the start to the last moment at which a call may be due, warm-up and all, in seconds.
    #[must_use]
    pub fn load_s(&self) -> f64 {
        let measured = self.duration_s.unwrap_or_else(|| self.stages.iter().map(|stage| stage.duration_s).sum());
        self.warm_up_s + measured
    }

    /// Number of the first thread, and the number of all threads, over all engines of the load.
    pub(crate) fn thread_range(&self) -> (usize, usize) {
        self.share.map_or((0, self.threads), |share| (share.first_thread, share.all_threads))
    }
}

fn default_one() -> usize {
    1
}

fn one_f64() -> f64 {
    1.0
}
