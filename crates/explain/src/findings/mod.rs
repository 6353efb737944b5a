//! The causes that a recording proves, each by a rule of its own in its family's folder.
//!
//! A rule never concludes from latency alone, and must stay silent on healthy traffic. Rules run in the order of the
//! catalogue and claim the time that they explain, so that no stretch of a call is charged twice; `late-delivery`, which
//! explains by exclusion, comes last.

mod behind;
mod catalogue;
mod chance;
mod concurrency;
mod equal_ages;
mod groups;
mod hidden_work;
mod inside;
mod load;
mod loops;
mod measurement;
mod proof;
mod resources;
mod scene;
mod tally;
mod tokens;
mod transport;
mod waiting;

use mcpace_record::{CallId, Nanos, Recording};
use serde::Serialize;

use crate::view::{Texts, View, join_events};

pub use catalogue::{CatalogueEntry, Cause, Code, Family, FindingCatalogue, Source, catalogue};
pub use concurrency::*;
pub use hidden_work::*;
pub use inside::*;
pub use load::*;
pub use loops::*;
pub use measurement::*;
pub use proof::{Alternative, Confidence, Disproof, Evidence, Level, ProofRole, Reason};
pub use resources::*;
pub use tokens::*;
pub use transport::*;
pub use waiting::*;

use scene::Scene;
pub(crate) use transport::delayed_ack::{Stalls, proven_stalls};

/// A cause with its cost and its proof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Cause of the finding, with its facts.
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
    /// Experiment that would disprove the finding.
    pub disproof: Disproof,
    /// Other causes that would look the same here, each with the experiment that would decide.
    pub alternatives: Vec<Alternative>,
}

impl Finding {
    /// Adds another cause that would look the same.
    #[must_use]
    pub(crate) fn or_alternative(mut self, alternative: Alternative) -> Self {
        self.alternatives.push(alternative);
        self
    }
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

/// All causes that `recording` proves, worst first.
#[must_use]
pub fn find_causes(recording: &Recording) -> Vec<Finding> {
    let texts = Texts::default();
    causes_of_view(&join_events(recording, &texts), None)
}

/// All causes that a view proves, with what a second one on the same clock tells of a gateway: `behind` was recorded
/// between the gateway and the servers that it asks.
pub(crate) fn causes_of_view(view: &View<'_>, behind: Option<&View<'_>>) -> Vec<Finding> {
    let mut scene = Scene::new(view, behind);
    let mut found: Vec<Finding> = catalogue::RULES.iter().flat_map(|rule| rule(&mut scene)).collect();
    if view.is_of_traces {
        // Spans tell nothing of the wire and of the client.
        found.retain(|finding| finding.cause.kind().family() == Family::Inside);
    }
    // Stable: equals stay in the order of the rules, then of their operations' first occurrence.
    found.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.total.time)));
    found
}
