//! The POSTs of one session to one endpoint, and their replies. A value never changes; a new session is a new value.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mcpace_client_protocol::inbound::PendingRequests;
use mcpace_client_protocol::{Answer, Outgoing, ServerReply};
use mcpace_wire::Revision;
use mcpace_wire::http::{SessionId, name};
use url::Url;

use super::connection::OpenReply;
use super::reply::{other_reply, read_whole};
use super::{Http, LogicalRequest};
use crate::inbound::Inbound;
use crate::lock::lock_mutex;
use crate::transport::Back;
use crate::{ClientError, Limits};

const SESSION: HeaderName = HeaderName::from_static(name::SESSION_ID);
const VERSION: HeaderName = HeaderName::from_static(name::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(name::METHOD);
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) struct HttpSession {
    http: Arc<Http>,
    inbound: Arc<Inbound>,
    /// Headers of every request: types, version, session.
    headers: HeaderMap,
    revision: Option<Revision>,
    /// Where messages go in HTTP+SSE.
    messages: Option<Url>,
    /// The session that `initialize` was given.
    granted: Mutex<Option<HeaderValue>>,
}

impl HttpSession {
    /// Without a session; `revision` is what requests say, none before and in `initialize`.
    pub(crate) fn new(http: &Arc<Http>, inbound: &Arc<Inbound>, revision: Option<Revision>) -> Self {
        let mut headers = http.headers.clone();
        headers.insert(ACCEPT, BOTH);
        headers.insert(CONTENT_TYPE, JSON);
        if let Some(revision) = revision.filter(|revision| revision.has_version_header()) {
            headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
        }
        Self {
            http: Arc::clone(http),
            inbound: Arc::clone(inbound),
            headers,
            revision,
            messages: None,
            granted: Mutex::default(),
        }
    }

    /// The session after an answered `initialize`: with its session id, if the server gave one, and the agreed revision.
    pub(crate) fn with_session(&self, revision: Revision) -> Self {
        let mut next = Self::new(&self.http, &self.inbound, Some(revision));
        next.messages = self.messages.clone();
        if let Some(session) = lock_mutex(&self.granted).clone() {
            next.headers.insert(SESSION, session);
        }
        next
    }

    pub(super) fn with_messages(mut self, messages: Url) -> Self {
        self.messages = Some(messages);
        self
    }

    pub(crate) fn address(&self) -> String {
        self.http.address()
    }

    pub(crate) fn http(&self) -> &Arc<Http> {
        &self.http
    }

    pub(crate) fn inbound(&self) -> &Arc<Inbound> {
        &self.inbound
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.http.limits
    }

    pub(crate) fn has_session(&self) -> bool {
        self.headers.contains_key(SESSION)
    }

    /// 2026-07-28 has no resumption: a lost stream is asked for again.
    pub(super) fn is_resumable(&self) -> bool {
        !self.revision.is_some_and(Revision::is_modern)
    }

    /// Sends a request and reads its reply up to the answer.
    pub(crate) async fn request(self: &Arc<Self>, message: &Outgoing) -> Result<ServerReply, ClientError> {
        // A stream that stays open must not take the room of those that end.
        let stays = message.method == "subscriptions/listen";
        let _room = if stays { None } else { self.http.room.acquire().await.ok() };
        let open = self.http.send_authorized(self.post_request(message)).await?;
        if message.method == "initialize" && open.status.is_success() {
            self.take_session(&open)?;
        }
        let Some(id) = message.id else {
            return Ok(ServerReply::Other(self.http.read_other(open, message.method).await?));
        };
        let status = open.status.as_u16();
        if open.is_event_stream() && open.status.is_success() {
            let (answer, open) = self.read_events(open, id, message.method).await?;
            self.http.finish_reply(open);
            return Ok(ServerReply::Answer { status, answer });
        }
        self.read_json(open, id, message.method).await
    }

