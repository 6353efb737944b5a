//! MCP over HTTP: Streamable HTTP of all revisions, and what the older HTTP+SSE shares with it.
//!
//! Design constraint: a call is over when its result's event is complete. The rest of its stream (which the
//! server may hold open) is read and recorded in the background, and blocks nobody.

mod connection;
mod fetch;
mod get_stream;
mod legacy_sse;
mod pool;
mod reply;
mod stamps;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use mcpace_client_protocol::{Outgoing, ServerReply};
use mcpace_oauth::{Authorizer, RefusedRequest, Secret, printable_url};
use mcpace_record::Closer;
use mcpace_wire::http::name;
use mcpace_wire::revision::Revision;
use tokio::sync::oneshot;
use tokio::time::Instant;
use url::Url;

use self::connection::{BodyPiece, OpenReply};
use self::pool::{NoReply, Pool};
use super::task::BackgroundTask;
use super::{ClientError, ClientOptions};
use crate::lock::lock_mutex;
use crate::{Dialer, Origin, Sink};

pub(crate) use legacy_sse::LegacySse;

/// Reply streams that are read on in the background at most; the oldest is given up for a new one.
const MOST_OPEN: usize = 8;
/// Bytes that the rest of a reply may have, after its result.
const REST_LIMIT: usize = 64 * 1024 * 1024;
/// Most bytes of a reply that is no message: an error page, an OAuth document.
const TEXT_LIMIT: usize = 1024 * 1024;

const SESSION: HeaderName = HeaderName::from_static(name::SESSION_ID);
const VERSION: HeaderName = HeaderName::from_static(name::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(name::METHOD);
const LAST_EVENT: HeaderName = HeaderName::from_static(name::LAST_EVENT_ID);
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A server that is reached over HTTP. Lives as long as the client: tokens outlast a session.
pub(crate) struct Http {
    inner: Arc<HttpInner>,
    background: Mutex<VecDeque<BackgroundTask>>,
    /// The reply stream that was last sent to the background: until when to wait for its end, and how to hear of it.
    ending: Mutex<Option<(Instant, oneshot::Receiver<()>)>>,
    drain_limit: Duration,
    settle_limit: Duration,
}

/// State that background tasks share with the client.
pub(crate) struct HttpInner {
    pool: Pool,
    authorizer: Authorizer,
    headers: HeaderMap,
    configured: Url,
    message_limit: usize,
    state: Mutex<HttpState>,
}

#[derive(Default)]
struct HttpState {
    /// Where the endpoint has moved for good (308).
    moved: Option<Url>,
    session: Option<HeaderValue>,
    revision: Option<Revision>,
}

/// One request as MCP sees it, before authorization and redirects.
struct LogicalRequest<'a> {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    /// Purpose of the request, for messages.
    what: &'a str,
    may_be_repeated: bool,
}

