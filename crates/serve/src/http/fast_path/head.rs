//! Which requests go the direct way: the plain POST of a message, as nearly every client sends it.
//!
//! Constraint: whatever could be read in two ways is not plain. Framing is judged here only in its one unmistakable form;
//! all the rest, errors included, is hyper's.

use std::str;

use httparse::{EMPTY_HEADER, Request, Status};

use crate::http::fields::{Fields, HeaderSource};

/// More of them, and hyper reads the head.
const HEADERS: usize = 40;

/// Why there is no plain head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotPlain {
    /// Its end has not come yet.
    Partial,
    /// It is something else.
    Other,
}

/// A plain request's head.
pub(super) struct PlainHead<'b> {
    pub(super) fields: Fields<'b>,
    /// Where its body begins.
    pub(super) length: usize,
    /// How long its body is.
    pub(super) body: usize,
}

impl<'b> PlainHead<'b> {
    /// Reads the head of a POST to `path`, with which `bytes` begin.
    pub(super) fn read_head(bytes: &'b [u8], path: &str) -> Result<Self, NotPlain> {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut request = Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(Status::Complete(length)) => length,
            // A head that doesn't begin as a POST can't become plain.
            Ok(Status::Partial) if b"POST ".starts_with(&bytes[..bytes.len().min(5)]) => return Err(NotPlain::Partial),
            Ok(Status::Partial) | Err(_) => return Err(NotPlain::Other),
        };
        let is_plain = request.method == Some("POST") && request.path == Some(path) && request.version == Some(1);
        if !is_plain || request.headers.iter().any(|header| is_special(header.name, header.value)) {
            return Err(NotPlain::Other);
        }
        let fields = Fields::from_headers(
            request.headers.iter().map(|header| (header.name, header.value)),
            None,
            HeaderSource::Head(&bytes[..length]),
        );
        let body = fields.content_length().ok_or(NotPlain::Other)?;
        Ok(PlainHead { fields, length, body })
    }
}

/// Headers that change how a connection or a body is read (RFC 9110 §7.6.1, §10.1.1; RFC 9112 §6.1).
fn is_special(name: &str, value: &[u8]) -> bool {
    match name.len() {
        6 => name.eq_ignore_ascii_case("expect"),
        7 => name.eq_ignore_ascii_case("upgrade") || name.eq_ignore_ascii_case("trailer"),
        10 => name.eq_ignore_ascii_case("connection") && !value.eq_ignore_ascii_case(b"keep-alive"),
        17 => name.eq_ignore_ascii_case("transfer-encoding"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";

    fn read(text: &str) -> Result<PlainHead<'_>, NotPlain> {
        PlainHead::read_head(text.as_bytes(), "/mcp")
    }

    #[track_caller]
    fn assert_not_plain(text: &str, why: NotPlain) {
        assert_eq!(read(text).err(), Some(why), "{text}");
    }

    #[test]
    fn a_plain_post_is_read() {
        let head = read(PLAIN).unwrap_or_else(|_| panic!("not plain"));
        assert_eq!(&PLAIN[head.length..], "{}");
        assert_eq!(head.body, 2);
        assert_eq!(head.fields.host, Some(&b"localhost"[..]));
    }

    #[test]
    fn every_beginning_of_a_plain_post_is_partial() {
        for end in 0..PLAIN.len() - 2 {
            assert_not_plain(&PLAIN[..end], NotPlain::Partial);
        }
    }

    #[test]
    fn whatever_could_be_read_otherwise_is_hypers() {
        let cases = [
            ("POST ", "GET "),
            ("POST ", "PUT "),
            ("/mcp ", "/mcp?x=1 "),
            ("/mcp ", "/MCP "),
            ("/mcp ", "http://localhost/mcp "),
            ("HTTP/1.1", "HTTP/1.0"),
            ("HTTP/1.1", "HTTP/2.0"),
            ("Content-Length: 2\r\n", ""),
            ("Content-Length: 2", "Content-Length: +2"),
            ("Content-Length: 2", "Content-Length: 0x2"),
            ("Content-Length: 2", "Content-Length: 2, 2"),
            ("Content-Length: 2", "Content-Length: "),
            ("Content-Length: 2", "Content-Length: 99999999999999999999"),
            ("Content-Length: 2", "Content-Length: 2\r\nContent-Length: 2"),
            ("Content-Length: 2", "Content-Length: 2\r\nTransfer-Encoding: chunked"),
            ("Content-Length: 2", "Content-Length: 2\r\ntransfer-encoding: identity"),
            ("Content-Length: 2", "Content-Length : 2"),
            ("Content-Length: 2", "Content-Length: 2\r\n folded"),
            ("Content-Length: 2", "Content-Length: 2\r\nExpect: 100-continue"),
            ("Content-Length: 2", "Content-Length: 2\r\nUpgrade: h2c"),
            ("Content-Length: 2", "Content-Length: 2\r\nConnection: close"),
            ("Content-Length: 2", "Content-Length: 2\r\nConnection: keep-alive, upgrade"),
            ("Host", "Ho\0st"),
        ];
        for (from, to) in cases {
            assert_not_plain(&PLAIN.replacen(from, to, 1), NotPlain::Other);
        }
    }

    #[test]
    fn a_head_with_very_many_headers_is_hypers() {
        let text = PLAIN.replacen("\r\n", &format!("\r\n{}", "A: b\r\n".repeat(HEADERS)), 1);
        assert_not_plain(&text, NotPlain::Other);
    }
}
