//! The state that all connections share, and the way of a request to its endpoint: host, origin, path, method, token.

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcpace_wire::http::{Rejection, SessionId};
use mcpace_wire::jsonrpc::code;
use tokio_rustls::TlsAcceptor;

use super::access_log::{AccessLog, Seen};
use super::auth::{self, Denied, TokenGuard, WELL_KNOWN};
use super::connection_ends::RequestOrigin;
use super::connection_state::ConnectionState;
use super::event_log::LogBounds;
use super::fields::{Fields, HeaderSource};
use super::held_results::ReplyAccount;
use super::host_origin_check::Admission;
use super::http_response::HttpResponse;
use super::legacy::LegacyStreams;
use super::mounted_service::{MountedService, Upload};
use super::options::{Limits, Options, ResponseMode};
use super::pending_messages::PendingBounds;
use super::reply_body::ReplyBody;
use super::request_body::{self, BodyBounds, Protocol};
use super::session_affinity::{SessionRouter, WorkerGroup};
use super::session_key::SessionKey;
use super::session_streams::StreamBounds;
use super::sessions::Sessions;
use super::shared_sessions::SharedSessions;
use super::tls::Tls;
use super::{ServeError, legacy};
use crate::Server;
use crate::headers::Ends;
use crate::outlet::Gone;
use crate::principal::Principal;
use crate::push::{NotifyError, NotifyFuture, SessionTransport};
use crate::store::BroadcastChange;

/// The HTTP server's configuration, sessions and parts, shared by all connections.
pub(super) struct HttpServer {
    pub(super) server: Server,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) limits: Limits,
    pub(super) response: ResponseMode,
    pub(super) stateless: bool,
    pub(super) server_timing: bool,
    pub(super) resumable: bool,
    pub(super) retry: Duration,
    pub(super) keep_alive: Duration,
    pub(super) sessions: Arc<Sessions>,
    pub(super) stream_bounds: Arc<StreamBounds>,
    /// With other processes, where there is a store.
    pub(super) sharing: Option<Arc<SharedSessions>>,
    pub(super) legacy: Option<Arc<LegacyStreams>>,
    pub(super) path: String,
    metadata_path: String,
    admission: Admission,
    pub(super) beside: Option<MountedService>,
    guard: Option<TokenGuard>,
    /// To the other processes, where this is one of several.
    pub(super) relay: Option<SessionRouter>,
    access_log: Option<AccessLog>,
}

/// One request, once its head is there.
pub(super) struct HttpRequest<'r> {
    pub(super) head: &'r Parts,
    pub(super) fields: &'r Fields<'r>,
    pub(super) body: &'r mut Incoming,
    pub(super) connection_state: &'r ConnectionState,
    pub(super) protocol: Protocol,
}

pub(super) enum Route {
    Mcp,
    Metadata,
    LegacyEvents,
    LegacyMessages,
}

impl HttpServer {
    /// Whether it answers only to who has a token.
    pub(super) fn asks_for_tokens(&self) -> bool {
        self.guard.is_some()
    }

