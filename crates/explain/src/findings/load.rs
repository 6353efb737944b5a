//! Findings that a load proves. `mcpace.lab` makes them from the results of a load; the catalogue holds their facts, so that
//! every reader of findings has one list.

use schemars::JsonSchema;
use serde::Serialize;

use crate::closed::closed;

/// Facts of `delayed-ack` where a load proves it: calls that took as long as a delayed acknowledgement.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct DelayedAckInLoad {
    /// Share of the calls in the window, beyond the share that the times beside the window explain.
    pub share: f64,
    /// Lower end of the window.
    pub from_s: f64,
    /// Upper end of the window.
    pub to_s: f64,
    /// Median time of a call.
    pub p50_s: f64,
    /// Mean time of a call.
    pub mean_s: f64,
    /// Share of the server's processors that was busy, where it was measured.
    pub cpu_share: Option<f64>,
    /// `share` with acknowledgements sent at once, where the experiment was made.
    pub quick_share: Option<f64>,
    /// `mean_s` with acknowledgements sent at once.
    pub quick_mean_s: Option<f64>,
    /// `p50_s` with acknowledgements sent at once.
    pub quick_p50_s: Option<f64>,
    /// `share` over one connection.
    pub alone_share: Option<f64>,
    /// `p50_s` over one connection.
    pub alone_p50_s: Option<f64>,
    /// `p50_s` over one connection with acknowledgements sent at once.
    pub alone_quick_p50_s: Option<f64>,
}

/// Facts of `generator-limited`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct GeneratorLimited {
    /// The sign by which it was seen.
    pub reason: Option<GeneratorLimit>,
    /// Share of the measured time in which the busiest thread of the generator was busy.
    pub busy: f64,
    /// 99 of 100 calls began no later than this for the generator's own reasons.
    pub late_p99_s: f64,
    /// Threads of the generator.
    pub threads: u64,
}

/// The sign by which a load generator was seen to be the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorLimit {
    /// Calls left later than they were due.
    LateStarts,
    /// The threads had no time left.
    ThreadsBusy,
}

closed! {
    /// Why a finding of a load, or of counted tokens, is as sure as it is.
    pub enum LoadReason {
        /// The pause is gone where acknowledgements are sent at once.
        VanishesWithQuickAck,
        /// The experiment that would confirm it was not made.
        ExperimentNotMade,
        /// Calls left later than they were due.
        CallsLeftLate,
        /// The generator's threads had no time left.
        ThreadsHadNoTime,
        /// The tokens were counted with a tokenizer.
        TokensCounted,
    }
}

closed! {
    /// The experiment that would disprove a finding of a load, beside those of [`Disproof`](super::Disproof).
    pub enum LoadDisproof {
        /// Repeat with more threads or from another machine: it is wrong if the figures stay.
        MoreGenerator,
    }
}
