//! Reads a reply up to the answer: a JSON text, or a stream of events in which the answer is one.

use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};
use mcpace_client_protocol::resumption::{Position, Resumption};
use mcpace_client_protocol::{Answer, OtherReply, Outgoing, ServerReply};
use mcpace_record::Closer;
use mcpace_wire::http::SessionId;
use mcpace_wire::sse;

use super::connection::{BodyPiece, OpenReply};
use super::{EVENTS, HttpInner, LAST_EVENT, LogicalRequest, SESSION, TEXT_LIMIT};
use crate::client::ClientError;
use crate::client::inbound::Received;

/// Events that one reply may have before its answer.
const EVENT_LIMIT: usize = 100_000;
/// Requests of the server that are answered in the course of one reply.
const ASKED_LIMIT: usize = 1_000;

impl HttpInner {
    /// Sends a request and reads to its answer. The open reply is what comes after the answer.
    pub(super) async fn request_reply(
        &self,
        message: &Outgoing,
    ) -> Result<(ServerReply, Option<OpenReply>), ClientError> {
        let open = self.send_authorized(self.post_request(message, self.endpoint())).await?;
        if message.method == "initialize" && open.status.is_success() {
            self.take_session(&open)?;
        }
        let Some(id) = message.id else {
            return Ok((ServerReply::Other(self.read_other(open, message.method).await?), None));
        };
        if open.is_event_stream() && open.status.is_success() {
            let (answer, open) = self.read_events(open, id, message.method).await?;
            return Ok((ServerReply::Answer { status: 200, answer }, open));
        }
        self.read_json(open, id, message.method).await.map(|reply| (reply, None))
    }