    fn new(server: Server, options: Options, bound: SocketAddr) -> Result<Self, ServeError> {
        if !options.path.starts_with('/') {
            return Err(ServeError::Option { option: "path", value: options.path, reason: "it begins with a slash" });
        }
        if options.limits.head < MIN_HEAD {
            let value = options.limits.head.to_string();
            return Err(ServeError::Option { option: "limits.head", value, reason: "at least 8192 bytes" });
        }
        let limits = options.limits;
        let stream_bounds = StreamBounds {
            log: LogBounds { events: limits.stream_events, bytes: limits.stream_bytes },
            standalone: limits.standalone_streams,
            open: limits.session_streams,
            session_reply_bytes: limits.session_reply_bytes,
            replay_bytes_each: limits.session_replay_bytes,
            replay_bytes_all: limits.replay_bytes,
            replay_bytes: AtomicUsize::new(0),
            unheard: PendingBounds::new(server.limits().stream_time),
        };
        let sessions = Sessions::new(
            limits.sessions,
            (limits.session_idle, limits.session_life),
            Instant::now(),
            options.family.as_ref().map(WorkerGroup::own_number),
        );
        let stream_bounds = Arc::new(stream_bounds);
        let sharing = options.store.filter(|_| !options.stateless).map(|stores| {
            let (sessions, streams) = (Arc::clone(&sessions), Arc::clone(&stream_bounds));
            SharedSessions::begin_sharing(stores, server.clone(), sessions, streams, (&limits, options.resumable))
        });
        Ok(Self {
            server,
            acceptor: options.tls.as_ref().map(Tls::current_acceptor),
            response: options.response,
            stateless: options.stateless,
            server_timing: options.server_timing,
            resumable: options.resumable,
            retry: options.retry,
            keep_alive: options.keep_alive,
            legacy: options.legacy_sse.then(|| Arc::new(LegacyStreams::new(Arc::clone(&sessions)))),
            sessions,
            stream_bounds,
            sharing,
            metadata_path: format!("{WELL_KNOWN}{}", options.path.trim_end_matches('/')),
            path: options.path,
            admission: Admission::new(bound, &options.allowed_hosts, &options.allowed_origins),
            beside: options.beside,
            guard: options.authorization.as_ref().map(TokenGuard::new).transpose()?,
            relay: options.family.map(SessionRouter::new),
            access_log: options.access_log,
            limits,
        })
    }

    /// Makes the server and registers it as a transport, so that notifications reach its sessions.
    pub(super) fn new_registered(server: Server, options: Options, bound: SocketAddr) -> Result<Arc<Self>, ServeError> {
        let http_server = Arc::new(Self::new(server, options, bound)?);
        let transport: Weak<dyn SessionTransport> = Arc::<Self>::downgrade(&http_server);
        http_server.server.add_transport(transport);
        Ok(http_server)
    }

    /// Answers a request.
    pub(super) async fn respond_hyper(
        &self,
        request: Request<Incoming>,
        connection_state: &ConnectionState,
        protocol: Protocol,
    ) -> Response<ReplyBody> {
        let Some(log) = &self.access_log else { return self.respond_to(request, connection_state, protocol).await };
        let seen = Seen::from_request(&request);
        let response = self.respond_to(request, connection_state, protocol).await;
        // A forwarded request stands in the log of the process that answered it.
        if !matches!(response.body(), ReplyBody::Passed(_)) {
            seen.report_to(log, response.status());
        }
        response
    }

