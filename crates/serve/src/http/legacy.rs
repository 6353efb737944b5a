//! HTTP+SSE, the two endpoints of 2024-11-05: a GET opens the stream that all answers go to, POSTs bring messages.
//!
//! The stream is the session: when it closes, all that is under way in it is cancelled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use mcpace_wire::Revision;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::{Message, code, write_error};
use mcpace_wire::mcp::Method;
use mcpace_wire::sse::Event;
use tokio_util::sync::CancellationToken;

use super::event_log::Log;
use super::event_stream::EventStream;
use super::fields::Fields;
use super::held_results::{self, Permit, ReplyAccount};
use super::http_response::HttpResponse;
use super::http_server::{HttpRequest, HttpServer};
use super::post::UNREAD;
use super::reply_body::ReplyBody;
use super::request_body;
use super::session_key::SessionKey;
use super::sessions::{SessionPlace, Sessions};
use crate::exchange::{Channel, Handled, Incoming, Peer, Reply};
use crate::headers::Headers;
use crate::outlet::Outlet;
use crate::principal::Principal;
use crate::session::Session;

/// Where the stream is.
pub(super) const EVENTS_PATH: &str = "/sse";
/// Where messages go.
pub(super) const MESSAGES_PATH: &str = "/messages";
/// The query that names the stream.
const SESSION_QUERY: &str = "sessionId=";

/// The open streams.
pub(super) struct LegacyStreams {
    sessions: Arc<Sessions>,
    open: Mutex<HashMap<SessionKey, Arc<LegacyStream>>>,
}

/// One of them.
struct LegacyStream {
    log: Arc<Log>,
    /// Replies that wait for the client to read the stream.
    unsent: Arc<ReplyAccount>,
    principal: Option<Principal>,
    id: Box<str>,
    /// Known once the client has initialized.
    session: OnceLock<Arc<Session>>,
    /// Until then: its `initialize` is under way.
    begins: AtomicBool,
    closed: CancellationToken,
    /// Counts as a session.
    _place: SessionPlace,
}

impl LegacyStreams {
    pub(super) fn new(sessions: Arc<Sessions>) -> Self {
        Self { sessions, open: Mutex::default() }
    }

    /// Ends all streams: they would hold up a stop for ever.
    pub(super) fn end_all(&self) {
        self.lock_open().values().for_each(|open| open.log.end_stream());
    }

    fn find_stream(&self, query: Option<&str>, principal: Option<&Principal>) -> Option<Arc<LegacyStream>> {
        let id = query?.split('&').find_map(|pair| pair.strip_prefix(SESSION_QUERY))?;
        let open = Arc::clone(self.lock_open().get(&SessionKey::parse_id(id)?)?);
        Principal::are_one(open.principal.as_ref(), principal).then_some(open)
    }

