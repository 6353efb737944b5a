//! Update of the catalogue while clients are connected: tools, resources and prompts are added, replaced and removed.

use std::future::Future;
use std::sync::Arc;

use mcpace_wire::mcp;

use crate::build_error::BuildError;
use crate::catalogue::{Definitions, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use crate::open_subscriptions::ListChange;
use crate::service::{
    Completed, CompletionRequest, Context, Handler, HandlerError, Prompt, Resource, ResourceTemplate, Tool,
};

/// Changes for [`crate::Server::update`]. Adding a component replaces the one of the same name.
///
/// ```
/// # use mcpace_serve::{NoArguments, Server, Tool, ToolError};
/// let server = Server::builder("changing", "1.0").build()?;
/// let late = Tool::new("late").handler(|_: NoArguments| Ok::<_, ToolError>("better than never"));
/// server.update(|changes| {
///     changes.tool(late);
///     changes.remove_prompt("old");
/// })?;
/// # Ok::<(), mcpace_serve::BuildError>(())
/// ```
pub struct Changes {
    pub(crate) definitions: Definitions,
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) mistake: Option<BuildError>,
}

impl Changes {
    pub(crate) fn new(definitions: Definitions) -> Self {
        Self { definitions, tools: false, prompts: false, resources: false, mistake: None }
    }

    /// Adds or replaces a tool.
    pub fn tool(&mut self, tool: Tool) {
        if let Some(entry) = keep_first_error(&mut self.mistake, ToolEntry::from_tool(tool)) {
            self.tools = true;
            insert_or_replace(&mut self.definitions.tools, entry);
        }
    }

    /// Takes a tool away. Calls of it that are under way go on.
    pub fn remove_tool(&mut self, name: &str) {
        self.tools |= remove_entry(&mut self.definitions.tools, name);
    }

    /// Adds or replaces a resource.
    pub fn resource(&mut self, resource: Resource) {
        if let Some(entry) = keep_first_error(&mut self.mistake, ResourceEntry::from_resource(resource)) {
            self.resources = true;
            insert_or_replace(&mut self.definitions.resources, entry);
        }
    }

    /// Takes a resource away.
    pub fn remove_resource(&mut self, uri: &str) {
        self.resources |= remove_entry(&mut self.definitions.resources, uri);
    }

    /// Adds or replaces a family of resources.
    pub fn resource_template(&mut self, template: ResourceTemplate) {
        if let Some(entry) = keep_first_error(&mut self.mistake, TemplateEntry::from_template(template)) {
            self.resources = true;
            insert_or_replace(&mut self.definitions.templates, entry);
        }
    }

    /// Takes a family of resources away, its completions included.
    pub fn remove_resource_template(&mut self, template: &str) {
        self.resources |= remove_entry(&mut self.definitions.templates, template);
        self.definitions.completions.retain(|entry| !matches!(&entry.of, Completed::Template(of) if of == template));
    }

    /// Adds or replaces a prompt.
    pub fn prompt(&mut self, prompt: Prompt) {
        if let Some(entry) = keep_first_error(&mut self.mistake, PromptEntry::from_prompt(prompt)) {
            self.prompts = true;
            insert_or_replace(&mut self.definitions.prompts, entry);
        }
    }

    /// Takes a prompt away, its completions included.
    pub fn remove_prompt(&mut self, name: &str) {
        self.prompts |= remove_entry(&mut self.definitions.prompts, name);
        self.definitions.completions.retain(|entry| !matches!(&entry.of, Completed::Prompt(of) if of == name));
    }

    /// Proposals for all arguments that no [`crate::Completion`] is registered for, of prompts and resource templates that
    /// need not be registered. Its result is sent unchanged. It replaces the completer set before.
    pub fn completer<F, Fut>(&mut self, handler: F)
    where
        F: Fn(CompletionRequest, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<mcp::Completion, HandlerError>> + Send + 'static,
    {
        self.definitions.completer = Some(Arc::new(Handler::asynchronous(handler)));
    }

    /// Lists that have changed, which clients are notified of.
    pub(crate) fn changed_lists(&self) -> impl Iterator<Item = ListChange<'static>> {
        let all = [
            (self.tools, ListChange::Tools),
            (self.prompts, ListChange::Prompts),
            (self.resources, ListChange::Resources),
        ];
        all.into_iter().filter_map(|(changed, change)| changed.then_some(change))
    }
}

/// The entry; the first mistake is kept.
fn keep_first_error<T>(mistake: &mut Option<BuildError>, checked: Result<T, BuildError>) -> Option<T> {
    checked.map_err(|error| mistake.get_or_insert(error)).ok()
}

fn insert_or_replace<T: crate::catalogue::Listed>(entries: &mut Vec<Arc<T>>, entry: T) {
    let entry = Arc::new(entry);
    match entries.iter_mut().find(|known| known.lookup_key() == entry.lookup_key()) {
        Some(known) => *known = entry,
        None => entries.push(entry),
    }
}

fn remove_entry<T: crate::catalogue::Listed>(entries: &mut Vec<Arc<T>>, name: &str) -> bool {
    let before = entries.len();
    entries.retain(|entry| entry.lookup_key() != name);
    entries.len() < before
}
