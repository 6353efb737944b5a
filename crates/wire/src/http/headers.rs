//! The headers of a request that MCP looks at, picked out in one pass.

use super::Accept;

/// Header names, in the lower case that HTTP/2 demands and HTTP/1.1 doesn't mind.
pub mod name {
    /// The revision spoken. Since 2025-06-18.
    pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
    /// The session (2025-03-26 to 2025-11-25).
    pub const SESSION_ID: &str = "mcp-session-id";
    /// The method of the body. Since 2026-07-28.
    pub const METHOD: &str = "mcp-method";
    /// The tool, prompt, resource or task of the body. Since 2026-07-28.
    pub const NAME: &str = "mcp-name";
    /// Prefix of the name of a header for a tool's argument. Since 2026-07-28.
    pub const PARAM_PREFIX: &str = "mcp-param-";
    /// Where a lost stream is taken up again (2025-03-26 to 2025-11-25).
    pub const LAST_EVENT_ID: &str = "last-event-id";
    /// Media types that the client accepts.
    pub const ACCEPT: &str = "accept";
    /// Media type of the body.
    pub const CONTENT_TYPE: &str = "content-type";
    /// Which web page asks.
    pub const ORIGIN: &str = "origin";
    /// Why not.
    pub const WWW_AUTHENTICATE: &str = "www-authenticate";
    /// Says `no` to proxies that would hold back a stream of events.
    pub const X_ACCEL_BUFFERING: &str = "x-accel-buffering";
}

/// A header that must be there at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field<'a> {
    /// Not there.
    #[default]
    Absent,
    /// There once; white space around it removed.
    Value(&'a [u8]),
    /// There more than once.
    Repeated,
}

impl<'a> Field<'a> {
    /// Takes another header of this name into account.
    pub fn add(&mut self, value: &'a [u8]) {
        *self = match self {
            Field::Absent => Field::Value(value.trim_ascii()),
            Field::Value(_) | Field::Repeated => Field::Repeated,
        };
    }

    /// The value, if it is there once and is ASCII.
    #[must_use]
    pub fn ascii(self) -> Option<&'a str> {
        match self {
            Field::Value(value) if value.is_ascii() => std::str::from_utf8(value).ok(),
            _ => None,
        }
    }

    /// Whether it is not there at all.
    #[must_use]
    pub fn is_absent(self) -> bool {
        self == Field::Absent
    }
}

/// The headers of a request that MCP looks at.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub protocol_version: Field<'a>,
    /// `Mcp-Session-Id`.
    pub session_id: Field<'a>,
    /// `Mcp-Method`.
    pub method: Field<'a>,
    /// `Mcp-Name`.
    pub name: Field<'a>,
    /// `Last-Event-ID`.
    pub last_event_id: Field<'a>,
    /// `Content-Type`.
    pub content_type: Field<'a>,
    /// `Origin`.
    pub origin: Field<'a>,
    /// `Accept`, all of them together; `None` if there is none.
    pub accept: Option<Accept>,
    /// `Mcp-Param-*`: what follows the prefix, as it was spelled, and the value.
    pub params: Vec<(&'a str, Field<'a>)>,
}

impl<'a> RequestHeaders<'a> {
    /// Picks them out of all headers. Allocates only for `Mcp-Param-*`.
    #[must_use]
    pub fn of(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut found = RequestHeaders::default();
        for (name, value) in headers {
            found.add(name, value);
        }
        found
    }

    /// The header for the tool's argument of this annotation.
    #[must_use]
    pub fn param(&self, annotation: &str) -> Field<'a> {
        let found = self.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(annotation));
        found.map_or(Field::Absent, |(_, field)| *field)
    }

    fn add(&mut self, name: &'a str, value: &'a [u8]) {
        // By length first: most headers are none of ours.
        let field = match name.len() {
            6 if name.eq_ignore_ascii_case(name::ACCEPT) => {
                self.accept.get_or_insert_default().add(value);
                return;
            }
            6 if name.eq_ignore_ascii_case(name::ORIGIN) => &mut self.origin,
            8 if name.eq_ignore_ascii_case(name::NAME) => &mut self.name,
            10 if name.eq_ignore_ascii_case(name::METHOD) => &mut self.method,
            12 if name.eq_ignore_ascii_case(name::CONTENT_TYPE) => &mut self.content_type,
            13 if name.eq_ignore_ascii_case(name::LAST_EVENT_ID) => &mut self.last_event_id,
            14 if name.eq_ignore_ascii_case(name::SESSION_ID) => &mut self.session_id,
            20 if name.eq_ignore_ascii_case(name::PROTOCOL_VERSION) => &mut self.protocol_version,
            _ => return self.add_param(name, value),
        };
        field.add(value);
    }

    fn add_param(&mut self, name: &'a str, value: &'a [u8]) {
        let Some((prefix, annotation)) = name.split_at_checked(name::PARAM_PREFIX.len()) else {
            return;
        };
        if !prefix.eq_ignore_ascii_case(name::PARAM_PREFIX) || annotation.is_empty() {
            return;
        }
        match self.params.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(annotation)) {
            Some((_, field)) => field.add(value),
            None => self.params.push((annotation, Field::Value(value.trim_ascii()))),
        }
    }
}
