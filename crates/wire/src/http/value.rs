//! Header values that mirror a string of the body (2026-07-28, basic/transports/streamable-http, "Value Encoding").

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The header value for `text`: itself where it is plain ASCII, otherwise `=?base64?…?=` around the base64 of its UTF-8.
#[must_use]
pub fn encode_value(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(PREFIX.len() + text.len().div_ceil(3) * 4 + SUFFIX.len());
    encoded.push_str(PREFIX);
    STANDARD.encode_string(text, &mut encoded);
    encoded.push_str(SUFFIX);
    Cow::Owned(encoded)
}

/// The text that a header value stands for.
///
/// # Errors
/// [`ValueError`]; the answer to it is [`super::Rejection::HeaderMalformed`].
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, ValueError> {
    // Tab and space are allowed inside (RFC 9110 §5.5); nothing else outside of visible ASCII is.
    if !value.iter().all(|&byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t')) {
        return Err(ValueError::Characters);
    }
    let text = std::str::from_utf8(value).map_err(|_| ValueError::Characters)?;
    match text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) {
        None => Ok(Cow::Borrowed(text)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).map_err(|_| ValueError::Base64)?;
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| ValueError::Utf8)
        }
    }
}

/// Why a header value stands for no text. The peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A byte that no header value may have.
    #[error("it has characters outside of visible ASCII")]
    Characters,
    /// Between the markers stands no base64.
    #[error("it is marked as base64, but is not")]
    Base64,
    /// The base64 is of bytes that are no text.
    #[error("its base64 is not of UTF-8")]
    Utf8,
}

fn is_plain(text: &str) -> bool {
    let edges_are_plain = !text.starts_with(' ') && !text.ends_with(' ');
    let looks_encoded = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    edges_are_plain && !looks_encoded && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}
