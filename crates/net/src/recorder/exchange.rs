//! One request and its reply on their way through the recorder.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, Version, request, response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use mcpace_oauth::reason_of;
use mcpace_record::{Closer, EventKind, ExchangeId, Header, ReplyEnding, Side};
use serde_json::Value;

use super::client_connection::ClientConnection;
use super::hop_by_hop::take_hop_by_hop;
use super::known_origins::OriginRole;
use super::meter::Meter;
use super::reply::{Passing, ReplyBody};
use super::request::{BackHead, PassingRequest, RequestBody};
use super::route::{self, Route, RouteRefusal};
use super::upstream_connection::{Unanswered, UpstreamConnection};
use crate::headers::{header_text, recorded_headers};
use crate::observe::note_reply_head;
use crate::trace::begin_trace;
use crate::{ReplyObserver, monotonic_now};

/// Forms and documents that are changed on their way are read whole up to this size; larger ones are none of OAuth's.
const DOCUMENT_LIMIT: u64 = 256 * 1024;

/// For the rest of a body whose request can't be passed on: it is read for the recording only.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(1);

/// Passes one request on and answers with the server's reply.
///
/// # Errors
/// Where the server closed a standing connection without an answer: the front connection has to end the same way.
pub(super) async fn pass_request(
    client: Arc<ClientConnection>,
    request: Request<Incoming>,
) -> io::Result<Response<ReplyBody>> {
    let began = client.front.first_read().unwrap_or_else(|| client.front.last_read());
    client.open_since.store(began.0, Ordering::Relaxed);
    let (mut head, body) = request.into_parts();
    let ex = client.shared.sink.exchange();
    let (method, target) = (head.method.as_str().to_owned(), head.uri.to_string());
    let target = client.shared.sink.redactor().target(&target).into_owned();
    let headers = recorded_headers(&head.headers, &client.shared.sink);
    let (side, conn) = (Side::Front, client.connection_id());
    client.shared.sink.note_at(began, EventKind::RequestHead { side, conn, ex, method, target, headers });

    let outgoing = PassingRequest::new(&client.shared.sink, ex, header_text(&head.headers, CONTENT_TYPE));
    let mut open = OpenExchange { client, ex, outgoing, added: Vec::new(), answered: false };
    let routed =
        Route::from_head(&head, &open.client.shared.upstream, open.client.shared.port, &open.client.shared.known);
    let route = match routed {
        Ok(route) => route,
        Err(RouteRefusal { status, text }) => {
            return Ok(open.refuse_request(status, text.to_owned(), body).await);
        }
    };
    if route.is_browser_to_consent(&head.headers) {
        return Ok(open.send_browser_on(&route, body).await);
    }
    if body.size_hint().lower() > open.client.shared.options.body_limit {
        let text = "mcpace recorder: the request's body is larger than its limit".to_owned();
        return Ok(open.refuse_request(StatusCode::PAYLOAD_TOO_LARGE, text, body).await);
    }
    let close = take_hop_by_hop(&mut head.headers);
    if close.close {
        open.client.front.declare_close(Closer::Client);
    }
    close.pass_on(&mut head.headers);
    route.change_request(&mut head.headers, &open.client.shared.options.headers);
    if open.client.shared.options.traceparent && route.is_to_upstream() && !head.headers.contains_key(TRACEPARENT) {
        // Digits and dashes are a header's value.
        let value = HeaderValue::try_from(begin_trace().to_string()).ok();
        open.added.extend(value.as_ref().and_then(|value| value.to_str().ok()).map(traceparent_header));
        head.headers.extend(value.map(|value| (TRACEPARENT, value)));
    }
    open.forward_request(&route, head, body).await
}

/// An exchange that has no reply yet. Dropped without one, its client has left.
struct OpenExchange {
    client: Arc<ClientConnection>,
    ex: ExchangeId,
    outgoing: Arc<PassingRequest>,
    /// Headers that the recorder added.
    added: Vec<Header>,
    answered: bool,
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

fn traceparent_header(value: &str) -> Header {
    Header(TRACEPARENT.as_str().to_owned(), value.to_owned())
}

impl OpenExchange {
    async fn forward_request(
        &mut self,
        route: &Route,
        mut head: request::Parts,
        body: Incoming,
    ) -> io::Result<Response<ReplyBody>> {
        let back = match self.client.upstream_connection(&route.place.origin).await {
            Ok(back) => back,
            Err(error) => return Ok(self.answer_unreachable(error.to_string(), body).await),
        };
        let body = self.request_body(route, &mut head, body).await?;
        let target = route.upstream_target();
        let Some(uri) = route::parse_uri(&target) else {
            let text = "mcpace recorder: the request's target is no URL".to_owned();
            return Ok(self.own_answer(StatusCode::BAD_REQUEST, text, None));
        };
        head.uri = uri;
        head.version = Version::HTTP_11;
        let method = head.method.clone();
        let request = Request::from_parts(head, body);
        match self.send_upstream(back, request, &target).await {
            Ok((back, reply)) => self.pass_reply(route, &method, back, reply).await,
            Err(Unsent::Reset { by_reset }) => {
                if by_reset {
                    self.client.front.reset_at_close();
                }
                self.client.front.close_because("the server closed its connection without an answer");
                self.end_broken(ReplyEnding::ServerBroke);
                Err(io::Error::other("the server closed its connection without an answer"))
            }
            Err(Unsent::Unreachable(reason)) => {
                Ok(self.own_answer(StatusCode::BAD_GATEWAY, bad_gateway(&reason), None))
            }
        }
    }

