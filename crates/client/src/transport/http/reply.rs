//! Replies that are read whole: a JSON text, or what else a server says.

use bytes::{Bytes, BytesMut};
use mcpace_oauth::{AuthKind, Refusal};
use mcpace_wire::quoted;

use super::connection::OpenReply;
use super::{Http, TEXT_LIMIT};
use crate::ClientError;

/// A reply that holds no answer.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) status: u16,
    content_type: String,
    /// The beginning of its text, on one line.
    text: String,
    retry_after: Option<String>,
}

impl Other {
    pub(super) fn of(open: &OpenReply, text: &[u8]) -> Self {
        Self {
            status: open.status.as_u16(),
            content_type: quoted(open.content_type()),
            text: quoted(&String::from_utf8_lossy(text)),
            retry_after: open.header("retry-after").map(quoted),
        }
    }

    /// As an error; `connecting` tells whether it is still open that this is an MCP server.
    pub(crate) fn into_error(self, address: String, connecting: bool) -> ClientError {
        let later = matches!(self.status, 429 | 502 | 503 | 504);
        if self.status >= 400 && (later || !connecting) {
            let (status, retry_after) = (self.status, self.retry_after.clone());
            return ClientError::Status { address, status, reason: self.words(), retry_after };
        }
        let kind = if self.content_type.is_empty() { "no content type" } else { &self.content_type };
        ClientError::NotMcp { address, answer: format!("status {}, {kind}", self.status) }
    }

    /// As an error, where it is the text of a refusal that nothing could be done about.
    pub(super) fn refused(self, refusal: &Refusal, address: String, kind: AuthKind) -> ClientError {
        let (status, advice) = (refusal.status(), refusal.advice(kind));
        ClientError::Refused { address, status, reason: refusal.words().or(self.words()), advice }
    }

    /// The server's words, where they are no page.
    fn words(self) -> Option<String> {
        (!self.text.is_empty() && !self.text.starts_with('<')).then_some(self.text)
    }
}

impl Http {
    /// Reads a reply that is no answer and keeps the connection.
    pub(super) async fn read_other(&self, mut open: OpenReply, what: &str) -> Result<Other, ClientError> {
        if open.is_event_stream() {
            return Ok(Other::of(&open, b""));
        }
        let text = read_whole(&mut open, TEXT_LIMIT, what).await?;
        let other = Other::of(&open, &text);
        self.pool.keep(open);
        Ok(other)
    }

    /// Reads a small text and keeps the connection.
    pub(super) async fn read_text(&self, mut open: OpenReply, what: &str) -> Result<Bytes, ClientError> {
        let text = read_whole(&mut open, TEXT_LIMIT, what).await?;
        self.pool.keep(open);
        Ok(text)
    }
}

/// Reads to the end. One chunk, which most replies are, is not copied.
pub(super) async fn read_whole(open: &mut OpenReply, limit: usize, what: &str) -> Result<Bytes, ClientError> {
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(chunk) = open.chunk().await {
        let chunk = chunk.map_err(|reason| ClientError::BrokeOff { method: what.to_owned(), reason })?;
        if first.len() + more.len() + chunk.len() > limit {
            return Err(ClientError::TooLarge { what: "the reply", limit });
        }
        if first.is_empty() {
            first = chunk;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&first);
                // From here on the text is in `more`; `first` only stays what it is for: not empty.
                first.truncate(1);
            }
            more.extend_from_slice(&chunk);
        }
    }
    Ok(if more.is_empty() { first } else { more.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_not_mcp_and_a_busy_server_says_when_to_come_back() {
        let other = |status, content_type: &str, text: &str| Other {
            status,
            content_type: content_type.to_owned(),
            text: text.to_owned(),
            retry_after: Some("3".to_owned()),
        };
        let error = other(200, "text/html", "<html>").into_error("http://a/".to_owned(), true);
        assert_eq!(error.code(), "not-mcp");
        assert!(error.to_string().contains("status 200, text/html"), "{error}");
        let error = other(429, "text/plain", "slow down").into_error("http://a/".to_owned(), true);
        assert_eq!(error.code(), "http-status");
        assert!(error.to_string().contains("slow down") && error.to_string().contains("wait 3"), "{error}");
        assert_eq!(other(500, "", "").into_error("http://a/".to_owned(), false).code(), "http-status");
    }
}
