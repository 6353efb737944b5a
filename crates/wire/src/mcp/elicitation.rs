//! Asking the user, by a form or by a URL.

use serde::{Deserialize, Serialize};

use super::{Extra, Json, TaskMetadata};

/// The parameters of `elicitation/create`: a form unless `mode` is `url`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitParams {
    /// `form`, also where absent, or `url`. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// For the user.
    pub message: String,
    /// Form: the JSON Schema of the answer, a flat object's; the order of its properties is the form's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Json>,
    /// URL: where the user goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// URL, 2025-11-25 only: what [`ElicitationCompleteParams`] will name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// 2025-11-25: run it as a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of `elicitation/create`; in 2026-07-28 an input response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitResult {
    /// Action of the user.
    pub action: ElicitAction,
    /// Values that the user entered in the form, when accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Json>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
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

/// The parameters of `notifications/elicitation/complete` (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteParams {
    /// Which.
    pub elicitation_id: String,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}
