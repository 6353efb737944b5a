//! What to do: the plan as it comes in, as JSON, and its checks.
//!
//! Constraint: everything that can't work is refused here, in one sentence, before a socket is opened. What passes is small
//! enough to run.

use std::collections::BTreeMap;

use mcpace_wire::Revision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Who is called.
    pub target: Target,
    /// The revision that is spoken.
    pub revision: Revision,
    /// What the `Accept` header offers.
    #[serde(default)]
    pub accept: Accept,
    /// How long a session lives.
    pub session: Session,
    /// Who decides when the next call begins.
    pub model: Model,
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
    /// What is called.
    pub operations: Vec<Operation>,
    /// In which order.
    #[serde(default)]
    pub order: Order,
    /// What `{{choice:NAME}}` chooses from.
    #[serde(default)]
    pub data: BTreeMap<String, Vec<String>>,
    /// From the send to the reply's end.
    pub timeout_s: f64,
    /// How long calls under way may go on after the end.
    pub drain_s: f64,
    /// Threads of the engine.
    #[serde(default = "one")]
    pub threads: usize,
    /// The cores that the threads are pinned to, in turn.
    #[serde(default)]
    pub cores: Option<Vec<usize>>,
    /// What random choices begin with: the same plan makes the same ones.
    #[serde(default)]
    pub seed: u64,
    /// Acknowledge at once (`TCP_QUICKACK`): the experiment that makes a delayed-ACK stall vanish.
    #[serde(default)]
    pub quick_ack: bool,
    /// Every request has this id. For targets that look at nothing and answer the same bytes; only without sessions.
    #[serde(default)]
    pub fixed_id: Option<u64>,
    /// Bounds on what the target may send.
    #[serde(default)]
    pub limits: Limits,
}

/// Who is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
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

/// What the `Accept` header offers.
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
pub enum Session {
    /// As long as its virtual user.
    User,
    /// One call.
    Call,
    /// There is none, and no `initialize`.
    None,
}

/// Who decides when the next call begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Model {
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
pub struct Operation {
    /// What it is called in the outcome.
    pub name: String,
    /// What is done.
    pub kind: OperationKind,
    /// The tool of a `call`.
    #[serde(default)]
    pub tool: Option<String>,
    /// The arguments of a `call`; strings may hold templates (see [`crate::template`]).
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

/// What is done.
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
pub struct Limits {
    /// A reply's body, or a line over stdio.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body_bytes: 16 << 20 }
    }
}

/// Why a plan is refused: our user's misuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It isn't a plan.
    #[error("the plan can't be read: {0}")]
    Unreadable(String),
    /// What it asks for can't be.
    #[error("{0}")]
    Impossible(String),
}

/// More users than this are refused.
pub const MOST_USERS: u32 = 100_000;

