//! Registered components, checked and ready to run.

use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::http::ParamHeader;
use mcpace_wire::mcp;

use super::Catalogue;
use super::pages::{Listed, Pages, Texts};
use crate::build_error::BuildError;
use crate::guard::{Compiled, ComponentKind};
use crate::service::{
    Completed, Completion, CompletionHandler, Prompt, PromptHandler, ReadHandler, Resource, ResourceTemplate, TaskUse,
    Tool, ToolHandler, UriTemplate, arguments,
};
use crate::tasks::Terms;

/// A tool.
pub(crate) struct ToolEntry {
    texts: Texts,
    listed: mcp::Tool,
    /// Whether revisions before 2026-07-28 may see the output schema.
    object_output: bool,
    pub(crate) headers: Arc<[ParamHeader]>,
    pub(crate) handler: ToolHandler,
    pub(crate) task: TaskUse,
    pub(crate) terms: Terms,
    pub(crate) guard: Option<Arc<Compiled>>,
}

const TOOL: &str = "tool";

impl ToolEntry {
    pub(crate) fn from_tool(tool: Tool) -> Result<Self, BuildError> {
        let Tool { mut listed, input, output, handler, task, terms, guard } = tool;
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
        // A raw tool's schemas are told as they came.
        if !matches!(handler, ToolHandler::Raw(_)) {
            let unwritable = |error| BuildError::Unwritable { kind: TOOL, name: name.clone(), error };
            listed.input_schema = arguments::schema_text(&input).map_err(unwritable)?;
            listed.output_schema = output.as_ref().map(arguments::schema_text).transpose().map_err(unwritable)?;
        }
        let headers = ParamHeader::of_schema(listed.input_schema.get())
            .map_err(|error| BuildError::Header { name: name.clone(), error })?;
        let object_output = output.as_ref().is_some_and(arguments::is_object);
        let guard = Compiled::compile_guard(TOOL, &name, guard)?;
        let headers = headers.into();
        Ok(Self { texts: Texts::default(), listed, object_output, headers, handler, task, terms, guard })
    }
}

fn is_tool_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(allowed)
}

impl Listed for ToolEntry {
    const KIND: ComponentKind = ComponentKind::Tool;
    const LIST: &'static str = "tools";

    type Shape = mcp::Tool;

    fn lookup_key(&self) -> &str {
        &self.listed.name
    }

    fn text_cache(&self) -> &Texts {
        &self.texts
    }

    fn guard(&self) -> Option<&Arc<Compiled>> {
        self.guard.as_ref()
    }

    fn pages_of(catalogue: &Catalogue) -> &Pages {
        &catalogue.tool_pages
    }

