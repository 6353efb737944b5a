//! A request's headers, picked out in one pass: those of MCP by `wire`, and the few that only HTTP has.

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST};
use http::request::Parts;
use mcpace_wire::http::{Accept, MediaType, RequestHeaders};

/// See the module.
pub(super) struct Fields<'a> {
    /// MCP's.
    pub(super) mcp: RequestHeaders<'a>,
    /// `Host`, or `:authority` in HTTP/2. `None` if it is missing or there twice.
    pub(super) host: Option<&'a [u8]>,
    /// `Authorization`, the first one.
    pub(super) authorization: Option<&'a [u8]>,
    /// `Content-Length`; hyper has checked it.
    pub(super) content_length: Option<u64>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(head: &'a Parts) -> Self {
        let mut hosts = 0;
        let (mut host, mut authorization, mut content_length) = (None, None, None);
        let mcp = RequestHeaders::of(head.headers.iter().map(|(name, value)| {
            // Standard names compare by their number.
            if *name == HOST {
                hosts += 1;
                host = Some(value.as_bytes());
            } else if *name == AUTHORIZATION {
                authorization = authorization.or(Some(value.as_bytes()));
            } else if *name == CONTENT_LENGTH {
                content_length = value.to_str().ok().and_then(|length| length.parse().ok());
            }
            (name.as_str(), value.as_bytes())
        }));
        // In HTTP/2, and in HTTP/1.1's absolute form, the target's own authority counts (RFC 9112 §3.2.2).
        if let Some(authority) = head.uri.authority() {
            host = Some(authority.as_str().as_bytes());
        } else if hosts > 1 {
            host = None;
        }
        Self { mcp, host, authorization, content_length }
    }

    /// What the client reads; all of it where it doesn't say (RFC 9110 §12.5.1).
    pub(super) fn accept(&self) -> Accept {
        self.mcp.accept.unwrap_or_else(|| Accept::parse(b"*/*"))
    }

    pub(super) fn is_json(&self) -> bool {
        let value = self.mcp.content_type;
        // Nearly everybody's spelling, without a copy.
        value.ascii() == Some("application/json")
            || value.ascii().is_some_and(|text| MediaType::of(text) == MediaType::Json)
    }
}
