//! Settings of a client.

use std::ffi::OsString;
use std::time::Duration;

use http::HeaderMap;
use mcpace_client_protocol::Mode;
use mcpace_oauth::Auth;
use mcpace_wire::revision::Revision;
use url::Url;

/// Where the server is.
#[derive(Clone, Debug)]
pub enum ServerEndpoint {
    /// Over HTTP, by an `http` or `https` URL.
    Http(Url),
    /// A process of our own, spoken to over its stdin and stdout. No shell is involved.
    Stdio {
        /// The program, looked up in `PATH` where it has no slash.
        program: OsString,
        /// Its arguments, as they are.
        args: Vec<OsString>,
        /// Variables to set beside those of this process.
        environment: Vec<(OsString, OsString)>,
    },
}

/// How a client behaves. `ClientOptions::default()` suits a server on this machine.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The one revision to speak; `None` finds out what the server speaks, newest first.
    pub revision: Option<Revision>,
    /// How to authorize; only over HTTP.
    pub auth: Auth,
    /// Headers to send beside the protocol's own, to the server's own origin only.
    pub headers: HeaderMap,
    /// Time limit of one operation, authorization and everything else included.
    pub limit: Duration,
    /// Time limit of opening one connection, TLS included.
    pub connect_limit: Duration,
    /// How long a stdio server may take to answer the question for its era before it counts as legacy.
    pub probe_limit: Duration,
    /// How long a stdio server may take to end after its stdin was closed, and again after SIGTERM.
    pub shutdown_limit: Duration,
    /// How long an operation waits, before it begins, for the stream of the last reply to end, so that its connection
    /// can be used again: most servers end it right after the result, in a write of its own. A stream that stays open
    /// longer is left to the background, and a new connection is opened.
    pub settle_limit: Duration,
    /// Ask the server to tell how long its layers took (`_meta` key `dev.mcpace/timing`).
    pub server_timing: bool,
    /// Begin a trace with each request after the handshake, so that spans of the server lead to it: `traceparent` in `_meta`,
    /// and over HTTP in the header.
    pub traceparent: bool,
    /// Hold the standalone GET stream of the legacy revisions open beside the calls.
    pub standalone_get: bool,
    /// A PEM certificate to trust beside the system's.
    pub extra_root: Option<String>,
    /// Bytes of one message of the server past which a reply counts as too large; at most 16 MiB.
    pub message_limit: usize,
}

impl ClientOptions {
    pub(super) fn mode(&self) -> Mode {
        self.revision.map_or(Mode::Auto, Mode::Only)
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            revision: None,
            auth: Auth::None,
            headers: HeaderMap::new(),
            limit: Duration::from_secs(60),
            connect_limit: Duration::from_secs(10),
            probe_limit: Duration::from_secs(10),
            shutdown_limit: Duration::from_secs(2),
            settle_limit: Duration::from_millis(20),
            server_timing: false,
            traceparent: false,
            standalone_get: false,
            extra_root: None,
            message_limit: 16 * 1024 * 1024,
        }
    }
}
