//! A tool's return value to the members of its result, straight into the reply's buffer.

use std::io::Write as _;

use mcpace_wire::Revision;
use mcpace_wire::mcp::{CallToolResult, ContentBlock, Extra};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::arguments;

/// Result type of a tool.
///
/// Text ([`String`], `&'static str`), nothing (`()`), blocks ([`ContentBlock`], [`Vec`] of them), a value for programs
/// ([`Structured`]), or everything at once ([`CallToolResult`]). Own types implement it by writing to the [`ToolWriter`].
pub trait ToolOutput: Send + 'static {
    /// The schema of the structured content, if there is any; worked out once, at registration.
    #[must_use]
    fn schema() -> Option<Schema> {
        None
    }

    /// Writes the result, by exactly one call to a method of `to`.
    ///
    /// # Errors
    /// When a value can't be written as JSON (a map whose keys are no strings); the client reads `internal error`.
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()>;
}

/// A value for programs: `structuredContent`, with the same as text for models, both from one serialisation. Its schema is
/// the tool's `outputSchema`.
///
/// Revisions before 2026-07-28 take objects only, and those before 2025-06-18 nothing of the kind: there the tool says it
/// as text alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

/// Takes a tool's result.
pub struct ToolWriter<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) revision: Revision,
    pub(crate) meta: Option<Extra>,
    pub(crate) is_error: bool,
}

impl<'a> ToolWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, revision: Revision) -> Self {
        Self { out, revision, meta: None, is_error: false }
    }

    /// The revision that the client reads.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One block of text.
    ///
    /// # Errors
    /// None in practice: text can be written as JSON.
    pub fn text(&mut self, text: &str) -> serde_json::Result<()> {
        self.out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
        serde_json::to_writer(&mut *self.out, text)?;
        self.out.extend_from_slice(b"}]");
        Ok(())
    }

    /// Any blocks.
    ///
    /// # Errors
    /// When a block can't be written as JSON.
    pub fn blocks(&mut self, blocks: &[ContentBlock]) -> serde_json::Result<()> {
        self.out.extend_from_slice(b"\"content\":");
        serde_json::to_writer(&mut *self.out, blocks)
    }

    /// A value for programs, and its JSON as text for models.
    ///
    /// # Errors
    /// When the value can't be written as JSON.
    pub fn structured(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        // Written once; the text block escapes these bytes.
        let json = serde_json::to_string(value)?;
        self.text(&json)?;
        let fits = self.revision.is_modern() || (self.revision.has_structured_output() && json.starts_with('{'));
        if fits {
            self.out.extend_from_slice(b",\"structuredContent\":");
            self.out.extend_from_slice(json.as_bytes());
        }
        Ok(())
    }

    /// A whole result. Its `resultType` is dispatch's business and passed over.
    ///
    /// # Errors
    /// When a part can't be written as JSON.
    pub fn result(&mut self, result: CallToolResult) -> serde_json::Result<()> {
        self.blocks(&result.content)?;
        if let Some(structured) = result.structured_content.filter(|_| self.revision.has_structured_output()) {
            write!(self.out, ",\"structuredContent\":{}", structured.get()).map_err(serde_json::Error::io)?;
        }
        self.is_error = result.is_error == Some(true);
        for (name, value) in &result.extra {
            self.out.push(b',');
            serde_json::to_writer(&mut *self.out, name)?;
            self.out.push(b':');
            serde_json::to_writer(&mut *self.out, value)?;
        }
        self.meta = result.meta;
        Ok(())
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for Structured<T> {
    fn schema() -> Option<Schema> {
        Some(arguments::schema_written::<T>())
    }

    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.structured(&self.0)
    }
}

impl ToolOutput for String {
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.text(&self)
    }
}

impl ToolOutput for &'static str {
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.text(self)
    }
}

impl ToolOutput for () {
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.blocks(&[])
    }
}

impl ToolOutput for ContentBlock {
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.blocks(std::slice::from_ref(&self))
    }
}

impl ToolOutput for Vec<ContentBlock> {
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.blocks(&self)
    }
}

impl ToolOutput for CallToolResult {
    fn write(self, to: &mut ToolWriter<'_>) -> serde_json::Result<()> {
        to.result(self)
    }
}
