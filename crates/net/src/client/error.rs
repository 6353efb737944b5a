//! What can go wrong in an operation of the client, told apart by whose fault it is.

use std::time::Duration;

use mcpace_oauth::{OAuthError, RefusedRedirect};
use thiserror::Error;

use crate::NetError;

/// Why an operation failed. Each is one sentence for a person and a stable code for programs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Our caller's fault: an operation before `connect` or after `disconnect`.
    #[error("the client is not connected: call connect first")]
    NotConnected,
    /// Our caller's fault: a tool's arguments are no JSON object.
    #[error("the arguments of {tool:?} are no JSON object")]
    BadArguments {
        /// The tool.
        tool: String,
    },
    /// Below MCP: the URL, the connection, TLS, the recording.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The operation's limit ran out.
    #[error("{operation} took longer than its limit of {} s", limit.as_secs_f64())]
    TimeLimit {
        /// `connect`, `list`, `call`, `disconnect`.
        operation: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The peer answered, but not as an MCP server does.
    #[error("{address} does not answer as an MCP server: {answer}; check the URL and its path")]
    NotMcp {
        /// URL or program.
        address: String,
        /// What it answered instead: status and content type.
        answer: String,
    },
    /// The peer refused us: 401 or 403.
    #[error("{address} refused the request with status {status}{}: {advice}", detail(reason))]
    Refused {
        /// URL.
        address: String,
        /// 401 or 403.
        status: u16,
        /// The server's words, where it gave any.
        reason: Option<String>,
        /// What to do.
        advice: &'static str,
    },
    /// OAuth did not lead to a token.
    #[error("authorization failed: {0}")]
    Authorization(#[from] OAuthError),
    /// The server answered with another status that is an error.
    #[error("{address} answered with status {status}{}{}", detail(reason), retry(retry_after))]
    Status {
        /// URL.
        address: String,
        /// The status.
        status: u16,
        /// The server's words, cut.
        reason: Option<String>,
        /// The `Retry-After` header, where there was one.
        retry_after: Option<String>,
    },
    /// A JSON-RPC error as reply.
    #[error("the server answered {method} with error {code}: {message}")]
    Rpc {
        /// The request's method.
        method: String,
        /// JSON-RPC error code.
        code: i64,
        /// The server's words, cut.
        message: String,
        /// `error.data` as JSON text, cut; not in the sentence.
        data: Option<String>,
    },
    /// The reply ended before the result.
    #[error("the server broke off its reply to {method}: {reason}")]
    BrokeOff {
        /// The request's method.
        method: String,
        /// How.
        reason: String,
    },
    /// A reply that MCP doesn't allow.
    #[error("the server's reply to {method} is not usable: {reason}")]
    BadReply {
        /// The request's method.
        method: String,
        /// What is wrong with it.
        reason: String,
    },
    /// More than our limits allow.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Bytes, events or pages.
        limit: usize,
    },
    /// A redirect that isn't followed.
    #[error(transparent)]
    BadRedirect(#[from] RefusedRedirect),
    /// The server and this client have no revision in common.
    #[error("the server speaks {offered}, but {asked} was asked for")]
    Revision {
        /// What was asked.
        asked: String,
        /// What the server offered.
        offered: String,
    },
    /// The tool wants input from a user, which a measurement can't give.
    #[error("{method} asks for more input ({wants}), which this client does not give: measure a tool that needs none")]
    InputRequired {
        /// The request's method.
        method: String,
        /// The keys of what it wants.
        wants: String,
    },
    /// The environment's fault: the server's program doesn't start.
    #[error("could not start {program:?}: {reason}")]
    Start {
        /// The program.
        program: String,
        /// The system's words.
        reason: std::io::Error,
    },
    /// The server's process ended while we needed it.
    #[error("the server process {program:?} ended ({how}){}", stderr_end(stderr))]
    ProcessEnded {
        /// The program.
        program: String,
        /// Exit code or signal.
        how: String,
        /// The end of its stderr; may be empty.
        stderr: String,
    },
}

impl ClientError {
    /// Stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            ClientError::NotConnected => "not-connected",
            ClientError::BadArguments { .. } => "bad-arguments",
            ClientError::Net(error) => error.code(),
            ClientError::TimeLimit { .. } => "time-limit",
            ClientError::NotMcp { .. } => "not-mcp",
            ClientError::Refused { .. } => "refused",
            ClientError::Authorization(error) => error.code(),
            ClientError::Status { .. } => "http-status",
            ClientError::Rpc { .. } => "rpc",
            ClientError::BrokeOff { .. } => "broke-off",
            ClientError::BadReply { .. } => "bad-reply",
            ClientError::TooLarge { .. } => "too-large",
            ClientError::BadRedirect(_) => "bad-redirect",
            ClientError::Revision { .. } => "revision",
            ClientError::InputRequired { .. } => "input-required",
            ClientError::Start { .. } => "start",
            ClientError::ProcessEnded { .. } => "process-ended",
        }
    }
}

fn detail(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
}

fn retry(after: &Option<String>) -> String {
    after.as_ref().map(|after| format!("; it asks to wait {after} before the next try")).unwrap_or_default()
}

fn stderr_end(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its stderr ended with: {stderr}") }
}