    /// Sends something that has no answer: a notification, or an answer of ours. Within the time of a call: a server that
    /// never takes it would hold a connection for ever.
    pub(crate) async fn send_message(&self, message: &Outgoing) -> Result<(), ClientError> {
        let limit = self.limits().call_time;
        tokio::time::timeout(limit, self.tell_now(message))
            .await
            .unwrap_or_else(|_| Err(ClientError::TimeLimit { what: message.method.to_owned(), limit }))
    }

    async fn tell_now(&self, message: &Outgoing) -> Result<(), ClientError> {
        let reply = self.http.send_authorized(self.post_request(message)).await?;
        if reply.status.is_success() {
            // Nothing is awaited in its body, so a stream there is not read.
            if !reply.is_event_stream() {
                self.http.read_text(reply, message.method).await?;
            }
            return Ok(());
        }
        let other = self.http.read_other(reply, message.method).await?;
        Err(other.into_error(self.address(), false))
    }

    /// Ends the session, where there is one. A server may not allow that (405).
    pub(crate) async fn delete_session(&self) -> Result<(), ClientError> {
        if !self.has_session() {
            return Ok(());
        }
        let what = "the end of the session";
        let mut headers = self.headers.clone();
        headers.remove(CONTENT_TYPE);
        let ask =
            LogicalRequest { method: Method::DELETE, url: None, headers, body: Bytes::new(), what, repeatable: true };
        let reply = self.http.send_authorized(ask).await?;
        self.http.read_text(reply, what).await.map(drop)
    }

    /// Closes the connections that are kept.
    pub(crate) fn close_connections(&self) {
        self.http.pool.close_idle();
    }

    /// Takes one text of the server; the answer to `expected`, where it holds it.
    pub(super) fn take_text(
        self: &Arc<Self>,
        text: Bytes,
        expected: Option<i64>,
        method: &str,
    ) -> Result<Option<Answer>, ClientError> {
        self.take_for(text, expected, None).map_err(|error| ClientError::bad_reply(method, error))
    }

    pub(super) fn take_for(
        self: &Arc<Self>,
        text: Bytes,
        expected: Option<i64>,
        pending: Option<&PendingRequests>,
    ) -> Result<Option<Answer>, mcpace_wire::jsonrpc::ParseError> {
        self.inbound.handle_text(&text, &Back::Http(Arc::clone(self)), expected, pending)
    }

    fn post_request<'a>(&'a self, message: &'a Outgoing) -> LogicalRequest<'a> {
        let mut headers = self.headers.clone();
        if self.revision.is_some_and(Revision::has_request_headers) && message.id.is_some() {
            headers.insert(METHOD, HeaderValue::from_static(message.method));
        }
        for (name, value) in &message.headers {
            headers.insert(name.clone(), value.clone());
        }
        LogicalRequest {
            method: Method::POST,
            url: self.messages.as_ref(),
            headers,
            body: message.body.clone(),
            what: message.method,
            repeatable: message.repeatable,
        }
    }

    fn take_session(&self, open: &OpenReply) -> Result<(), ClientError> {
        let Some(session) = open.headers.get(SESSION) else { return Ok(()) };
        if let Err(error) = SessionId::from_bytes(session.as_bytes()) {
            return Err(ClientError::bad_reply("initialize", format_args!("its session id is not usable: {error}")));
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        *lock_mutex(&self.granted) = Some(session);
        Ok(())
    }

    async fn read_json(
        self: &Arc<Self>,
        mut open: OpenReply,
        id: i64,
        method: &str,
    ) -> Result<ServerReply, ClientError> {
        let text = read_whole(&mut open, self.limits().message, method).await?;
        let status = open.status.as_u16();
        let answer = self.take_for(text.clone(), Some(id), None).ok();
        let other = || other_reply(&open, &text);
        let reply = ServerReply::from_body(answer, status, open.content_type(), (method, || self.address()), other);
        self.http.pool.keep_connection(open);
        reply
    }
}
