//! Asking the client's model.

use serde::{Deserialize, Serialize};

use super::{ContentBlock, Extra, Json, Role, TaskMetadata, Tool, shapes::shapes};

shapes! {
    /// The parameters of `sampling/createMessage`.
    #[derive(Default)]
    pub struct CreateMessageParams with _meta {
        /// The talk so far.
        messages: Vec<SamplingMessage>,
        /// Which model.
        model_preferences?: ModelPreferences,
        /// Instructions that the model reads first.
        system_prompt?: String,
        /// `none`, `thisServer` or `allServers`.
        include_context?: String,
        /// The model's temperature.
        temperature?: f64,
        /// How much it may say.
        max_tokens: u64,
        /// Where it stops.
        stop_sequences?: Vec<String>,
        /// For the model's provider.
        metadata?: Json,
        /// Tools that the model may call. Since 2025-11-25.
        tools?: Vec<Tool>,
        /// `{"mode": "auto" | "required" | "none"}`. Since 2025-11-25.
        tool_choice?: Extra,
        /// 2025-11-25: run it as a task.
        task?: TaskMetadata,
    }

    /// One message of the talk.
    pub struct SamplingMessage with _meta {
        /// Author of the message.
        role: Role,
        /// Content of the message. One block before 2025-11-25.
        content: OneOrMany<ContentBlock>,
    }
}

/// A value, or an array of them; written as it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// An array.
    Many(Vec<T>),
    /// A value on its own.
    One(T),
}

impl<T> OneOrMany<T> {
    /// The values, however they came.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMany::Many(values) => values,
            OneOrMany::One(value) => std::slice::from_ref(value),
        }
    }
}

shapes! {
    /// Which model: priorities from 0 to 1.
    #[derive(Default)]
    pub struct ModelPreferences {
        /// Names, the best first.
        hints?: Vec<ModelHint>,
        /// Cheapness.
        cost_priority?: f64,
        /// Speed.
        speed_priority?: f64,
        /// Wit.
        intelligence_priority?: f64,
    }

    /// Part of a model's name.
    #[derive(Default)]
    pub struct ModelHint {
        /// Such as `sonnet`.
        name?: String,
    }

    /// The result of `sampling/createMessage`; in 2026-07-28 an input response.
    pub struct CreateMessageResult with _meta {
        /// Author of the message.
        role: Role,
        /// Content of the message. One block before 2025-11-25.
        content: OneOrMany<ContentBlock>,
        /// The model that said it.
        model: String,
        /// `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another string.
        stop_reason?: String,
    }
}
