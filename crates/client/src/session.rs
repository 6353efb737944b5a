//! What stands between connecting and closing.

use std::collections::HashMap;
use std::sync::RwLock;

use mcpace_wire::Revision;
use mcpace_wire::http::ParamHeader;
use mcpace_wire::mcp::{Implementation, ServerCapabilities};

use crate::Raw;
use crate::envelope::Dialect;
use crate::transport::{Link, Task};

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One HTTP endpoint for everything (2025-03-26 and later).
    StreamableHttp,
    /// A GET stream and a second endpoint (2024-11-05).
    HttpSse,
    /// A pair of streams, a line a message: a process, or within this one.
    Pipe,
}

impl Transport {
    /// As it is written in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::StreamableHttp => "streamable-http",
            Transport::HttpSse => "http+sse",
            Transport::Pipe => "stdio",
        }
    }
}

/// What a server told about itself when it was connected to.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The revision that is spoken.
    pub revision: Revision,
    /// How it is reached.
    pub transport: Transport,
    /// Name and version; a server of 2026-07-28 may keep them to itself.
    pub server: Option<Implementation>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How to use it, for a model.
    pub instructions: Option<String>,
    /// The whole result of `initialize` or `server/discover`.
    pub raw: Raw,
}

/// A connected session.
pub(crate) struct Session {
    pub(crate) link: Link,
    pub(crate) dialect: Dialect,
    pub(crate) info: ServerInfo,
    /// Which arguments of which tool go into headers too; empty until tools were listed.
    pub(crate) mirrored: RwLock<HashMap<String, Vec<ParamHeader>>>,
    /// Holds the standalone stream open.
    pub(crate) _listening: Option<Task>,
}

impl Session {
    pub(crate) fn new(link: Link, dialect: Dialect, info: ServerInfo, listening: Option<Task>) -> Self {
        Self { link, dialect, info, mirrored: RwLock::default(), _listening: listening }
    }

    /// Whether requests tell their target in headers.
    pub(crate) fn has_headers(&self) -> bool {
        self.info.revision.has_request_headers() && self.info.transport == Transport::StreamableHttp
    }
}
