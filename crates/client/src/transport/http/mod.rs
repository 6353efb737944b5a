//! MCP over HTTP: Streamable HTTP of all revisions, and what the older HTTP+SSE shares with it.
//!
//! Constraint: a call is over when its answer is here. The rest of its stream is read in the background, within limits, so
//! that the connection can be used again.

mod connection;
mod dial;
mod events;
mod legacy_sse;
mod pool;
mod reply;
mod session;
mod standalone;

use std::sync::{Arc, RwLock};

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use mcpace_oauth::{Authorizer, Fetch, Fetched, HttpExchange, RefusedRequest, printable_url};
use mcpace_wire::http::name;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use url::Url;

use self::connection::OpenReply;
use self::dial::{Dialer, Origin};
use self::pool::{NoReply, Pool};
use super::Connector;
use crate::lock::{lock_exclusive, lock_shared};
use crate::{ClientError, Limits, Mode, Options};

pub(crate) use self::legacy_sse::LegacySse;
pub(crate) use self::session::HttpSession;

/// Most bytes of a reply that is no message: an error page, an OAuth document.
const TEXT_LIMIT: usize = 1024 * 1024;
/// Refusals of one request that authorization may try to mend.
const MOST_REFUSALS: usize = 3;

/// A server that is reached over HTTP. Lives as long as the client: tokens and connections outlast a session.
pub(crate) struct Http {
    pool: Pool,
    authorizer: Authorizer,
    configured: Url,
    endpoint: RwLock<Arc<HttpEndpoint>>,
    headers: HeaderMap,
    limits: Limits,
    /// Requests at a time.
    room: Semaphore,
    /// Rests of replies that are read in the background at a time.
    rests: Arc<Semaphore>,
    runtime: Handle,
}

/// A URL, ready to be asked.
struct HttpEndpoint {
    url: Url,
    origin: Origin,
    host: HeaderValue,
    target: Uri,
}

/// One request as MCP sees it, before authorization and redirects.
struct LogicalRequest<'a> {
    method: Method,
    /// Elsewhere than at the endpoint.
    url: Option<&'a Url>,
    headers: HeaderMap,
    body: Bytes,
    /// Purpose of the request, for messages.
    what: &'a str,
    repeatable: bool,
}

impl HttpEndpoint {
    fn from_url(url: Url) -> Result<Self, ClientError> {
        let bad = |reason: String| ClientError::BadTarget { target: printable_url(&url), reason };
        let origin = Origin::from_url(&url)?;
        let host = HeaderValue::try_from(origin.authority()).map_err(|error| bad(error.to_string()))?;
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let target = target.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
        Ok(Self { origin, host, target, url })
    }
}

impl Http {
    pub(crate) fn new(
        url: Url,
        connector: Option<Connector>,
        options: &Options,
        runtime: Handle,
    ) -> Result<Self, ClientError> {
        let endpoint = HttpEndpoint::from_url(url.clone())?;
        let limits = options.limits.clone();
        let connector = connector.map(|connector| (endpoint.origin.clone(), connector));
        let dialer = Dialer::new(connector, options.extra_root.clone(), limits.open_time)?;
        let revision = match options.mode {
            Mode::Only(revision) => Some(revision),
            Mode::Auto | Mode::Legacy => None,
        };
        Ok(Self {
            pool: Pool::new(dialer, limits.idle_connections),
            authorizer: Authorizer::new(options.auth.clone(), revision).with_proofs(),
            configured: url,
            endpoint: RwLock::new(Arc::new(endpoint)),
            headers: own_headers(&options.headers)?,
            room: Semaphore::new(limits.connections.max(1)),
            rests: Arc::new(Semaphore::new(limits.idle_connections)),
            limits,
            runtime,
        })
    }

    /// The URL as it may be shown.
    fn address(&self) -> String {
        printable_url(&self.configured)
    }

    fn endpoint(&self) -> Arc<HttpEndpoint> {
        Arc::clone(&lock_shared(&self.endpoint))
    }

