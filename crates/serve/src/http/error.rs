//! Why serving can't begin.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why [`super::serve`] failed. All of it happens before the first connection is taken.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Our user's misuse: an option that can't be.
    #[error("the option {option} can't be {value:?}: {reason}")]
    Option {
        /// Which.
        option: &'static str,
        /// The value that was given.
        value: String,
        /// The requirement that the value fails.
        reason: &'static str,
    },
    /// The environment: the address can't be listened on.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The environment: the Unix socket for requests from the other worker processes can't be opened.
    #[error("can't listen for the other processes at {}: {source}", path.display())]
    WorkerSocket {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The environment: a worker can't be started.
    #[error("can't start a worker: {0}")]
    Worker(#[source] io::Error),
    /// Our user's misuse: certificate or key can't be used.
    #[error("can't use the certificate or its key: {0}")]
    Certificate(String),
}
