//! The MCP endpoint: POST, GET and DELETE of the Streamable HTTP transport.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};
use mcpace_wire::http::{MediaType, Rejection, SessionId, name};
use mcpace_wire::jsonrpc::{Message, Payload, Request, code};

use crate::dispatch::{Dispatched, Dispatcher};
use crate::era::{self, Era};
use crate::faults::FaultKind;
use crate::profile::ResponseMode;
use crate::recorded::{HttpRefusal, RecordedServer, ReplyContent, refusal_message};
use crate::reply::{MessageKind, Opening, Reply, TimedMessage, plain_json, status_reply};
use crate::script::Script;
use crate::session::{TargetSessions, UnknownSession};
use crate::site::{Early, Site, problem_response, redirect_response, rejection_response};
use crate::target::ENDPOINT;
use crate::timing::{Layers, ServiceTime};

const SESSION_ID: HeaderName = HeaderName::from_static(name::SESSION_ID);
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

impl Site {
    /// Messages from the client.
    pub(crate) async fn handle_post(&self, head: &request::Parts, body: &[u8]) -> Result<Response<Script>, Early> {
        let received = Instant::now();
        check_content_type(&head.headers)?;
        let payload = Payload::parse(body).map_err(|error| rejection_response(&error.into(), None))?;
        let method = faulty_method(&payload);
        self.redirect_fault(head, &method)?;
        let id = match &payload {
            Payload::Single(message) => message.id(),
            Payload::Batch(_) => None,
        };
        let refused = |rejection| rejection_response(&rejection, id);
        let era = era::of_post(&head.headers, &payload).map_err(refused)?;
        let begins_session = self.check_session(&era, &payload).map_err(refused)?;
        let mode = accepted_mode(self.response, &head.headers).map_err(refused)?;
        self.check_retry(&payload, &method)?;

        let mut response = match &self.recorded {
            Some(recorded) => self.replay_payload(recorded, received, &payload, &era, &head.headers, &method).await,
            None => {
                let dispatched = self.dispatch_payload(&payload, &era).await;
                let late = dispatched.iter().find_map(|one| one.pacing.as_ref()).map(|(pacing, _)| pacing.head());
                self.wait_for_head(received, late.unwrap_or_default()).await;
                self.delay_head(&method).await;
                match dispatched.is_empty() {
                    true => status_reply(StatusCode::ACCEPTED),
                    false => self.shape_reply(received, &era, mode, &method, payload.is_batch(), dispatched),
                }
            }
        };
        if let (true, Some(sessions)) = (begins_session, &self.sessions) {
            self.tally.change_counts(|counters| counters.sessions_begun += 1);
            if let Ok(id) = HeaderValue::try_from(sessions.begin_session()) {
                response.headers_mut().insert(SESSION_ID, id);
            }
        }
        if self.shaper.faults.is_on(FaultKind::ConnectionClose, &method) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(http::header::CONNECTION, close);
        }
        Ok(response)
    }

    /// A GET: the standalone stream of a session, where the profile has one.
    pub(crate) async fn handle_get(&self, head: &request::Parts) -> Result<Response<Script>, Early> {
        self.redirect_fault(head, "")?;
        self.shaper.timer.sleep(self.shaper.faults.delay_for(FaultKind::GetHeaders, "")).await;
        let sessions = self.sessions.as_ref().filter(|_| self.standalone_stream);
        let (sessions, id) = session_of(sessions, &head.headers)?;
        if era::request_headers(&head.headers).accept.is_some_and(|accept| !accept.event_stream()) {
            return Err(rejection_response(&Rejection::NotAcceptable, None));
        }
        let session = sessions.life_receiver(id.as_str()).map_err(unknown_session)?;
        self.tally.change_counts(|counters| counters.standalone_streams += 1);
        Ok(self.shaper.standalone_stream(session))
    }

    /// A DELETE: the end of a session, where there are sessions.
    pub(crate) fn end_session(&self, head: &request::Parts) -> Result<Response<Script>, Early> {
        self.redirect_fault(head, "")?;
        let (sessions, id) = session_of(self.sessions.as_ref(), &head.headers)?;
        sessions.end_session(id.as_str()).map_err(unknown_session)?;
        self.tally.change_counts(|counters| counters.sessions_ended += 1);
        Ok(status_reply(StatusCode::OK))
    }

    /// The redirect fault: the path without a slash at its end only points to the one with it.
    fn redirect_fault(&self, head: &request::Parts, method: &str) -> Result<(), Early> {
        let plain = head.uri.path() == ENDPOINT;
        if plain && self.shaper.faults.is_on(FaultKind::Redirect, method) {
            let location = format!("{}{ENDPOINT}/", self.origin);
            let there = redirect_response(StatusCode::TEMPORARY_REDIRECT, &location);
            return Err(Early::new(there));
        }
        Ok(())
    }

    /// Legacy sessions. Returns whether this request is to begin one.
    fn check_session(&self, era: &Era, payload: &Payload<'_>) -> Result<bool, Rejection> {
        let (Some(sessions), Era::Legacy(_, id)) = (&self.sessions, era) else {
            return Ok(false);
        };
        if era::is_initialize(payload) {
            return Ok(true);
        }
        let id = id.as_ref().ok_or(Rejection::SessionMissing)?.as_str();
        let known = match payload_requests(payload).next() {
            Some(_) => sessions.enter_session(id),
            None => sessions.life_receiver(id).map(drop),
        };
        known.map(|()| false).map_err(|UnknownSession| Rejection::SessionNotFound)
    }

    /// The retry-after fault: every other POST with a request in it is put off.
    fn check_retry(&self, payload: &Payload<'_>, method: &str) -> Result<(), Early> {
        let wait = self.shaper.faults.delay_for(FaultKind::RetryAfter, method);
        if wait.is_zero() || payload_requests(payload).next().is_none() {
            return Ok(());
        }
        if self.refused_for_now.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            return Ok(());
        }
        let mut response = problem_response(StatusCode::TOO_MANY_REQUESTS, "come back later");
        let seconds = wait.as_millis().div_ceil(1000);
        if let Ok(seconds) = HeaderValue::try_from(seconds.to_string()) {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        Err(response)
    }

    /// Serves every request in the payload, one after another, and counts the notifications.
    async fn dispatch_payload(&self, payload: &Payload<'_>, era: &Era) -> Vec<Dispatched> {
        let dispatcher = Dispatcher {
            faults: &self.shaper.faults,
            timer: &self.shaper.timer,
            tally: &self.tally,
            is_modern: *era == Era::Modern,
            tools: self.tools,
        };
        let mut dispatched = Vec::new();
        for message in payload.messages() {
            match message {
                Message::Request(request) => dispatched.push(dispatcher.dispatch_request(request).await),
                Message::Notification(_) => {
                    self.tally.change_counts(|counters| counters.notifications += 1);
                }
                // The target asks its clients nothing, so a response answers nothing.
                Message::Response(_) => {}
            }
        }
        dispatched
    }

    fn shape_reply(
        &self,
        received: Instant,
        era: &Era,
        mode: ResponseMode,
        method: &str,
        is_batch: bool,
        dispatched: Vec<Dispatched>,
    ) -> Response<Script> {
        let inner: Vec<ServiceTime> = dispatched.iter().map(|one| one.inner).collect();
        let replying = Instant::now();
        let mut header = None;
        let failed = dispatched.iter().find_map(|one| one.failure().map(|failure| failure.code));
        let paced = dispatched.iter().find_map(|one| one.pacing.as_ref().map(|pacing| (pacing.0, pacing.1.clone())));
        let mut messages: Vec<TimedMessage> = dispatched
            .into_iter()
            .map(|one| {
                let layers = Layers::new(received, replying, one.inner, &inner);
                let told = (self.server_timing || one.wants_timing).then_some(&layers);
                if header.is_none() {
                    header = told.map(Layers::server_timing);
                }
                TimedMessage::now(one.into_response(told))
            })
            .collect();
        let mut part_period = None;
        if let Some((pacing, token)) = paced {
            for message in &mut messages {
                message.at = pacing.answer();
            }
            messages.extend(pacing.messages(token.as_ref()).into_iter().map(|(at, notice)| match notice {
                Some(bytes) => TimedMessage { at, bytes, kind: MessageKind::Notice },
                None => TimedMessage { at, bytes: Vec::new(), kind: MessageKind::Comment },
            }));
            part_period = pacing.part_period();
        }
        let reply = Reply { received, messages, is_batch, end: Duration::ZERO, part_period };
        let mut response = self.shape_of_era(era, mode, method, failed, reply);
        if let Some(header) = header.and_then(|header| HeaderValue::try_from(header).ok()) {
            response.headers_mut().insert(SERVER_TIMING, header);
        }
        response
    }

    /// Answers every request in the payload from the recording, at the recorded times.
    async fn replay_payload(
        &self,
        recorded: &RecordedServer,
        received: Instant,
        payload: &Payload<'_>,
        era: &Era,
        headers: &HeaderMap,
        method: &str,
    ) -> Response<Script> {
        self.tally.count_messages(payload, recorded);
        let is_modern = *era == Era::Modern;
        let replies: Vec<_> = payload_requests(payload)
            .map(|request| (request, recorded.reply_to(request, is_modern)))
            .inspect(|(_, reply)| self.tally.count_match(reply.closeness))
            .collect();
        let head = replies.iter().map(|(_, reply)| reply.head).max().unwrap_or_default();
        self.wait_for_head(received, head).await;
        self.delay_head(method).await;
        let Some((_, first)) = replies.first() else {
            return status_reply(StatusCode::ACCEPTED);
        };
        if let (ReplyContent::Status(refusal), false) = (&first.answer, payload.is_batch()) {
            return refusal_response(refusal);
        }
        // A client that accepts neither was refused before.
        let own = self.forced_response.unwrap_or(first.mode);
        let mode = accepted_mode(own, headers).unwrap_or(own);
        let end = replies.iter().map(|(_, reply)| reply.end).max().unwrap_or_default();
        let mut failed = None;
        let mut messages = Vec::new();
        for (request, reply) in replies {
            let notice = |(at, bytes)| TimedMessage { at, bytes, kind: MessageKind::Notice };
            messages.extend(reply.notices.into_iter().map(notice));
            let bytes = match reply.answer {
                ReplyContent::Message(bytes, code) => {
                    failed = failed.or(code);
                    bytes
                }
                ReplyContent::Status(refusal) => refusal_message(&request.id, &refusal),
            };
            messages.push(TimedMessage { at: reply.at, bytes, kind: MessageKind::Answer });
        }
        let reply = Reply { received, messages, is_batch: payload.is_batch(), end, part_period: None };
        self.shape_of_era(era, mode, method, failed, reply)
    }

    /// Waits until the head is due, or the target is to stop.
    async fn wait_for_head(&self, received: Instant, head: Duration) {
        let left = head.saturating_sub(received.elapsed());
        if left.is_zero() {
            return;
        }
        tokio::select! {
            _ = self.shaper.timer.sleep(left) => {}
            () = self.shaper.stopped() => {}
        }
    }

    /// The `headers` fault.
    async fn delay_head(&self, method: &str) {
        self.shaper.timer.sleep(self.shaper.faults.delay_for(FaultKind::Headers, method)).await;
    }

    /// The reply with the status that its era has for errors.
    fn shape_of_era(
        &self,
        era: &Era,
        mode: ResponseMode,
        method: &str,
        failed: Option<i64>,
        reply: Reply,
    ) -> Response<Script> {
        let opening = match era {
            Era::Legacy(revision, _) if revision.has_priming_events() => Opening::Priming,
            _ => Opening::Comment,
        };
        // A modern error has an HTTP status of its own, so it can't be inside an event stream.
        let status = match (era, failed) {
            (Era::Modern, Some(code::METHOD_NOT_FOUND)) => Some(StatusCode::NOT_FOUND),
            (Era::Modern, Some(_)) => Some(StatusCode::BAD_REQUEST),
            _ => None,
        };
        let mode = status.map_or(mode, |_| ResponseMode::Json);
        let mut response = self.shaper.shape_reply(mode, method, opening, reply);
        if let Some(status) = status {
            *response.status_mut() = status;
        }
        response
    }
}

