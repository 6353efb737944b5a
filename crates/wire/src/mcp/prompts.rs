//! Prompts: listing and getting them.

use super::{CacheScope, ContentBlock, Icon, ResultType, Role, shapes::shapes};

shapes! {
    /// A prompt, as a list tells it.
    #[derive(Default)]
    pub struct Prompt with _meta {
        /// Name of the prompt, which `prompts/get` takes.
        name: String,
        /// For people. Since 2025-06-18.
        title?: String,
        /// Purpose, for a model.
        description?: String,
        /// Arguments of the prompt.
        arguments?: Vec<PromptArgument>,
        /// Since 2025-11-25.
        icons?: Vec<Icon>,
    }

    /// Argument of a prompt; its value is a string.
    #[derive(Default)]
    pub struct PromptArgument {
        /// For programs.
        name: String,
        /// For people. Since 2025-06-18.
        title?: String,
        /// Purpose, for a model.
        description?: String,
        /// Whether it must be.
        required?: bool,
    }

    /// The result of `prompts/list`.
    #[derive(Default)]
    pub struct ListPromptsResult with _meta {
        /// This page.
        prompts: Vec<Prompt>,
        /// Where the next page begins; none after the last.
        next_cursor?: String,
        /// Since 2026-07-28.
        result_type?: ResultType,
        /// How long the result may be kept, in milliseconds. Since 2026-07-28.
        ttl_ms?: u64,
        /// Caches that may keep the result. Since 2026-07-28.
        cache_scope?: CacheScope,
    }

    /// The complete result of `prompts/get`.
    #[derive(Default)]
    pub struct GetPromptResult with _meta {
        /// Purpose, for a model.
        description?: String,
        /// The prompt, filled in.
        messages: Vec<PromptMessage>,
        /// Since 2026-07-28.
        result_type?: ResultType,
    }

    /// One message of a prompt.
    pub struct PromptMessage {
        /// Author of the message.
        role: Role,
        /// Content of the message.
        content: ContentBlock,
    }
}
