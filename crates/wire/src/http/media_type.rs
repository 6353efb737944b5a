//! `Content-Type` (RFC 9110 §8.3.1): what kind of text a body is.

/// The kinds of body that MCP and OAuth have, whatever parameters (`charset`) the header adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// JSON of a more special kind: `application/….+json` (RFC 6839 §3.1).
    SpecialJson,
    /// `text/event-stream` (WHATWG HTML §9.2).
    EventStream,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// Anything else, or nothing.
    Other,
}

impl MediaType {
    /// Reads a header's value.
    #[must_use]
    pub fn of(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => MediaType::Json,
            "text/event-stream" => MediaType::EventStream,
            "application/x-www-form-urlencoded" => MediaType::Form,
            essence if essence.ends_with("+json") => MediaType::SpecialJson,
            _ => MediaType::Other,
        }
    }
}
