//! Why a server refuses a request before any handler sees it, and what it answers.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::Revision;
use crate::jsonrpc::{Id, ParseError, code, write_error};
use crate::mcp::Extra;

/// A refusal with its HTTP status and JSON-RPC error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// The body is no message.
    #[error("{0}")]
    Unreadable(#[from] ParseError),
    /// The body is a message that may not be sent so.
    #[error("{0}")]
    NotAllowed(&'static str),
    /// Parameters of a shape that no revision has, or without a `_meta` member that 2026-07-28 requires.
    #[error("invalid parameters: {0}")]
    InvalidParams(Cow<'static, str>),
    /// A header that this message needs is not there.
    #[error("header mismatch: {0} is missing")]
    HeaderMissing(Cow<'static, str>),
    /// A header is there twice, or has characters or base64 that it may not have.
    #[error("header mismatch: {0} is malformed")]
    HeaderMalformed(Cow<'static, str>),
    /// A header says something else than the body.
    #[error("header mismatch: {0} does not say what the body says")]
    HeaderMismatch(Cow<'static, str>),
    /// 2026-07-28: the server doesn't speak this version.
    #[error("unsupported protocol version")]
    UnsupportedVersion {
        /// Revision that the client requested.
        requested: String,
        /// Revisions that the server supports.
        supported: Vec<Revision>,
    },
    /// Legacy: `MCP-Protocol-Version` names no revision that this server speaks.
    #[error("unsupported protocol version in MCP-Protocol-Version")]
    InvalidVersionHeader,
    /// 2026-07-28: the client has not declared what this needs.
    #[error("missing required client capability")]
    MissingCapability {
        /// Capabilities that the client has to declare, in the shape of [`crate::mcp::ClientCapabilities`].
        required: Extra,
    },
    /// 2026-07-28: no such method.
    #[error("method not found")]
    UnknownMethod,
    /// Legacy: the request needs a session and names none, or names it wrongly.
    #[error("Mcp-Session-Id is missing or malformed")]
    SessionMissing,
    /// Legacy: there is no such session, or there is no longer. The client initializes again.
    #[error("session not found")]
    SessionNotFound,
    /// The web page that asks may not.
    #[error("origin not allowed")]
    OriginForbidden,
    /// No such HTTP method here: only POST since 2026-07-28.
    #[error("HTTP method not allowed")]
    MethodNotAllowed,
    /// The client reads neither of what the server could answer.
    #[error("Accept must list application/json and text/event-stream")]
    NotAcceptable,
    /// The body is not `application/json`.
    #[error("Content-Type must be application/json")]
    UnsupportedMediaType,
    /// The body is longer than the server takes.
    #[error("the body is longer than {limit} bytes")]
    BodyTooLarge {
        /// The limit in force, in bytes.
        limit: usize,
    },
}

impl Rejection {
    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Rejection::UnknownMethod | Rejection::SessionNotFound => 404,
            Rejection::OriginForbidden => 403,
            Rejection::MethodNotAllowed => 405,
            Rejection::NotAcceptable => 406,
            Rejection::BodyTooLarge { .. } => 413,
            Rejection::UnsupportedMediaType => 415,
            _ => 400,
        }
    }

    /// The JSON-RPC error code.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Rejection::Unreadable(error) => error.code(),
            Rejection::InvalidParams(_) => code::INVALID_PARAMS,
            Rejection::HeaderMissing(_) | Rejection::HeaderMalformed(_) | Rejection::HeaderMismatch(_) => {
                code::HEADER_MISMATCH
            }
            Rejection::UnsupportedVersion { .. } => code::UNSUPPORTED_PROTOCOL_VERSION,
            Rejection::MissingCapability { .. } => code::MISSING_CLIENT_CAPABILITY,
            Rejection::UnknownMethod => code::METHOD_NOT_FOUND,
            _ => code::INVALID_REQUEST,
        }
    }

    /// The JSON-RPC error's data, where its code defines any.
    #[must_use]
    pub fn data(&self) -> Option<Value> {
        match self {
            Rejection::UnsupportedVersion { requested, supported } => {
                Some(json!({"requested": requested, "supported": supported}))
            }
            Rejection::MissingCapability { required } => Some(json!({"requiredCapabilities": required})),
            _ => None,
        }
    }

    /// Appends the body: a JSON-RPC error in answer to `id`, where it could be read.
    pub fn write_body(&self, id: Option<&Id<'_>>, out: &mut Vec<u8>) {
        let data = self.data();
        // The data is a tree of JSON, which can always be written.
        let written = write_error(out, id, self.code(), &self.to_string(), data.as_ref());
        debug_assert!(written.is_ok());
    }
}
