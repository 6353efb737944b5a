//! Replies to a request: a JSON-RPC result, a JSON-RPC error, or an HTTP reply that is neither.

use bytes::Bytes;
use mcpace_oauth::{AuthKind, RefusedRequest};
use mcpace_wire::http::MediaType;
use mcpace_wire::jsonrpc::Outcome;
use mcpace_wire::quote_printable;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{ClientError, RpcError};

/// JSON text of a result, as the server wrote it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Raw(Bytes);

impl Raw {
    /// Wraps JSON text.
    #[must_use]
    pub fn new(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the text as the result of `method`.
    ///
    /// # Errors
    /// [`ClientError::BadReply`].
    pub fn read<T: DeserializeOwned>(&self, method: &str) -> Result<T, ClientError> {
        serde_json::from_slice(&self.0).map_err(|error| ClientError::bad_reply(method, error))
    }

    /// The kind that the result of `method` names; complete if it names none.
    ///
    /// # Errors
    /// [`ClientError::BadReply`] for a kind that no revision defines.
    pub fn kind(&self, method: &str) -> Result<ResultKind, ClientError> {
        #[derive(Deserialize)]
        struct ResponseMembers {
            #[serde(default, rename = "resultType")]
            result_type: Option<String>,
            #[serde(default, rename = "ttlMs")]
            ttl_ms: Option<f64>,
        }
        // serde would take an array for an object whose members all have defaults.
        if self.0.first() != Some(&b'{') {
            return Err(ClientError::bad_reply(method, "its result is no object"));
        }
        let ResponseMembers { result_type, ttl_ms } = self.read(method)?;
        match result_type.as_deref() {
            None | Some("complete") => Ok(ResultKind::Complete { ttl_ms }),
            Some("input_required") => Ok(ResultKind::InputRequired),
            Some("task") => Ok(ResultKind::Task),
            Some(other) => {
                let reason = format_args!("its resultType is {other:?}, which this client does not know");
                Err(ClientError::bad_reply(method, reason))
            }
        }
    }
}

/// Kind of a result, which results of 2026-07-28 name themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResultKind {
    /// The final result.
    Complete {
        /// Time for which the result may be kept, in milliseconds.
        ttl_ms: Option<f64>,
    },
    /// The server asks for input.
    InputRequired,
    /// The request became a task.
    Task,
}

impl ResultKind {
    /// The final result, which must not be kept.
    pub const COMPLETE: Self = ResultKind::Complete { ttl_ms: None };
}

/// A JSON-RPC result or error.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The result's text.
    Result(Raw),
    /// The error, to the letter.
    Error(RpcError),
}

impl Answer {
    /// Cuts an answer out of `text`, from which it was parsed. The result is not copied.
    #[must_use]
    pub fn from_outcome(outcome: Outcome<'_>, text: &Bytes) -> Self {
        match outcome {
            Outcome::Result(result) => Answer::Result(Raw(text.slice_ref(result.get().as_bytes()))),
            Outcome::Error(error) => Answer::Error(error.into()),
        }
    }
}

/// Reply to a request.
#[derive(Debug)]
pub enum ServerReply {
    /// A JSON-RPC answer.
    Answer {
        /// HTTP status that the answer came with; 200 on other transports.
        status: u16,
        /// The answer.
        answer: Answer,
    },
    /// An HTTP reply that holds no answer.
    Other(OtherReply),
}

impl ServerReply {
    /// The reply of a body that is no stream. `answer` is `None` if the body is no JSON-RPC, and `Some(None)` if it holds no
    /// answer to the request. `other` makes the reply of a body without an answer.
    ///
    /// # Errors
    /// [`ClientError::Status`] and [`ClientError::BadReply`] for a result that an error status or another content type
    /// contradicts, and [`ClientError::BadReply`] for JSON-RPC without the answer.
    pub fn from_body(
        answer: Option<Option<Answer>>,
        status: u16,
        content_type: &str,
        (method, address): (&str, impl FnOnce() -> String),
        other: impl FnOnce() -> OtherReply,
    ) -> Result<Self, ClientError> {
        let is_success = (200..300).contains(&status);
        match answer {
            Some(Some(Answer::Result(_))) if !is_success => {
                let reason = Some("though its body is a result".to_owned());
                Err(ClientError::Status { address: address(), status, reason, retry_after: None })
            }
            // Servers that were written by hand often leave the content type out.
            Some(Some(Answer::Result(_)))
                if !content_type.is_empty() && MediaType::of(content_type) != MediaType::Json =>
            {
                let reason =
                    format_args!("its content type is {}, not application/json", quote_printable(content_type));
                Err(ClientError::bad_reply(method, reason))
            }
            Some(Some(answer)) => Ok(ServerReply::Answer { status, answer }),
            Some(None) if is_success => Err(ClientError::bad_reply(method, "it holds no answer to the request's id")),
            Some(None) | None => Ok(ServerReply::Other(other())),
        }
    }

    /// The result of the reply to `method`; every other reply is an error. `is_connecting` says whether the peer may still
    /// turn out to be no MCP server.
    ///
    /// # Errors
    /// [`ClientError::Rpc`], or the errors of [`OtherReply::into_error`].
    pub fn into_result(
        self,
        method: &'static str,
        address: impl FnOnce() -> String,
        is_connecting: bool,
    ) -> Result<Raw, ClientError> {
        match self {
            ServerReply::Answer { answer: Answer::Result(result), .. } => Ok(result),
            ServerReply::Answer { answer: Answer::Error(error), .. } => Err(ClientError::Rpc { method, error }),
            ServerReply::Other(other) => Err(other.into_error(address(), is_connecting)),
        }
    }

