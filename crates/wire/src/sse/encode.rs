//! Events to bytes. A field can't smuggle in another line: line ends inside data start a new `data` line, anywhere else
//! they become spaces.

use super::Event;
use crate::jsonrpc::token::write_integer;

impl Event {
    /// Appends the event and the blank line that dispatches it.
    ///
    /// A decoder gives the same event back, except that CR and CRLF in data come back as LF, an empty type as none, and
    /// an id with a NUL not at all.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(event) = &self.event {
            write_field("event", event.as_bytes(), out);
        }
        if let Some(id) = &self.id {
            write_field("id", id.as_bytes(), out);
        }
        if let Some(retry) = self.retry {
            write_field("retry", retry.to_string().as_bytes(), out);
        }
        write_data(self.data.as_bytes(), out);
        out.push(b'\n');
    }
}

/// Appends one JSON-RPC message as an event of type `message`, as servers send it, without building an [`Event`].
pub fn encode_message(json: &[u8], id: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: message\n");
    if let Some(id) = id {
        write_field("id", id.as_bytes(), out);
    }
    write_data(json, out);
    out.push(b'\n');
}

/// Appends a comment, which every decoder passes over: a keep-alive.
pub fn encode_comment(text: &str, out: &mut Vec<u8>) {
    write_field("", text.as_bytes(), out);
    out.push(b'\n');
}

/// Appends how long to wait before connecting again, in milliseconds, without an event.
pub fn encode_retry(millis: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b"retry: ");
    write_integer(i64::from(millis), out);
    out.extend_from_slice(b"\n\n");
}

fn write_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let start = out.len();
    out.extend_from_slice(value);
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.push(b'\n');
}

fn write_data(mut value: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr2(b'\n', b'\r', value) {
        write_field("data", &value[..at], out);
        let ending = if value[at..].starts_with(b"\r\n") { 2 } else { 1 };
        value = &value[at + ending..];
    }
    write_field("data", value, out);
}
