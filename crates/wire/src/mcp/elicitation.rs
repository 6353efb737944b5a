//! Asking the user, by a form or by a URL.

use serde::{Deserialize, Serialize};

use super::{Json, TaskMetadata, shapes::shapes};

shapes! {
    /// The parameters of `elicitation/create`: a form unless `mode` is `url`.
    pub struct ElicitParams with _meta {
        /// `form`, also where absent, or `url`. Since 2025-11-25.
        mode?: String,
        /// For the user.
        message: String,
        /// Form: the JSON Schema of the answer, a flat object's; the order of its properties is the form's.
        requested_schema?: Json,
        /// URL: where the user goes.
        url?: String,
        /// URL, 2025-11-25 only: what [`ElicitationCompleteParams`] will name.
        elicitation_id?: String,
        /// 2025-11-25: run it as a task.
        task?: TaskMetadata,
    }

    /// The result of `elicitation/create`; in 2026-07-28 an input response.
    pub struct ElicitResult with _meta {
        /// Action of the user.
        action: ElicitAction,
        /// Values that the user entered in the form, when accepted.
        content?: Json,
    }
}

/// Action of a user on a request for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Answered.
    Accept,
    /// Said no.
    Decline,
    /// Went away.
    Cancel,
}

shapes! {
    /// The parameters of `notifications/elicitation/complete` (2025-11-25).
    #[derive(Default)]
    pub struct ElicitationCompleteParams {
        /// Which.
        elicitation_id: String,
    }
}