    /// Whether the server no longer knows the session that the request named: status 404 without a result (2025-03-26 and
    /// later, "Session Management").
    #[must_use]
    pub fn is_lost_session(&self) -> bool {
        match self {
            ServerReply::Answer { status, answer: Answer::Error(_) } => *status == 404,
            ServerReply::Answer { .. } => false,
            ServerReply::Other(other) => other.status == 404,
        }
    }
}

/// An HTTP reply that holds no JSON-RPC answer.
#[derive(Debug)]
pub struct OtherReply {
    /// HTTP status.
    pub status: u16,
    /// Content type, cut to a line; empty if there was none.
    pub content_type: String,
    /// Beginning of the text, on one line.
    pub text: String,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
}

impl OtherReply {
    /// Cuts the parts of a reply to what a message may show.
    #[must_use]
    pub fn new(status: u16, content_type: &str, text: &[u8], retry_after: Option<&str>) -> Self {
        Self {
            status,
            content_type: quote_printable(content_type),
            text: quote_printable(&String::from_utf8_lossy(text)),
            retry_after: retry_after.map(quote_printable),
        }
    }

    /// Whether the server or a gateway asks to come back later, which says nothing about what it speaks.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.status, 429 | 502 | 503 | 504)
    }

    /// The reply as an error. `is_connecting` says whether the peer may still turn out to be no MCP server.
    #[must_use]
    pub fn into_error(self, address: String, is_connecting: bool) -> ClientError {
        if self.status >= 400 && (self.is_busy() || !is_connecting) {
            let (status, retry_after) = (self.status, self.retry_after.clone());
            return ClientError::Status { address, status, reason: self.plain_message(), retry_after };
        }
        let kind = if self.content_type.is_empty() { "no content type" } else { &self.content_type };
        ClientError::NotMcp { address, answer: format!("status {}, {kind}", self.status) }
    }

    /// The reply as an error, if it is a refusal that no authorization could mend.
    #[must_use]
    pub fn into_refusal(self, refusal: &RefusedRequest, address: String, kind: AuthKind) -> ClientError {
        let (status, advice) = (refusal.status(), refusal.advice(kind));
        ClientError::Refused { address, status, reason: refusal.words().or(self.plain_message()), advice }
    }

    /// The text, unless it is an HTML page.
    fn plain_message(self) -> Option<String> {
        (!self.text.is_empty() && !self.text.starts_with('<')).then_some(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_not_mcp_and_a_busy_server_says_when_to_come_back() {
        let other =
            |status, content_type: &str, text: &str| OtherReply::new(status, content_type, text.as_bytes(), Some("3"));
        let error = other(200, "text/html", "<html>").into_error("http://a/".to_owned(), true);
        assert_eq!(error.code(), "not-mcp");
        assert!(error.to_string().contains("status 200, text/html"), "{error}");
        let error = other(429, "text/plain", "slow down").into_error("http://a/".to_owned(), true);
        assert_eq!(error.code(), "http-status");
        assert!(error.to_string().contains("slow down") && error.to_string().contains("wait 3"), "{error}");
        assert_eq!(other(500, "", "").into_error("http://a/".to_owned(), false).code(), "http-status");
    }

    #[test]
    fn a_result_names_its_kind() {
        let kind = |text: &'static str| Raw::new(text).kind("m");
        assert_eq!(kind(r#"{"content":[]}"#).unwrap(), ResultKind::COMPLETE);
        assert_eq!(kind(r#"{"resultType":"complete","ttlMs":5}"#).unwrap(), ResultKind::Complete { ttl_ms: Some(5.0) });
        assert_eq!(kind(r#"{"resultType":"input_required"}"#).unwrap(), ResultKind::InputRequired);
        assert_eq!(kind(r#"{"resultType":"task"}"#).unwrap(), ResultKind::Task);
        assert_eq!(kind(r#"{"resultType":"other"}"#).unwrap_err().code(), "bad-reply");
        assert_eq!(kind("[]").unwrap_err().code(), "bad-reply");
    }

    #[test]
    fn a_result_counts_only_with_the_status_and_the_type_of_a_result() {
        let read = |answer, status, content_type| {
            let other = || OtherReply::new(status, content_type, b"", None);
            ServerReply::from_body(answer, status, content_type, ("m", || "here".to_owned()), other)
        };
        let result = || Some(Some(Answer::Result(Raw::new("{}"))));
        for content_type in ["application/json", "", "application/json; charset=utf-8"] {
            assert!(matches!(read(result(), 200, content_type), Ok(ServerReply::Answer { .. })), "{content_type}");
        }
        assert_eq!(read(result(), 500, "application/json").unwrap_err().code(), "http-status");
        assert!(read(result(), 200, "text/html").unwrap_err().to_string().contains("its content type is text/html"));
        let error = Some(Some(Answer::Error(RpcError::new(-32600, "no"))));
        assert!(matches!(read(error, 400, "text/plain"), Ok(ServerReply::Answer { status: 400, .. })));
        assert_eq!(read(Some(None), 200, "application/json").unwrap_err().code(), "bad-reply");
        assert!(matches!(read(Some(None), 404, "application/json"), Ok(ServerReply::Other(_))));
        assert!(matches!(read(None, 200, "text/html"), Ok(ServerReply::Other(_))));
    }

    #[test]
    fn only_a_404_without_a_result_is_a_lost_session() {
        let answer = |status, answer| ServerReply::Answer { status, answer };
        assert!(answer(404, Answer::Error(RpcError::new(-32001, "no session"))).is_lost_session());
        assert!(!answer(404, Answer::Result(Raw::new("{}"))).is_lost_session());
        assert!(!answer(400, Answer::Error(RpcError::new(-32600, "no"))).is_lost_session());
        assert!(ServerReply::Other(OtherReply::new(404, "", b"", None)).is_lost_session());
    }
}
