//! The server: what was registered, and everything that its clients have under way.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use mcpace_wire::Revision;
use mcpace_wire::http::ParamHeader;
use mcpace_wire::mcp::Method;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio_util::sync::CancellationToken;

use crate::builder::{BuildError, Builder};
use crate::catalogue::{Catalogue, Tell};
use crate::changes::Changes;
use crate::dispatch;
use crate::exchange::{Handled, Incoming, Outlet, Principal, Reply};
use crate::guard::{Kind, Limiter, MemoryLimiter, OnLimiterDown};
use crate::limits::Limits;
use crate::listeners::{Change, Listeners};
use crate::push::Stations;
use crate::service::Delegate;
use crate::session::Session;
use crate::session_registry::Attached;
use crate::store::Told;
use crate::tasks::Tasks;
use crate::telemetry::Observer;

/// An MCP server without a transport: hand it messages, it hands back what became of them. Cheap to clone; all clones are
/// the same server.
#[derive(Clone)]
pub struct Server {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) catalogue: ArcSwap<Catalogue>,
    pub(crate) tell: Tell,
    /// `"io.modelcontextprotocol/serverInfo":{…}`, for `_meta`.
    pub(crate) server_info_member: Box<str>,
    pub(crate) limits: Limits,
    pub(crate) tell_failures: bool,
    pub(crate) keep_headers: bool,
    pub(crate) limiter: Arc<dyn Limiter>,
    pub(crate) on_limiter_down: OnLimiterDown,
    /// For what lists and subscriptions ask of guards.
    pub(crate) asking: dispatch::Turns,
    pub(crate) key: hmac::Key,
    pub(crate) closing: CancellationToken,
    pub(crate) listeners: Listeners,
    pub(crate) tasks: Tasks,
    pub(crate) delegate: OnceLock<Arc<dyn Delegate>>,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    state: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// Sessions with a standalone outlet: those that can be told of changes.
    attached: Attached,
    /// Transports with sessions.
    pub(crate) stations: Stations,
    updating: Mutex<()>,
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

    /// Takes one message.
    ///
    /// Plain handlers have run when this returns; the future of [`Handled::Later`] runs the others.
    #[must_use]
    pub fn handle(&self, incoming: Incoming<'_>) -> Handled {
        dispatch::handle(&self.inner, incoming)
    }

    /// Asks for a use what a request would be asked before its handler runs, and counts it, for a caller within the process
    /// who runs the handler himself. The error is the reply that the request would have got.
    pub fn admit(
        &self,
        kind: Kind,
        name: String,
        uri: Option<String>,
        principal: Option<Principal>,
    ) -> impl Future<Output = Result<(), Reply>> + Send + 'static {
        dispatch::Caller { kind, principal, request: None }.admit(Arc::clone(&self.inner), name, uri)
    }

    /// Whether a list would show them to this caller, one by one. They are asked about side by side.
    pub fn may_see(
        &self,
        kind: Kind,
        names: Vec<String>,
        principal: Option<Principal>,
    ) -> impl Future<Output = Vec<bool>> + Send + 'static {
        dispatch::Caller { kind, principal, request: None }.may_see(Arc::clone(&self.inner), names)
    }

    /// The revisions that the server speaks.
    #[must_use]
    pub fn revisions(&self) -> &[Revision] {
        &self.inner.tell.revisions
    }

    /// The revisions that `server/discover` names, and that a request of an unknown one is told. A delegate that answers
    /// it names only those that have the method.
    #[must_use]
    pub fn discovered_revisions(&self) -> &[Revision] {
        let is_delegated = self.inner.delegate.get().is_some_and(|delegate| delegate.takes(Method::Discover));
        if is_delegated { Revision::MODERN } else { self.revisions() }
    }

    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The arguments of `tool` that clients mirror in headers since 2026-07-28, for [`mcpace_wire::http::check_params`].
    /// `None` for most tools, and for unknown ones.
    #[must_use]
    pub fn param_headers(&self, tool: &str) -> Option<Arc<[ParamHeader]>> {
        let catalogue = self.inner.catalogue.load();
        if !catalogue.has_param_headers {
            return None;
        }
        let headers = &catalogue.tools.get(tool)?.headers;
        (!headers.is_empty()).then(|| Arc::clone(headers))
    }

    /// Makes `outlet` the way for what belongs to no request of `session` (the standalone GET stream, stdout), list changes
    /// and resource updates among it. It replaces the one before.
    pub fn attach(&self, session: &Arc<Session>, outlet: Arc<dyn Outlet>) {
        if !session.attach(outlet) {
            return;
        }
        self.inner.attached.add(session);
    }

    /// Changes what is registered, all at once, and tells all clients that want to know. Calls under way keep what they
    /// began with. What a legacy client was told of capabilities by `initialize` stays as it is.
    ///
    /// # Errors
    /// The first mistake found; nothing has changed then.
    pub fn update(&self, change: impl FnOnce(&mut Changes)) -> Result<(), BuildError> {
        let changes = {
            // One at a time: each starts from what the one before left.
            let _alone = self.inner.updating.lock().unwrap_or_else(PoisonError::into_inner);
            let current = self.inner.catalogue.load();
            let mut changes = Changes::new(current.definitions.clone());
            change(&mut changes);
            if let Some(mistake) = changes.mistake {
                return Err(mistake);
            }
            let next = Catalogue::build(changes.definitions.clone(), &self.inner.tell, current.generation + 1)?;
            self.inner.catalogue.store(Arc::new(next));
            changes
        };
        changes.told().for_each(|change| self.inner.tell(change));
        Ok(())
    }

    /// Puts a server with handlers of its own behind this one. Only the first time counts; returns whether it was that.
    pub fn delegate(&self, delegate: impl Delegate) -> bool {
        self.inner.delegate.set(Arc::new(delegate)).is_ok()
    }

    /// Has somebody told of every request. Only the first time counts; returns whether it was that.
    pub fn observe(&self, observer: impl Observer) -> bool {
        self.inner.observer.set(Arc::new(observer)).is_ok()
    }

    /// Tells all clients that want to know that the list of tools has changed: of all processes, where they share a store.
    pub fn tools_changed(&self) {
        self.tell(&Told::Tools);
    }

    /// As [`Server::tools_changed`], for prompts.
    pub fn prompts_changed(&self) {
        self.tell(&Told::Prompts);
    }

    /// As [`Server::tools_changed`], for resources and their templates.
    pub fn resources_changed(&self) {
        self.tell(&Told::Resources);
    }

    /// Tells all clients that watch `uri` that its contents have changed.
    pub fn resource_updated(&self, uri: &str) {
        self.tell(&Told::Resource(uri.to_owned()));
    }

    /// Begins the end: subscriptions are closed with their result, tasks are cancelled. Calls under way go on: whoever
    /// holds their futures decides how long.
    pub fn close(&self) {
        self.inner.closing.cancel();
    }
}

