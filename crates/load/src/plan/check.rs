//! Whether a plan can be run.
//!
//! Constraint: every plan that can't work is refused here, in one sentence, before a socket is opened. A plan that
//! passes is small enough to run.

use super::error::PlanError;
use super::{LoadModel, LoadTarget, OperationKind, Plan, SessionMode};
use crate::address::TargetAddress;
use crate::program_pipes;
use crate::request::MessageBody;
use crate::system_limits::CORES;

/// More users than this are refused.
pub const MOST_USERS: u32 = 100_000;

/// Operations are counted in 16 bits, and looked through for each call.
pub const MOST_OPERATIONS: usize = 1_000;

/// Each thread has histograms of its own for each operation, of about 750 KB.
const MOST_HISTOGRAMS: usize = 4_000;

const MOST_THREADS: usize = 64;

/// Threads of all engines of a load.
const MOST_SHARED_THREADS: usize = 65_536;
const LONGEST_S: f64 = 7.0 * 86_400.0;

impl Plan {
    /// Whether it can be run.
    ///
    /// # Errors
    /// [`PlanError::Impossible`].
    pub fn check(&self) -> Result<(), PlanError> {
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return plan_error(format!("threads must be from 1 to {MOST_THREADS}, not {}", self.threads));
        }
        self.check_times()?;
        self.check_model()?;
        self.check_session()?;
        self.check_target()?;
        self.check_operations()?;
        let (first, all) = self.thread_range();
        if all > MOST_SHARED_THREADS || first.checked_add(self.threads).is_none_or(|end| end > all) {
            return plan_error(format!(
                "the threads from number {first} on are {}, and {all} are shared by all engines, of at most \
                 {MOST_SHARED_THREADS}",
                self.threads
            ));
        }
        if self.operations.len() * self.threads > MOST_HISTOGRAMS {
            let (operations, threads) = (self.operations.len(), self.threads);
            return plan_error(format!(
                "{operations} operations on {threads} threads: at most {MOST_HISTOGRAMS} of one times the other"
            ));
        }
        if self.cores.as_ref().is_some_and(Vec::is_empty) {
            return plan_error("no cores are given: name at least one, or leave them out");
        }
        let Some(count) = CORES.or_else(|| self.cores.is_none().then_some(0)) else {
            return plan_error(
                "cores are given, and threads can be pinned to cores on Linux only: leave the cores out",
            );
        };
        if let Some(core) = self.cores.iter().flatten().find(|core| **core >= count) {
            return plan_error(format!("there is no core {core}: the kernel counts up to {}", count - 1));
        }
        if self.limits.body_bytes < 1024 {
            return plan_error("replies must be allowed to have at least 1024 bytes");
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), PlanError> {
        match (self.duration_s, self.stages.is_empty()) {
            (Some(_), false) => return plan_error("stages say how long the run takes: leave the duration out"),
            (None, true) => return plan_error("say how long the run takes: by a duration or by stages"),
            _ => {}
        }
        let positive = [("the duration", self.duration_s.unwrap_or(1.0)), ("the time-out", self.timeout_s)];
        let others = [("the warm-up", self.warm_up_s), ("the think time", self.think_s), ("the drain", self.drain_s)];
        let stages = self.stages.iter().map(|stage| ("a stage's duration", stage.duration_s));
        for (what, seconds) in positive.into_iter().chain(others).chain(stages) {
            if !(0.0..=LONGEST_S).contains(&seconds) {
                return plan_error(format!("{what} must be from 0 s to a week, not {seconds} s"));
            }
        }
        if let Some((what, _)) = positive.into_iter().find(|(_, seconds)| *seconds <= 0.0) {
            return plan_error(format!("{what} must be longer than 0 s"));
        }
        if self.load_s() <= self.warm_up_s {
            return plan_error("the stages take no time");
        }
        if self.max_calls == Some(0) {
            return plan_error("a run of no calls at all measures nothing");
        }
        Ok(())
    }