    fn take_session(&self, open: &OpenReply) -> Result<(), ClientError> {
        let Some(session) = open.headers.get(SESSION) else { return Ok(()) };
        if let Err(error) = SessionId::from_bytes(session.as_bytes()) {
            let reason = format!("its session id is not usable: {error}");
            return Err(ClientError::BadReply { method: "initialize".to_owned(), reason });
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        self.lock_state().session = Some(session);
        Ok(())
    }

    async fn read_json(&self, mut open: OpenReply, id: i64, method: &str) -> Result<ServerReply, ClientError> {
        self.read_to_end(&mut open, self.message_limit, method).await?;
        let received = Received::from_text(&Bytes::copy_from_slice(open.kept_text()), Some(id), None);
        let (answer, status) = (received.map(|received| received.answer), open.status.as_u16());
        let other = || other_reply(&open);
        let reply = ServerReply::from_body(answer, status, open.content_type(), (method, || self.address()), other);
        self.pool.keep_connection(open);
        reply
    }

    /// Reads events up to the answer, resuming a stream that the server ends early where it gave event ids.
    async fn read_events(
        &self,
        mut open: OpenReply,
        id: i64,
        method: &str,
    ) -> Result<(Answer, Option<OpenReply>), ClientError> {
        let mut progress = StreamProgress::default();
        loop {
            let ending = match self.read_stream(&mut open, id, &mut progress).await? {
                StreamEnd::Answer(answer) => return Ok((answer, Some(open))),
                StreamEnd::Nothing(ending) => ending,
            };
            let position = progress.resumption.handle_end(progress.last_event_id.as_deref(), open.retry_ms());
            let Some(Position { last_event_id, delay }) = position else {
                return Err(ClientError::BrokeOff { method: method.to_owned(), reason: ending });
            };
            self.pool.keep_connection(open);
            tokio::time::sleep(*delay).await;
            open = self.resume_stream(last_event_id, method).await?;
        }
    }

    async fn read_stream(
        &self,
        open: &mut OpenReply,
        id: i64,
        progress: &mut StreamProgress,
    ) -> Result<StreamEnd, ClientError> {
        let mut since_event = open.body_bytes();
        loop {
            let events = match open.next_piece().await {
                Ok(BodyPiece::Events(events)) => events,
                Ok(BodyPiece::End) => return Ok(StreamEnd::Nothing("its stream ended before the answer".to_owned())),
                Err(reason) => return Ok(StreamEnd::Nothing(reason)),
            };
            if events.is_empty() {
                if open.body_bytes() - since_event > self.message_limit {
                    return Err(ClientError::TooLarge { what: "an event of the reply", limit: self.message_limit });
                }
                continue;
            }
            since_event = open.body_bytes();
            for event in events {
                let received = progress.take_event(event, id)?;
                for reply in &received.replies {
                    // Whether the server wants our answer or not, its own answer decides.
                    drop(self.send_message(reply, self.endpoint()).await);
                }
                if let Some(answer) = received.answer {
                    return Ok(StreamEnd::Answer(answer));
                }
            }
        }
    }

    async fn resume_stream(&self, last: &str, method: &str) -> Result<OpenReply, ClientError> {
        let broke_off = |reason: String| ClientError::BrokeOff { method: method.to_owned(), reason };
        let last = HeaderValue::try_from(last).map_err(|_| broke_off("its event id can't be sent back".to_owned()))?;
        let mut headers = self.session_headers();
        headers.insert(ACCEPT, EVENTS);
        headers.insert(LAST_EVENT, last);
        let what = "the rest of a reply";
        let ask = LogicalRequest {
            method: Method::GET,
            url: self.endpoint(),
            headers,
            body: bytes::Bytes::new(),
            what,
            may_be_repeated: true,
        };
        let open = self.send_authorized(ask).await?;
        if open.status == StatusCode::OK && open.is_event_stream() {
            return Ok(open);
        }
        let status = open.status.as_u16();
        self.read_other(open, what).await?;
        Err(broke_off(format!("its stream ended before the answer, and resuming it gave status {status}")))
    }

    /// Reads a reply that is no answer and keeps the connection.
    pub(super) async fn read_other(&self, open: OpenReply, method: &str) -> Result<OtherReply, ClientError> {
        if open.is_event_stream() {
            let other = other_reply(&open);
            open.abandon_reply(Closer::Client).await;
            return Ok(other);
        }
        let mut open = open;
        self.read_to_end(&mut open, TEXT_LIMIT, method).await?;
        let other = other_reply(&open);
        self.pool.keep_connection(open);
        Ok(other)
    }

    /// Reads a small text and keeps the connection.
    pub(super) async fn read_text(&self, mut open: OpenReply, method: &str) -> Result<Vec<u8>, ClientError> {
        self.read_to_end(&mut open, TEXT_LIMIT, method).await?;
        let text = open.kept_text().to_vec();
        self.pool.keep_connection(open);
        Ok(text)
    }

    async fn read_to_end(&self, open: &mut OpenReply, limit: usize, method: &str) -> Result<(), ClientError> {
        loop {
            match open.next_piece().await {
                Ok(BodyPiece::End) => return Ok(()),
                Ok(BodyPiece::Events(_)) if open.body_bytes() > limit => {
                    return Err(ClientError::TooLarge { what: "the reply", limit });
                }
                Ok(BodyPiece::Events(_)) => {}
                Err(reason) => return Err(ClientError::BrokeOff { method: method.to_owned(), reason }),
            }
        }
    }
}

enum StreamEnd {
    Answer(Answer),
    /// How the stream ended instead.
    Nothing(String),
}

/// Progress of a reply's stream.
#[derive(Default)]
struct StreamProgress {
    events: usize,
    asked: usize,
    last_event_id: Option<String>,
    resumption: Resumption,
}

impl StreamProgress {
    fn take_event(&mut self, event: sse::Event, id: i64) -> Result<Received, ClientError> {
        self.events += 1;
        self.resumption.handle_event();
        if self.events > EVENT_LIMIT {
            return Err(ClientError::TooLarge { what: "the number of events before the answer", limit: EVENT_LIMIT });
        }
        if let Some(id) = &event.id {
            self.last_event_id = (!id.is_empty()).then(|| id.clone());
        }
        if event.kind() != "message" || event.data.is_empty() {
            return Ok(Received::default());
        }
        let received = Received::from_text(&event.data.into(), Some(id), None).unwrap_or_default();
        self.asked += received.replies.len();
        if self.asked > ASKED_LIMIT {
            return Err(ClientError::TooLarge { what: "the number of the server's requests", limit: ASKED_LIMIT });
        }
        Ok(received)
    }
}

fn other_reply(open: &OpenReply) -> OtherReply {
    OtherReply::new(open.status.as_u16(), open.content_type(), open.kept_text(), open.header("retry-after"))
}
