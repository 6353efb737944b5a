//! The registered components, ready for look-up, and the lists of them that clients get, already as bytes.
//!
//! Constraint: a catalogue is built once for each change of the components; a list is then one copy. A catalogue is
//! immutable: a change makes a new one, and calls in flight keep the catalogue that they began with.

mod entry;
mod pages;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::mcp::{CacheScope, Extra, Implementation, ListChanged, ResourcesCapability, ServerCapabilities, key};
use rustc_hash::FxHashMap;

use crate::build_error::BuildError;
use crate::guard::{Compiled, ComponentKind};
use crate::service::{Completed, Completer, TaskUse};
pub(crate) use entry::{CompletionEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
pub(crate) use pages::{Listed, Pages, UnknownCursor, cache_hints};

/// Description of the server that clients get.
#[derive(Clone)]
pub(crate) struct Tell {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) page_size: usize,
    pub(crate) ttl_ms: u64,
    pub(crate) scope: CacheScope,
    pub(crate) extensions: Extra,
    /// Whether tools, resources and prompts are declared where there are none.
    pub(crate) is_open: bool,
}

/// Everything registered, in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct Definitions {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
    pub(crate) resources: Vec<Arc<ResourceEntry>>,
    pub(crate) templates: Vec<Arc<TemplateEntry>>,
    pub(crate) prompts: Vec<Arc<PromptEntry>>,
    pub(crate) completions: Vec<Arc<CompletionEntry>>,
    /// Handler for arguments without an entry in `completions`.
    pub(crate) completer: Option<Arc<Completer>>,
}

/// Registered components of one generation, and their lists.
pub(crate) struct Catalogue {
    /// Number of earlier changes.
    pub(crate) generation: u64,
    pub(crate) definitions: Definitions,
    /// Names come from our own author, so the hash needs no protection from the peer.
    pub(crate) tools: FxHashMap<Box<str>, Arc<ToolEntry>>,
    pub(crate) has_param_headers: bool,
    pub(crate) resources: FxHashMap<Box<str>, Arc<ResourceEntry>>,
    pub(crate) prompts: FxHashMap<Box<str>, Arc<PromptEntry>>,
    completions: HashMap<(Completed, String), Arc<CompletionEntry>>,
    pub(crate) tool_pages: Pages,
    pub(crate) resource_pages: Pages,
    pub(crate) template_pages: Pages,
    pub(crate) prompt_pages: Pages,
    capabilities: ByRevision<ServerCapabilities>,
}

/// One value for each revision.
pub(crate) struct ByRevision<T>([T; Revision::ALL.len()]);

impl<T> ByRevision<T> {
    pub(crate) fn build(value: impl FnMut(Revision) -> T) -> Self {
        Self(Revision::ALL.map(value))
    }

    pub(crate) fn for_revision(&self, revision: Revision) -> &T {
        // `ALL` is in the order of the variants.
        &self.0[revision as usize]
    }
}

impl Catalogue {
    pub(crate) fn build(definitions: Definitions, tell: &Tell, generation: u64) -> Result<Self, BuildError> {
        let tools = index_by_key("tool", &definitions.tools)?;
        let resources = index_by_key("resource", &definitions.resources)?;
        let prompts = index_by_key("prompt", &definitions.prompts)?;
        index_by_key("resource template", &definitions.templates)?;
        let completions = index_completions(&definitions)?;
        Ok(Self {
            generation,
            has_param_headers: definitions.tools.iter().any(|tool| !tool.headers.is_empty()),
            tool_pages: Pages::build(&definitions.tools, tell, generation)?,
            resource_pages: Pages::build(&definitions.resources, tell, generation)?,
            template_pages: Pages::build(&definitions.templates, tell, generation)?,
            prompt_pages: Pages::build(&definitions.prompts, tell, generation)?,
            resources,
            prompts,
            completions,
            capabilities: ByRevision::build(|revision| declared_capabilities(&definitions, tell, revision)),
            tools,
            definitions,
        })
    }

    pub(crate) fn capabilities(&self, revision: Revision) -> &ServerCapabilities {
        self.capabilities.for_revision(revision)
    }

    /// The first template that `uri` is of, with what its variables stand for.
    pub(crate) fn find_template(&self, uri: &str) -> Option<(&Arc<TemplateEntry>, BTreeMap<String, String>)> {
        self.definitions.templates.iter().find_map(|entry| Some((entry, entry.template.match_uri(uri)?)))
    }

