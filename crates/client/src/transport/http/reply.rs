//! Replies that are read whole: a JSON text, an error page, a document of OAuth.

use bytes::{Bytes, BytesMut};
use mcpace_client_protocol::OtherReply;

use super::connection::OpenReply;
use super::{Http, TEXT_LIMIT};
use crate::ClientError;

pub(super) fn other_reply(open: &OpenReply, text: &[u8]) -> OtherReply {
    OtherReply::new(open.status.as_u16(), open.content_type(), text, open.header("retry-after"))
}

impl Http {
    /// Reads a reply that is no answer and keeps the connection.
    pub(super) async fn read_other(&self, mut open: OpenReply, what: &str) -> Result<OtherReply, ClientError> {
        if open.is_event_stream() {
            return Ok(other_reply(&open, b""));
        }
        let text = read_whole(&mut open, TEXT_LIMIT, what).await?;
        let other = other_reply(&open, &text);
        self.pool.keep_connection(open);
        Ok(other)
    }

    /// Reads a small text and keeps the connection.
    pub(super) async fn read_text(&self, mut open: OpenReply, what: &str) -> Result<Bytes, ClientError> {
        let text = read_whole(&mut open, TEXT_LIMIT, what).await?;
        self.pool.keep_connection(open);
        Ok(text)
    }
}

/// Reads to the end. One chunk, which most replies are, is not copied.
pub(super) async fn read_whole(open: &mut OpenReply, limit: usize, what: &str) -> Result<Bytes, ClientError> {
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(chunk) = open.next_chunk().await {
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
