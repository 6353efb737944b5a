//! Work that outlives its request: the experimental tasks of 2025-11-25, and the extension `io.modelcontextprotocol/tasks`
//! (SEP-2663) for 2026-07-28. They are alike, but not compatible: members are named differently.

use serde::{Deserialize, Serialize};

use super::{InputRequests, InputResponses, Json, ResultType, shapes::shapes};

shapes! {
    /// A task. In the extension it is itself the result of the request that started it (`resultType: "task"`), of `tasks/get`
    /// (`resultType: "complete"`) and the parameters of `notifications/tasks`. In 2025-11-25 it is the result of `tasks/get`
    /// and `tasks/cancel`, and the member `task` of the result of the request that started it.
    pub struct Task with _meta {
        /// Its name, hard to guess.
        task_id: String,
        /// How it is.
        status: TaskStatus,
        /// For people.
        status_message?: String,
        /// ISO 8601.
        created_at: String,
        /// ISO 8601.
        last_updated_at: String,
        /// Extension: how long it is kept, in milliseconds; `Some(None)`, on the wire null, is for ever.
        #[serde(default, with = "nullable")]
        ttl_ms?: Option<u64>,
        /// 2025-11-25: as `ttl_ms`.
        #[serde(default, with = "nullable")]
        ttl?: Option<u64>,
        /// Extension: how long to wait between two `tasks/get`, in milliseconds.
        poll_interval_ms?: u64,
        /// 2025-11-25: as `poll_interval_ms`.
        poll_interval?: u64,
        /// Extension, completed: what the request would have returned.
        result?: Json,
        /// Extension, failed: the JSON-RPC error.
        error?: Json,
        /// Extension, input required: what is asked for.
        input_requests?: InputRequests,
        /// Extension.
        result_type?: ResultType,
    }
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

shapes! {
    /// 2025-11-25: the wish that a request runs as a task.
    #[derive(Default)]
    pub struct TaskMetadata {
        /// How long it should be kept, in milliseconds.
        ttl?: u64,
    }

    /// The parameters of `tasks/get`, `tasks/cancel` and `tasks/result`.
    #[derive(Default)]
    pub struct TaskIdParams with _meta {
        /// Which.
        task_id: String,
    }

    /// The parameters of `tasks/update` (the extension).
    #[derive(Default)]
    pub struct UpdateTaskParams with _meta {
        /// Which.
        task_id: String,
        /// The answers; those to unknown or answered keys are passed over.
        input_responses: InputResponses,
    }
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