    /// Sends on `back`, or on a new connection where the server had closed that one before anything was sent.
    async fn send_upstream(
        &self,
        mut back: UpstreamConnection,
        mut request: Request<RequestBody>,
        target: &str,
    ) -> Result<(UpstreamConnection, Response<Incoming>), Unsent> {
        let target = self.client.shared.sink.redactor().target(target).into_owned();
        loop {
            let head = BackHead {
                conn: back.meter.connection_id(),
                method: request.method().as_str().to_owned(),
                target: target.clone(),
                added: self.added.clone(),
            };
            match back.send_request(request, &self.outgoing, head).await {
                Ok(reply) => return Ok((back, reply)),
                Err(Unanswered::Unsent(unsent)) if back.used => {
                    let fresh = self.client.open_upstream(&back.origin).await;
                    back = fresh.map_err(|error| Unsent::Unreachable(error.to_string()))?;
                    request = *unsent;
                }
                Err(Unanswered::Unsent(_)) => {
                    return Err(Unsent::Unreachable("the server closed the connection at once".to_owned()));
                }
                Err(Unanswered::Failed(_)) if back.used => {
                    return Err(Unsent::Reset { by_reset: back.meter.was_reset() });
                }
                Err(Unanswered::Failed(reason)) => return Err(Unsent::Unreachable(reason)),
            }
        }
    }

    /// The body as it goes on: streamed, but for a small form that may name the recorder as a resource.
    async fn request_body(&self, route: &Route, head: &mut request::Parts, body: Incoming) -> io::Result<RequestBody> {
        let (front, outgoing) = (Arc::clone(&self.client.front), Arc::clone(&self.outgoing));
        let small = body.size_hint().upper().is_some_and(|size| size > 0 && size <= DOCUMENT_LIMIT);
        if !small || !route::is_form(&head.headers) {
            let limit = self.client.shared.options.body_limit;
            return Ok(RequestBody::from_stream(body, front, outgoing, limit));
        }
        let form = body.collect().await.map_err(io::Error::other)?.to_bytes();
        self.outgoing.take_chunk(form.clone());
        self.outgoing.end_body(front.last_read());
        front.await_head();
        let changed = std::str::from_utf8(&form).ok();
        let changed =
            changed.and_then(|form| super::oauth::change_parameter(form, "resource", &|url| route.to_server(url)));
        let form = changed.map_or(form, Bytes::from);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(form.len()));
        Ok(RequestBody::from_bytes(form, outgoing))
    }

    async fn pass_reply(
        &mut self,
        route: &Route,
        method: &Method,
        back: UpstreamConnection,
        reply: Response<Incoming>,
    ) -> io::Result<Response<ReplyBody>> {
        let (mut head, body) = reply.into_parts();
        let shared = Arc::clone(&self.client.shared);
        let passing = self.note_reply_head(&back.meter, &head);
        let mut close = take_hop_by_hop(&mut head.headers);
        // HTTP/1.0 closes unless it says otherwise (RFC 9112 §9.3); our front side speaks 1.1.
        close.close |= head.version == Version::HTTP_10 && !close.keeps_alive();
        if close.close {
            back.server_will_close();
        }
        close.pass_on(&mut head.headers);
        head.version = Version::HTTP_11;
        route.change_reply(&mut head.headers, &shared.known);
        let meter = Arc::clone(&back.meter);
        self.client.keep_upstream(back);
        self.answered = true;
        self.client.front.expect_handover(Arc::clone(&passing) as _);
        let is_document = matches!(route.role, Some(OriginRole::Metadata | OriginRole::Registration))
            && *method != Method::HEAD
            && route::is_plain_json(&head.headers)
            && body.size_hint().upper().is_none_or(|size| size <= DOCUMENT_LIMIT);
        if is_document {
            return self.pass_document(route, head, body, &meter, passing).await;
        }
        let body = ReplyBody::from_stream(body, meter, passing, shared.options.body_limit).await;
        Ok(Response::from_parts(head, body))
    }

    fn note_reply_head(&self, back: &Arc<Meter>, head: &response::Parts) -> Arc<Passing> {
        note_reply_head(&self.client.shared.sink, back.last_read(), self.ex, head.status, &head.headers);
        self.passing_state(head.status, header_text(&head.headers, CONTENT_TYPE), Some(Arc::clone(back)))
    }