    /// Leaves out what a revision doesn't know, though clients must pass over it: a list is read into a model's context.
    fn shape_for(&self, revision: Revision) -> mcp::Tool {
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

/// A resource.
pub(crate) struct ResourceEntry {
    texts: Texts,
    pub(crate) listed: mcp::Resource,
    pub(crate) handler: ReadHandler,
    pub(crate) guard: Option<Arc<Compiled>>,
}

/// A family of resources.
pub(crate) struct TemplateEntry {
    texts: Texts,
    pub(crate) listed: mcp::ResourceTemplate,
    pub(crate) template: UriTemplate,
    pub(crate) handler: ReadHandler,
    pub(crate) guard: Option<Arc<Compiled>>,
}

/// A prompt.
pub(crate) struct PromptEntry {
    texts: Texts,
    listed: mcp::Prompt,
    pub(crate) handler: PromptHandler,
    pub(crate) guard: Option<Arc<Compiled>>,
}

/// The completion of one argument.
pub(crate) struct CompletionEntry {
    pub(crate) of: Completed,
    pub(crate) argument: String,
    pub(crate) handler: CompletionHandler,
}

impl ResourceEntry {
    pub(crate) fn from_resource(resource: Resource) -> Result<Self, BuildError> {
        let Resource { listed, handler, guard } = resource;
        let name = listed.uri.clone();
        // RFC 3986 §3: a URI has a scheme.
        if !name.contains(':') {
            return Err(BuildError::Name { kind: "resource", name });
        }
        let guard = Compiled::compile_guard("resource", &name, guard)?;
        let handler = handler.ok_or(BuildError::NoHandler { kind: "resource", name })?;
        Ok(Self { texts: Texts::default(), listed, handler, guard })
    }
}

impl TemplateEntry {
    pub(crate) fn from_template(template: ResourceTemplate) -> Result<Self, BuildError> {
        let ResourceTemplate { listed, handler, guard } = template;
        let template = UriTemplate::parse(&listed.uri_template)?;
        let name = listed.uri_template.clone();
        let guard = Compiled::compile_guard("resource template", &name, guard)?;
        let handler = handler.ok_or(BuildError::NoHandler { kind: "resource template", name })?;
        Ok(Self { texts: Texts::default(), listed, template, handler, guard })
    }
}

impl PromptEntry {
    pub(crate) fn from_prompt(prompt: Prompt) -> Result<Self, BuildError> {
        let Prompt { listed, handler, guard } = prompt;
        let name = listed.name.clone();
        if name.is_empty() {
            return Err(BuildError::Name { kind: "prompt", name });
        }
        let guard = Compiled::compile_guard("prompt", &name, guard)?;
        let handler = handler.ok_or(BuildError::NoHandler { kind: "prompt", name })?;
        Ok(Self { texts: Texts::default(), listed, handler, guard })
    }
}

impl CompletionEntry {
    pub(crate) fn from_completion(completion: Completion) -> Result<Self, BuildError> {
        let Completion { of, argument, handler } = completion;
        let handler = handler.ok_or_else(|| BuildError::NoHandler { kind: "completion", name: argument.clone() })?;
        Ok(Self { of, argument, handler })
    }
}

/// Leaves out of a description what a revision doesn't know.
macro_rules! trimmed {
    ($shape:expr, $revision:expr) => {{
        let mut shape = $shape.clone();
        if $revision < Revision::V2025_06_18 {
            shape.title = None;
        }
        if $revision < Revision::V2025_11_25 {
            shape.icons = None;
        }
        shape
    }};
}

impl Listed for ResourceEntry {
    const KIND: ComponentKind = ComponentKind::Resource;
    const LIST: &'static str = "resources";

    type Shape = mcp::Resource;

    fn lookup_key(&self) -> &str {
        &self.listed.uri
    }

    fn text_cache(&self) -> &Texts {
        &self.texts
    }

    fn guard(&self) -> Option<&Arc<Compiled>> {
        self.guard.as_ref()
    }

    fn pages_of(catalogue: &Catalogue) -> &Pages {
        &catalogue.resource_pages
    }

    fn shape_for(&self, revision: Revision) -> mcp::Resource {
        trimmed!(self.listed, revision)
    }
}

impl Listed for TemplateEntry {
    const KIND: ComponentKind = ComponentKind::Template;
    const LIST: &'static str = "resourceTemplates";

    type Shape = mcp::ResourceTemplate;

    fn lookup_key(&self) -> &str {
        &self.listed.uri_template
    }

    fn text_cache(&self) -> &Texts {
        &self.texts
    }

    fn guard(&self) -> Option<&Arc<Compiled>> {
        self.guard.as_ref()
    }

    fn pages_of(catalogue: &Catalogue) -> &Pages {
        &catalogue.template_pages
    }

    fn shape_for(&self, revision: Revision) -> mcp::ResourceTemplate {
        trimmed!(self.listed, revision)
    }
}

impl Listed for PromptEntry {
    const KIND: ComponentKind = ComponentKind::Prompt;
    const LIST: &'static str = "prompts";

    type Shape = mcp::Prompt;

    fn lookup_key(&self) -> &str {
        &self.listed.name
    }

    fn text_cache(&self) -> &Texts {
        &self.texts
    }

    fn guard(&self) -> Option<&Arc<Compiled>> {
        self.guard.as_ref()
    }

    fn pages_of(catalogue: &Catalogue) -> &Pages {
        &catalogue.prompt_pages
    }

    fn shape_for(&self, revision: Revision) -> mcp::Prompt {
        let mut prompt = trimmed!(self.listed, revision);
        if revision < Revision::V2025_06_18 {
            for argument in prompt.arguments.iter_mut().flatten() {
                argument.title = None;
            }
        }
        prompt
    }
}
