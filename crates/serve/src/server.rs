//! The server: what was registered, and everything that its clients have under way.

use std::sync::{Arc, PoisonError, Weak};

use mcpace_wire::Revision;
use mcpace_wire::http::{ParamHeader, SessionId};
use mcpace_wire::mcp::Method;
use serde_json::value::RawValue;

use crate::build_error::BuildError;
use crate::catalogue::Catalogue;
use crate::catalogue_update::Changes;
use crate::dispatch;
use crate::exchange::{Handled, Incoming, Reply};
use crate::guard::ComponentKind;
use crate::limits::Limits;
use crate::open_subscriptions::ListChange;
use crate::outlet::Outlet;
use crate::principal::Principal;
use crate::push::{NotifyError, SessionTransport, write_message};
use crate::server_state::ServerState;
use crate::service::{Context, Delegate};
use crate::session::Session;
use crate::store::BroadcastChange;
use crate::telemetry::Observer;

/// An MCP server without a transport: hand it messages, it hands back what became of them. Cheap to clone; all clones are
/// the same server.
#[derive(Clone)]
pub struct Server {
    pub(crate) state: Arc<ServerState>,
}

impl Server {
    /// Takes one message.
    ///
    /// Plain handlers have run when this returns; the future of [`Handled::Later`] runs the others.
    #[must_use]
    pub fn handle(&self, incoming: Incoming<'_>) -> Handled {
        dispatch::handle_message(&self.state, incoming)
    }

    /// Asks for a use what a request would be asked before its handler runs, and counts it, for a caller within the process
    /// who runs the handler himself. The error is the reply that the request would have got.
    pub fn admit(
        &self,
        kind: ComponentKind,
        name: String,
        uri: Option<String>,
        principal: Option<Principal>,
    ) -> impl Future<Output = Result<(), Reply>> + Send + 'static {
        dispatch::LocalCaller { kind, principal, request: None }.admit_use(Arc::clone(&self.state), name, uri)
    }

    /// Whether a list would show them to this caller, one by one. They are asked about side by side.
    pub fn may_see(
        &self,
        kind: ComponentKind,
        names: Vec<String>,
        principal: Option<Principal>,
    ) -> impl Future<Output = Vec<bool>> + Send + 'static {
        dispatch::LocalCaller { kind, principal, request: None }.may_see(Arc::clone(&self.state), names)
    }

    /// The revisions that the server speaks.
    #[must_use]
    pub fn revisions(&self) -> &[Revision] {
        &self.state.tell.revisions
    }

    /// The revisions that `server/discover` names, and that a request of an unknown one is told. A delegate that answers
    /// it names only those that have the method.
    #[must_use]
    pub fn discovered_revisions(&self) -> &[Revision] {
        let is_delegated = self.state.delegate.get().is_some_and(|delegate| delegate.takes(Method::Discover));
        if is_delegated { Revision::MODERN } else { self.revisions() }
    }

    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.state.limits
    }

    /// The arguments of `tool` that clients mirror in headers since 2026-07-28, for [`mcpace_wire::http::check_params`].
    /// `None` for most tools, and for unknown ones.
    #[must_use]
    pub fn param_headers(&self, tool: &str) -> Option<Arc<[ParamHeader]>> {
        let catalogue = self.state.catalogue.load();
        if !catalogue.has_param_headers {
            return None;
        }
        let headers = &catalogue.tools.get(tool)?.headers;
        (!headers.is_empty()).then(|| Arc::clone(headers))
    }

    /// Makes `outlet` the way for what belongs to no request of `session` (the standalone GET stream, stdout), list changes
    /// and resource updates among it. It replaces the one before.
    pub fn attach(&self, session: &Arc<Session>, outlet: Arc<dyn Outlet>) {
        if !session.attach_outlet(outlet) {
            return;
        }
        self.state.session_registry.add(session);
    }

    /// Changes what is registered, all at once, and tells all clients that want to know. Calls in flight keep the
    /// components that they began with. The capabilities that `initialize` sent to a legacy client do not change.
    ///
    /// # Errors
    /// The first mistake found; nothing has changed then.
    pub fn update(&self, change: impl FnOnce(&mut Changes)) -> Result<(), BuildError> {
        let changes = {
            // One at a time: each starts from what the one before left.
            let _alone = self.state.updating.lock().unwrap_or_else(PoisonError::into_inner);
            let current = self.state.catalogue.load();
            let mut changes = Changes::new(current.definitions.clone());
            change(&mut changes);
            if let Some(mistake) = changes.mistake {
                return Err(mistake);
            }
            let next = Catalogue::build(changes.definitions.clone(), &self.state.tell, current.generation + 1)?;
            self.state.catalogue.store(Arc::new(next));
            changes
        };
        changes.changed_lists().for_each(|change| self.state.publish_change(change));
        Ok(())
    }

    /// Puts a server with handlers of its own behind this one. Only the first time counts; returns whether it was that.
    pub fn delegate(&self, delegate: impl Delegate) -> bool {
        self.state.delegate.set(Arc::new(delegate)).is_ok()
    }

    /// Has somebody told of every request. Only the first time counts; returns whether it was that.
    pub fn observe(&self, observer: impl Observer) -> bool {
        self.state.observer.set(Arc::new(observer)).is_ok()
    }

    /// Tells all clients that want to know that the list of tools has changed: of all processes, where they share a store.
    pub fn tools_changed(&self) {
        self.notify_clients(&BroadcastChange::Tools);
    }

    /// As [`Server::tools_changed`], for prompts.
    pub fn prompts_changed(&self) {
        self.notify_clients(&BroadcastChange::Prompts);
    }

    /// As [`Server::tools_changed`], for resources and their templates.
    pub fn resources_changed(&self) {
        self.notify_clients(&BroadcastChange::Resources);
    }

    /// Tells all clients that watch `uri` that its contents have changed.
    pub fn resource_updated(&self, uri: &str) {
        self.notify_clients(&BroadcastChange::Resource(uri.to_owned()));
    }

    /// Begins the end: subscriptions are closed with their result, tasks are cancelled. Calls under way go on: whoever
    /// holds their futures decides how long.
    pub fn close(&self) {
        self.state.closing.cancel();
    }
}