    fn passing_state(&self, status: StatusCode, content_type: &str, back: Option<Arc<Meter>>) -> Arc<Passing> {
        let client = &self.client;
        let (stopping, open_since) = (&client.shared.stopping, &client.open_since);
        Passing::new(&client.shared.sink, self.ex, status.as_u16(), content_type, stopping, open_since, back)
    }

    /// A metadata document: read whole, learned from, changed, sent.
    async fn pass_document(
        &mut self,
        route: &Route,
        mut head: response::Parts,
        mut body: Incoming,
        back: &Meter,
        passing: Arc<Passing>,
    ) -> io::Result<Response<ReplyBody>> {
        let mut text = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let broken = |reason: String| {
                passing.end_upstream(monotonic_now(), ReplyEnding::ServerBroke);
                Err(io::Error::other(reason))
            };
            let chunk = match frame.map(|frame| frame.into_data()) {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(_)) => continue,
                Err(error) => return broken(reason_of(&error)),
            };
            passing.take_chunk(back.last_read(), chunk.clone());
            text.extend_from_slice(&chunk);
            if text.len() as u64 > DOCUMENT_LIMIT {
                return broken("a metadata document is larger than the recorder's limit".to_owned());
            }
        }
        passing.end_upstream(back.last_read(), ReplyEnding::Complete);
        let text = self.changed_document(route, text.freeze());
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
        Ok(Response::from_parts(head, ReplyBody::from_bytes(text, passing)))
    }

    fn changed_document(&self, route: &Route, text: Bytes) -> Bytes {
        let shared = &self.client.shared;
        let Ok(mut document) = serde_json::from_slice::<Value>(&text) else {
            return text;
        };
        for named in super::oauth::named_servers(&document) {
            route::learn_origin(&shared.known, &shared.upstream, &named.url, named.role);
        }
        if super::oauth::map_document(&mut document, &|url| route.to_client(url, &shared.known)) {
            Bytes::from(document.to_string())
        } else {
            text
        }
    }

    async fn send_browser_on(&mut self, route: &Route, body: Incoming) -> Response<ReplyBody> {
        let url = format!("{}{}", route.place.origin.to_url(), route.upstream_target());
        self.read_leftover(body).await;
        self.own_answer(StatusCode::FOUND, "mcpace recorder: the page is at its own server".to_owned(), Some(&url))
    }

    async fn refuse_request(&mut self, status: StatusCode, text: String, body: Incoming) -> Response<ReplyBody> {
        self.read_leftover(body).await;
        self.own_answer(status, text, None)
    }

    async fn answer_unreachable(&mut self, reason: String, body: Incoming) -> Response<ReplyBody> {
        self.refuse_request(StatusCode::BAD_GATEWAY, bad_gateway(&reason), body).await
    }

    /// Reads a small body that can't be passed on, so that the recording says what was asked.
    async fn read_leftover(&self, mut body: Incoming) {
        let read = async {
            let mut size = 0;
            while let Some(Ok(frame)) = body.frame().await {
                let Ok(chunk) = frame.into_data() else {
                    continue;
                };
                size += chunk.len() as u64;
                self.outgoing.take_chunk(chunk);
                if size > DOCUMENT_LIMIT {
                    return;
                }
            }
        };
        // A slow body is not waited for: only the recording would gain from it.
        let _ = tokio::time::timeout(LEFTOVER_LIMIT, read).await;
        self.client.front.await_head();
        self.outgoing.finish_passing(self.client.front.last_read());
    }

    /// The recorder's own answer: one line of text.
    fn own_answer(&mut self, status: StatusCode, text: String, location: Option<&str>) -> Response<ReplyBody> {
        self.answered = true;
        self.outgoing.finish_passing(monotonic_now());
        let passing = self.passing_state(status, "text/plain", None);
        passing.end_upstream(monotonic_now(), ReplyEnding::NoReply);
        self.client.front.expect_handover(Arc::clone(&passing) as _);
        let body = Bytes::from(format!("{text}\n"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        if let Some(location) = location.and_then(|url| HeaderValue::from_str(url).ok()) {
            headers.insert(LOCATION, location);
        }
        let mut response = Response::new(ReplyBody::from_bytes(body, passing));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    fn end_broken(&mut self, ending: ReplyEnding) {
        self.answered = true;
        self.client.open_since.store(0, Ordering::Relaxed);
        self.outgoing.finish_passing(monotonic_now());
        ReplyObserver::new(Arc::clone(&self.client.shared.sink), self.ex, "", true).end_reply(monotonic_now(), ending);
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        if !self.answered {
            let cut = self.client.shared.stopping.load(Ordering::Relaxed);
            self.end_broken(if cut { ReplyEnding::Cut } else { ReplyEnding::ClientLeft });
        }
    }
}

/// Why a request has no reply.
enum Unsent {
    /// On a standing connection the server closed instead of answering.
    Reset {
        /// With a reset rather than an orderly close.
        by_reset: bool,
    },
    /// No server, or none that speaks HTTP.
    Unreachable(String),
}

fn bad_gateway(reason: &str) -> String {
    format!("mcpace recorder: {reason}").replace(['\r', '\n'], " ")
}