impl Http {
    pub(crate) fn new(url: Url, options: &ClientOptions, sink: &Arc<Sink>) -> Result<Self, ClientError> {
        Origin::from_url(&url)?;
        let dialer = Dialer::new(Arc::clone(sink), options.connect_limit, options.extra_root.as_deref())?;
        let inner = HttpInner {
            pool: Pool::new(dialer, Arc::clone(sink)),
            authorizer: Authorizer::new(options.auth.clone(), options.revision),
            headers: options.headers.clone(),
            configured: url,
            message_limit: options.message_limit,
            state: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
            background: Mutex::default(),
            ending: Mutex::default(),
            drain_limit: options.limit,
            settle_limit: options.settle_limit,
        })
    }

    /// The URL as it may be shown.
    pub(crate) fn address(&self) -> String {
        self.inner.address()
    }

    /// The token that requests carry now, renewed where it has expired.
    pub(crate) async fn current_token(&self) -> Result<Option<Secret>, ClientError> {
        self.inner.authorizer.token(&*self.inner).await
    }

    /// The revision that later requests name.
    pub(crate) fn name_revision(&self, revision: Option<Revision>) {
        self.inner.lock_state().revision = revision;
    }

    pub(crate) fn has_session(&self) -> bool {
        self.inner.lock_state().session.is_some()
    }

    /// Forgets the session without telling the server: it said itself that it is lost.
    pub(crate) fn forget_session(&self) {
        let mut state = self.inner.lock_state();
        state.session = None;
        state.revision = None;
    }

    /// Sends a request and reads its reply up to the answer.
    pub(crate) async fn request(&self, message: &Outgoing) -> Result<ServerReply, ClientError> {
        let (reply, open) = self.inner.request_reply(message).await?;
        if let Some(open) = open {
            self.drain_reply(open);
        }
        Ok(reply)
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, message: &Outgoing) -> Result<(), ClientError> {
        self.inner.send_message(message, self.inner.endpoint()).await
    }

    /// Waits a moment for the end of the last reply's stream: see [`ClientOptions::settle_limit`].
    pub(crate) async fn settle_reply(&self) {
        let ending = lock_mutex(&self.ending).take();
        if let Some((until, ended)) = ending {
            drop(tokio::time::timeout_at(until, ended).await);
        }
    }

    /// Opens the standalone GET stream in the background.
    pub(crate) fn listen_stream(&self) {
        let inner = Arc::clone(&self.inner);
        self.keep_task(BackgroundTask::spawn(async move { get_stream::listen_stream(&inner).await }));
    }

    /// Opens the GET stream of 2024-11-05.
    pub(crate) async fn open_legacy(&self) -> Result<LegacySse, ClientError> {
        LegacySse::open(&self.inner).await
    }

    /// Ends the session, where there is one. A server may not allow that (405).
    pub(crate) async fn delete_session(&self) -> Result<(), ClientError> {
        if !self.has_session() {
            return Ok(());
        }
        let inner = &self.inner;
        let headers = inner.session_headers();
        let ask = LogicalRequest {
            method: Method::DELETE,
            url: inner.endpoint(),
            headers,
            body: Bytes::new(),
            what: "the end of the session",
            may_be_repeated: true,
        };
        let reply = inner.send_authorized(ask).await?;
        inner.read_text(reply, "the end of the session").await?;
        Ok(())
    }

    /// Ends everything: background streams, connections, the session on our side.
    pub(crate) async fn close(&self) {
        let tasks = std::mem::take(&mut *lock_mutex(&self.background));
        for task in tasks {
            task.abort_task().await;
        }
        lock_mutex(&self.ending).take();
        self.inner.pool.close_idle().await;
        self.forget_session();
    }

    /// Reads the rest of a reply in the background and keeps its connection when the rest ends in time.
    fn drain_reply(&self, mut open: OpenReply) {
        let inner = Arc::clone(&self.inner);
        let (ended, hears) = oneshot::channel();
        *lock_mutex(&self.ending) = Some((Instant::now() + self.settle_limit, hears));
        let limit = self.drain_limit;
        self.keep_task(BackgroundTask::spawn(async move {
            let most = open.body_bytes().saturating_add(REST_LIMIT);
            let rest = async {
                loop {
                    match open.next_piece().await {
                        Ok(BodyPiece::Events(_)) if open.body_bytes() <= most => {}
                        Ok(BodyPiece::Events(_)) => return false,
                        Ok(BodyPiece::End) | Err(_) => return true,
                    }
                }
            };
            match tokio::time::timeout(limit, rest).await {
                Ok(true) => inner.pool.keep_connection(open),
                Ok(false) | Err(_) => open.abandon_reply(Closer::Instrument).await,
            }
            // The waiting side may have stopped waiting.
            let _ = ended.send(());
        }));
    }

    fn keep_task(&self, task: BackgroundTask) {
        let mut background = lock_mutex(&self.background);
        background.retain(|task| !task.is_finished());
        if background.len() >= MOST_OPEN {
            background.pop_front();
        }
        background.push_back(task);
    }
}

impl HttpInner {
    fn endpoint(&self) -> Url {
        self.lock_state().moved.clone().unwrap_or_else(|| self.configured.clone())
    }

    fn address(&self) -> String {
        printable_url(&self.configured)
    }

    /// The headers that every request of a session has.
    fn session_headers(&self) -> HeaderMap {
        let state = self.lock_state();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, BOTH);
        if let Some(session) = &state.session {
            headers.insert(SESSION, session.clone());
        }
        if let Some(revision) = state.revision.filter(|revision| revision.has_version_header()) {
            headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }

