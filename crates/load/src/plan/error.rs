//! Refusal of a plan that can't be read or can't work.

/// Reason why a plan is refused: misuse by the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The text is no plan.
    #[error("the plan can't be read: {0}")]
    Unreadable(String),
    /// The plan asks for something that can't be done.
    #[error("{0}")]
    Impossible(String),
}
