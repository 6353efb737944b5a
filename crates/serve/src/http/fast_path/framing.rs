//! A reply's head, and the chunks of a body whose length is not known (RFC 9112 §4, §7.1).

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use http::StatusCode;

use crate::http::http_response::{BodyKind, HttpResponse};

/// The chunk that ends a chunked body.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The bytes that end a chunk.
pub(super) const CHUNK_END: &[u8] = b"\r\n";

/// Writes a head for a body of `length` bytes, or for one of chunks.
pub(super) fn write_head(out: &mut Vec<u8>, answer: &HttpResponse, length: Option<usize>, closes: bool) {
    if answer.status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(answer.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(answer.status.canonical_reason().unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(match answer.kind {
        BodyKind::None => b"",
        BodyKind::Json => b"content-type: application/json\r\n",
        BodyKind::Events => {
            b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n"
        }
    });
    match length {
        Some(length) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        None => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    for (name, value) in answer.extra_headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if closes && !answer.closes_connection() {
        out.extend_from_slice(b"connection: close\r\n");
    }
    write_date(out);
    out.extend_from_slice(b"\r\n");
}

/// Writes a chunk; an empty one would end the body.
pub(super) fn write_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.is_empty() {
        write_chunk_head(out, bytes.len());
        out.extend_from_slice(bytes);
        out.extend_from_slice(CHUNK_END);
    }
}

/// Writes what stands before a chunk of this length, at least 1.
pub(super) fn write_chunk_head(out: &mut Vec<u8>, length: usize) {
    // A vector takes all that is written.
    let _ = write!(out, "{length:x}\r\n");
}

/// `Date`, to the second (RFC 9110 §6.6.1). Its text is made once a second and thread.
fn write_date(out: &mut Vec<u8>) {
    thread_local! {
        static LAST: RefCell<Option<(Instant, String)>> = const { RefCell::new(None) };
    }
    const SECOND: Duration = Duration::from_secs(1);
    LAST.with_borrow_mut(|last| {
        let now = Instant::now();
        let fresh = last.take().filter(|(made, _)| now.duration_since(*made) < SECOND);
        let (_, text) = last.insert(fresh.unwrap_or_else(|| (now, httpdate::fmt_http_date(SystemTime::now()))));
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::reply_body::ReplyBody;

    fn head(answer: &HttpResponse, length: Option<usize>, closes: bool) -> String {
        let mut out = Vec::new();
        write_head(&mut out, answer, length, closes);
        let text = String::from_utf8(out).unwrap();
        let (before, date) = text.split_once("date: ").unwrap();
        let (date, after) = date.split_at(29);
        assert!(httpdate::parse_http_date(date).is_ok(), "{date}");
        assert_eq!(after, "\r\n\r\n");
        before.to_owned()
    }

    #[test]
    fn heads_say_what_follows() {
        let json = HttpResponse::json_response(StatusCode::OK, "{}");
        assert_eq!(
            head(&json, Some(2), false),
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
        );
        let events = HttpResponse::event_stream(ReplyBody::Empty).with_session("s");
        assert_eq!(
            head(&events, None, true),
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n\
             x-accel-buffering: no\r\ntransfer-encoding: chunked\r\nmcp-session-id: s\r\nconnection: close\r\n"
        );
        let refused = HttpResponse::empty_response(StatusCode::REQUEST_TIMEOUT).close_after();
        assert_eq!(
            head(&refused, Some(0), true),
            "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n"
        );
    }

    #[test]
    fn chunks_carry_their_length_and_never_end_the_body() {
        let mut out = Vec::new();
        write_chunk(&mut out, &[b'a'; 17]);
        write_chunk(&mut out, b"");
        assert_eq!(out, b"11\r\naaaaaaaaaaaaaaaaa\r\n");
    }
}