    fn post_request<'a>(&self, message: &Outgoing, url: Url) -> LogicalRequest<'a> {
        let mut headers = self.session_headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.lock_state().revision.is_some_and(Revision::has_request_headers) {
            headers.insert(METHOD, HeaderValue::from_static(message.method));
        }
        for (name, value) in &message.headers {
            headers.insert(name.clone(), value.clone());
        }
        LogicalRequest {
            method: Method::POST,
            url,
            headers,
            body: message.body.clone(),
            what: message.method,
            may_be_repeated: message.repeatable,
        }
    }

    /// Sends something that has no answer: a notification, or an answer of ours.
    async fn send_message(&self, message: &Outgoing, url: Url) -> Result<(), ClientError> {
        let reply = self.send_authorized(self.post_request(message, url)).await?;
        let status = reply.status;
        if status.is_success() {
            // Nothing is awaited in its body, so a stream there is not read.
            if reply.is_event_stream() {
                reply.abandon_reply(Closer::Client).await;
                return Ok(());
            }
            self.read_text(reply, message.method).await?;
            return Ok(());
        }
        let other = self.read_other(reply, message.method).await?;
        Err(other.into_error(self.address(), false))
    }

    /// Sends a request with authorization, following redirects.
    async fn send_authorized(&self, mut ask: LogicalRequest<'_>) -> Result<OpenReply, ClientError> {
        let (mut refusals, mut redirects) = (0, 0);
        loop {
            let token = self.authorizer.token(self).await?;
            let reply = self.send_once(&ask, token.as_ref().map(|token| token.reveal())).await?;
            match reply.status.as_u16() {
                401 | 403 => {
                    let refusal = RefusedRequest::new(reply.status.as_u16(), &reply.headers, &self.configured, token);
                    let other = self.read_other(reply, ask.what).await?;
                    refusals += 1;
                    if refusals > 2 || !self.authorizer.authorize(&refusal, self).await? {
                        return Err(other.into_refusal(&refusal, self.address(), self.authorizer.kind()));
                    }
                }
                301 | 302 | 303 | 307 | 308 => {
                    let location = reply.header("location").map(str::to_owned);
                    let status = reply.status;
                    ask.url =
                        mcpace_oauth::redirect_target(&ask.url, status, &ask.method, location.as_deref(), redirects)?;
                    redirects += 1;
                    if status.as_u16() == 308 {
                        self.lock_state().moved = Some(ask.url.clone());
                    }
                    self.read_text(reply, ask.what).await?;
                }
                _ => return Ok(reply),
            }
        }
    }

    async fn send_once(&self, ask: &LogicalRequest<'_>, token: Option<&str>) -> Result<OpenReply, ClientError> {
        let mut headers = ask.headers.clone();
        if ask.url.origin() == self.configured.origin() {
            headers.extend(self.headers.clone());
        }
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| mcpace_oauth::OAuthError::UnusableToken)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        self.exchange_once(&ask.method, &ask.url, headers, ask.body.clone(), ask.what, ask.may_be_repeated).await
    }

    /// One exchange with any server.
    async fn exchange_once(
        &self,
        method: &Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
        what: &str,
        may_be_repeated: bool,
    ) -> Result<OpenReply, ClientError> {
        let origin = Origin::from_url(url)?;
        let bad_url = |reason: String| crate::NetError::BadUrl { url: printable_url(url), reason };
        let host = HeaderValue::try_from(origin.authority()).map_err(|e| bad_url(e.to_string()))?;
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("mcpace/", env!("CARGO_PKG_VERSION"))));
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = target.parse().map_err(|e: http::uri::InvalidUri| bad_url(e.to_string()))?;
        *request.headers_mut() = headers;
        self.pool.send_request(&origin, request, may_be_repeated).await.map_err(|error| match error {
            NoReply::Net(error) => error.into(),
            NoReply::Send(error) if error.not_http => {
                ClientError::NotMcp { address: printable_url(url), answer: format!("no HTTP ({})", error.reason) }
            }
            NoReply::Send(error) => ClientError::BrokeOff { method: what.to_owned(), reason: error.reason },
        })
    }

    fn lock_state(&self) -> MutexGuard<'_, HttpState> {
        lock_mutex(&self.state)
    }
}