/// The recorded HTTP error.
fn refusal_response(refusal: &HttpRefusal) -> Response<Script> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain_json(status, refusal.body.clone().into_bytes());
    for (name, value) in [(CONTENT_TYPE, &refusal.content_type), (RETRY_AFTER, &refusal.retry_after)] {
        if let Some(value) = value.as_deref().and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The response mode `own`, or the other one where the client takes only that. Without the header everything is taken
/// (RFC 9110 §12.5.1).
fn accepted_mode(own: ResponseMode, headers: &HeaderMap) -> Result<ResponseMode, Rejection> {
    let Some(accept) = era::request_headers(headers).accept else {
        return Ok(own);
    };
    match (own, accept.json(), accept.event_stream()) {
        (ResponseMode::Json, true, _) | (ResponseMode::Sse, true, false) => Ok(ResponseMode::Json),
        (ResponseMode::Sse, _, true) | (ResponseMode::Json, false, true) => Ok(ResponseMode::Sse),
        (_, false, false) => Err(Rejection::NotAcceptable),
    }
}

pub(crate) fn payload_requests<'p, 'a>(payload: &'p Payload<'a>) -> impl Iterator<Item = &'p Request<'a>> {
    payload.messages().iter().filter_map(|message| match message {
        Message::Request(request) => Some(request),
        _ => None,
    })
}

/// The method that decides which faults apply: that of the first request, else of the first message.
fn faulty_method(payload: &Payload<'_>) -> String {
    let first_request = payload_requests(payload).next().map(|request| request.method.to_string());
    let first_message = || payload.messages().first().and_then(Message::method).map(str::to_owned);
    first_request.or_else(first_message).unwrap_or_default()
}

/// The sessions, where the target has them, and the one that a GET or DELETE names.
fn session_of<'s>(
    sessions: Option<&'s TargetSessions>,
    headers: &HeaderMap,
) -> Result<(&'s TargetSessions, SessionId), Early> {
    let refused = |rejection| rejection_response(&rejection, None);
    let sessions = sessions.ok_or_else(|| refused(Rejection::MethodNotAllowed))?;
    match era::of_bodiless(headers).map_err(refused)? {
        Era::Legacy(_, Some(id)) => Ok((sessions, id)),
        _ => Err(refused(Rejection::SessionMissing)),
    }
}

fn unknown_session(_: UnknownSession) -> Early {
    rejection_response(&Rejection::SessionNotFound, None)
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Early> {
    match era::request_headers(headers).content_type.ascii().map(MediaType::of) {
        Some(MediaType::Json) => Ok(()),
        _ => Err(rejection_response(&Rejection::UnsupportedMediaType, None)),
    }
}