    async fn respond_to(
        &self,
        request: Request<Incoming>,
        connection_state: &ConnectionState,
        protocol: Protocol,
    ) -> Response<ReplyBody> {
        let reason = if !is_framed_plainly(request.headers()) {
            Some("Transfer-Encoding is chunked, once, or absent")
        } else if !is_http_target(request.uri()) {
            Some("the scheme of the request's target is http or https")
        } else {
            None
        };
        if let Some(reason) = reason {
            let refusal = HttpResponse::refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, reason);
            return refusal.close_after().into_response(http::HeaderMap::new());
        }
        if let Some(beside) = self.mounted_service(request.uri().path()) {
            return self.respond_beside(beside, request, self.request_origin(connection_state)).await;
        }
        let (mut head, mut body) = request.into_parts();
        if let Some(relay) = &self.relay
            && let Some(owner) = relay.owner_of(&head)
        {
            match relay.pass_on(owner, head, body, self.request_origin(connection_state)).await {
                Ok(response) => return response,
                // The session's owner is gone; with a store, any process may take the session up.
                Err(unsent) if self.sharing.is_some() => (head, body) = unsent.into_parts(),
                Err(_) => return HttpResponse::from(Rejection::SessionNotFound).into_response(http::HeaderMap::new()),
            }
        }
        let answer = {
            let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            let source = HeaderSource::Map(&head.headers, &head.uri);
            let mut fields = Fields::from_headers(headers, head.uri.authority().map(Authority::as_str), source);
            fields.origin = self.request_origin(connection_state);
            let asked = HttpRequest { head: &head, fields: &fields, body: &mut body, connection_state, protocol };
            match self.route_request(asked).await {
                Ok(answer) => answer,
                Err(refusal)
                    if protocol == Protocol::Http2 || refusal.closes_connection() || waits_for_leave(&head) =>
                {
                    refusal
                }
                Err(refusal) => {
                    let goes_on = request_body::drain_body(&mut body, fields.content_length(), connection_state).await;
                    if goes_on { refusal } else { refusal.close_after() }
                }
            }
        };
        answer.into_response(head.headers)
    }

    /// Where the requests of a connection come from.
    pub(super) fn request_origin(&self, connection_state: &ConnectionState) -> RequestOrigin {
        let is_tls = self.acceptor.is_some();
        match connection_state.ends() {
            Some((client, server)) => RequestOrigin::Here(Ends { client: Some(client), server, is_tls }),
            None if self.relay.is_some() => RequestOrigin::PassedOn { is_tls },
            None => RequestOrigin::default(),
        }
    }

    /// Answers a POST to the MCP path whose body is there already.
    pub(super) async fn respond_whole(
        &self,
        fields: &Fields<'_>,
        body: &Bytes,
        unsent: &Arc<ReplyAccount>,
    ) -> HttpResponse {
        let begun = self.access_log.as_ref().map(|log| (log, Instant::now()));
        let answer = async {
            self.check_peer(fields)?;
            self.post_whole(fields, body, unsent).await
        };
        let answer = answer.await.unwrap_or_else(|refusal| refusal);
        if let Some((log, begun)) = begun {
            log.report_whole(&self.path, body, answer.status, begun);
        }
        answer
    }

    /// Refusals are answers too; they come as errors so that `?` leads straight out.
    async fn route_request(&self, asked: HttpRequest<'_>) -> Result<HttpResponse, HttpResponse> {
        self.check_peer(asked.fields)?;
        match self.match_path(asked.head.uri.path())? {
            Route::Mcp => match asked.head.method {
                Method::POST => self.handle_post(asked).await,
                Method::GET => self.handle_get(asked.fields).await,
                Method::DELETE => self.handle_delete(asked.fields).await,
                _ => Err(self.method_not_allowed()),
            },
            Route::Metadata => match asked.head.method {
                Method::GET => self.resource_metadata(),
                _ => Err(HttpResponse::from(Rejection::MethodNotAllowed).with_allow("GET")),
            },
            Route::LegacyEvents => match asked.head.method {
                Method::GET => self.legacy_events(asked.fields).await,
                _ => Err(HttpResponse::from(Rejection::MethodNotAllowed).with_allow("GET")),
            },
            Route::LegacyMessages => match asked.head.method {
                Method::POST => self.legacy_message(asked).await,
                _ => Err(HttpResponse::from(Rejection::MethodNotAllowed).with_allow("POST")),
            },
        }
    }

    /// Answers a request that came without a connection.
    pub(super) async fn respond_given(&self, request: Request<Bytes>) -> Response<ReplyBody> {
        let (head, body) = request.into_parts();
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let source = HeaderSource::Map(&head.headers, &head.uri);
        let mut fields = Fields::from_headers(headers, head.uri.authority().map(Authority::as_str), source);
        fields.origin = RequestOrigin::Here(head.extensions.get().copied().unwrap_or_default());
        let answer = self.answer_given(&head, &fields, body).await.unwrap_or_else(|refusal| refusal);
        answer.into_response(http::HeaderMap::new())
    }

    async fn answer_given(&self, head: &Parts, fields: &Fields<'_>, body: Bytes) -> Result<HttpResponse, HttpResponse> {
        self.check_peer(fields)?;
        if body.len() > self.limits.body {
            return Err(Rejection::BodyTooLarge { limit: self.limits.body }.into());
        }
        match (self.match_path(head.uri.path())?, &head.method) {
            (Route::Mcp, &Method::POST) => {
                // No other reply shares its connection, wherever that is.
                self.post_whole(fields, &body, &ReplyAccount::new(self.limits.connection_reply_bytes)).await
            }
            (Route::Mcp, &Method::GET) => self.handle_get(fields).await,
            (Route::Mcp, &Method::DELETE) => self.handle_delete(fields).await,
            (Route::Mcp, _) => Err(self.method_not_allowed()),
            (Route::Metadata, &Method::GET) => self.resource_metadata(),
            (Route::LegacyEvents, &Method::GET) => self.legacy_events(fields).await,
            (Route::LegacyMessages, &Method::POST) => self.legacy_message_whole(head, fields, &body).await,
            (Route::Metadata | Route::LegacyEvents, _) => {
                Err(HttpResponse::from(Rejection::MethodNotAllowed).with_allow("GET"))
            }
            (Route::LegacyMessages, _) => Err(HttpResponse::from(Rejection::MethodNotAllowed).with_allow("POST")),
        }
    }

    fn resource_metadata(&self) -> Result<HttpResponse, HttpResponse> {
        let guard = self.guard.as_ref().ok_or(Rejection::MethodNotAllowed)?;
        Ok(HttpResponse::json_response(StatusCode::OK, guard.metadata.clone()))
    }

    /// Which host is meant, and which page asks.
    fn check_peer(&self, fields: &Fields<'_>) -> Result<(), HttpResponse> {
        self.check_host(fields)?;
        if !self.admission.admits_origin(fields.mcp.origin) {
            return Err(Rejection::OriginForbidden.into());
        }
        Ok(())
    }

    pub(super) fn check_host(&self, fields: &Fields<'_>) -> Result<(), HttpResponse> {
        let Some(host) = fields.host else {
            let reason = "Host is missing, or there twice";
            return Err(HttpResponse::refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, reason));
        };
        if !self.admission.admits_host(host) {
            return Err(HttpResponse::refused(StatusCode::FORBIDDEN, code::INVALID_REQUEST, "host not allowed"));
        }
        Ok(())
    }

    pub(super) fn match_path(&self, path: &str) -> Result<Route, HttpResponse> {
        if path == self.path {
            return Ok(Route::Mcp);
        }
        match path {
            legacy::EVENTS_PATH if self.legacy.is_some() => Ok(Route::LegacyEvents),
            legacy::MESSAGES_PATH if self.legacy.is_some() => Ok(Route::LegacyMessages),
            _ if self.guard.as_ref().is_some_and(|guard| path == self.metadata_path || guard.is_metadata(path)) => {
                Ok(Route::Metadata)
            }
            _ => Err(HttpResponse::refused(StatusCode::NOT_FOUND, code::INVALID_REQUEST, "nothing is here")),
        }
    }

    /// The request's principal, where the server checks tokens.
    pub(super) async fn authenticate_request(&self, fields: &Fields<'_>) -> Result<Option<Principal>, HttpResponse> {
        let Some(guard) = &self.guard else { return Ok(None) };
        let refused = |status, reason| HttpResponse::refused(status, code::INVALID_REQUEST, reason);
        guard.verify_header(fields.authorization).await.map(Some).map_err(|denied| match denied {
            Denied::Unauthorized(challenge) => {
                refused(StatusCode::UNAUTHORIZED, "a valid bearer token is required").with_challenge(&challenge)
            }
            Denied::Forbidden(challenge) => {
                refused(StatusCode::FORBIDDEN, "the token lacks a scope").with_challenge(&challenge)
            }
            Denied::Unavailable => {
                HttpResponse::overloaded(StatusCode::SERVICE_UNAVAILABLE, "tokens can't be checked at the moment")
            }
        })
    }

    /// The challenge for a call that its token doesn't allow: the scopes that it needs, and where to get a token.
    pub(super) fn scope_challenge(&self, scopes: &[Arc<str>]) -> String {
        let scopes = scopes.iter().map(|scope| &**scope);
        match &self.guard {
            Some(guard) => guard.step_up(scopes),
            None => auth::bearer_challenge(Some(auth::INSUFFICIENT_SCOPE), scopes, None),
        }
    }

    pub(super) fn method_not_allowed(&self) -> HttpResponse {
        let methods = if self.stateless { "POST" } else { "POST, GET, DELETE" };
        HttpResponse::from(Rejection::MethodNotAllowed).with_allow(methods)
    }

    pub(super) fn body_bounds(&self) -> BodyBounds {
        BodyBounds { bytes: self.limits.body, time: self.limits.body_time }
    }
}

