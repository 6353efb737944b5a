//! Messages to bytes, straight into the caller's buffer: one line, no trailing newline, no copy of raw parts.
//!
//! A raw part that holds newlines between its tokens keeps them; [`crate::lines::encode_line`] and [`crate::sse`] take care of
//! them where the framing forbids them.

use serde::Serialize;
use serde_json::value::RawValue;

use super::token::{write_integer, write_string};
use super::{ErrorObject, Id, Members, Message, Notification, Outcome, Payload, Request, Response};

/// Appends the answer `result` to `id`.
///
/// # Errors
/// When `result` can't be written as JSON (our misuse: a map whose keys are no strings). `out` is then as it was.
pub fn write_result(out: &mut Vec<u8>, id: &Id<'_>, result: &impl Serialize) -> serde_json::Result<()> {
    write_or_restore(out, |out| {
        write_head(Some(id), out);
        out.extend_from_slice(b",\"result\":");
        serde_json::to_writer(&mut *out, result)
    })
}

/// Appends the error `code` in answer to `id`, or to a message whose id could not be read (`"id": null`).
///
/// # Errors
/// When `data` can't be written as JSON. `out` is then as it was.
pub fn write_error(
    out: &mut Vec<u8>,
    id: Option<&Id<'_>>,
    code: i64,
    message: &str,
    data: Option<&impl Serialize>,
) -> serde_json::Result<()> {
    write_or_restore(out, |out| {
        write_head(id, out);
        write_error_start(code, message, out);
        if let Some(data) = data {
            out.extend_from_slice(b",\"data\":");
            serde_json::to_writer(&mut *out, data)?;
        }
        out.push(b'}');
        Ok(())
    })
}

/// Appends a request.
///
/// # Errors
/// When `params` can't be written as JSON. `out` is then as it was.
pub fn write_request(
    out: &mut Vec<u8>,
    id: &Id<'_>,
    method: &str,
    params: Option<&impl Serialize>,
) -> serde_json::Result<()> {
    write_or_restore(out, |out| {
        write_head(Some(id), out);
        write_method(method, out);
        write_params(params, out)
    })
}

/// Appends a notification.
///
/// # Errors
/// When `params` can't be written as JSON. `out` is then as it was.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: Option<&impl Serialize>) -> serde_json::Result<()> {
    write_or_restore(out, |out| {
        out.extend_from_slice(VERSION);
        write_method(method, out);
        write_params(params, out)
    })
}

/// Writes a whole message, closing brace included, or nothing.
fn write_or_restore(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let before = out.len();
    let written = write(out);
    match written {
        Ok(()) => out.push(b'}'),
        Err(_) => out.truncate(before),
    }
    written
}

fn write_params(params: Option<&impl Serialize>, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let Some(params) = params else { return Ok(()) };
    out.extend_from_slice(b",\"params\":");
    serde_json::to_writer(out, params)
}

impl Payload<'_> {
    /// Appends the message, or all of them as an array.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Payload::Single(message) => message.write(out),
            Payload::Batch(messages) => {
                out.push(b'[');
                for (index, message) in messages.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    message.write(out);
                }
                out.push(b']');
            }
        }
    }
}

impl Message<'_> {
    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Request(request) => request.write(out),
            Message::Notification(notification) => notification.write(out),
            Message::Response(response) => response.write(out),
        }
    }
}

impl Request<'_> {
    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_head(Some(&self.id), out);
        write_method(&self.method, out);
        write_raw("params", self.params, out);
        write_members(&self.extra, out);
        out.push(b'}');
    }
}

impl Notification<'_> {
    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(VERSION);
        write_method(&self.method, out);
        write_raw("params", self.params, out);
        write_members(&self.extra, out);
        out.push(b'}');
    }
}

impl Response<'_> {
    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_head(self.id.as_ref(), out);
        match &self.outcome {
            Outcome::Result(result) => write_raw("result", Some(result), out),
            Outcome::Error(error) => error.write_member(out),
        }
        write_members(&self.extra, out);
        out.push(b'}');
    }
}

impl ErrorObject<'_> {
    fn write_member(&self, out: &mut Vec<u8>) {
        write_error_start(self.code, &self.message, out);
        write_raw("data", self.data, out);
        write_members(&self.extra, out);
        out.push(b'}');
    }
}

/// `to_vec` for each kind of message.
macro_rules! to_vec {
    ($($kind:ident),*) => {$(
        impl $kind<'_> {
            /// The message as bytes of its own.
            #[must_use]
            pub fn to_vec(&self) -> Vec<u8> {
                let mut out = Vec::with_capacity(128);
                self.write(&mut out);
                out
            }
        }
    )*};
}

to_vec!(Payload, Message, Request, Notification, Response);

const VERSION: &[u8] = b"{\"jsonrpc\":\"2.0\"";

fn write_head(id: Option<&Id<'_>>, out: &mut Vec<u8>) {
    out.extend_from_slice(VERSION);
    out.extend_from_slice(b",\"id\":");
    match id {
        Some(id) => id.write(out),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_method(method: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"method\":");
    write_string(method, out);
}

fn write_error_start(code: i64, message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"error\":{\"code\":");
    write_integer(code, out);
    out.extend_from_slice(b",\"message\":");
    write_string(message, out);
}

fn write_raw(name: &str, value: Option<&RawValue>, out: &mut Vec<u8>) {
    let Some(value) = value else { return };
    out.push(b',');
    write_string(name, out);
    out.push(b':');
    out.extend_from_slice(value.get().as_bytes());
}

fn write_members(members: &Members<'_>, out: &mut Vec<u8>) {
    for (name, value) in members {
        write_raw(name, Some(value), out);
    }
}
