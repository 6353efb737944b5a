//! Errors of a JSON-RPC text, and the error codes that report them to the peer.

/// The JSON-RPC 2.0 error codes (<https://www.jsonrpc.org/specification#error_object>) and those that MCP adds.
pub mod code {
    /// No JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but no JSON-RPC message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Parameters of the wrong shape; in 2026-07-28 also an unknown tool or a missing resource.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server's own fault.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Ours: whoever asks may not (`data.requiredScopes`, where scopes would help).
    pub const FORBIDDEN: i64 = -32003;
    /// Ours: a rate limit is exceeded (`data.retryAfterMs`).
    pub const RATE_LIMITED: i64 = -32004;
    /// Legacy revisions: no such resource.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// 2025-11-25 only: the user must open a URL first.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// 2026-07-28: a header is missing, malformed, or says something else than the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// 2026-07-28: the client has not declared a capability that this needs (`data.requiredCapabilities`).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// 2026-07-28: the version is not supported (`data.supported`, `data.requested`).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
}

/// Why bytes are no JSON-RPC payload. All of these are the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// JSON is UTF-8 (RFC 8259 §8.1).
    #[error("the text is not UTF-8: bad byte at {at}")]
    NotUtf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// No JSON, cut off, or more text after it.
    #[error("the text is no JSON: {reason}")]
    NotJson {
        /// Message of the JSON parser, with line and column.
        reason: String,
    },
    /// JSON, but neither an object nor an array of objects.
    #[error("a message is a JSON object")]
    NotAnObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("a message has \"jsonrpc\": \"2.0\"")]
    NotVersion2,
    /// One of the members that JSON-RPC defines is there twice.
    #[error("the member {0:?} is there twice")]
    DuplicateMember(&'static str),
    /// A request with `"id": null`, which MCP forbids.
    #[error("the id of a request is a string or an integer, not null")]
    NullId,
    /// An id that is neither a string nor a number.
    #[error("an id is a string or an integer")]
    BadId,
    /// A method that is no string.
    #[error("a method is a string")]
    BadMethod,
    /// Parameters that are neither an object nor an array.
    #[error("params is an object or an array")]
    BadParams,
    /// An error that is no object with an integer code and a message.
    #[error("an error has an integer code and a message")]
    BadError,
    /// Neither method, result nor error, or more than one of them.
    #[error("a message has exactly one of method, result and error")]
    NoKind,
    /// A result without an id answers nobody.
    #[error("a result has the id of its request")]
    ResultWithoutId,
    /// `[]`.
    #[error("a batch has at least one message")]
    EmptyBatch,
    /// A batch of more members than the limit.
    #[error("a batch has at most {limit} messages")]
    BatchTooLong {
        /// The limit in force.
        limit: usize,
    },
    /// One message of a batch is wrong, so none of them is taken.
    #[error("message {index} of the batch: {error}")]
    Member {
        /// Which one, from 0.
        index: usize,
        /// Reason for the rejection.
        error: Box<ParseError>,
    },
}

impl ParseError {
    /// The JSON-RPC code to answer with: [`code::PARSE_ERROR`] or [`code::INVALID_REQUEST`].
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            ParseError::NotUtf8 { .. } | ParseError::NotJson { .. } => code::PARSE_ERROR,
            _ => code::INVALID_REQUEST,
        }
    }
}
