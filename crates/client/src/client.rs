//! The client: connects, and carries each request through its session, its time limit, its rounds and its second tries.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use mcpace_client_protocol::negotiation::refuses_but_names;
use mcpace_client_protocol::{
    Answer, ClientProfile, Outgoing, ParamsWriter, ResultKind, ServerEra, ServerReply, TRACE_MEMBERS,
};
use mcpace_wire::jsonrpc;
use mcpace_wire::mcp::{ClientCapabilities, Extra, InputRequiredResult, Task, key};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;

use crate::inbound::Inbound;
use crate::lock::{lock_exclusive, lock_mutex, lock_shared};
use crate::session::ConnectedSession;
use crate::transport::{Http, Link, Target, TargetKind};
use crate::underway::Underway;
use crate::{CacheMode, CallOptions, ClientError, Options, Raw, ServerInfo};

/// A client of one server. Cheap to clone; its requests run at the same time. The last clone's end is the end of
/// everything that belongs to it, without a word to the server: [`Client::close`] takes leave.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<ClientInner>,
}

pub(crate) struct ClientInner {
    pub(crate) options: Options,
    pub(crate) place: TargetKind,
    pub(crate) http: Option<Arc<Http>>,
    pub(crate) inbound: Arc<Inbound>,
    ids: AtomicI64,
    session: RwLock<Option<Arc<ConnectedSession>>>,
    era: Mutex<Option<ServerEra>>,
    /// Held by whoever begins a lost session anew.
    renewal: AsyncMutex<()>,
}

/// A request, before it has an id.
pub(crate) struct UnsentRequest<'a> {
    pub(crate) method: &'static str,
    /// Value of the `Mcp-Name` header.
    pub(crate) name: Option<&'a str>,
    /// A tool's arguments, for headers that mirror some of them.
    pub(crate) arguments: Option<&'a str>,
    pub(crate) fill: &'a (dyn Fn(&mut ParamsWriter<'_>) + Sync),
    /// Whether asking twice does no harm.
    pub(crate) repeatable: bool,
    pub(crate) options: &'a CallOptions,
}

/// How a request went, short of an error.
pub(crate) enum RequestOutcome {
    Complete(Raw, ResultKind),
    InputRequired(InputRequiredResult),
    Task(Box<Task>),
}

impl Client {
    /// Connects: opens the transport, authorizes where asked to, agrees on a revision. Must be called within a tokio
    /// runtime, which the client's tasks then run on.
    ///
    /// # Errors
    /// Any [`ClientError`]; nothing of the attempt is left open.
    pub async fn connect(target: Target, options: Options) -> Result<Self, ClientError> {
        let runtime = Handle::current();
        let http = match &target.0 {
            TargetKind::Http(url, connector) => {
                Some(Arc::new(Http::new(url.clone(), connector.clone(), &options, runtime.clone())?))
            }
            TargetKind::Program(_) | TargetKind::Pipe(_) => None,
        };
        let inbound = Arc::new(Inbound::new(options.callbacks.clone(), options.limits.clone(), runtime));
        let inner = ClientInner {
            options,
            place: target.0,
            http,
            inbound,
            ids: AtomicI64::new(1),
            session: RwLock::default(),
            era: Mutex::default(),
            renewal: AsyncMutex::default(),
        };
        let session = inner.connect_session().await?;
        *lock_exclusive(&inner.session) = Some(session);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The server's words about itself at the last connection.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn server(&self) -> Result<ServerInfo, ClientError> {
        self.inner.current_session().map(|session| session.info.clone())
    }

    /// Takes leave: ends the session or the process and closes every connection, within [`crate::Limits::close_time`] for
    /// each step. Requests under way on other clones fail.
    pub async fn close(&self) {
        let session = lock_exclusive(&self.inner.session).take();
        if let Some(session) = session {
            session.link.close(self.inner.options.limits.close_time).await;
        }
        self.inner.inbound.cancel_questions();
        self.inner.inbound.cache.clear();
    }
}

impl Drop for ClientInner {
    fn drop(&mut self) {
        self.inbound.cancel_questions();
    }
}

impl ClientInner {
    async fn connect_session(&self) -> Result<Arc<ConnectedSession>, ClientError> {
        let limit = self.options.limits.connect_time;
        let known = *lock_mutex(&self.era);
        let connected = tokio::time::timeout(limit, self.open_session(known)).await;
        let (session, era) =
            connected.unwrap_or_else(|_| Err(ClientError::TimeLimit { what: "connecting".to_owned(), limit }))?;
        *lock_mutex(&self.era) = Some(era);
        Ok(Arc::new(session))
    }

    pub(crate) fn current_session(&self) -> Result<Arc<ConnectedSession>, ClientError> {
        lock_shared(&self.session).clone().ok_or(ClientError::Closed)
    }

