//! The session between connecting and closing.

use std::collections::HashMap;
use std::sync::RwLock;

use mcpace_client_protocol::{Dialect, ServerInfo, Transport};
use mcpace_wire::http::ParamHeader;

use crate::transport::{BackgroundTask, Link};

/// A connected session.
pub(crate) struct ConnectedSession {
    pub(crate) link: Link,
    pub(crate) dialect: Dialect,
    pub(crate) info: ServerInfo,
    /// Annotated arguments of each tool, which headers repeat; empty until tools were listed.
    pub(crate) mirrored: RwLock<HashMap<String, Vec<ParamHeader>>>,
    /// Holds the standalone stream open.
    pub(crate) _listening: Option<BackgroundTask>,
}

impl ConnectedSession {
    pub(crate) fn new(link: Link, dialect: Dialect, info: ServerInfo, listening: Option<BackgroundTask>) -> Self {
        Self { link, dialect, info, mirrored: RwLock::default(), _listening: listening }
    }

    /// Whether requests tell their target in headers.
    pub(crate) fn has_headers(&self) -> bool {
        self.info.revision.has_request_headers() && self.info.transport == Transport::StreamableHttp
    }
}
