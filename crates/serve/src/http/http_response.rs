//! An answer before it is HTTP: small, so that it can be made in many places and turned into headers in one.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use mcpace_wire::http::{Rejection, name};
use mcpace_wire::jsonrpc::{Id, code, write_error};

use super::reply_body::ReplyBody;
use crate::exchange::{ReplyStatus, Timing};

const SESSION_ID: HeaderName = HeaderName::from_static(name::SESSION_ID);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static(name::X_ACCEL_BUFFERING);
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
const NO: HeaderValue = HeaderValue::from_static("no");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const SOON: HeaderValue = HeaderValue::from_static("1");

/// An HTTP response before its headers are built.
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) kind: BodyKind,
    pub(super) body: ReplyBody,
    /// The headers that few answers have.
    extras: Option<Box<Extras>>,
}

/// Media type of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    None,
    Json,
    Events,
}

#[derive(Default)]
struct Extras {
    session: Option<HeaderValue>,
    timing: Option<HeaderValue>,
    challenge: Option<HeaderValue>,
    allow: Option<HeaderValue>,
    retry_after: Option<HeaderValue>,
    close: bool,
}

impl HttpResponse {
    pub(super) fn empty_response(status: StatusCode) -> Self {
        Self { status, kind: BodyKind::None, body: ReplyBody::Empty, extras: None }
    }

    pub(super) fn json_response(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, kind: BodyKind::Json, body: ReplyBody::Full(body.into()), extras: None }
    }

    /// JSON that may be in parts.
    pub(super) fn json_of(status: StatusCode, body: ReplyBody) -> Self {
        Self { status, kind: BodyKind::Json, body, extras: None }
    }

    pub(super) fn event_stream(body: ReplyBody) -> Self {
        Self { status: StatusCode::OK, kind: BodyKind::Events, body, extras: None }
    }

    /// A refusal of the protocol, in answer to `id` where it is known.
    pub(super) fn rejected(rejection: &Rejection, id: Option<&Id<'_>>) -> Self {
        let mut body = Vec::with_capacity(160);
        rejection.write_body(id, &mut body);
        let status = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::BAD_REQUEST);
        tracing::debug!(%status, reason = %rejection, "refused");
        Self::json_response(status, body)
    }

    /// A refusal that the protocol has no word for.
    pub(super) fn refused(status: StatusCode, code: i64, reason: &str) -> Self {
        tracing::debug!(%status, reason, "refused");
        let mut body = Vec::with_capacity(160);
        // Without data there is nothing that could fail to be written.
        let _ = write_error(&mut body, None, code, reason, None::<&()>);
        Self::json_response(status, body)
    }

    /// Too much at the moment.
    pub(super) fn overloaded(status: StatusCode, reason: &str) -> Self {
        let mut answer = Self::refused(status, code::INTERNAL_ERROR, reason);
        answer.extras_mut().retry_after = Some(SOON);
        answer
    }

    pub(super) fn with_session(mut self, id: &str) -> Self {
        self.extras_mut().session = HeaderValue::try_from(id).ok();
        self
    }

    /// The session that it begins.
    pub(super) fn begun_session(&self) -> Option<&str> {
        self.extras.as_ref()?.session.as_ref()?.to_str().ok()
    }

    pub(super) fn with_challenge(mut self, challenge: &str) -> Self {
        self.extras_mut().challenge = HeaderValue::try_from(challenge).ok();
        self
    }

    /// When to come back: whole seconds, rounded up (RFC 9110 §10.2.3).
    pub(super) fn with_retry_after(mut self, time: Duration) -> Self {
        let seconds = time.as_nanos().div_ceil(1_000_000_000).max(1);
        self.extras_mut().retry_after = HeaderValue::try_from(seconds.to_string()).ok();
        self
    }

    pub(super) fn with_allow(mut self, methods: &'static str) -> Self {
        self.extras_mut().allow = Some(HeaderValue::from_static(methods));
        self
    }

    /// `transport` is what is left of the time from `received` to now.
    pub(super) fn with_timing(mut self, timing: Option<Timing>, received: Instant) -> Self {
        if let Some(Timing { dispatch, service }) = timing {
            let transport = received.elapsed().saturating_sub(dispatch + service);
            let millis = |time: Duration| time.as_secs_f64() * 1e3;
            let text = format!(
                "transport;dur={:.6}, dispatch;dur={:.6}, service;dur={:.6}",
                millis(transport),
                millis(dispatch),
                millis(service)
            );
            self.extras_mut().timing = HeaderValue::try_from(text).ok();
        }
        self
    }

    /// The connection ends after it: what the client still sends is of no use.
    pub(super) fn close_after(mut self) -> Self {
        self.extras_mut().close = true;
        self
    }

    /// Whether the connection ends after it.
    pub(super) fn closes_connection(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.close)
    }

    /// The headers that few answers have.
    pub(super) fn extra_headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.extras.iter().flat_map(|extras| extras.headers())
    }

    fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// As HTTP. `headers` is the request's map, emptied: its memory serves again.
    pub(super) fn into_response(self, mut headers: HeaderMap) -> Response<ReplyBody> {
        headers.clear();
        match self.kind {
            BodyKind::None => {}
            BodyKind::Json => {
                headers.insert(CONTENT_TYPE, JSON);
            }
            BodyKind::Events => {
                headers.insert(CONTENT_TYPE, EVENT_STREAM);
                headers.insert(CACHE_CONTROL, NO_CACHE);
                headers.insert(X_ACCEL_BUFFERING, NO);
            }
        }
        headers.extend(self.extra_headers());
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}

impl Extras {
    fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let Extras { session, timing, challenge, allow, retry_after, close } = self;
        [
            (SESSION_ID, session.clone()),
            (SERVER_TIMING, timing.clone()),
            (WWW_AUTHENTICATE, challenge.clone()),
            (ALLOW, allow.clone()),
            (RETRY_AFTER, retry_after.clone()),
            (CONNECTION, close.then_some(CLOSE)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl From<Rejection> for HttpResponse {
    fn from(rejection: Rejection) -> Self {
        HttpResponse::rejected(&rejection, None)
    }
}

/// The HTTP status of a reply.
pub(super) fn reply_status(status: ReplyStatus) -> StatusCode {
    match status {
        ReplyStatus::Ok => StatusCode::OK,
        ReplyStatus::BadRequest => StatusCode::BAD_REQUEST,
        ReplyStatus::NotFound => StatusCode::NOT_FOUND,
        ReplyStatus::Forbidden => StatusCode::FORBIDDEN,
        ReplyStatus::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        ReplyStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}
