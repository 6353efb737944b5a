//! The context of a handler: its request, its client, and its server.

use std::any::{Any, TypeId};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, write_notification};
use mcpace_wire::mcp::{Json, LogMessageParams, LoggingLevel, Method, ProgressParams};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Detach, Inputs};
use crate::exchange::{Channel, TransportKind};
use crate::guard::{BoxFuture, ComponentKind};
use crate::headers::Headers;
use crate::limits::Limits;
use crate::outlet::Outlet;
use crate::principal::Principal;
use crate::session::{Session, level_rank};
use crate::tasks::Running;

/// A handler's view of its request and of the client. Cheap to clone; made only for handlers that take one.
#[derive(Clone)]
pub struct Context {
    inner: Arc<OwnedRequest>,
}

/// The server of a request, as far as handlers can use it.
pub(crate) trait RequestServer: Send + Sync {
    /// The bounds in force.
    fn limits(&self) -> &Limits;

    /// The author's value of a type.
    fn user_value(&self, of: TypeId) -> Option<&Arc<dyn Any + Send + Sync>>;

    /// Notifies subscribers that a task has changed.
    fn publish_task(&self, task: &Running);

    /// Whether a list for `request` would show these names, one by one.
    fn visible_names(
        self: Arc<Self>,
        kind: ComponentKind,
        names: Vec<String>,
        request: Context,
    ) -> BoxFuture<Vec<bool>>;

    /// The state of the server, which [`Context::server`] knows the type of.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// One request, without borrowing from its message.
pub(crate) struct OwnedRequest {
    pub(crate) server: Arc<dyn RequestServer>,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) revision: Revision,
    pub(crate) principal: Option<Principal>,
    pub(crate) id: Id<'static>,
    pub(crate) method: Method,
    /// The whole parameters, as they came.
    pub(crate) params: Option<Bytes>,
    /// The headers that it came with, where they are kept.
    pub(crate) headers: Option<Headers>,
    /// The id of the session that it belongs to, where headers are kept and the transport has given it one.
    pub(crate) session_id: Option<Box<str>>,
    pub(crate) transport: TransportKind,
    /// Fires when the connection ends, where the tasks that it began end with it.
    pub(crate) closed: Option<CancellationToken>,
    pub(crate) client_key: u64,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) progress_token: Option<Id<'static>>,
    /// The last progress told; it must rise.
    pub(crate) progress: Mutex<f64>,
    /// From which level on the request wants log messages; `None`: none.
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) timed: bool,
    /// Since 2026-07-28: what the client says it can do, as JSON.
    pub(crate) capabilities: Option<Bytes>,
    /// Since 2026-07-28: what earlier rounds left.
    pub(crate) inputs: Inputs,
    /// How many questions the handler has asked in this round.
    pub(crate) asked: AtomicU32,
    /// The task that the handler runs as.
    pub(crate) task: OnceLock<Arc<Running>>,
    /// Where the handler may become a task.
    pub(crate) detach: Option<Detach>,
}

impl Context {
    pub(crate) fn new(request: OwnedRequest) -> Self {
        Self { inner: Arc::new(request) }
    }

