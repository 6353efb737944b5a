//! Errors between here and a peer, told apart by whose fault they are.

use std::time::Duration;

use thiserror::Error;

/// Why an instrument could not do its work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// Our caller's fault: the URL is none that MCP can be reached at.
    #[error("{url:?} is not a usable URL: {reason}")]
    BadUrl {
        /// As given.
        url: String,
        /// Reason why it can't be used.
        reason: String,
    },
    /// The environment's fault: the port is taken, or the address isn't ours.
    #[error("could not listen on {address}: {reason}")]
    Listen {
        /// The address asked for.
        address: String,
        /// The system's words.
        reason: std::io::Error,
    },
    /// The environment's or the peer's fault: nobody answers there.
    #[error("could not connect to {address}: {reason}")]
    Connect {
        /// Host and port.
        address: String,
        /// The system's words.
        reason: String,
    },
    /// The peer's certificate or TLS was refused.
    #[error("TLS with {host} failed: {reason}")]
    Tls {
        /// The name that the certificate must match.
        host: String,
        /// rustls's words.
        reason: String,
    },
    /// A limit of time ran out.
    #[error("{what} took longer than {}", human_duration(*limit))]
    TimeLimit {
        /// Name of the event that was waited for.
        what: &'static str,
        /// The limit that ran out.
        limit: Duration,
    },
    /// The environment's fault: a file or pipe of ours.
    #[error("{what}: {reason}")]
    Io {
        /// Name of the failed action.
        what: &'static str,
        /// The system's words.
        reason: std::io::Error,
    },
    /// The recording could not be kept.
    #[error(transparent)]
    Record(#[from] mcpace_record::RecordError),
}

fn human_duration(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

impl NetError {
    /// Stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            NetError::BadUrl { .. } => "bad-url",
            NetError::Listen { .. } => "listen",
            NetError::Connect { .. } => "connect",
            NetError::Tls { .. } => "tls",
            NetError::TimeLimit { .. } => "time-limit",
            NetError::Io { .. } => "io",
            NetError::Record(_) => "record",
        }
    }
}