const MOST_THREADS: usize = 64;
const LONGEST_S: f64 = 7.0 * 86_400.0;

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

    /// Whether it can be run.
    ///
    /// # Errors
    /// [`PlanError::Impossible`].
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_times()?;
        self.check_model()?;
        self.check_session()?;
        self.check_target()?;
        self.check_operations()?;
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return no(format!("threads must be from 1 to {MOST_THREADS}, not {}", self.threads));
        }
        if self.cores.as_ref().is_some_and(Vec::is_empty) {
            return no("no cores are given: name at least one, or leave them out");
        }
        if self.limits.body_bytes < 1024 {
            return no("replies must be allowed to have at least 1024 bytes");
        }
        Ok(())
    }

    /// From the start to the last moment at which a call may be due, warm-up and all, in seconds.
    #[must_use]
    pub fn load_s(&self) -> f64 {
        let measured = self.duration_s.unwrap_or_else(|| self.stages.iter().map(|stage| stage.duration_s).sum());
        self.warm_up_s + measured
    }

    fn check_times(&self) -> Result<(), PlanError> {
        match (self.duration_s, self.stages.is_empty()) {
            (Some(_), false) => return no("stages say how long the run takes: leave the duration out"),
            (None, true) => return no("say how long the run takes: by a duration or by stages"),
            _ => {}
        }
        let positive = [("the duration", self.duration_s.unwrap_or(1.0)), ("the time-out", self.timeout_s)];
        let others = [("the warm-up", self.warm_up_s), ("the think time", self.think_s), ("the drain", self.drain_s)];
        let stages = self.stages.iter().map(|stage| ("a stage's duration", stage.duration_s));
        for (what, seconds) in positive.into_iter().chain(others).chain(stages) {
            if !(0.0..=LONGEST_S).contains(&seconds) {
                return no(format!("{what} must be from 0 s to a week, not {seconds} s"));
            }
        }
        if let Some((what, _)) = positive.into_iter().find(|(_, seconds)| *seconds <= 0.0) {
            return no(format!("{what} must be longer than 0 s"));
        }
        if self.load_s() <= self.warm_up_s {
            return no("the stages take no time");
        }
        if self.max_calls == Some(0) {
            return no("a run of no calls at all measures nothing");
        }
        Ok(())
    }

    fn check_model(&self) -> Result<(), PlanError> {
        let tops = self.stages.iter().map(|stage| stage.to);
        match self.model {
            Model::Closed { vus } => {
                let most = tops.fold(f64::from(vus), f64::max);
                if most > f64::from(MOST_USERS) {
                    return no(format!("at most {MOST_USERS} users, not {most}"));
                }
                if most < 1.0 {
                    return no("there must be at least one user");
                }
            }
            Model::Open { rate, max_in_flight, .. } => {
                if !(1..=MOST_USERS).contains(&max_in_flight) {
                    return no(format!("calls in flight must be from 1 to {MOST_USERS}, not {max_in_flight}"));
                }
                if (max_in_flight as usize) < self.threads {
                    return no("calls in flight are shared among the threads: allow at least one for each");
                }
                if !rate.is_finite() || rate < 0.0 || tops.clone().fold(rate, f64::max) <= 0.0 {
                    return no("the rate must be above 0 calls a second");
                }
                if tops.fold(rate, f64::max) > 1e7 {
                    return no("at most 10,000,000 calls a second");
                }
                if self.think_s > 0.0 {
                    return no("think time is the closed model's: in the open one the rate says when calls begin");
                }
            }
        }
        if self.stages.iter().any(|stage| !stage.to.is_finite() || stage.to < 0.0) {
            return no("a stage can't lead below 0");
        }
        Ok(())
    }

    fn check_session(&self) -> Result<(), PlanError> {
        if self.revision.is_modern() && self.session != Session::None {
            return no(format!("revision {} has no sessions: ask for none", self.revision.as_str()));
        }
        if self.fixed_id.is_some() && self.session != Session::None {
            return no("a fixed id is for targets without sessions: in a session each id is used once");
        }
        Ok(())
    }

    fn check_target(&self) -> Result<(), PlanError> {
        match &self.target {
            Target::Http { url, headers, .. } => {
                if !self.revision.has_streamable_http() {
                    return no("revision 2024-11-05 has no Streamable HTTP: ask for a later one, or for stdio");
                }
                crate::address::Address::parse(url)?;
                for (name, value) in headers {
                    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
                    if name.is_empty() || !name.bytes().all(token) {
                        return no(format!("{name:?} can't be a header's name"));
                    }
                    if value.bytes().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
                        return no(format!("the value of the header {name} has control characters"));
                    }
                    let ours = ["host", "content-length", "transfer-encoding", "connection", "mcp-session-id"];
                    if ours.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                        return no(format!("the header {name} is the engine's own"));
                    }
                }
            }
            Target::Stdio { command, .. } => {
                if command.first().is_none_or(String::is_empty) {
                    return no("the command is empty");
                }
                if self.session == Session::Call {
                    return no("over stdio a session is its process's: ask for one a user");
                }
            }
        }
        Ok(())
    }

    fn check_operations(&self) -> Result<(), PlanError> {
        if self.operations.is_empty() {
            return no("there is nothing to call: name at least one operation");
        }
        let total: f64 = self.operations.iter().map(|operation| operation.weight).sum();
        if self.operations.iter().any(|operation| !(0.0..=1e9).contains(&operation.weight)) || total <= 0.0 {
            return no("weights can't be negative, and one must be above 0");
        }
        for operation in &self.operations {
            let name = &operation.name;
            match operation.kind {
                OperationKind::Call if operation.tool.is_none() => {
                    return no(format!("operation {name:?} calls no tool: name one"));
                }
                OperationKind::Raw if operation.method.is_none() => {
                    return no(format!("operation {name:?} has no method"));
                }
                OperationKind::Ping if self.revision.is_modern() => {
                    return no(format!("revision {} has no ping", self.revision.as_str()));
                }
                _ => {}
            }
            if operation.arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
                return no(format!("the arguments of operation {name:?} must be an object"));
            }
            crate::request::Body::compile(operation, self.revision, &self.data)?;
        }
        Ok(())
    }
}

fn no<T>(why: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Impossible(why.into()))
}

fn one() -> usize {
    1
}

fn one_f64() -> f64 {
    1.0
}