    pub(crate) fn next_id(&self) -> i64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = self.options.callbacks.capabilities();
        if self.options.tasks {
            let mut extensions = Extra::new();
            extensions.insert(key::TASKS_EXTENSION.to_owned(), Value::Object(Extra::new()));
            capabilities.extensions = Some(extensions);
        }
        capabilities
    }

    pub(crate) fn profile(&self) -> ClientProfile {
        ClientProfile {
            info: self.options.client_info.clone(),
            capabilities: self.capabilities(),
            log_level: self.options.log_level,
            request_meta: Extra::new(),
        }
    }

    /// Sends a request and reads what it came to. A lost session is begun anew, once; what does no harm is asked again when
    /// its reply was lost.
    pub(crate) async fn send_request(&self, ask: &UnsentRequest<'_>) -> Result<RequestOutcome, ClientError> {
        let limit = ask.options.time.unwrap_or(self.options.limits.call_time);
        let mut session = self.current_session()?;
        let mut again = true;
        loop {
            let reply = self.request_once(&session, ask, limit).await;
            match reply {
                Ok(reply) if again && is_lost_session(&session.link, &reply) => {
                    again = false;
                    session = self.renew_session(&session).await?;
                }
                // It refused the revision, and names it as one that it speaks.
                Ok(ServerReply::Answer { answer: Answer::Error(error), .. })
                    if again && refuses_but_names(&error, session.info.revision) =>
                {
                    again = false;
                }
                Err(ClientError::BrokeOff { .. }) if again && ask.repeatable && session.info.revision.is_modern() => {
                    again = false;
                }
                Err(ClientError::BrokeOff { .. }) if again && ask.repeatable && is_over(&session.link) => {
                    again = false;
                    session = self.renew_session(&session).await?;
                }
                Ok(reply) => {
                    return read_outcome(
                        reply.into_result(ask.method, || session.link.address(), false)?,
                        ask,
                        &session,
                    );
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn request_once(
        &self,
        session: &Arc<ConnectedSession>,
        ask: &UnsentRequest<'_>,
        limit: Duration,
    ) -> Result<ServerReply, ClientError> {
        let id = self.next_id();
        let progress = ask.options.progress.as_ref();
        let _heard = progress.map(|hear| self.inbound.hear_progress(id, Arc::clone(hear)));
        let message = outgoing_message(id, session, ask, progress.is_some());
        let underway = Underway::new(&self.inbound, session, id);
        let asked = session.link.request(&message);
        let Ok(reply) = tokio::time::timeout(limit, asked).await else {
            return Err(ClientError::TimeLimit { what: ask.method.to_owned(), limit });
        };
        underway.finish_request();
        reply
    }

    /// A new session in the place of `lost`, unless somebody else began one already.
    async fn renew_session(&self, lost: &Arc<ConnectedSession>) -> Result<Arc<ConnectedSession>, ClientError> {
        let _one = self.renewal.lock().await;
        let current = self.current_session()?;
        if !Arc::ptr_eq(&current, lost) {
            return Ok(current);
        }
        let session = self.connect_session().await?;
        *lock_exclusive(&self.session) = Some(Arc::clone(&session));
        Ok(session)
    }

    /// [`ClientInner::send_request`], by way of what is kept: `key` tells results of one method apart.
    pub(crate) async fn ask_kept(&self, ask: &UnsentRequest<'_>, key: &str) -> Result<RequestOutcome, ClientError> {
        let mode = ask.options.cache;
        // A trace asks for nothing.
        let asks = |meta: &Extra| meta.keys().any(|name| !TRACE_MEMBERS.contains(&name.as_str()));
        let fresh = ask.options.meta.as_ref().is_some_and(asks) || ask.options.progress.is_some();
        if !self.options.cache || mode == CacheMode::Bypass {
            return self.send_request(ask).await;
        }
        // A closed client must not answer from memory.
        self.current_session()?;
        let cache = &self.inbound.cache;
        if mode == CacheMode::Use
            && !fresh
            && let Some(raw) = cache.get_result(ask.method, key, Instant::now())
        {
            return Ok(RequestOutcome::Complete(raw, ResultKind::COMPLETE));
        }
        let generation = cache.generation();
        let outcome = self.send_request(ask).await?;
        if let RequestOutcome::Complete(raw, ResultKind::Complete { ttl_ms: Some(ttl_ms) }) = &outcome {
            cache.put_result(ask.method, key, raw, *ttl_ms, generation, Instant::now());
        }
        Ok(outcome)
    }
}

/// Outcome of a request from its result.
fn read_outcome(raw: Raw, ask: &UnsentRequest<'_>, session: &ConnectedSession) -> Result<RequestOutcome, ClientError> {
    if !session.info.revision.has_result_type() {
        return Ok(RequestOutcome::Complete(raw, ResultKind::COMPLETE));
    }
    match raw.kind(ask.method)? {
        kind @ ResultKind::Complete { .. } => Ok(RequestOutcome::Complete(raw, kind)),
        ResultKind::InputRequired => raw.read(ask.method).map(RequestOutcome::InputRequired),
        ResultKind::Task => raw.read(ask.method).map(RequestOutcome::Task),
    }
}

fn outgoing_message(id: i64, session: &ConnectedSession, ask: &UnsentRequest<'_>, progress: bool) -> Outgoing {
    let body = session.dialect.request(id, ask.method, ask.fill, ask.options.meta.as_ref(), progress);
    let mut message = Outgoing::request(id, ask.method, body, ask.repeatable);
    if session.has_headers()
        && let Some(target) = ask.name
    {
        let mirrored = lock_shared(&session.mirrored);
        let annotations = mirrored.get(target).map(Vec::as_slice).unwrap_or_default();
        message.add_target_headers(target, ask.arguments, annotations);
    }
    if let Some(meta) = &ask.options.meta {
        message.add_trace_headers(meta);
    }
    message
}

/// Whether the server forgot the session that the request named.
fn is_lost_session(link: &Link, reply: &ServerReply) -> bool {
    matches!(link, Link::Http(session) if session.has_session()) && reply.is_lost_session()
}

/// Whether the stream that a session lives on is gone.
fn is_over(link: &Link) -> bool {
    matches!(link, Link::Sse(stream) if stream.is_over())
}

/// Whether an error says that the headers were not what the tool's listing asks for.
pub(crate) fn is_header_mismatch(error: &ClientError) -> bool {
    matches!(error, ClientError::Rpc { error, .. } if error.code == jsonrpc::code::HEADER_MISMATCH)
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("place", &Target(self.inner.place.clone())).finish_non_exhaustive()
    }
}
