//! A stream of events, read up to the answer, and taken up again where it was lost (2025-03-26 to 2025-11-25).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use mcpace_client_protocol::Answer;
use mcpace_client_protocol::resumption::{Position, Resumption, reconnect_pause};
use mcpace_wire::http::name;
use mcpace_wire::sse;

use super::LogicalRequest;
use super::connection::OpenReply;
use super::session::HttpSession;
use crate::{ClientError, Limits};

const LAST_EVENT: HeaderName = HeaderName::from_static(name::LAST_EVENT_ID);
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Events out of a reply.
pub(super) struct ReplyEvents {
    decoder: sse::Decoder,
    taken: usize,
    limits: (usize, usize),
}

impl ReplyEvents {
    pub(super) fn new(limits: &Limits) -> Self {
        let decoder = sse::Decoder::new(limits.message);
        Self { decoder, taken: 0, limits: (limits.message, limits.messages_per_call) }
    }

    /// The data of the next event that is a message, whole; `None` at the end. The error says how the server broke off.
    pub(super) async fn next_message(&mut self, open: &mut OpenReply) -> Result<Option<sse::Event>, Broken> {
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) if event.data.is_empty() => {}
                Ok(Some(event)) => {
                    self.taken += 1;
                    return Ok(Some(event));
                }
                Ok(None) => match open.next_chunk().await {
                    Some(Ok(chunk)) => self.decoder.feed(&chunk),
                    Some(Err(reason)) => return Err(Broken::Off(reason)),
                    None => return Ok(None),
                },
                Err(_) => return Err(Broken::Limit("an event of the server", self.limits.0)),
            }
        }
    }

    /// As [`ReplyEvents::next_message`], within the limit on messages ahead of one answer.
    pub(super) async fn next_of_call(&mut self, open: &mut OpenReply) -> Result<Option<sse::Event>, Broken> {
        if self.taken >= self.limits.1 {
            return Err(Broken::Limit("the number of events before the answer", self.limits.1));
        }
        self.next_message(open).await
    }

    /// Begins a stream that goes on with another; the count of events stays.
    fn begin_resumed(&mut self) {
        self.decoder = sse::Decoder::new(self.limits.0);
    }

    pub(super) fn retry_delay(&self) -> Duration {
        reconnect_pause(self.decoder.retry())
    }

    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_event_id()
    }
}

/// How a stream ended that should not have.
pub(super) enum Broken {
    Off(String),
    Limit(&'static str, usize),
}

impl Broken {
    fn into_error(self, method: &str) -> ClientError {
        match self {
            Broken::Off(reason) => ClientError::BrokeOff { method: method.to_owned(), reason },
            Broken::Limit(what, limit) => ClientError::TooLarge { what, limit },
        }
    }
}

impl HttpSession {
    /// Reads events up to the answer to `id`, hearing everything ahead of it.
    pub(super) async fn read_events(
        self: &Arc<Self>,
        mut open: OpenReply,
        id: i64,
        method: &'static str,
    ) -> Result<(Answer, OpenReply), ClientError> {
        let mut events = ReplyEvents::new(self.limits());
        let mut resumption = Resumption::default();
        loop {
            let reason = match events.next_of_call(&mut open).await {
                Ok(Some(event)) => {
                    resumption.handle_event();
                    if event.kind() == "message"
                        && let Some(answer) = self.take_text(Bytes::from(event.data), Some(id), method)?
                    {
                        return Ok((answer, open));
                    }
                    continue;
                }
                Ok(None) => "its stream ended before the answer".to_owned(),
                Err(Broken::Off(reason)) => reason,
                Err(broken) => return Err(broken.into_error(method)),
            };
            let position = resumption.handle_end(events.last_event_id(), events.decoder.retry());
            let Some(Position { last_event_id, delay }) = position.filter(|_| self.is_resumable()) else {
                return Err(ClientError::BrokeOff { method: method.to_owned(), reason });
            };
            tokio::time::sleep(*delay).await;
            open = self.resume_stream(last_event_id, method, reason).await?;
            events.begin_resumed();
        }
    }

    async fn resume_stream(&self, last: &str, method: &str, reason: String) -> Result<OpenReply, ClientError> {
        let broke_off = |reason: String| ClientError::BrokeOff { method: method.to_owned(), reason };
        let Ok(last) = HeaderValue::try_from(last) else {
            return Err(broke_off(format!("{reason}, and its event id can't be sent back")));
        };
        let what = "the rest of a reply";
        let open = self.open_stream(Some(last), what).await?;
        if open.status == StatusCode::OK && open.is_event_stream() {
            return Ok(open);
        }
        let status = open.status.as_u16();
        Err(broke_off(format!("{reason}, and resuming it gave status {status}")))
    }

    /// A GET for events.
    pub(super) async fn open_stream(&self, last: Option<HeaderValue>, what: &str) -> Result<OpenReply, ClientError> {
        let mut headers = self.headers().clone();
        headers.insert(ACCEPT, EVENTS);
        headers.remove(http::header::CONTENT_TYPE);
        if let Some(last) = last {
            headers.insert(LAST_EVENT, last);
        }
        let ask =
            LogicalRequest { method: Method::GET, url: None, headers, body: Bytes::new(), what, repeatable: true };
        self.http().send_authorized(ask).await
    }
}
