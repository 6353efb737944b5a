//! HTTP+SSE of 2024-11-05: one GET stream brings everything, a second endpoint takes our messages.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use mcpace_client_protocol::inbound::PendingRequests;
use mcpace_client_protocol::{Outgoing, ServerReply};
use url::Url;

use super::connection::OpenReply;
use super::events::{Broken, ReplyEvents};
use super::session::HttpSession;
use crate::ClientError;
use crate::transport::task::BackgroundTask;

const OPENING: &str = "the GET for HTTP+SSE";

/// A session over HTTP+SSE.
pub(crate) struct LegacySse {
    session: Arc<HttpSession>,
    pending: Arc<PendingRequests>,
    reader: BackgroundTask,
}

impl LegacySse {
    /// Opens the stream and waits for its first event, which names the endpoint for messages.
    pub(crate) async fn open(session: HttpSession) -> Result<Self, ClientError> {
        let mut open = session.open_stream(None, OPENING).await?;
        if open.status != StatusCode::OK || !open.is_event_stream() {
            let other = session.http().read_other(open, OPENING).await?;
            return Err(other.into_error(session.address(), true));
        }
        let mut events = ReplyEvents::new(session.limits());
        let messages = read_endpoint(&session, &mut open, &mut events).await?;
        let session = Arc::new(session.with_messages(messages));
        let pending = Arc::new(PendingRequests::default());
        let (reading, awaited) = (Arc::clone(&session), Arc::clone(&pending));
        let runtime = session.inbound().runtime.clone();
        let reader = BackgroundTask::spawn(&runtime, async move {
            awaited.close(read_messages(&reading, &awaited, open, events).await)
        });
        Ok(Self { session, pending, reader })
    }

    pub(crate) fn address(&self) -> String {
        self.session.address()
    }

    pub(crate) fn session(&self) -> &Arc<HttpSession> {
        &self.session
    }

    pub(crate) async fn request(&self, message: &Outgoing) -> Result<ServerReply, ClientError> {
        let answer = self.pending.expect_answer(message.id.unwrap_or_default());
        self.tell(message).await?;
        match answer.await {
            Some(answer) => Ok(ServerReply::Answer { status: 200, answer }),
            None => {
                let reason = self.pending.close_reason().unwrap_or_else(|| "its stream ended".to_owned());
                Err(ClientError::BrokeOff { method: message.method.to_owned(), reason })
            }
        }
    }

    pub(crate) async fn tell(&self, message: &Outgoing) -> Result<(), ClientError> {
        self.session.send_message(message).await
    }

    pub(crate) fn end(&self) {
        self.pending.close("the client closed it");
        self.session.close_connections();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.reader.is_finished()
    }
}

/// Reads up to the `endpoint` event. An endpoint elsewhere is refused: our messages may carry a token.
async fn read_endpoint(
    session: &HttpSession,
    open: &mut OpenReply,
    events: &mut ReplyEvents,
) -> Result<Url, ClientError> {
    let bad = |reason: &str| ClientError::bad_reply(OPENING, reason);
    let event = match events.next_message(open).await {
        Ok(Some(event)) => event,
        Ok(None) => return Err(bad("its stream ended before the endpoint event")),
        Err(Broken::Off(reason)) => return Err(ClientError::BrokeOff { method: OPENING.to_owned(), reason }),
        Err(Broken::Limit(what, limit)) => return Err(ClientError::TooLarge { what, limit }),
    };
    if event.kind() != "endpoint" {
        return Err(bad("its first event is not the endpoint event of HTTP+SSE"));
    }
    let url = session.http().endpoint().url.clone();
    let messages = url.join(event.data.trim()).map_err(|_| bad("its endpoint is no URL"))?;
    if messages.origin() != url.origin() {
        return Err(bad("its endpoint is another origin"));
    }
    Ok(messages)
}

/// Reads to the end of the stream; says how it ended.
async fn read_messages(
    session: &Arc<HttpSession>,
    pending: &PendingRequests,
    mut open: OpenReply,
    mut events: ReplyEvents,
) -> String {
    loop {
        match events.next_message(&mut open).await {
            Ok(Some(event)) if event.kind() == "message" => {
                drop(session.take_for(Bytes::from(event.data), None, Some(pending)));
            }
            Ok(Some(_)) => {}
            Ok(None) => return "the server ended the stream".to_owned(),
            Err(Broken::Off(reason)) => return reason,
            Err(Broken::Limit(what, limit)) => return format!("{what} is larger than {limit}"),
        }
    }
}
