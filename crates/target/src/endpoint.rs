//! The MCP endpoint: POST, GET and DELETE of the Streamable HTTP transport.

use std::sync::atomic::Ordering;
use std::time::Instant;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};
use mcpace_wire::jsonrpc::{Message, Payload, Request, code};

use crate::dispatch::{Dispatched, Dispatcher, Failure};
use crate::era::{self, Era};
use crate::faults::FaultKind;
use crate::profile::ResponseMode;
use crate::reply::{Opening, Results, bare, plain_json};
use crate::script::Script;
use crate::session::UnknownSession;
use crate::site::{Early, Site, not_allowed, problem, redirect, text};
use crate::target::ENDPOINT;
use crate::timing::{Inner, Layers};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

impl Site {
    /// Messages from the client.
    pub(crate) async fn post(
        &self,
        head: &request::Parts,
        body: &[u8],
    ) -> Result<Response<Script>, Early> {
        let received = Instant::now();
        if !is_json(&head.headers) {
            return Err(problem(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "send application/json",
            ));
        }
        let payload = Payload::parse(body).map_err(|error| {
            let failure = Failure::new(error.code(), error.to_string());
            rejection(StatusCode::BAD_REQUEST, &failure, None)
        })?;
        let method = faulty_method(&payload);
        self.redirected(head, &method)?;
        let era = era::of(&head.headers, &payload)
            .map_err(|(status, failure, id)| rejection(status, &failure, id.as_ref()))?;
        let begins_session = self.check_session(head, era, &payload)?;
        let mode = self.response_mode(&head.headers)?;
        self.check_retry(&payload, &method)?;

        let dispatched = self.dispatch(&payload, era).await;
        let delay = self.shaper.faults.delay(FaultKind::Headers, &method);
        self.shaper.timer.sleep(delay).await;
        let mut response = match dispatched.is_empty() {
            true => bare(StatusCode::ACCEPTED),
            false => self.shaped(received, era, mode, &method, payload.is_batch(), dispatched),
        };
        if let (true, Some(sessions)) = (begins_session, &self.sessions) {
            self.tally.add(|counters| counters.sessions_begun += 1);
            if let Ok(id) = HeaderValue::try_from(sessions.begin()) {
                response.headers_mut().insert(SESSION_ID, id);
            }
        }
        if self
            .shaper
            .faults
            .is_on(FaultKind::ConnectionClose, &method)
        {
            let close = HeaderValue::from_static("close");
            response
                .headers_mut()
                .insert(http::header::CONNECTION, close);
        }
        Ok(response)
    }

    /// A GET: the standalone stream of a session, where the profile has one.
    pub(crate) async fn standalone(
        &self,
        head: &request::Parts,
    ) -> Result<Response<Script>, Early> {
        self.redirected(head, "")?;
        self.shaper
            .timer
            .sleep(self.shaper.faults.delay(FaultKind::GetHeaders, ""))
            .await;
        let sessions = self.sessions.as_ref().filter(|_| self.standalone_stream);
        let (Some(sessions), false) = (sessions, era::header_is_modern(&head.headers)) else {
            return Err(not_allowed());
        };
        if !accepts(&head.headers, "text/event-stream") {
            return Err(problem(
                StatusCode::NOT_ACCEPTABLE,
                "accept text/event-stream",
            ));
        }
        let session = sessions
            .alive(session_id(&head.headers)?)
            .map_err(no_such_session)?;
        self.tally.add(|counters| counters.standalone_streams += 1);
        Ok(self.shaper.standalone(session))
    }

    /// A DELETE: the end of a session, where there are sessions.
    pub(crate) fn end_session(&self, head: &request::Parts) -> Result<Response<Script>, Early> {
        self.redirected(head, "")?;
        let (Some(sessions), false) = (&self.sessions, era::header_is_modern(&head.headers)) else {
            return Err(not_allowed());
        };
        sessions
            .end(session_id(&head.headers)?)
            .map_err(no_such_session)?;
        self.tally.add(|counters| counters.sessions_ended += 1);
        Ok(bare(StatusCode::OK))
    }

    /// The redirect fault: the path without a slash at its end only points to the one with it.
    fn redirected(&self, head: &request::Parts, method: &str) -> Result<(), Early> {
        let plain = head.uri.path() == ENDPOINT;
        if plain && self.shaper.faults.is_on(FaultKind::Redirect, method) {
            let location = format!("{}{ENDPOINT}/", self.origin);
            let there = redirect(StatusCode::TEMPORARY_REDIRECT, &location);
            return Err(Early::new(there));
        }
        Ok(())
    }

    /// Legacy sessions. Returns whether this request is to begin one.
    fn check_session(
        &self,
        head: &request::Parts,
        era: Era,
        payload: &Payload<'_>,
    ) -> Result<bool, Early> {
        let (Some(sessions), Era::Legacy(_)) = (&self.sessions, era) else {
            return Ok(false);
        };
        if let Payload::Single(Message::Request(request)) = payload
            && request.method == "initialize"
        {
            return Ok(true);
        }
        let id = session_id(&head.headers)?;
        let has_requests = requests(payload).next().is_some();
        let known = match has_requests {
            true => sessions.enter(id),
            false => sessions.alive(id).map(drop),
        };
        known.map(|()| false).map_err(no_such_session)
    }

