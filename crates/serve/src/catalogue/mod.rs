//! What was registered, ready for look-up, and everything that a client may list, already as bytes.
//!
//! Constraint: built once for each change of what is registered; a list is then one copy. A catalogue never changes: a
//! change makes a new one, and calls under way keep theirs.

mod entry;
mod pages;

use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::mcp::{CacheScope, Extra, Implementation, ListChanged, ServerCapabilities};
use rustc_hash::FxHashMap;

use crate::builder::BuildError;
pub(crate) use entry::ToolEntry;
pub(crate) use pages::{Listed, Pages, UnknownCursor, cache_hints};

/// What the server tells of itself.
#[derive(Clone)]
pub(crate) struct Tell {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) page_size: usize,
    pub(crate) ttl_ms: u64,
    pub(crate) scope: CacheScope,
    pub(crate) extensions: Extra,
}

/// Everything registered, in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct Definitions {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
}

/// See the module.
pub(crate) struct Catalogue {
    pub(crate) definitions: Definitions,
    /// Names come from our own author, so the hash needs no protection from the peer.
    pub(crate) tools: FxHashMap<Box<str>, Arc<ToolEntry>>,
    pub(crate) has_param_headers: bool,
    pub(crate) tool_pages: Pages,
    capabilities: ByRevision<ServerCapabilities>,
}

/// One value for each revision.
pub(crate) struct ByRevision<T>([T; Revision::ALL.len()]);

impl<T> ByRevision<T> {
    pub(crate) fn build(value: impl FnMut(Revision) -> T) -> Self {
        Self(Revision::ALL.map(value))
    }

    pub(crate) fn of(&self, revision: Revision) -> &T {
        // `ALL` is in the order of the variants.
        &self.0[revision as usize]
    }
}

impl Catalogue {
    pub(crate) fn build(definitions: Definitions, tell: &Tell, generation: u64) -> Result<Self, BuildError> {
        let tools = index("tool", &definitions.tools)?;
        Ok(Self {
            has_param_headers: definitions.tools.iter().any(|tool| !tool.headers.is_empty()),
            tool_pages: Pages::build("tools", &definitions.tools, tell, generation)?,
            capabilities: ByRevision::build(|revision| capabilities(&definitions, tell, revision)),
            tools,
            definitions,
        })
    }

    pub(crate) fn capabilities(&self, revision: Revision) -> &ServerCapabilities {
        self.capabilities.of(revision)
    }
}

fn index<T: Listed>(kind: &'static str, entries: &[Arc<T>]) -> Result<FxHashMap<Box<str>, Arc<T>>, BuildError> {
    let mut map = FxHashMap::default();
    for entry in entries {
        if map.insert(entry.name().into(), Arc::clone(entry)).is_some() {
            return Err(BuildError::Duplicate { kind, name: entry.name().to_owned() });
        }
    }
    Ok(map)
}

fn capabilities(definitions: &Definitions, tell: &Tell, revision: Revision) -> ServerCapabilities {
    let changes = || ListChanged { list_changed: Some(true), extra: Extra::new() };
    ServerCapabilities {
        tools: (!definitions.tools.is_empty()).then(changes),
        logging: Some(Extra::new()),
        extensions: (revision.is_modern() && !tell.extensions.is_empty()).then(|| tell.extensions.clone()),
        ..ServerCapabilities::default()
    }
}
