//! A request's headers, picked out in one pass: those of MCP by `wire`, and the few that only HTTP has.

use bytes::Bytes;
use http::{HeaderMap, Uri};
use mcpace_wire::http::{Accept, Field, MediaType, RequestHeaders};

use super::connection_ends::RequestOrigin;
use crate::headers::Headers;

/// The headers of one request that the transport reads.
pub(super) struct Fields<'a> {
    /// MCP's.
    pub(super) mcp: RequestHeaders<'a>,
    /// `Host`, or `:authority` in HTTP/2. `None` if it is missing or there twice.
    pub(super) host: Option<&'a [u8]>,
    /// `Authorization`. `None` also where it is there twice: what stands before us might have looked at the other one.
    pub(super) authorization: Option<&'a [u8]>,
    /// `Content-Length`, as it came.
    content_length: Field<'a>,
    source: HeaderSource<'a>,
    /// Where the request comes from.
    pub(super) origin: RequestOrigin,
}

/// Where all headers can be read again, for the few who want them.
#[derive(Clone, Copy)]
pub(super) enum HeaderSource<'a> {
    /// A head as it came, request line included.
    Head(&'a [u8]),
    Map(&'a HeaderMap, &'a Uri),
}

impl<'a> Fields<'a> {
    /// `authority` is the one that the request's target names, where it does.
    pub(super) fn from_headers(
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
        authority: Option<&'a str>,
        source: HeaderSource<'a>,
    ) -> Self {
        let (mut host, mut authorization, mut content_length) = (Field::Absent, Field::Absent, Field::Absent);
        let mcp = RequestHeaders::of(headers.inspect(|&(name, value)| {
            // By length first: most headers are none of these.
            match name.len() {
                4 if name.eq_ignore_ascii_case("host") => host.add(value),
                13 if name.eq_ignore_ascii_case("authorization") => authorization.add(value),
                14 if name.eq_ignore_ascii_case("content-length") => content_length.add(value),
                _ => {}
            }
        }));
        // In HTTP/2, and in HTTP/1.1's absolute form, the target's own authority counts (RFC 9112 §3.2.2).
        let host = match (authority, host) {
            (Some(authority), _) => Some(authority.as_bytes()),
            (None, Field::Value(host)) => Some(host),
            (None, Field::Absent | Field::Repeated) => None,
        };
        let authorization = match authorization {
            Field::Value(value) => Some(value),
            Field::Absent | Field::Repeated => None,
        };
        Self { mcp, host, authorization, content_length, source, origin: RequestOrigin::default() }
    }

    /// How long the body is, if that was said once, and plainly: digits alone, few enough not to overflow.
    pub(super) fn content_length(&self) -> Option<usize> {
        let text = self.content_length.ascii()?;
        let is_plain = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    }

    /// All headers, to keep.
    pub(super) fn copy_headers(&self) -> Headers {
        let (target, lines) = match self.source {
            HeaderSource::Head(head) => {
                let head = Bytes::copy_from_slice(head);
                let first = head.iter().position(|&byte| byte == b'\n').map_or(head.len(), |end| end + 1);
                let mut words = head[..first].split(|&byte| byte == b' ');
                let target = words.nth(1).map_or_else(Bytes::new, |target| head.slice_ref(target));
                (target, head.slice(first..))
            }
            HeaderSource::Map(map, uri) => {
                let mut lines = Vec::with_capacity(512);
                for (name, value) in map {
                    lines.extend_from_slice(name.as_str().as_bytes());
                    lines.push(b':');
                    lines.extend_from_slice(value.as_bytes());
                    lines.push(b'\n');
                }
                let target = uri.path_and_query().map_or("", |target| target.as_str());
                (Bytes::copy_from_slice(target.as_bytes()), lines.into())
            }
        };
        self.origin.request_headers(target, lines)
    }

    /// The media types that the client accepts; all of them without an `Accept` header (RFC 9110 §12.5.1).
    pub(super) fn accepted_types(&self) -> Accept {
        self.mcp.accept.unwrap_or_else(|| Accept::parse(b"*/*"))
    }

    pub(super) fn is_json(&self) -> bool {
        let value = self.mcp.content_type;
        // Nearly everybody's spelling, without a copy.
        value == Field::Value(b"application/json")
            || value.ascii().is_some_and(|text| MediaType::of(text) == MediaType::Json)
    }
}
