//! Tools: listing and calling them.

use super::{CacheScope, ContentBlock, Icon, Json, ResultType, shapes::shapes};

shapes! {
    /// A tool, as a list tells it.
    pub struct Tool with _meta {
        /// Name of the tool, which `tools/call` takes.
        name: String,
        /// For people. Since 2025-06-18.
        title?: String,
        /// For a model.
        description?: String,
        /// The JSON Schema of the arguments, an object's.
        input_schema: Json,
        /// The JSON Schema of `structuredContent`. Since 2025-06-18.
        output_schema?: Json,
        /// Hints, not to be trusted. Since 2025-03-26.
        annotations?: ToolAnnotations,
        /// Whether it runs as a task. 2025-11-25 only.
        execution?: ToolExecution,
        /// Since 2025-11-25.
        icons?: Vec<Icon>,
    }

    /// Hints about a tool.
    #[derive(Default)]
    pub struct ToolAnnotations {
        /// For people.
        title?: String,
        /// Changes nothing. False where absent.
        read_only_hint?: bool,
        /// May destroy. True where absent.
        destructive_hint?: bool,
        /// Twice is as once. False where absent.
        idempotent_hint?: bool,
        /// Reaches outside. True where absent.
        open_world_hint?: bool,
    }

    /// How a tool runs (2025-11-25).
    #[derive(Default)]
    pub struct ToolExecution {
        /// `forbidden`, `optional` or `required`.
        task_support?: String,
    }

    /// The result of `tools/list`.
    #[derive(Default)]
    pub struct ListToolsResult with _meta {
        /// This page.
        tools: Vec<Tool>,
        /// Where the next page begins; none after the last.
        next_cursor?: String,
        /// Since 2026-07-28.
        result_type?: ResultType,
        /// How long the result may be kept, in milliseconds. Since 2026-07-28.
        ttl_ms?: u64,
        /// Caches that may keep the result. Since 2026-07-28.
        cache_scope?: CacheScope,
    }

    /// The complete result of `tools/call`.
    #[derive(Default)]
    pub struct CallToolResult with _meta {
        /// For a model. Old servers leave it out where there is structured content.
        #[serde(default)]
        content: Vec<ContentBlock>,
        /// For programs: an object; any JSON since 2026-07-28. Since 2025-06-18.
        structured_content?: Json,
        /// Whether the tool failed.
        is_error?: bool,
        /// Since 2026-07-28.
        result_type?: ResultType,
    }
}

impl CallToolResult {
    /// One block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// A tool's failure, told to the model.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }
}
