//! What is registered, checked and ready to run.

use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::http::ParamHeader;
use mcpace_wire::mcp;

use super::pages::Listed;
use crate::builder::BuildError;
use crate::service::{Tool, ToolHandler, arguments};

/// A tool.
pub(crate) struct ToolEntry {
    listed: mcp::Tool,
    /// Whether revisions before 2026-07-28 may see the output schema.
    object_output: bool,
    pub(crate) headers: Arc<[ParamHeader]>,
    pub(crate) handler: ToolHandler,
    pub(crate) task: bool,
}

const TOOL: &str = "tool";

impl ToolEntry {
    pub(crate) fn check(tool: Tool) -> Result<Self, BuildError> {
        let Tool { mut listed, input, output, handler, task } = tool;
        let name = listed.name.clone();
        if !is_tool_name(&name) {
            return Err(BuildError::Name { kind: TOOL, name });
        }
        let Some((handler, input)) = handler.zip(input) else {
            return Err(BuildError::NoHandler { kind: TOOL, name });
        };
        if !arguments::is_object(&input) {
            return Err(BuildError::Schema { kind: TOOL, name, what: "the arguments" });
        }
        let unwritable = |error| BuildError::Unwritable { kind: TOOL, name: name.clone(), error };
        listed.input_schema = arguments::text(&input).map_err(unwritable)?;
        listed.output_schema = output.as_ref().map(arguments::text).transpose().map_err(unwritable)?;
        let headers = ParamHeader::of_schema(listed.input_schema.get())
            .map_err(|error| BuildError::Header { name: name.clone(), error })?;
        let object_output = output.as_ref().is_some_and(arguments::is_object);
        Ok(Self { listed, object_output, headers: headers.into(), handler, task })
    }
}

fn is_tool_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(allowed)
}

impl Listed for ToolEntry {
    type Shape = mcp::Tool;

    fn name(&self) -> &str {
        &self.listed.name
    }

    /// Leaves out what a revision doesn't know, though clients must pass over it: a list is read into a model's context.
    fn shape(&self, revision: Revision) -> mcp::Tool {
        let mut tool = self.listed.clone();
        if revision < Revision::V2025_03_26 {
            tool.annotations = None;
        }
        if revision < Revision::V2025_06_18 {
            tool.title = None;
        }
        if !revision.has_structured_output() || (revision.is_legacy() && !self.object_output) {
            tool.output_schema = None;
        }
        if revision < Revision::V2025_11_25 {
            tool.icons = None;
        }
        tool
    }
}