impl From<Inner> for Server {
    fn from(inner: Inner) -> Self {
        Server { inner: Arc::new(inner) }
    }
}

impl Inner {
    pub(crate) fn new(builder: Builder) -> Result<Self, BuildError> {
        let Builder { tell, registered, limits, state, tell_failures, key, keep_headers, limiter, on_limiter_down } =
            builder;
        if tell.revisions.is_empty() {
            return Err(BuildError::NoRevision);
        }
        let definitions = registered.check()?;
        let catalogue = Catalogue::build(definitions, &tell, 0)?;
        let info = serde_json::to_string(&tell.info).map_err(|error| BuildError::Unwritable {
            kind: "server",
            name: tell.info.name.clone(),
            error,
        })?;
        Ok(Self {
            catalogue: ArcSwap::from_pointee(catalogue),
            server_info_member: format!("\"{}\":{info}", mcpace_wire::mcp::key::SERVER_INFO).into(),
            tell,
            limits,
            tell_failures,
            keep_headers,
            asking: dispatch::Turns::default(),
            limiter: limiter.unwrap_or_else(|| Arc::new(MemoryLimiter::default())),
            on_limiter_down,
            key: hmac::Key::new(hmac::HMAC_SHA256, &key.map_or_else(random_key, Ok)?),
            closing: CancellationToken::new(),
            listeners: Listeners::default(),
            tasks: Tasks::default(),
            delegate: OnceLock::new(),
            observer: OnceLock::new(),
            state,
            attached: Attached::default(),
            stations: Stations::default(),
            updating: Mutex::default(),
        })
    }

    pub(crate) fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.state.get(&TypeId::of::<T>())?).downcast().ok()
    }

    pub(crate) fn tell(&self, change: Change<'_>) {
        self.listeners.tell(change);
        let message = bytes::Bytes::from(change.message(None));
        for session in self.attached.all() {
            if let Change::Resource(uri) = change
                && !session.is_subscribed(uri)
            {
                continue;
            }
            // Whoever is gone or too slow lists again when it is back.
            let _ = session.send(message.clone());
        }
    }

    /// Tells all sessions that read a stream something.
    pub(crate) fn tell_sessions(&self, message: &bytes::Bytes) {
        for session in self.attached.all() {
            // Who reads nothing is told nothing.
            let _ = session.send(message.clone());
        }
    }
}

fn random_key() -> Result<[u8; 32], BuildError> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| BuildError::Random)?;
    Ok(key)
}
