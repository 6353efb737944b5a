//! Work that outlives its request: the experimental tasks of 2025-11-25, and the extension `io.modelcontextprotocol/tasks`
//! (SEP-2663) for 2026-07-28. They are alike, but not compatible: members are named differently.

use serde::{Deserialize, Serialize};

use super::{Extra, InputRequests, InputResponses, Json, ResultType};

/// A task. In the extension it is itself the result of the request that started it (`resultType: "task"`), of `tasks/get`
/// (`resultType: "complete"`) and the parameters of `notifications/tasks`. In 2025-11-25 it is the result of `tasks/get`
/// and `tasks/cancel`, and the member `task` of the result of the request that started it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its name, hard to guess.
    pub task_id: String,
    /// How it is.
    pub status: TaskStatus,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// ISO 8601.
    pub created_at: String,
    /// ISO 8601.
    pub last_updated_at: String,
    /// Extension: how long it is kept, in milliseconds; `Some(None)`, on the wire null, is for ever.
    #[serde(default, with = "nullable", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<Option<u64>>,
    /// 2025-11-25: as `ttl_ms`.
    #[serde(default, with = "nullable", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Option<u64>>,
    /// Extension: how long to wait between two `tasks/get`, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// 2025-11-25: as `poll_interval_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// Extension, completed: what the request would have returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Extension, failed: the JSON-RPC error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
    /// Extension, input required: what is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// Extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Going on.
    Working,
    /// Waiting for the client.
    InputRequired,
    /// Done, and it has a result.
    Completed,
    /// Done, and it has an error.
    Failed,
    /// Given up.
    Cancelled,
}

impl TaskStatus {
    /// Whether it stays so.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// 2025-11-25: the wish that a request runs as a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskMetadata {
    /// How long it should be kept, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The parameters of `tasks/get`, `tasks/cancel` and `tasks/result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskIdParams {
    /// Which.
    pub task_id: String,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The parameters of `tasks/update` (the extension).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTaskParams {
    /// Which.
    pub task_id: String,
    /// The answers; those to unknown or answered keys are passed over.
    pub input_responses: InputResponses,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of `tasks/list` (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// This page.
    pub tasks: Vec<Task>,
    /// Where the next page begins; none after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Tells null from absent, which serde takes for the same.
mod nullable {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Option<Option<u64>>, serializer: S) -> Result<S::Ok, S::Error> {
        value.flatten().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
        Option::deserialize(deserializer).map(Some)
    }
}
