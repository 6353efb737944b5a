//! The head of a request as it came, for handlers.

use std::net::SocketAddr;

use bytes::Bytes;

/// The connection that a request came over, as far as the transport knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The client's address, or that of the proxy before it.
    pub client: Option<SocketAddr>,
    /// The address that the client reached.
    pub server: Option<SocketAddr>,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
}

/// The head of a request as it came, for handlers. Cheap to clone; read only where somebody looks.
#[derive(Clone)]
pub struct Headers {
    /// Path and query.
    target: Bytes,
    /// Lines, as HTTP/1.1 has them; without the request line.
    lines: Bytes,
    ends: Ends,
}

impl Headers {
    /// Takes a request target and header lines that an HTTP parser has accepted.
    pub(crate) fn new(target: Bytes, lines: Bytes, ends: Ends) -> Self {
        Self { target, lines, ends }
    }

    /// The path and query that the request is for.
    #[must_use]
    pub fn target(&self) -> &str {
        std::str::from_utf8(&self.target).unwrap_or_default()
    }

    /// The connection that the request came over.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// All of them, in their order: names as they came, values as bytes (RFC 9110 §5.5 knows no encoding).
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.lines.split(|&byte| byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?;
            Some((name, line[colon + 1..].trim_ascii()))
        })
    }

    /// The first of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// Values are shown to nobody: there are tokens among them.
impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}
