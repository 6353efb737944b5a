//! From what an author registers to a [`Server`], or the reason why not.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use mcpace_wire::Revision;
use mcpace_wire::mcp::{CacheScope, Extra, Icon, Implementation};
use ring::hmac;
use tokio_util::sync::CancellationToken;

use crate::build_error::BuildError;
use crate::catalogue::{
    Catalogue, CompletionEntry, Definitions, PromptEntry, ResourceEntry, Tell, TemplateEntry, ToolEntry,
};
use crate::guard::{AuthorizationTurns, Limiter, MemoryLimiter, OnLimiterDown};
use crate::limits::Limits;
use crate::open_subscriptions::OpenSubscriptions;
use crate::push::SessionTransports;
use crate::server::Server;
use crate::server_state::{ServerState, random_key};
use crate::service::{Completion, Prompt, Resource, ResourceTemplate, Tool};
use crate::session_registry::SessionRegistry;
use crate::tasks::Tasks;

/// Components that the author registered, not yet checked.
#[derive(Default)]
pub(crate) struct RegisteredParts {
    pub(crate) tools: Vec<Tool>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) completions: Vec<Completion>,
}

impl RegisteredParts {
    pub(crate) fn check_parts(self) -> Result<Definitions, BuildError> {
        fn check_all<T, U>(parts: Vec<T>, check: fn(T) -> Result<U, BuildError>) -> Result<Vec<Arc<U>>, BuildError> {
            parts.into_iter().map(|part| check(part).map(Arc::new)).collect()
        }
        Ok(Definitions {
            tools: check_all(self.tools, ToolEntry::from_tool)?,
            resources: check_all(self.resources, ResourceEntry::from_resource)?,
            templates: check_all(self.templates, TemplateEntry::from_template)?,
            prompts: check_all(self.prompts, PromptEntry::from_prompt)?,
            completions: check_all(self.completions, CompletionEntry::from_completion)?,
            completer: None,
        })
    }
}

impl Server {
    /// Begins a server of this name and version, which clients are told.
    ///
    /// ```
    /// # use mcpace_serve::{Server, Tool, ToolError};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Echo {
    ///     text: String,
    /// }
    ///
    /// let server = Server::builder("example", "1.0")
    ///     .instructions("Says what you say.")
    ///     .tool(Tool::new("echo").description("Echoes").handler(|echo: Echo| Ok::<_, ToolError>(echo.text)))
    ///     .build()?;
    /// # Ok::<(), mcpace_serve::BuildError>(())
    /// ```
    #[must_use]
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> Builder {
        Builder::new(name.into(), version.into())
    }
}

/// Settings and components of a server. [`Server::builder`] starts one.
pub struct Builder {
    pub(crate) tell: Tell,
    pub(crate) registered: RegisteredParts,
    pub(crate) limits: Limits,
    pub(crate) state: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub(crate) tell_failures: bool,
    pub(crate) key: Option<[u8; 32]>,
    pub(crate) keep_headers: bool,
    pub(crate) limiter: Option<Arc<dyn Limiter>>,
    pub(crate) on_limiter_down: OnLimiterDown,
}

impl Builder {
    pub(crate) fn new(name: String, version: String) -> Self {
        Self {
            tell: Tell {
                info: Implementation::new(name, version),
                instructions: None,
                revisions: Revision::ALL.to_vec(),
                page_size: 1_000,
                ttl_ms: 0,
                scope: CacheScope::Private,
                extensions: Extra::new(),
                is_open: false,
            },
            registered: RegisteredParts::default(),
            limits: Limits::default(),
            state: HashMap::new(),
            tell_failures: false,
            key: None,
            keep_headers: false,
            limiter: None,
            on_limiter_down: OnLimiterDown::Refuse,
        }
    }

