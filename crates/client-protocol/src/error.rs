//! The failures of a client, divided by whose fault they are.

use std::time::Duration;

use mcpace_oauth::{OAuthError, RefusedRedirect};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::ErrorObject;
use mcpace_wire::mcp::Json;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A JSON-RPC error: the server's answer, or a callback's to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// See [`mcpace_wire::jsonrpc::code`].
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Data whose form the code defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl From<ErrorObject<'_>> for RpcError {
    fn from(error: ErrorObject<'_>) -> Self {
        Self { code: error.code, message: error.message.into_owned(), data: error.data.map(Json::from) }
    }
}

/// Why a request failed. Each is one sentence for a person and a stable code for programs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Our caller's fault: a target that can't be.
    #[error("{target:?} can't be connected to: {reason}")]
    BadTarget {
        /// The URL or the command.
        target: String,
        /// Why not.
        reason: String,
    },
    /// Our caller's fault: a header that can't be sent.
    #[error("the header {name:?} can't be sent: {reason}")]
    BadHeader {
        /// Its name.
        name: String,
        /// Why it can't be sent. The header's value is a secret and never shown.
        reason: &'static str,
    },
    /// Our caller's fault: parameters that can't be sent.
    #[error("the parameters of {method} can't be sent: {reason}")]
    BadParams {
        /// The request's method.
        method: &'static str,
        /// Why not.
        reason: String,
    },
    /// Our caller's fault: the method is not in the revision that is spoken.
    #[error("{method} does not exist in revision {revision}, which this server speaks{}", replacement_method(method))]
    NotInRevision {
        /// The request's method.
        method: &'static str,
        /// The revision of the session.
        revision: Revision,
    },
    /// Our caller's fault: a request after `close`.
    #[error("the client is closed")]
    Closed,
    /// Our caller's fault: an operation before `connect` or after `disconnect`.
    #[error("the client is not connected: call connect first")]
    NotConnected,
    /// Our caller's fault: a tool's arguments are no JSON object.
    #[error("the arguments of {tool:?} are no JSON object")]
    BadArguments {
        /// The tool.
        tool: String,
    },
    /// A failure of the driver's own transport, with the driver's words.
    #[error("{message}")]
    Transport {
        /// Stable code, for programs.
        code: &'static str,
        /// One sentence.
        message: String,
    },
    /// The environment's fault: no connection.
    #[error("could not connect to {address}: {reason}")]
    Connect {
        /// Host and port.
        address: String,
        /// The system's words.
        reason: String,
    },
    /// The environment's fault: TLS.
    #[error("TLS with {host} failed: {reason}")]
    Tls {
        /// The server's name.
        host: String,
        /// Why.
        reason: String,
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
    /// The limit of a request, or of connecting, ran out.
    #[error("{what} took longer than its limit of {} s", limit.as_secs_f64())]
    TimeLimit {
        /// The method or the operation that took long.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The peer answered, but not as an MCP server does.
    #[error("{address} does not answer as an MCP server: {answer}; check the URL and its path")]
    NotMcp {
        /// URL or program.
        address: String,
        /// Its answer: status and content type.
        answer: String,
    },
    /// The peer refused us: 401 or 403.
    #[error("{address} refused the request with status {status}{}: {advice}", reason_suffix(reason))]
    Refused {
        /// URL.
        address: String,
        /// 401 or 403.
        status: u16,
        /// The server's words, if it gave any.
        reason: Option<String>,
        /// Advice for the user.
        advice: &'static str,
    },
    /// OAuth did not lead to a token.
    #[error("authorization failed: {0}")]
    Authorization(#[from] OAuthError),
    /// The server answered with another status that is an error.
    #[error("{address} answered with status {status}{}{}", reason_suffix(reason), retry_suffix(retry_after))]
    Status {
        /// URL.
        address: String,
        /// The status.
        status: u16,
        /// The server's words, cut.
        reason: Option<String>,
        /// The `Retry-After` header, if there was one.
        retry_after: Option<String>,
    },
    /// A JSON-RPC error as answer.
    #[error("the server answered {method} with error {}: {}", error.code, mcpace_wire::quote_printable(&error.message))]
    Rpc {
        /// The request's method.
        method: &'static str,
        /// The error, to the letter.
        error: RpcError,
    },
    /// The reply ended before the answer.
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
        /// The fault of the reply.
        reason: String,
    },
    /// More than our limits allow.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// Bytes, events, pages or rounds.
        limit: usize,
    },
    /// A redirect that isn't followed.
    #[error(transparent)]
    BadRedirect(#[from] RefusedRedirect),
    /// The server and this client have no revision in common.
    #[error("the server speaks {offered}, but {asked} was asked for")]
    Revision {
        /// The revision that was asked for.
        asked: String,
        /// The revisions that the server offered.
        offered: String,
    },
    /// The server wants input that no callback gives, or that a callback refused.
    #[error("{method} needs an answer to {wants}, which was refused: {}", mcpace_wire::quote_printable(&error.message))]
    InputRefused {
        /// The request's method.
        method: &'static str,
        /// The method that the server asked for.
        wants: String,
        /// The refusal.
        error: RpcError,
    },
    /// The tool wants input from a user, which a measurement can't give.
    #[error("{method} asks for more input ({wants}), which this client does not give: measure a tool that needs none")]
    InputRequired {
        /// The request's method.
        method: String,
        /// The keys of the input that the server asks for.
        wants: String,
    },
    /// The task that a request became was cancelled.
    #[error("the task that {method} became was cancelled{}", reason_suffix(reason))]
    TaskCancelled {
        /// The request's method.
        method: &'static str,
        /// The server's words.
        reason: Option<String>,
    },
}

impl ClientError {
    /// Stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            ClientError::BadTarget { .. } => "bad-target",
            ClientError::BadHeader { .. } => "bad-header",
            ClientError::BadParams { .. } => "bad-params",
            ClientError::NotInRevision { .. } => "not-in-revision",
            ClientError::Closed => "closed",
            ClientError::NotConnected => "not-connected",
            ClientError::BadArguments { .. } => "bad-arguments",
            ClientError::Transport { code, .. } => code,
            ClientError::Connect { .. } => "connect",
            ClientError::Tls { .. } => "tls",
            ClientError::Start { .. } => "start",
            ClientError::ProcessEnded { .. } => "process-ended",
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
            ClientError::InputRefused { .. } => "input-refused",
            ClientError::InputRequired { .. } => "input-required",
            ClientError::TaskCancelled { .. } => "task-cancelled",
        }
    }

    /// A reply that MCP doesn't allow; `reason` is cut to a line.
    pub fn bad_reply(method: &str, reason: impl std::fmt::Display) -> Self {
        let reason = mcpace_wire::quote_printable(&reason.to_string());
        ClientError::BadReply { method: method.to_owned(), reason }
    }
}

fn replacement_method(method: &str) -> &'static str {
    match method {
        "subscriptions/listen" => ": its changes come by themselves, or after resources/subscribe",
        "resources/subscribe" | "resources/unsubscribe" => ": listen for its changes instead",
        "logging/setLevel" => ": set the level in the client's options instead",
        _ => "",
    }
}

fn reason_suffix(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
}

fn retry_suffix(after: &Option<String>) -> String {
    after.as_ref().map(|after| format!("; it asks to wait {after} before the next try")).unwrap_or_default()
}

/// The end of a sentence about a server process, with the last lines that the process wrote to stderr, if there are any.
pub fn stderr_end(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its stderr ended with: {stderr}") }
}
