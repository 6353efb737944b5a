//! A run from outside: start, watch, stop, wait, read.

use std::time::Duration;

use crate::outcome::{Outcome, Second};
use crate::plan::{Plan, PlanError};

/// Starts a run, on threads of its own.
///
/// # Errors
/// [`PlanError`] where the plan can't be run.
pub fn start(plan: Plan) -> Result<Run, PlanError> {
    plan.check()?;
    Ok(Run {})
}

/// A run under way. Dropped, it ends, and what it measured is lost.
#[derive(Debug)]
pub struct Run {}

impl Run {
    /// Waits until the run is over, or for so long. Says whether it is over.
    pub fn wait(&self, _longest: Duration) -> bool {
        true
    }

    /// The whole seconds that have ended since this was asked last.
    pub fn progress(&self) -> Vec<Second> {
        Vec::new()
    }

    /// Ends the run early. What was measured is kept.
    pub fn stop(&self) {}

    /// The result, once the run is over.
    pub fn result(&self) -> Option<Outcome> {
        None
    }
}