    /// How to use the server, for a model.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.tell.instructions = Some(text.into());
        self
    }

    /// The server's name for people.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.tell.info.title = Some(text.into());
        self
    }

    /// Description of the server, for people.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.tell.info.description = Some(text.into());
        self
    }

    /// Where people read on.
    #[must_use]
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.tell.info.website_url = Some(url.into());
        self
    }

    /// Pictures of the server.
    #[must_use]
    pub fn icons(mut self, icons: Vec<Icon>) -> Self {
        self.tell.info.icons = Some(icons);
        self
    }

    /// The revisions to speak; all of them, where this is not called.
    #[must_use]
    pub fn revisions(mut self, revisions: &[Revision]) -> Self {
        self.tell.revisions = revisions.to_vec();
        self
    }

    /// Registers a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.registered.tools.push(tool);
        self
    }

    /// Registers a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.registered.resources.push(resource);
        self
    }

    /// Registers a family of resources.
    #[must_use]
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.registered.templates.push(template);
        self
    }

    /// Registers a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.registered.prompts.push(prompt);
        self
    }

    /// Registers proposals for an argument of a prompt or resource template that is registered too.
    #[must_use]
    pub fn completion(mut self, completion: Completion) -> Self {
        self.registered.completions.push(completion);
        self
    }

    /// Puts `value` where handlers find it: [`crate::Context::state`]. One a type.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.state.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Entries on a page of a list; at least one.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.tell.page_size = entries.max(1);
        self
    }

    /// How long clients may keep lists and resources, and who may share them (2026-07-28, server/utilities/caching). Not
    /// at all and nobody, where this is not called.
    #[must_use]
    pub fn cache(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.tell.ttl_ms = ttl_ms;
        self.tell.scope = scope;
        self
    }

    /// Declares tools, resources and prompts where there are none too: some may come while the server runs, and a client
    /// that asked before would otherwise never learn of them. Lists are empty then, not unknown.
    #[must_use]
    pub fn open(mut self, open: bool) -> Self {
        self.tell.is_open = open;
        self
    }

    /// Declares an extension of the protocol, with its settings, to clients of 2026-07-28.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, settings: Extra) -> Self {
        self.tell.extensions.insert(name.into(), settings.into());
        self
    }

    /// Bounds on what one client may make the server keep.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Tells clients what a failing handler's error says. Off by default: such errors name files, hosts and secrets.
    #[must_use]
    pub fn tell_failures(mut self, tell: bool) -> Self {
        self.tell_failures = tell;
        self
    }

    /// The key that protects `requestState` (HMAC-SHA256). Random where not set; servers behind one address need the same.
    #[must_use]
    pub fn key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(key);
        self
    }

    /// Keeps a request's headers for its handler: [`crate::Context::headers`]. Off by default: it costs a copy of them.
    #[must_use]
    pub fn keep_headers(mut self, keep: bool) -> Self {
        self.keep_headers = keep;
        self
    }

    /// Limiter that counts uses for rate limits. Default: a [`crate::guard::MemoryLimiter`].
    #[must_use]
    pub fn limiter(mut self, limiter: Arc<dyn Limiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Decision for requests while the limiter can't count.
    #[must_use]
    pub fn on_limiter_down(mut self, then: OnLimiterDown) -> Self {
        self.on_limiter_down = then;
        self
    }

    /// Checks everything and works out all that can be known before the first call.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn build(self) -> Result<Server, BuildError> {
        let Self { tell, registered, limits, state, tell_failures, key, keep_headers, limiter, on_limiter_down } = self;
        if tell.revisions.is_empty() {
            return Err(BuildError::NoRevision);
        }
        let catalogue = Catalogue::build(registered.check_parts()?, &tell, 0)?;
        let info = serde_json::to_string(&tell.info).map_err(|error| BuildError::Unwritable {
            kind: "server",
            name: tell.info.name.clone(),
            error,
        })?;
        let state = ServerState {
            catalogue: ArcSwap::from_pointee(catalogue),
            server_info_member: format!("\"{}\":{info}", mcpace_wire::mcp::key::SERVER_INFO).into(),
            tell,
            limits,
            tell_failures,
            keep_headers,
            turns: AuthorizationTurns::default(),
            limiter: limiter.unwrap_or_else(|| Arc::new(MemoryLimiter::default())),
            on_limiter_down,
            key: hmac::Key::new(hmac::HMAC_SHA256, &key.map_or_else(random_key, Ok)?),
            closing: CancellationToken::new(),
            subscriptions: OpenSubscriptions::default(),
            tasks: Tasks::default(),
            delegate: OnceLock::new(),
            observer: OnceLock::new(),
            user_values: state,
            session_registry: SessionRegistry::default(),
            transports: SessionTransports::default(),
            updating: Mutex::default(),
        };
        Ok(Server::from(state))
    }
}