    /// The request's id.
    #[must_use]
    pub fn request_id(&self) -> &Id<'static> {
        &self.inner.id
    }

    /// The revision that the client speaks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.inner.revision
    }

    /// Authenticated principal, if the request was authenticated.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.inner.principal.as_ref()
    }

    /// The legacy session, where there is one.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.inner.session.as_ref()
    }

    /// A number that all requests of one client have in common, as [`crate::RawCall::client_key`].
    #[must_use]
    pub fn client_key(&self) -> u64 {
        self.inner.client_key
    }

    /// The HTTP headers that the request came with, where [`crate::Builder::keep_headers`] is set. Client-supplied: never a
    /// proof of who calls.
    #[must_use]
    pub fn headers(&self) -> Option<&Headers> {
        self.inner.headers.as_ref()
    }

    /// Whether a list that this request asks for would show them: their guards see what they would see of the list itself.
    pub fn may_see(
        &self,
        kind: ComponentKind,
        names: Vec<String>,
    ) -> impl Future<Output = Vec<bool>> + Send + 'static + use<> {
        Arc::clone(&self.inner.server).visible_names(kind, names, self.clone())
    }

    /// Fires when the client no longer wants the result. The handler is polled once more then, and dropped if it doesn't end;
    /// pass the token on to what it spawned.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.cancellation
    }

    /// Whether the client no longer wants the result: for loops that don't await.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancellation.is_cancelled()
    }

    /// Value given to [`crate::Builder::state`], by its type.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.inner.server.user_value(TypeId::of::<T>())?).downcast().ok()
    }

    /// Lets the client's connection go, not the call: the client comes back for the rest when it likes (2025-11-25,
    /// basic/transports, "Sending Messages to the Server"). For handlers that take minutes. Nothing happens where streams
    /// can't be taken up again.
    pub fn release(&self) {
        self.inner.outlet.release();
    }

    /// Tells how far the work is, if the client asked to know. Progress strictly rises: what doesn't is not sent. Nothing
    /// happens when the client can't be reached. In a task the message becomes the task's status message.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(task) = self.task() {
            if message.is_some_and(|message| task.set_status_message(message)) {
                self.inner.server.publish_task(task);
            }
            return;
        }
        let Some(token) = &self.inner.progress_token else { return };
        // Held while sending, so that two threads can't overtake each other.
        let mut last = self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.is_nan() || progress <= *last {
            return;
        }
        *last = progress;
        let message = message.filter(|_| self.revision() >= Revision::V2025_03_26).map(str::to_owned);
        let params = ProgressParams {
            progress_token: token.clone(),
            progress,
            total,
            message,
            meta: None,
            extra: <_>::default(),
        };
        self.notify_client(Method::Progress, &params);
    }

    /// Sends a log message, if the client wants this level: by `logging/setLevel` in a session, by the request's `_meta`
    /// since 2026-07-28. A client without a session that cannot say so gets all.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: &impl Serialize) {
        if !self.wants(level) {
            return;
        }
        // A value that can't be JSON has no place in a log either.
        let Ok(data) = Json::of(data) else { return };
        let params =
            LogMessageParams { level, logger: logger.map(str::to_owned), data, meta: None, extra: <_>::default() };
        self.notify_client(Method::LogMessage, &params);
    }

    /// Whether a log message of this level would be sent.
    #[must_use]
    pub fn wants(&self, level: LoggingLevel) -> bool {
        if self.revision().is_modern() {
            return self.inner.log_level.is_some_and(|from| level >= from);
        }
        self.inner.session.as_ref().is_none_or(|session| level_rank(level) >= session.log_level())
    }

    /// The context of the same request's next round.
    pub(crate) fn next_round(&self, inputs: Inputs) -> Self {
        let OwnedRequest {
            server,
            session,
            revision,
            principal,
            id,
            method,
            params,
            headers,
            session_id,
            transport,
            closed,
            client_key,
            outlet,
            ..
        } = &*self.inner;
        let progress = *self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner);
        Self::new(OwnedRequest {
            server: Arc::clone(server),
            session: session.clone(),
            revision: *revision,
            principal: principal.clone(),
            id: id.clone(),
            method: *method,
            params: params.clone(),
            headers: headers.clone(),
            session_id: session_id.clone(),
            transport: *transport,
            closed: closed.clone(),
            client_key: *client_key,
            outlet: Arc::clone(outlet),
            cancellation: self.inner.cancellation.clone(),
            progress_token: self.inner.progress_token.clone(),
            progress: Mutex::new(progress),
            log_level: self.inner.log_level,
            timed: self.inner.timed,
            capabilities: self.inner.capabilities.clone(),
            inputs,
            asked: AtomicU32::new(0),
            task: self.inner.task.clone(),
            detach: None,
        })
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.inner.timed
    }

    pub(crate) fn request(&self) -> &OwnedRequest {
        &self.inner
    }

    pub(crate) fn notify_client(&self, method: Method, params: &impl Serialize) {
        let mut message = Vec::with_capacity(160);
        if write_notification(&mut message, method.as_str(), Some(params)).is_ok() {
            // A client that is gone misses nothing that it could still use.
            let _ = self.inner.outlet.tell(message.into());
        }
    }
}

impl Channel for OwnedRequest {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::clone(&self.outlet)
    }

    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    fn headers(&self) -> Option<Headers> {
        self.headers.clone()
    }

    fn transport(&self) -> TransportKind {
        self.transport
    }

    fn connection_closed(&self) -> Option<CancellationToken> {
        self.closed.clone()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("method", &self.inner.method).field("id", &self.inner.id).finish()
    }
}
