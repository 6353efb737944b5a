//! The client: connects, and carries each request through its session, its time limit, its rounds and its second tries.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use mcpace_client_protocol::negotiation::refuses_but_names;
use mcpace_client_protocol::{Answer, ClientProfile, Members, Outgoing, Reply, ResultKind, ServerEra};
use mcpace_wire::jsonrpc;
use mcpace_wire::mcp::{ClientCapabilities, Extra, InputRequiredResult, Task, key};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;

use crate::inbound::Inbound;
use crate::lock::{lock, read, write};
use crate::session::Session;
use crate::transport::{Http, Link, Place, Target};
use crate::underway::Underway;
use crate::{CacheMode, CallOptions, ClientError, Options, Raw, ServerInfo};

/// A client of one server. Cheap to clone; its requests run at the same time. The last clone's end is the end of
/// everything that belongs to it, without a word to the server: [`Client::close`] takes leave.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) place: Place,
    pub(crate) http: Option<Arc<Http>>,
    pub(crate) inbound: Arc<Inbound>,
    ids: AtomicI64,
    session: RwLock<Option<Arc<Session>>>,
    era: Mutex<Option<ServerEra>>,
    /// Held by whoever begins a lost session anew.
    renewal: AsyncMutex<()>,
}

/// A request, before it has an id.
pub(crate) struct Ask<'a> {
    pub(crate) method: &'static str,
    /// Value of the `Mcp-Name` header.
    pub(crate) name: Option<&'a str>,
    /// A tool's arguments, for headers that mirror some of them.
    pub(crate) arguments: Option<&'a str>,
    pub(crate) fill: &'a (dyn Fn(&mut Members<'_>) + Sync),
    /// Whether asking twice does no harm.
    pub(crate) repeatable: bool,
    pub(crate) options: &'a CallOptions,
}

/// How a request went, short of an error.
pub(crate) enum Outcome {
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
            Place::Http(url, connector) => {
                Some(Arc::new(Http::new(url.clone(), connector.clone(), &options, runtime.clone())?))
            }
            Place::Program(_) | Place::Pipe(_) => None,
        };
        let inbound = Arc::new(Inbound::new(options.callbacks.clone(), options.limits.clone(), runtime));
        let inner = Inner {
            options,
            place: target.0,
            http,
            inbound,
            ids: AtomicI64::new(1),
            session: RwLock::default(),
            era: Mutex::default(),
            renewal: AsyncMutex::default(),
        };
        let session = inner.connect().await?;
        *write(&inner.session) = Some(session);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The server's words about itself at the last connection.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn server(&self) -> Result<ServerInfo, ClientError> {
        self.inner.session().map(|session| session.info.clone())
    }

    /// Takes leave: ends the session or the process and closes every connection, within [`crate::Limits::close_time`] for
    /// each step. Requests under way on other clones fail.
    pub async fn close(&self) {
        let session = write(&self.inner.session).take();
        if let Some(session) = session {
            session.link.close(self.inner.options.limits.close_time).await;
        }
        self.inner.inbound.end();
        self.inner.inbound.cache.clear();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.inbound.end();
    }
}

impl Inner {
    async fn connect(&self) -> Result<Arc<Session>, ClientError> {
        let limit = self.options.limits.connect_time;
        let known = *lock(&self.era);
        let connected = tokio::time::timeout(limit, self.open_session(known)).await;
        let (session, era) =
            connected.unwrap_or_else(|_| Err(ClientError::TimeLimit { what: "connecting".to_owned(), limit }))?;
        *lock(&self.era) = Some(era);
        Ok(Arc::new(session))
    }

