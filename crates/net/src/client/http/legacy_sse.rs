//! HTTP+SSE of 2024-11-05: one GET stream brings everything, a second endpoint takes our messages.

use std::sync::Arc;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Method, StatusCode};
use mcpace_client_protocol::inbound::PendingRequests;
use mcpace_client_protocol::{Outgoing, ServerReply};
use url::Url;

use super::connection::{BodyPiece, OpenReply};
use super::{EVENTS, HttpInner, LogicalRequest};
use crate::client::ClientError;
use crate::client::inbound::Received;
use crate::client::task::BackgroundTask;

/// A session over HTTP+SSE.
pub(crate) struct LegacySse {
    inner: Arc<HttpInner>,
    messages: Url,
    pending: Arc<PendingRequests>,
    reader: BackgroundTask,
}

const OPENING: &str = "the GET for HTTP+SSE";

impl LegacySse {
    /// Opens the stream and waits for its first event, which names the endpoint for messages.
    pub(super) async fn open(inner: &Arc<HttpInner>) -> Result<Self, ClientError> {
        let mut headers = inner.session_headers();
        headers.insert(ACCEPT, EVENTS);
        let url = inner.endpoint();
        let ask = LogicalRequest {
            method: Method::GET,
            url: url.clone(),
            headers,
            body: Bytes::new(),
            what: OPENING,
            may_be_repeated: true,
        };
        let mut open = inner.send_authorized(ask).await?;
        if open.status != StatusCode::OK || !open.is_event_stream() {
            let other = inner.read_other(open, OPENING).await?;
            return Err(other.into_error(inner.address(), true));
        }
        let pending = Arc::new(PendingRequests::default());
        let messages = read_endpoint(inner, &mut open, &url).await?;
        let reader =
            BackgroundTask::spawn(read_messages(Arc::clone(inner), Arc::clone(&pending), open, messages.clone()));
        Ok(Self { inner: Arc::clone(inner), messages, pending, reader })
    }

    pub(crate) async fn request(&self, message: &Outgoing) -> Result<ServerReply, ClientError> {
        let broke_off = || {
            let reason = self.pending.close_reason().unwrap_or_else(|| "its stream ended".to_owned());
            ClientError::BrokeOff { method: message.method.to_owned(), reason }
        };
        let Some(id) = message.id else {
            return Err(ClientError::NotConnected);
        };
        let answer = self.pending.expect_answer(id);
        self.notify(message).await?;
        let answer = answer.await.ok_or_else(broke_off)?;
        Ok(ServerReply::Answer { status: 200, answer })
    }

    pub(crate) async fn notify(&self, message: &Outgoing) -> Result<(), ClientError> {
        self.inner.send_message(message, self.messages.clone()).await
    }

    pub(crate) async fn close(self) {
        self.reader.abort_task().await;
    }
}

/// Reads up to the `endpoint` event. An endpoint elsewhere is refused: our messages may carry a token.
async fn read_endpoint(inner: &HttpInner, open: &mut OpenReply, url: &Url) -> Result<Url, ClientError> {
    let bad = |reason: &str| ClientError::BadReply { method: OPENING.to_owned(), reason: reason.to_owned() };
    loop {
        let events = match open.next_piece().await {
            Ok(BodyPiece::Events(events)) => events,
            Ok(BodyPiece::End) => return Err(bad("its stream ended before the endpoint event")),
            Err(reason) => return Err(ClientError::BrokeOff { method: OPENING.to_owned(), reason }),
        };
        if open.body_bytes() > inner.message_limit {
            return Err(ClientError::TooLarge {
                what: "the stream before its endpoint event",
                limit: inner.message_limit,
            });
        }
        let Some(event) = events.first() else { continue };
        if event.kind() != "endpoint" {
            return Err(bad("its first event is not the endpoint event of HTTP+SSE"));
        }
        let messages = url.join(event.data.trim()).map_err(|_| bad("its endpoint is no URL"))?;
        if messages.origin() != url.origin() {
            return Err(bad("its endpoint is another origin"));
        }
        return Ok(messages);
    }
}

async fn read_messages(inner: Arc<HttpInner>, pending: Arc<PendingRequests>, mut open: OpenReply, messages: Url) {
    let mut since_event = open.body_bytes();
    let reason = loop {
        match open.next_piece().await {
            Ok(BodyPiece::Events(events)) if events.is_empty() => {
                if open.body_bytes() - since_event > inner.message_limit {
                    break format!("an event is larger than {} bytes", inner.message_limit);
                }
            }
            Ok(BodyPiece::Events(events)) => {
                since_event = open.body_bytes();
                for event in events.into_iter().filter(|event| event.kind() == "message") {
                    let received = Received::from_text(&event.data.into(), None, Some(&pending));
                    for reply in received.unwrap_or_default().replies {
                        // A server that doesn't take the answer to its own question has itself to blame.
                        drop(inner.send_message(&reply, messages.clone()).await);
                    }
                }
            }
            Ok(BodyPiece::End) => break "the server ended the stream".to_owned(),
            Err(reason) => break reason,
        }
    };
    pending.close(reason);
}