impl SessionTransport for HttpServer {
    fn notify_session<'a>(&'a self, session: &'a SessionId, message: Bytes) -> NotifyFuture<'a> {
        Box::pin(async move {
            if let Some(sharing) = &self.sharing {
                return sharing.notify_session(session, message).await;
            }
            let http_session = SessionKey::parse_id(session.as_str()).and_then(|key| self.sessions.peek_session(key));
            let http_session = http_session.ok_or(NotifyError::Unknown)?;
            http_session.streams.send_standalone(message).map_err(|Gone| NotifyError::Unread)
        })
    }

    fn tell_others(&self, told: BroadcastChange) -> NotifyFuture<'_> {
        Box::pin(async move {
            match &self.sharing {
                Some(sharing) => sharing.tell_others(told).await,
                None => Ok(()),
            }
        })
    }

    fn tell_others_soon(&self, told: BroadcastChange) {
        if let Some(sharing) = &self.sharing {
            sharing.tell_others_soon(told);
        }
    }
}

/// Whether the body's framing can be read in one way only. hyper takes `chunked` after other codings and several times; a proxy
/// in front may find another end of the body (RFC 9112 §6.1, §11.2).
fn is_framed_plainly(headers: &http::HeaderMap) -> bool {
    let mut codings = headers.get_all(http::header::TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) && codings.next().is_none()
}