    fn check_model(&self) -> Result<(), PlanError> {
        let tops = self.stages.iter().map(|stage| stage.to);
        let (_, all_threads) = self.thread_range();
        // The limit is of one engine.
        let most_users = f64::from(MOST_USERS) * all_threads as f64 / self.threads as f64;
        match self.model {
            LoadModel::Closed { vus } => {
                let most = tops.fold(f64::from(vus), f64::max);
                if most > most_users {
                    return plan_error(format!("at most {most_users} users, not {most}"));
                }
                if most < 1.0 {
                    return plan_error("there must be at least one user");
                }
            }
            LoadModel::Open { rate, max_in_flight, .. } => {
                if max_in_flight == 0 || f64::from(max_in_flight) > most_users {
                    return plan_error(format!("calls in flight must be from 1 to {most_users}, not {max_in_flight}"));
                }
                if (max_in_flight as usize) < all_threads {
                    return plan_error("calls in flight are shared among the threads: allow at least one for each");
                }
                if !rate.is_finite() || rate < 0.0 || tops.clone().fold(rate, f64::max) <= 0.0 {
                    return plan_error("the rate must be above 0 calls a second");
                }
                if tops.fold(rate, f64::max) > 1e7 {
                    return plan_error("at most 10,000,000 calls a second");
                }
                if self.think_s > 0.0 {
                    return plan_error(
                        "think time is the closed model's: in the open one the rate says when calls begin",
                    );
                }
            }
        }
        if self.stages.iter().any(|stage| !stage.to.is_finite() || stage.to < 0.0) {
            return plan_error("a stage can't lead below 0");
        }
        Ok(())
    }

    fn check_session(&self) -> Result<(), PlanError> {
        if self.revision.is_modern() && self.session != SessionMode::None {
            return plan_error(format!("revision {} has no sessions: ask for none", self.revision.as_str()));
        }
        if self.fixed_id.is_some() && self.session != SessionMode::None {
            return plan_error("a fixed id is for targets without sessions: in a session each id is used once");
        }
        Ok(())
    }

    fn check_target(&self) -> Result<(), PlanError> {
        match &self.target {
            LoadTarget::Http { url, headers, .. } => {
                if !self.revision.has_streamable_http() {
                    return plan_error("revision 2024-11-05 has no Streamable HTTP: ask for a later one, or for stdio");
                }
                TargetAddress::parse(url)?;
                for (name, value) in headers {
                    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
                    if name.is_empty() || !name.bytes().all(token) {
                        return plan_error(format!("{name:?} can't be a header's name"));
                    }
                    if value.bytes().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
                        return plan_error(format!("the value of the header {name} has control characters"));
                    }
                    let ours = ["host", "content-length", "transfer-encoding", "connection", "mcp-session-id"];
                    if ours.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                        return plan_error(format!("the header {name} is the engine's own"));
                    }
                }
            }
            LoadTarget::Stdio { .. } if !program_pipes::ARE_SUPPORTED => {
                return plan_error("a load over stdio needs Linux or macOS: serve over HTTP, and give the URL");
            }
            LoadTarget::Stdio { command, .. } => {
                if command.first().is_none_or(String::is_empty) {
                    return plan_error("the command is empty");
                }
                if self.session == SessionMode::Call {
                    return plan_error("over stdio a session is its process's: ask for one a user");
                }
            }
        }
        Ok(())
    }

    fn check_operations(&self) -> Result<(), PlanError> {
        if self.operations.is_empty() {
            return plan_error("there is nothing to call: name at least one operation");
        }
        if self.operations.len() > MOST_OPERATIONS {
            return plan_error(format!("at most {MOST_OPERATIONS} operations, not {}", self.operations.len()));
        }
        let total: f64 = self.operations.iter().map(|operation| operation.weight).sum();
        if self.operations.iter().any(|operation| !(0.0..=1e9).contains(&operation.weight)) || total <= 0.0 {
            return plan_error("weights can't be negative, and one must be above 0");
        }
        for operation in &self.operations {
            let name = &operation.name;
            match operation.kind {
                OperationKind::Call if operation.tool.is_none() => {
                    return plan_error(format!("operation {name:?} calls no tool: name one"));
                }
                OperationKind::Raw if operation.method.is_none() => {
                    return plan_error(format!("operation {name:?} has no method"));
                }
                OperationKind::Ping if self.revision.is_modern() => {
                    return plan_error(format!("revision {} has no ping", self.revision.as_str()));
                }
                _ => {}
            }
            if operation.arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
                return plan_error(format!("the arguments of operation {name:?} must be an object"));
            }
            MessageBody::compile_operation(operation, self.revision, &self.data)?;
        }
        Ok(())
    }
}

fn plan_error<T>(why: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Impossible(why.into()))
}
