//! Replies as bytes: the head, the members that others write, and the end that a revision asks for.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::Revision;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::{Id, code, write_error};
use mcpace_wire::mcp::{Extra, Json};

use super::clocks::Clocks;
use crate::exchange::{Challenge, Handled, Reply, ReplyStatus};
use crate::guard::{Denial, LimiterDown};
use crate::server_state::ServerState;
use crate::session::Session;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// One of the protocol's own refusals, with its status.
    Rejected(Rejection),
    /// No such method: 404 in 2026-07-28.
    UnknownMethod,
    /// Any other error, with status 200.
    Error { code: i64, message: Cow<'static, str>, data: Option<Json> },
    /// The caller is not permitted.
    Denied(Denial),
    /// A rate limit is exceeded.
    Exceeded { retry_after: Duration },
    /// Whether one is, nobody can say.
    Uncounted,
    /// The client took the request back.
    Cancelled,
}

impl Refusal {
    pub(crate) fn error(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Refusal::Error { code, message: message.into(), data: None }
    }

    /// The words for whatever is not the client's business.
    pub(crate) fn internal_error() -> Self {
        Self::error(code::INTERNAL_ERROR, "internal error")
    }

    pub(crate) fn into_handled(self, id: &Id<'_>, revision: Revision) -> Handled {
        Handled::Now(self.into_reply(id, revision))
    }

    pub(crate) fn into_reply(self, id: &Id<'_>, revision: Revision) -> Reply {
        let mut out = Vec::with_capacity(192);
        let status = match &self {
            Refusal::Rejected(rejection) => {
                rejection.write_body(Some(id), &mut out);
                match rejection.status() {
                    404 => ReplyStatus::NotFound,
                    _ => ReplyStatus::BadRequest,
                }
            }
            Refusal::UnknownMethod => {
                write_error_reply(&mut out, id, code::METHOD_NOT_FOUND, "method not found", None);
                ReplyStatus::NotFound
            }
            Refusal::Error { code, message, data } => {
                write_error_reply(&mut out, id, *code, message, data.as_ref());
                ReplyStatus::Ok
            }
            Refusal::Denied(Denial { message, scopes }) => {
                let data = RequiredScopes { required_scopes: scopes.iter().map(|scope| &**scope).collect() };
                let data = if scopes.is_empty() { None } else { Json::of(&data).ok() };
                write_error_reply(&mut out, id, code::FORBIDDEN, message, data.as_ref());
                ReplyStatus::Forbidden
            }
            Refusal::Exceeded { retry_after } => {
                let data = RetryAfter { retry_after_ms: millis_up(*retry_after) };
                write_error_reply(&mut out, id, code::RATE_LIMITED, "too many requests", Json::of(&data).ok().as_ref());
                ReplyStatus::TooManyRequests
            }
            Refusal::Uncounted => {
                write_error_reply(&mut out, id, code::INTERNAL_ERROR, &LimiterDown.to_string(), None);
                ReplyStatus::Unavailable
            }
            Refusal::Cancelled => {
                write_error_reply(&mut out, id, code::INTERNAL_ERROR, "request cancelled", None);
                ReplyStatus::Ok
            }
        };
        let cancelled = matches!(self, Refusal::Cancelled);
        let challenge = self.challenge();
        let is_step_up = matches!(challenge, Some(Challenge::Scopes(_)));
        let is_told = revision.is_modern() || (is_step_up && revision >= Revision::V2025_11_25);
        Reply {
            message: out.into(),
            status: if is_told { status } else { ReplyStatus::Ok },
            session: None,
            cancelled,
            timing: None,
            challenge,
        }
    }

    fn challenge(self) -> Option<Challenge> {
        match self {
            Refusal::Denied(denial) if !denial.scopes.is_empty() => Some(Challenge::Scopes(denial.scopes)),
            Refusal::Exceeded { retry_after } => Some(Challenge::Wait(retry_after)),
            _ => None,
        }
    }
}

/// Scopes in the error data, for clients whose transport has no HTTP headers.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct RequiredScopes<'a> {
    required_scopes: Vec<&'a str>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryAfter {
    retry_after_ms: u64,
}

/// Milliseconds of a duration, rounded up, so that a client that waits so long is not too early.
fn millis_up(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn write_error_reply(out: &mut Vec<u8>, id: &Id<'_>, code: i64, message: &str, data: Option<&Json>) {
    // The data is JSON text already, which can always be written.
    let written = write_error(out, Some(id), code, message, data);
    debug_assert!(written.is_ok());
}

/// `{"jsonrpc":"2.0","id":…,"result":{`
pub(crate) fn reply_head(id: &Id<'_>) -> Vec<u8> {
    // Room for a small result and the end.
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(&mut out);
    out.extend_from_slice(b",\"result\":{");
    out
}

/// How a result ends.
pub(crate) struct ResultEnd<'a> {
    pub(crate) server: &'a ServerState,
    pub(crate) revision: Revision,
    pub(crate) clocks: Option<&'a Clocks>,
    pub(crate) meta: Option<&'a Extra>,
    pub(crate) session: Option<Arc<Session>>,
}

impl<'a> ResultEnd<'a> {
    pub(crate) fn new(server: &'a ServerState, revision: Revision, clocks: Option<&'a Clocks>) -> Self {
        Self { server, revision, clocks, meta: None, session: None }
    }

    /// Closes the result whose members are in `out`: `resultType`, `_meta`, braces.
    pub(crate) fn close_complete(self, out: Vec<u8>) -> Reply {
        self.close_as(out, "complete")
    }

    /// As [`ResultEnd::close_complete`], with another type.
    pub(crate) fn close_as(self, mut out: Vec<u8>, result_type: &str) -> Reply {
        if self.revision.has_result_type() {
            write_comma(&mut out);
            out.extend_from_slice(b"\"resultType\":\"");
            out.extend_from_slice(result_type.as_bytes());
            out.push(b'"');
        }
        let timing = self.clocks.map(Clocks::layer_times);
        self.write_meta(timing.as_ref(), &mut out);
        out.extend_from_slice(b"}}");
        Reply {
            message: out.into(),
            status: ReplyStatus::Ok,
            session: self.session,
            cancelled: false,
            timing,
            challenge: None,
        }
    }

    fn write_meta(&self, timing: Option<&crate::exchange::Timing>, out: &mut Vec<u8>) {
        let before = out.len();
        write_comma(out);
        out.extend_from_slice(b"\"_meta\":{");
        let empty = out.len();
        if self.revision.is_modern() {
            out.extend_from_slice(self.server.server_info_member.as_bytes());
        }
        if let Some((clocks, timing)) = self.clocks.zip(timing) {
            write_comma(out);
            if !clocks.write_member(timing, out) && out.last() == Some(&b',') {
                out.pop();
            }
        }
        for (name, value) in self.meta.into_iter().flatten() {
            let at = out.len();
            write_comma(out);
            // A tree of JSON can always be written; were it not, the member is left out whole.
            let name = serde_json::to_writer(&mut *out, name);
            out.push(b':');
            if name.and_then(|()| serde_json::to_writer(&mut *out, value)).is_err() {
                out.truncate(at);
            }
        }
        if out.len() == empty {
            out.truncate(before);
        } else {
            out.push(b'}');
        }
    }
}

/// A comma, unless the object has just begun.
pub(crate) fn write_comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}
