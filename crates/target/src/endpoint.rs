//! The MCP endpoint: POST, GET and DELETE of the Streamable HTTP transport.

use std::sync::atomic::Ordering;
use std::time::Instant;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};
use mcpace_wire::http::{MediaType, Rejection, SessionId, name};
use mcpace_wire::jsonrpc::{Message, Payload, Request, code};

use crate::dispatch::{Dispatched, Dispatcher};
use crate::era::{self, Era};
use crate::faults::FaultKind;
use crate::profile::ResponseMode;
use crate::reply::{Opening, Results, status_reply};
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
        let mode = self.response_mode(&head.headers).map_err(refused)?;
        self.check_retry(&payload, &method)?;

        let dispatched = self.dispatch_payload(&payload, &era).await;
        let delay = self.shaper.faults.delay_for(FaultKind::Headers, &method);
        self.shaper.timer.sleep(delay).await;
        let mut response = match dispatched.is_empty() {
            true => status_reply(StatusCode::ACCEPTED),
            false => self.shape_reply(received, &era, mode, &method, payload.is_batch(), dispatched),
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

    /// The target's own response mode, or the other one where the client takes only that. Without the header everything
    /// is taken (RFC 9110 §12.5.1).
    fn response_mode(&self, headers: &HeaderMap) -> Result<ResponseMode, Rejection> {
        let Some(accept) = era::request_headers(headers).accept else {
            return Ok(self.response);
        };
        match (self.response, accept.json(), accept.event_stream()) {
            (ResponseMode::Json, true, _) | (ResponseMode::Sse, true, false) => Ok(ResponseMode::Json),
            (ResponseMode::Sse, _, true) | (ResponseMode::Json, false, true) => Ok(ResponseMode::Sse),
            (_, false, false) => Err(Rejection::NotAcceptable),
        }
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
        let mut encoded: Vec<Vec<u8>> = dispatched
            .into_iter()
            .map(|one| {
                let layers = Layers::new(received, replying, one.inner, &inner);
                let told = (self.server_timing || one.wants_timing).then_some(&layers);
                if header.is_none() {
                    header = told.map(Layers::server_timing);
                }
                one.into_response(told)
            })
            .collect();
        let results = match (is_batch, encoded.pop()) {
            (false, Some(only)) => Results::One(only),
            (_, last) => {
                encoded.extend(last);
                Results::Batch(encoded)
            }
        };
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
        let mut response = self.shaper.shape_reply(mode, method, opening, results);
        if let Some(status) = status {
            *response.status_mut() = status;
        }
        if let Some(header) = header.and_then(|header| HeaderValue::try_from(header).ok()) {
            response.headers_mut().insert(SERVER_TIMING, header);
        }
        response
    }
}

fn payload_requests<'p, 'a>(payload: &'p Payload<'a>) -> impl Iterator<Item = &'p Request<'a>> {
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