    /// Whether there is anything to read under `uri`.
    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        self.resources.contains_key(uri) || self.find_template(uri).is_some()
    }

    /// The guard of what is read under `uri`.
    pub(crate) fn read_guard(&self, uri: &str) -> Option<(ComponentKind, &str, &Arc<Compiled>)> {
        if let Some(entry) = self.resources.get(uri) {
            return Some((ComponentKind::Resource, entry.lookup_key(), entry.guard.as_ref()?));
        }
        let entry = self.definitions.templates.iter().find(|entry| entry.template.match_uri(uri).is_some())?;
        Some((ComponentKind::Template, entry.lookup_key(), entry.guard.as_ref()?))
    }

    /// The guard of what proposals are asked for.
    pub(crate) fn completion_target(&self, of: &Completed) -> Option<(ComponentKind, &str, &Arc<Compiled>)> {
        match of {
            Completed::Prompt(name) => {
                let entry = self.prompts.get(name.as_str())?;
                Some((ComponentKind::Prompt, entry.lookup_key(), entry.guard.as_ref()?))
            }
            Completed::Template(uri) => match self.definitions.templates.iter().find(|entry| entry.lookup_key() == uri)
            {
                Some(entry) => Some((ComponentKind::Template, entry.lookup_key(), entry.guard.as_ref()?)),
                None => self.read_guard(uri),
            },
        }
    }

    /// Whether there is anything that could be completed and isn't for everybody.
    pub(crate) fn is_selective(&self) -> bool {
        [&self.resource_pages, &self.template_pages, &self.prompt_pages].into_iter().any(Pages::is_selective)
    }

    /// The completion of an argument; `Err` where there is nothing that could have one.
    pub(crate) fn find_completion(&self, of: Completed, argument: String) -> Result<Option<&Arc<CompletionEntry>>, ()> {
        let known = match &of {
            Completed::Prompt(name) => self.prompts.contains_key(name.as_str()),
            // A client may also name a resource of the family.
            Completed::Template(uri) => {
                self.definitions.templates.iter().any(|entry| entry.lookup_key() == uri) || self.has_resource(uri)
            }
        };
        if known { Ok(self.completions.get(&(of, argument))) } else { Err(()) }
    }
}

/// Every completion belongs to something.
fn index_completions(
    definitions: &Definitions,
) -> Result<HashMap<(Completed, String), Arc<CompletionEntry>>, BuildError> {
    let mut map = HashMap::new();
    for entry in &definitions.completions {
        let owned = match &entry.of {
            Completed::Prompt(name) => definitions.prompts.iter().any(|prompt| prompt.lookup_key() == name),
            Completed::Template(uri) => definitions
                .templates
                .iter()
                .any(|template| template.lookup_key() == uri && template.template.has_variable(&entry.argument)),
        };
        let name = entry.argument.clone();
        if !owned {
            return Err(BuildError::Orphan { argument: name });
        }
        if map.insert((entry.of.clone(), name.clone()), Arc::clone(entry)).is_some() {
            return Err(BuildError::Duplicate { kind: "completion", name });
        }
    }
    Ok(map)
}

fn index_by_key<T: Listed>(kind: &'static str, entries: &[Arc<T>]) -> Result<FxHashMap<Box<str>, Arc<T>>, BuildError> {
    let mut map = FxHashMap::default();
    for entry in entries {
        if map.insert(entry.lookup_key().into(), Arc::clone(entry)).is_some() {
            return Err(BuildError::Duplicate { kind, name: entry.lookup_key().to_owned() });
        }
    }
    Ok(map)
}

fn declared_capabilities(definitions: &Definitions, tell: &Tell, revision: Revision) -> ServerCapabilities {
    let changes = || ListChanged { list_changed: Some(true), extra: Extra::new() };
    let completes = !definitions.completions.is_empty() || definitions.completer.is_some();
    let mut extensions = tell.extensions.clone();
    if definitions.tools.iter().any(|tool| tool.task != TaskUse::Never) {
        extensions.insert(key::TASKS_EXTENSION.to_owned(), Extra::new().into());
    }
    ServerCapabilities {
        tools: (tell.is_open || !definitions.tools.is_empty()).then(changes),
        prompts: (tell.is_open || !definitions.prompts.is_empty()).then(changes),
        resources: (tell.is_open || !definitions.resources.is_empty() || !definitions.templates.is_empty())
            .then(|| ResourcesCapability { subscribe: Some(true), list_changed: Some(true), extra: Extra::new() }),
        // Told since 2025-03-26.
        completions: (completes && revision >= Revision::V2025_03_26).then(Extra::new),
        logging: Some(Extra::new()),
        extensions: Some(extensions).filter(|extensions| revision.is_modern() && !extensions.is_empty()),
        ..ServerCapabilities::default()
    }
}
