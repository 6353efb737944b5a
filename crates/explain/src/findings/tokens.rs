//! Findings that counts of tokens prove. `mcpace.lab` makes them, because the tokenizer is a Python package; the catalogue holds
//! their facts, so that every reader of findings has one list.

use schemars::JsonSchema;
use serde::Serialize;

/// Facts of `verbose-tool`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct VerboseTool {
    /// Name of the tool that takes most tokens.
    pub tool: String,
    /// Tokens of its name, description and input schema.
    pub tokens: u64,
    /// Tokens of its description.
    pub description_tokens: u64,
    /// Tokens of its input schema.
    pub input_schema_tokens: u64,
    /// Tokens of all tools of the server.
    pub listing_tokens: u64,
    /// Tools that take as many tokens as a verbose one.
    pub verbose_tools: u64,
}

/// Facts of `huge-result`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct HugeResult {
    /// Name of the tool.
    pub tool: String,
    /// Tokens of its largest result.
    pub tokens: u64,
    /// Whether the recording has only a part of a result, so that the largest result has at least so many tokens.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// Facts of `duplicate-schema`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct DuplicateSchema {
    /// Name of a member of a schema whose value occurs several times.
    pub member: String,
    /// Number of the tools that have it.
    pub tools: u64,
    /// Tokens of one occurrence.
    pub tokens: u64,
    /// Tokens of all repeated parts of the listing, each without its first occurrence.
    pub repeated_tokens: u64,
    /// Tokens of all tools of the server.
    pub listing_tokens: u64,
}
