//! Settings of a client, and of one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpace_oauth::Auth;
use mcpace_wire::mcp::{Extra, Implementation, Json, LoggingLevel, ProgressParams};
use serde::Serialize;

use crate::{CacheMode, Callbacks, ClientError, Mode};

/// How a client behaves. [`Options::default`] suits most; it declares no capability and asks nobody for consent.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which revision to speak.
    pub mode: Mode,
    /// Name and version of the client.
    pub client_info: Implementation,
    /// Functions that answer the server's questions and hear its notifications. Each answer is declared as a capability.
    pub callbacks: Callbacks,
    /// How to authorize; only over HTTP.
    pub auth: Auth,
    /// 2026-07-28: from which level on log messages are wanted; none without it.
    pub log_level: Option<LoggingLevel>,
    /// 2026-07-28: take tasks for an answer (the extension `io.modelcontextprotocol/tasks`), and follow them to their end.
    pub tasks: bool,
    /// Keep results that the server allows to be kept.
    pub cache: bool,
    /// Headers to send with each HTTP request, such as a gateway's key. Those of the protocol can't be changed.
    pub headers: Vec<(String, String)>,
    /// A PEM certificate to trust beside the system's.
    pub extra_root: Option<String>,
    /// How much is too much.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            client_info: Implementation::new("mcpace", env!("CARGO_PKG_VERSION")),
            callbacks: Callbacks::default(),
            auth: Auth::None,
            log_level: None,
            tasks: false,
            cache: true,
            headers: Vec::new(),
            extra_root: None,
            limits: Limits::default(),
        }
    }
}

/// Bounds on what a server can make the client do, keep or wait for. Sizes in bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// One request, where its [`CallOptions`] say nothing else; each round of one in several rounds on its own.
    pub call_time: Duration,
    /// All of connecting: opening, authorizing, agreeing on a revision.
    pub connect_time: Duration,
    /// Opening one connection, TLS included.
    pub open_time: Duration,
    /// How long a process may take to answer the question for its era before it counts as legacy.
    pub probe_time: Duration,
    /// How long a process may take to end after its stdin was closed, and again after SIGTERM; and how long a server may
    /// take to hear that a session is over.
    pub close_time: Duration,
    /// One message of the server.
    pub message: usize,
    /// Messages of the server ahead of one answer.
    pub messages_per_call: usize,
    /// Questions of the server that are being answered at a time; more are refused.
    pub asked: usize,
    /// Rounds of a request that the server answers with a request for input.
    pub rounds: usize,
    /// Pages of a list, where all are read.
    pub pages: usize,
    /// HTTP connections for requests at a time; more requests wait. Streams that stay open come on top.
    pub connections: usize,
    /// HTTP connections that are kept idle.
    pub idle_connections: usize,
    /// Bytes that are kept for a process that does not read.
    pub unread: usize,
    /// Results that are kept.
    pub cached: usize,
    /// Changes that a subscription holds for a program that doesn't take them.
    pub changes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_time: Duration::from_secs(300),
            connect_time: Duration::from_secs(60),
            open_time: Duration::from_secs(10),
            probe_time: Duration::from_secs(10),
            close_time: Duration::from_secs(2),
            message: 16 << 20,
            messages_per_call: 100_000,
            asked: 64,
            rounds: 10,
            pages: 1000,
            connections: 64,
            idle_connections: 16,
            unread: 32 << 20,
            cached: 1024,
            changes: 1024,
        }
    }
}

/// How far a request is.
pub type Progress = ProgressParams;

/// Settings of one call.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// Another limit than the client's [`Limits::call_time`].
    pub time: Option<Duration>,
    /// Hears of progress. Called on the way of the reply: must return at once.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Members for the request's `_meta`; they win over ours.
    pub meta: Option<Extra>,
    /// Whether a kept result will do.
    pub cache: CacheMode,
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions").field("time", &self.time).field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// A tool's or prompt's arguments: any value that serde writes as an object, or JSON text that goes out to the letter.
pub struct Arguments(Option<Json>);

impl Arguments {
    /// JSON text, an object's.
    ///
    /// # Errors
    /// [`ClientError::BadParams`].
    pub fn from_text(text: String) -> Result<Self, ClientError> {
        Json::from_text(text)
            .map_err(|error| invalid_options(&error.to_string()))
            .and_then(|json| checked_arguments(Some(json)))
    }

    /// Any value; null for none.
    ///
    /// # Errors
    /// [`ClientError::BadParams`] where it is no object.
    pub fn of(value: &impl Serialize) -> Result<Self, ClientError> {
        let json = Json::of(value).map_err(|error| invalid_options(&error.to_string()))?;
        checked_arguments((json.get() != "null").then_some(json))
    }

    pub(crate) fn as_json(&self) -> Option<&str> {
        self.0.as_ref().map(Json::get)
    }
}

fn checked_arguments(json: Option<Json>) -> Result<Arguments, ClientError> {
    match &json {
        Some(json) if !json.get().trim_start().starts_with('{') => Err(invalid_options("arguments are a JSON object")),
        _ => Ok(Arguments(json)),
    }
}

fn invalid_options(reason: &str) -> ClientError {
    ClientError::BadParams { method: "the call", reason: reason.to_owned() }
}