/// Whether a target in absolute form names HTTP (RFC 9112 §3.2.2): the server is no proxy for anything else.
fn is_http_target(uri: &http::Uri) -> bool {
    uri.scheme_str().is_none_or(|scheme| scheme == "http" || scheme == "https")
}

/// Whether the client sends its body only when it is told to.
fn waits_for_leave(head: &Parts) -> bool {
    head.headers.contains_key(http::header::EXPECT)
}

/// The smallest buffer size that hyper accepts.
const MIN_HEAD: usize = 8192;

impl HttpServer {
    /// The mounted service, if MCP has nothing at this path.
    pub(super) fn mounted_service(&self, path: &str) -> Option<&MountedService> {
        self.beside.as_ref().filter(|_| self.match_path(path).is_err())
    }

    pub(super) async fn respond_beside(
        &self,
        beside: &MountedService,
        mut request: Request<Incoming>,
        origin: RequestOrigin,
    ) -> Response<ReplyBody> {
        let headers = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        let checked = self.check_host(&Fields::from_headers(
            headers,
            authority,
            HeaderSource::Map(request.headers(), request.uri()),
        ));
        if let Err(refusal) = checked {
            return refusal.into_response(http::HeaderMap::new());
        }
        let (limit, patience) = (self.limits.body, self.limits.body_time);
        if http_body::Body::size_hint(request.body()).lower() > limit as u64 {
            let refusal =
                HttpResponse::refused(StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, "the body is too long");
            return refusal.close_after().into_response(http::HeaderMap::new());
        }
        if let RequestOrigin::Here(ends) = origin {
            request.extensions_mut().insert(ends);
        }
        beside.0.call_service(request.map(|body| Upload::new(body, limit, patience))).await.map(ReplyBody::Piecewise)
    }
}