    /// What the target would send, or the other kind where the client takes only that.
    fn response_mode(&self, headers: &HeaderMap) -> Result<ResponseMode, Early> {
        let other = match self.response {
            ResponseMode::Json => ResponseMode::Sse,
            ResponseMode::Sse => ResponseMode::Json,
        };
        [self.response, other]
            .into_iter()
            .find(|mode| match mode {
                ResponseMode::Json => accepts(headers, "application/json"),
                ResponseMode::Sse => accepts(headers, "text/event-stream"),
            })
            .ok_or_else(|| {
                let wanted = "accept application/json and text/event-stream";
                problem(StatusCode::NOT_ACCEPTABLE, wanted)
            })
    }

    /// The retry-after fault: every other POST with a request in it is put off.
    fn check_retry(&self, payload: &Payload<'_>, method: &str) -> Result<(), Early> {
        let wait = self.shaper.faults.delay(FaultKind::RetryAfter, method);
        if wait.is_zero() || requests(payload).next().is_none() {
            return Ok(());
        }
        if self.refused_for_now.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            return Ok(());
        }
        let mut response = problem(StatusCode::TOO_MANY_REQUESTS, "come back later");
        let seconds = wait.as_millis().div_ceil(1000);
        if let Ok(seconds) = HeaderValue::try_from(seconds.to_string()) {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        Err(response)
    }

    /// Serves every request in the payload, one after another, and counts the notifications.
    async fn dispatch(&self, payload: &Payload<'_>, era: Era) -> Vec<Dispatched> {
        let dispatcher = Dispatcher {
            faults: &self.shaper.faults,
            timer: &self.shaper.timer,
            tally: &self.tally,
            is_modern: era == Era::Modern,
        };
        let mut dispatched = Vec::new();
        for message in payload.messages() {
            match message {
                Message::Request(request) => dispatched.push(dispatcher.dispatch(request).await),
                Message::Notification(_) => {
                    self.tally.add(|counters| counters.notifications += 1);
                }
                // The target asks its clients nothing, so a response answers nothing.
                Message::Response(_) => {}
            }
        }
        dispatched
    }

    fn shaped(
        &self,
        received: Instant,
        era: Era,
        mode: ResponseMode,
        method: &str,
        is_batch: bool,
        dispatched: Vec<Dispatched>,
    ) -> Response<Script> {
        let inner: Vec<Inner> = dispatched.iter().map(|one| one.inner).collect();
        let replying = Instant::now();
        let mut header = None;
        let failed = dispatched
            .iter()
            .find_map(|one| one.failure().map(|failure| failure.code));
        let mut encoded: Vec<Vec<u8>> = dispatched
            .into_iter()
            .map(|one| {
                let layers = Layers::new(received, replying, one.inner, &inner);
                let told = (self.server_timing || one.wants_timing).then_some(&layers);
                if header.is_none() {
                    header = told.map(Layers::header);
                }
                one.encoded(told)
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
            Era::Legacy(revision) if revision.has_priming_events() => Opening::Priming,
            _ => Opening::Comment,
        };
        // A modern error has an HTTP status of its own, so it can't be inside an event stream.
        let status = match (era, failed) {
            (Era::Modern, Some(code::METHOD_NOT_FOUND)) => Some(StatusCode::NOT_FOUND),
            (Era::Modern, Some(_)) => Some(StatusCode::BAD_REQUEST),
            _ => None,
        };
        let mode = status.map_or(mode, |_| ResponseMode::Json);
        let mut response = self.shaper.reply(mode, method, opening, results);
        if let Some(status) = status {
            *response.status_mut() = status;
        }
        if let Some(header) = header.and_then(|header| HeaderValue::try_from(header).ok()) {
            response.headers_mut().insert(SERVER_TIMING, header);
        }
        response
    }
}

/// A JSON-RPC error with an HTTP status.
fn rejection(
    status: StatusCode,
    failure: &Failure,
    id: Option<&mcpace_wire::jsonrpc::Id<'_>>,
) -> Early {
    Early::new(plain_json(status, failure.encoded(id)))
}

fn requests<'p, 'a>(payload: &'p Payload<'a>) -> impl Iterator<Item = &'p Request<'a>> {
    payload
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Request(request) => Some(request),
            _ => None,
        })
}

/// The method that decides which faults apply: that of the first request, else of the first message.
fn faulty_method(payload: &Payload<'_>) -> String {
    let first_request = requests(payload)
        .next()
        .map(|request| request.method.to_string());
    let first_message = || {
        payload
            .messages()
            .first()
            .and_then(Message::method)
            .map(str::to_owned)
    };
    first_request.or_else(first_message).unwrap_or_default()
}

fn session_id(headers: &HeaderMap) -> Result<&str, Early> {
    text(headers, &SESSION_ID).ok_or_else(|| {
        problem(
            StatusCode::BAD_REQUEST,
            "the Mcp-Session-Id header is missing",
        )
    })
}

fn no_such_session(_: UnknownSession) -> Early {
    let failure = Failure::new(code::INVALID_REQUEST, "there is no such session (any more)");
    rejection(StatusCode::NOT_FOUND, &failure, None)
}

fn is_json(headers: &HeaderMap) -> bool {
    text(headers, &CONTENT_TYPE)
        .and_then(|value| value.split(';').next())
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether `Accept` takes a media type; without the header everything is taken (RFC 9110 §12.5.1).
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut listed = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .map(str::trim)
        .peekable();
    let any_of_type = wanted.split_once('/').map(|(kind, _)| format!("{kind}/*"));
    listed.peek().is_none()
        || listed.any(|range| {
            range == "*/*"
                || range.eq_ignore_ascii_case(wanted)
                || any_of_type.as_deref() == Some(range)
        })
}