    /// Sends a request with authorization, following redirects.
    async fn send_authorized(&self, ask: LogicalRequest<'_>) -> Result<OpenReply, ClientError> {
        let (mut refusals, mut redirects) = (0, 0);
        let mut endpoint = match ask.url {
            Some(url) => Arc::new(HttpEndpoint::from_url(url.clone())?),
            None => self.endpoint(),
        };
        loop {
            let (authorization, token) = self.authorizer.headers(&ask.method, &endpoint.url, self).await?;
            let mut headers = ask.headers.clone();
            headers.extend(authorization);
            let body = ask.body.clone();
            let reply = self.exchange_once(&ask.method, &endpoint, headers, body, ask.what, ask.repeatable).await?;
            match reply.status.as_u16() {
                401 | 403 => {
                    let refusal = RefusedRequest::new(reply.status.as_u16(), &reply.headers, &self.configured, token);
                    let other = self.read_other(reply, ask.what).await?;
                    refusals += 1;
                    if refusals >= MOST_REFUSALS || !self.authorizer.authorize(&refusal, self).await? {
                        return Err(other.into_refusal(&refusal, self.address(), self.authorizer.kind()));
                    }
                }
                301 | 302 | 303 | 307 | 308 => {
                    let to = mcpace_oauth::redirect_target(
                        &endpoint.url,
                        reply.status,
                        &ask.method,
                        reply.header("location"),
                        redirects,
                    )?;
                    redirects += 1;
                    endpoint = Arc::new(HttpEndpoint::from_url(to)?);
                    if reply.status.as_u16() == 308 && ask.url.is_none() {
                        *lock_exclusive(&self.endpoint) = Arc::clone(&endpoint);
                    }
                    self.read_text(reply, ask.what).await?;
                }
                _ => return Ok(reply),
            }
        }
    }

    /// One exchange with any server.
    async fn exchange_once(
        &self,
        method: &Method,
        endpoint: &HttpEndpoint,
        mut headers: HeaderMap,
        body: Bytes,
        what: &str,
        repeatable: bool,
    ) -> Result<OpenReply, ClientError> {
        headers.insert(HOST, endpoint.host.clone());
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("mcpace/", env!("CARGO_PKG_VERSION"))));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = endpoint.target.clone();
        *request.headers_mut() = headers;
        self.pool.send_request(&endpoint.origin, request, repeatable).await.map_err(|error| match error {
            NoReply::Dial(error) => error,
            NoReply::Send(error) if error.not_http => ClientError::NotMcp {
                address: printable_url(&endpoint.url),
                answer: format!("no HTTP ({})", error.reason),
            },
            NoReply::Send(error) => ClientError::BrokeOff { method: what.to_owned(), reason: error.reason },
        })
    }

    /// Keeps the connection of a reply whose answer is here, as soon as its rest was read.
    fn finish_reply(self: &Arc<Self>, mut open: OpenReply) {
        if open.has_ended() {
            return self.pool.keep_connection(open);
        }
        let Ok(room) = Arc::clone(&self.rests).try_acquire_owned() else { return };
        let http = Arc::clone(self);
        drop(self.runtime.spawn(async move {
            let rest = async {
                let mut read = 0;
                while let Some(Ok(chunk)) = open.next_chunk().await {
                    read += chunk.len();
                    if read > TEXT_LIMIT {
                        break;
                    }
                }
            };
            if tokio::time::timeout(http.limits.close_time, rest).await.is_ok() {
                http.pool.keep_connection(open);
            }
            drop(room);
        }));
    }
}

impl HttpExchange for Http {
    type Error = ClientError;

    async fn fetch(&self, fetch: Fetch<'_>) -> Result<Fetched, ClientError> {
        let endpoint = HttpEndpoint::from_url(fetch.url.clone())?;
        let repeatable = fetch.method == Method::GET;
        let open =
            self.exchange_once(&fetch.method, &endpoint, fetch.headers, fetch.body, fetch.what, repeatable).await?;
        let (status, location) = (open.status.as_u16(), open.header("location").map(str::to_owned));
        let nonce = open.header(mcpace_oauth::NONCE.as_str()).map(str::to_owned);
        if open.is_event_stream() {
            return Ok(Fetched { status, location, nonce, text: Vec::new() });
        }
        let text = self.read_text(open, fetch.what).await?;
        Ok(Fetched { status, location, nonce, text: text.to_vec() })
    }
}

/// The caller's own headers. Those that the protocol sets are set after them, and so can't be changed.
fn own_headers(named: &[(String, String)]) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    for (name, value) in named {
        let bad = |reason| ClientError::BadHeader { name: mcpace_wire::quote_printable(name), reason };
        let key = HeaderName::try_from(name).map_err(|_| bad("it is no header's name"))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| bad("its value can't stand in a header"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    for ours in [HOST, ACCEPT, http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING] {
        headers.remove(ours);
    }
    // Not all of these are set in every request: one of the caller's would speak for a session or a call that isn't.
    for ours in [name::SESSION_ID, name::PROTOCOL_VERSION, name::METHOD, name::NAME, name::LAST_EVENT_ID] {
        headers.remove(ours);
    }
    Ok(headers)
}