    fn lock_open(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<LegacyStream>>> {
        // Nothing under the lock can panic half way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a stream's session when its connection goes.
struct Closing {
    key: SessionKey,
    of: Arc<LegacyStreams>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        let removed = self.of.lock_open().remove(&self.key);
        if let Some(open) = removed {
            open.closed.cancel();
            if let Some(session) = open.session.get() {
                session.cancel_all();
            }
        }
    }
}

impl HttpServer {
    /// GET: opens a stream, and says where its messages go.
    pub(super) async fn legacy_events(&self, fields: &Fields<'_>) -> Result<HttpResponse, HttpResponse> {
        let principal = self.authenticate_request(fields).await?;
        if !fields.accepted_types().event_stream() {
            return Err(Rejection::NotAcceptable.into());
        }
        let full = || HttpResponse::overloaded(StatusCode::SERVICE_UNAVAILABLE, "as many sessions as may be are open");
        let legacy = self.legacy.as_ref().ok_or_else(full)?;
        let place = legacy.sessions.reserve_place(principal.as_ref()).ok_or_else(full)?;
        let key = SessionKey::random().ok_or_else(full)?;
        let log = Log::new(None, self.stream_bounds.log);
        log.push_event(&Event {
            event: Some("endpoint".to_owned()),
            data: format!("{MESSAGES_PATH}?{SESSION_QUERY}{key}"),
            ..Event::default()
        });
        let reader = log.open_reader(None);
        let (session, begins, closed) = (OnceLock::new(), AtomicBool::new(false), CancellationToken::new());
        let id = key.to_string().into();
        let unsent = ReplyAccount::new(self.limits.connection_reply_bytes);
        legacy
            .lock_open()
            .insert(key, Arc::new(LegacyStream { log, unsent, principal, id, session, begins, closed, _place: place }));
        let closing = Arc::new(Closing { key, of: Arc::clone(legacy) });
        let stream = EventStream::new(reader, self.keep_alive).with_owner(closing);
        Ok(HttpResponse::event_stream(ReplyBody::Events(Box::new(stream))))
    }

    /// POST: takes messages; their answers go to the stream.
    pub(super) async fn legacy_message(&self, asked: HttpRequest<'_>) -> Result<HttpResponse, HttpResponse> {
        let HttpRequest { head, fields, body, connection_state, protocol } = asked;
        let (open, principal) = self.legacy_stream(head, fields).await?;
        let body =
            request_body::read_body(body, fields.content_length(), self.body_bounds(), connection_state, protocol)
                .await?;
        self.take_all_legacy(&open, principal.as_ref(), fields, &body)
    }

    /// POST whose body has been read: takes messages; their answers go to the stream.
    pub(super) async fn legacy_message_whole(
        &self,
        head: &Parts,
        fields: &Fields<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, HttpResponse> {
        let (open, principal) = self.legacy_stream(head, fields).await?;
        self.take_all_legacy(&open, principal.as_ref(), fields, body)
    }

    /// The stream that a message's answers go to, and who sends it: the stream's owner, with what this message's token grants.
    async fn legacy_stream(
        &self,
        head: &Parts,
        fields: &Fields<'_>,
    ) -> Result<(Arc<LegacyStream>, Option<Principal>), HttpResponse> {
        let principal = self.authenticate_request(fields).await?;
        let legacy = self.legacy.as_ref().ok_or(Rejection::SessionNotFound)?;
        let open = legacy.find_stream(head.uri.query(), principal.as_ref()).ok_or(Rejection::SessionNotFound)?;
        if !fields.is_json() {
            return Err(Rejection::UnsupportedMediaType.into());
        }
        Ok((open, principal))
    }

    fn take_all_legacy(
        &self,
        open: &Arc<LegacyStream>,
        principal: Option<&Principal>,
        fields: &Fields<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, HttpResponse> {
        let payload = self.parse_body(body)?;
        if open.log.buffered_bytes() >= self.limits.stream_bytes || open.unsent.is_closed() {
            return Err(HttpResponse::overloaded(StatusCode::TOO_MANY_REQUESTS, UNREAD));
        }
        for message in payload.messages() {
            self.take_legacy(open, principal, message, body, fields);
        }
        Ok(HttpResponse::empty_response(StatusCode::ACCEPTED))
    }

    fn take_legacy(
        &self,
        open: &Arc<LegacyStream>,
        principal: Option<&Principal>,
        message: &Message<'_>,
        body: &Bytes,
        fields: &Fields<'_>,
    ) {
        let session = open.session.get().cloned();
        if session.is_none()
            && let Message::Request(request) = message
            && !open.take_first(&request.method)
        {
            let mut refusal = Vec::with_capacity(128);
            let reason = "the session begins with initialize, which is to be answered first";
            // Without data there is nothing that could fail to be written.
            let _ = write_error(&mut refusal, Some(&request.id), code::INVALID_REQUEST, reason, None::<&()>);
            open.log.push_reply(&refusal, Permit::default());
            return;
        }
        let peer = Peer {
            revision: session.as_ref().map_or(Revision::V2024_11_05, |session| session.revision()),
            session,
            principal: principal.cloned(),
        };
        let channel: &dyn Channel = &OnLog { open, fields };
        let (received, timed) = (Instant::now(), self.server_timing);
        let begins = matches!(message, Message::Request(request) if is_initialize(&request.method));
        match self.server.handle(Incoming { message, outline: None, body, peer: &peer, channel, received, timed }) {
            Handled::Nothing => {}
            Handled::Now(reply) => settle_reply(&self.server, open, reply, begins),
            Handled::Later(call) => {
                let (open, server) = (Arc::clone(open), self.server.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = open.closed.cancelled() => {}
                        reply = call => settle_reply(&server, &open, reply, begins),
                    }
                });
            }
        }
    }
}

impl LegacyStream {
    /// Takes a request before there is a session, by which requests under way are counted: one `initialize`, and what is answered
    /// at once. False where it is any other.
    fn take_first(&self, method: &str) -> bool {
        if is_initialize(method) {
            return !self.begins.swap(true, Relaxed);
        }
        Method::parse(method) == Some(Method::Ping)
    }
}

fn is_initialize(method: &str) -> bool {
    Method::parse(method) == Some(Method::Initialize)
}

/// `begins`: whether it is the reply to an `initialize`.
fn settle_reply(server: &crate::Server, open: &LegacyStream, mut reply: Reply, begins: bool) {
    if begins {
        // One that failed can be tried again.
        open.begins.store(false, Relaxed);
    }
    if let Some(session) = reply.session.take() {
        session.set_id(open.id.clone());
        // A second initialize changes nothing: the first one's session stays.
        let session = open.session.get_or_init(|| session);
        let outlet: Arc<Log> = Arc::clone(&open.log);
        server.attach(session, outlet);
    }
    // Last: the client's next message may come as soon as it has this.
    open.log.push_finished(held_results::finish_reply(&open.unsent, None, reply));
}

/// Sends the messages of handlers to the session's only stream.
struct OnLog<'o> {
    open: &'o LegacyStream,
    fields: &'o Fields<'o>,
}

impl Channel for OnLog<'_> {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::<Log>::clone(&self.open.log)
    }

    fn session_id(&self) -> Option<&str> {
        Some(&self.open.id)
    }

    fn headers(&self) -> Option<Headers> {
        Some(self.fields.copy_headers())
    }
}