impl From<ServerState> for Server {
    fn from(state: ServerState) -> Self {
        Server { state: Arc::new(state) }
    }
}

impl Context {
    /// The server that this request came to, for [`Server::tools_changed`] and its like.
    ///
    /// # Panics
    /// Never: every request belongs to a server.
    #[must_use]
    #[expect(clippy::expect_used, reason = "dispatch makes each context with the state of its server")]
    pub fn server(&self) -> Server {
        let state = Arc::clone(&self.request().server).into_any().downcast();
        Server { state: state.expect("the server of a request is a ServerState") }
    }
}

impl Server {
    /// Tells the client of one legacy session something that belongs to no request. With a store ([`crate::http::Options`])
    /// any process can, whichever has the client's stream: what it was told is in the store when this returns, and waits there
    /// for a client that reads nothing at the moment. Without one, the session has to be this process's and be read.
    ///
    /// # Errors
    /// [`NotifyError`].
    pub async fn notify(&self, session: &str, method: &str, params: Option<&RawValue>) -> Result<(), NotifyError> {
        let session: SessionId = session.parse().map_err(|_| NotifyError::Unknown)?;
        let message = write_message(method, params)?;
        let mut last = NotifyError::Unknown;
        for transport in self.state.transports.live_transports() {
            match transport.notify_session(&session, message.clone()).await {
                Err(NotifyError::Unknown) => {}
                Err(error) => last = error,
                Ok(()) => return Ok(()),
            }
        }
        Err(last)
    }

    /// Tells the clients of all legacy sessions that read a stream, in all processes that share a store. Since 2026-07-28 a
    /// server says nothing unasked but what clients subscribe to.
    ///
    /// # Errors
    /// [`NotifyError`]; this process's own clients have been told then.
    pub async fn notify_all(&self, method: &str, params: Option<&RawValue>) -> Result<(), NotifyError> {
        let message = write_message(method, params)?;
        self.state.broadcast_message(&message);
        let Ok(text) = String::from_utf8(message.to_vec()) else { return Ok(()) };
        for transport in self.state.transports.live_transports() {
            transport.tell_others(BroadcastChange::Message(text.clone())).await?;
        }
        Ok(())
    }

    /// Tells this process's clients what another has learned: [`Server::tools_changed`] and the like tell those of all
    /// processes that share a store.
    pub fn hear(&self, told: BroadcastChange) {
        match told {
            BroadcastChange::Tools => self.state.publish_change(ListChange::Tools),
            BroadcastChange::Prompts => self.state.publish_change(ListChange::Prompts),
            BroadcastChange::Resources => self.state.publish_change(ListChange::Resources),
            BroadcastChange::Resource(uri) => self.state.publish_change(ListChange::Resource(&uri)),
            BroadcastChange::Message(message) => self.state.broadcast_message(&message.into()),
        }
    }

    /// Tells all clients, whichever process has them.
    pub(crate) fn notify_clients(&self, told: &BroadcastChange) {
        self.hear(told.clone());
        for transport in self.state.transports.live_transports() {
            transport.tell_others_soon(told.clone());
        }
    }

    /// A transport with sessions serves.
    pub(crate) fn add_transport(&self, transport: Weak<dyn SessionTransport>) {
        self.state.transports.add_transport(transport);
    }
}