    pub(crate) fn session(&self) -> Result<Arc<Session>, ClientError> {
        read(&self.session).clone().ok_or(ClientError::Closed)
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
    pub(crate) async fn ask(&self, ask: &Ask<'_>) -> Result<Outcome, ClientError> {
        let limit = ask.options.time.unwrap_or(self.options.limits.call_time);
        let mut session = self.session()?;
        let mut again = true;
        loop {
            let reply = self.once(&session, ask, limit).await;
            match reply {
                Ok(reply) if again && is_lost_session(&session.link, &reply) => {
                    again = false;
                    session = self.renewed(&session).await?;
                }
                // It refused the revision, and names it as one that it speaks.
                Ok(Reply::Answer { answer: Answer::Error(error), .. })
                    if again && refuses_but_names(&error, session.info.revision) =>
                {
                    again = false;
                }
                Err(ClientError::BrokeOff { .. }) if again && ask.repeatable && session.info.revision.is_modern() => {
                    again = false;
                }
                Err(ClientError::BrokeOff { .. }) if again && ask.repeatable && is_over(&session.link) => {
                    again = false;
                    session = self.renewed(&session).await?;
                }
                Ok(reply) => {
                    return outcome(reply.into_result(ask.method, || session.link.address(), false)?, ask, &session);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn once(&self, session: &Arc<Session>, ask: &Ask<'_>, limit: Duration) -> Result<Reply, ClientError> {
        let id = self.next_id();
        let progress = ask.options.progress.as_ref();
        let _heard = progress.map(|hear| self.inbound.hear_progress(id, Arc::clone(hear)));
        let message = message(id, session, ask, progress.is_some());
        let underway = Underway::new(&self.inbound, session, id);
        let asked = session.link.request(&message);
        let Ok(reply) = tokio::time::timeout(limit, asked).await else {
            return Err(ClientError::TimeLimit { what: ask.method.to_owned(), limit });
        };
        underway.done();
        reply
    }

    /// A new session in the place of `lost`, unless somebody else began one already.
    async fn renewed(&self, lost: &Arc<Session>) -> Result<Arc<Session>, ClientError> {
        let _one = self.renewal.lock().await;
        let current = self.session()?;
        if !Arc::ptr_eq(&current, lost) {
            return Ok(current);
        }
        let session = self.connect().await?;
        *write(&self.session) = Some(Arc::clone(&session));
        Ok(session)
    }

    /// [`Inner::ask`], by way of what is kept: `key` tells results of one method apart.
    pub(crate) async fn ask_kept(&self, ask: &Ask<'_>, key: &str) -> Result<Outcome, ClientError> {
        let mode = ask.options.cache;
        let fresh = ask.options.meta.is_some() || ask.options.progress.is_some();
        if !self.options.cache || mode == CacheMode::Bypass {
            return self.ask(ask).await;
        }
        // A closed client must not answer from memory.
        self.session()?;
        let cache = &self.inbound.cache;
        if mode == CacheMode::Use
            && !fresh
            && let Some(raw) = cache.get(ask.method, key, Instant::now())
        {
            return Ok(Outcome::Complete(raw, ResultKind::COMPLETE));
        }
        let generation = cache.generation();
        let outcome = self.ask(ask).await?;
        if let Outcome::Complete(raw, ResultKind::Complete { ttl_ms: Some(ttl_ms) }) = &outcome {
            cache.put(ask.method, key, raw, *ttl_ms, generation, Instant::now());
        }
        Ok(outcome)
    }
}

/// Outcome of a request from its result.
fn outcome(raw: Raw, ask: &Ask<'_>, session: &Session) -> Result<Outcome, ClientError> {
    if !session.info.revision.has_result_type() {
        return Ok(Outcome::Complete(raw, ResultKind::COMPLETE));
    }
    match raw.kind(ask.method)? {
        kind @ ResultKind::Complete { .. } => Ok(Outcome::Complete(raw, kind)),
        ResultKind::InputRequired => raw.read(ask.method).map(Outcome::InputRequired),
        ResultKind::Task => raw.read(ask.method).map(Outcome::Task),
    }
}

fn message(id: i64, session: &Session, ask: &Ask<'_>, progress: bool) -> Outgoing {
    let body = session.dialect.request(id, ask.method, ask.fill, ask.options.meta.as_ref(), progress);
    let mut message = Outgoing::request(id, ask.method, body, ask.repeatable);
    if session.has_headers()
        && let Some(target) = ask.name
    {
        let mirrored = read(&session.mirrored);
        let annotations = mirrored.get(target).map(Vec::as_slice).unwrap_or_default();
        message.add_target_headers(target, ask.arguments, annotations);
    }
    message
}

/// Whether the server forgot the session that the request named.
fn is_lost_session(link: &Link, reply: &Reply) -> bool {
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
