//! Figures that are watched: the kernel's of a process, and those that the server tells of itself where it is asked to.

use std::fs;

use serde::Deserialize;
use serde_json::json;

use crate::client::Outcome;
use crate::load::Target;
use crate::modern;

/// One look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) process: Process,
    pub(crate) own: Own,
}

/// Figures of any process, from `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Without what is mapped from files: code that is run for the first time is no growth.
    pub(crate) memory_bytes: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
}

/// Counters of the server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Own {
    /// Sum over all workers that were asked so far.
    pub(crate) tasks: u64,
    pub(crate) sessions: u64,
    pub(crate) workers: u64,
}

/// Reason for which a question for figures got no answer.
const RETRIES: usize = 5;

impl Figures {
    pub(crate) async fn take(target: &Target, pid: u32) -> Outcome<Self> {
        let mut answer = modern::alone(target, "figures", json!({})).await;
        // Where others keep this machine busy, the server may find us too slow and close: that is its right.
        for _ in 0..RETRIES {
            if answer.is_ok() {
                break;
            }
            answer = modern::alone(target, "figures", json!({})).await;
        }
        let own = answer.map_err(|error| format!("the server doesn't tell its figures: {error}"))?;
        Ok(Self { process: Process::of(pid)?, own: serde_json::from_str(&own)? })
    }

    /// Whether nothing is left of a load. The connection that asks is in both.
    pub(crate) fn is_back_at(&self, base: &Figures) -> bool {
        self.own.sessions == 0
            && self.own.tasks <= base.own.tasks
            && self.process.descriptors <= base.process.descriptors
            && self.process.threads <= base.process.threads
    }
}

impl Process {
    pub(crate) fn of(pid: u32) -> Outcome<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Outcome<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
            number.ok_or_else(|| format!("/proc/{pid}/status has no {name}").into())
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64;
        Ok(Self { memory_bytes: field("RssAnon:")? * 1024, threads: field("Threads:")?, descriptors })
    }
}
