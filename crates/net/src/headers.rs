//! Headers of a message: as text, and as they may be recorded.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpace_record::Header;

use crate::Sink;

/// A message's headers as they may be recorded.
pub(crate) fn recorded_headers(headers: &HeaderMap, sink: &Sink) -> Vec<Header> {
    let one = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        Header(name.as_str().to_owned(), sink.redactor().header(name.as_str(), &value).into_owned())
    };
    headers.iter().map(one).collect()
}

/// A header as text; empty where it is missing or no text.
pub(crate) fn header_text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
