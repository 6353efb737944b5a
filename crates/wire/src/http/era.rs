//! Stateless or with sessions: which rules does a request follow?

use super::RequestHeaders;
use crate::Revision;
use crate::mcp::ParamsOutline;

/// The two ways in which MCP is spoken (2026-07-28, basic/versioning, "Terminology").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2025-11-25 and before: `initialize`, then a session.
    Legacy,
    /// 2026-07-28 and after: each request tells its version and the client's capabilities.
    Modern,
}

impl Era {
    /// The era of a request.
    ///
    /// Its `_meta` decides. A version there that is unknown here is modern: no legacy client sends that key, and the modern
    /// path has an answer for it (`-32022`). Without one, a header that names a modern revision makes the request modern
    /// and wrong (`-32602`), not legacy.
    #[must_use]
    pub fn of(headers: &RequestHeaders<'_>, outline: &ParamsOutline<'_>) -> Era {
        let claimed = outline.meta.as_ref().and_then(|meta| meta.protocol_version.as_deref());
        match claimed {
            Some(version) => Era::of_version(version, Era::Modern),
            None => match headers.protocol_version.ascii() {
                Some(version) => Era::of_version(version, Era::Legacy),
                None => Era::Legacy,
            },
        }
    }

    /// Era of a server that sends this error code. Only modern servers send these codes (2026-07-28,
    /// basic/transports/streamable-http, "Backward Compatibility"). `None` for all others: fall back to `initialize`.
    #[must_use]
    pub fn of_error_code(code: i64) -> Option<Era> {
        use crate::jsonrpc::code::{HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION};
        matches!(code, HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION)
            .then_some(Era::Modern)
    }

    fn of_version(version: &str, otherwise: Era) -> Era {
        match version.parse::<Revision>() {
            Ok(revision) if revision.is_modern() => Era::Modern,
            Ok(_) => Era::Legacy,
            Err(_) => otherwise,
        }
    }
}
