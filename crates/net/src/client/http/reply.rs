//! Reads a reply up to the answer: a JSON text, or a stream of events in which the answer is one.

use std::time::Duration;

use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};
use mcpace_oauth::{AuthKind, Refusal};
use mcpace_record::Closer;
use mcpace_wire::http::{MediaType, SessionId};
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::quoted;
use mcpace_wire::sse;

use super::connection::{OpenReply, Piece};
use super::{Ask, EVENTS, Inner, LAST_EVENT, SESSION, TEXT_LIMIT};
use crate::client::ClientError;
use crate::client::message::{Answer, Outgoing, Received};

/// Events that one reply may have before its answer.
const EVENT_LIMIT: usize = 100_000;
/// Requests of the server that are answered in the course of one reply.
const ASKED_LIMIT: usize = 1_000;
/// How often a stream that the server ends before the answer is resumed without any progress.
const RESUME_LIMIT: usize = 5;
/// How long to wait before resuming where the server named no time (its stream's `retry`).
const RESUME_DELAY: Duration = Duration::from_secs(1);

/// What came back for a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A JSON-RPC result or error.
    Answer {
        /// The HTTP status that it came with.
        status: u16,
        /// The answer.
        answer: Answer,
    },
    /// Something else.
    Other(Other),
}

/// A reply that holds no answer.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// The beginning of its text, on one line.
    pub(crate) text: String,
    pub(crate) retry_after: Option<String>,
}

impl Other {
    /// As an error; `connecting` tells whether it is still open that this is an MCP server.
    pub(crate) fn into_error(self, address: &str, connecting: bool) -> ClientError {
        let address = address.to_owned();
        let later = matches!(self.status, 429 | 502 | 503 | 504);
        let error_status = self.status >= 400;
        if error_status && (later || !connecting) {
            let reason = (!self.text.is_empty() && !self.text.starts_with('<')).then_some(self.text);
            return ClientError::Status { address, status: self.status, reason, retry_after: self.retry_after };
        }
        let kind = if self.content_type.is_empty() { "no content type".to_owned() } else { quoted(&self.content_type) };
        ClientError::NotMcp { address, answer: format!("status {}, {kind}", self.status) }
    }

    /// As an error, where it is the text of a refusal that nothing could be done about.
    pub(super) fn refused(self, refusal: &Refusal, address: &str, kind: AuthKind) -> ClientError {
        let text = (!self.text.is_empty() && !self.text.starts_with('<')).then_some(self.text);
        let (status, reason) = (refusal.status(), refusal.words().or(text));
        ClientError::Refused { address: address.to_owned(), status, reason, advice: refusal.advice(kind) }
    }
}

impl Inner {
    /// Sends a request and reads to its answer. The open reply is what comes after the answer.
    pub(super) async fn request(&self, message: &Outgoing) -> Result<(Reply, Option<OpenReply>), ClientError> {
        let open = self.send(self.post(message, self.endpoint())).await?;
        if message.method == "initialize" && open.status.is_success() {
            self.take_session(&open)?;
        }
        let Some(id) = &message.id else {
            return Ok((Reply::Other(self.read_other(open, message.method).await?), None));
        };
        if open.is_event_stream() && open.status.is_success() {
            let (answer, open) = self.read_events(open, id, message.method).await?;
            return Ok((Reply::Answer { status: 200, answer }, open));
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
        self.state().session = Some(session);
        Ok(())
    }

    async fn read_json(&self, mut open: OpenReply, id: &Id<'static>, method: &str) -> Result<Reply, ClientError> {
        self.read_to_end(&mut open, self.message_limit, method).await?;
        let mut received = Received::of(open.text());
        let reply = match received.answer_to(id) {
            Some(Answer::Result(_)) if !open.status.is_success() => {
                let error = ClientError::Status {
                    address: self.address(),
                    status: open.status.as_u16(),
                    reason: Some("though its body is a result".to_owned()),
                    retry_after: None,
                };
                self.pool.keep(open);
                return Err(error);
            }
            Some(Answer::Result(_)) if !is_json(open.content_type()) => {
                let reason = format!("its content type is {}, not application/json", quoted(open.content_type()));
                self.pool.keep(open);
                return Err(ClientError::BadReply { method: method.to_owned(), reason });
            }
            Some(answer) => Reply::Answer { status: open.status.as_u16(), answer },
            None if received.is_json_rpc && open.status.is_success() => {
                let reason = "it holds no answer to the request's id".to_owned();
                self.pool.keep(open);
                return Err(ClientError::BadReply { method: method.to_owned(), reason });
            }
            None => Reply::Other(other(&open)),
        };
        self.pool.keep(open);
        Ok(reply)
    }

    /// Reads events up to the answer, resuming a stream that the server ends early where it gave event ids.
    async fn read_events(
        &self,
        mut open: OpenReply,
        id: &Id<'static>,
        method: &str,
    ) -> Result<(Answer, Option<OpenReply>), ClientError> {
        let mut progress = Progress::default();
        loop {
            let ending = match self.read_stream(&mut open, id, &mut progress).await? {
                Found::Answer(answer) => return Ok((answer, Some(open))),
                Found::Nothing(ending) => ending,
            };
            let Some(last) = progress.resumes_at() else {
                return Err(ClientError::BrokeOff { method: method.to_owned(), reason: ending });
            };
            let delay = open.retry().map_or(RESUME_DELAY, Duration::from_millis);
            self.pool.keep(open);
            tokio::time::sleep(delay).await;
            open = self.resume(&last, method).await?;
        }
    }

    async fn read_stream(
        &self,
        open: &mut OpenReply,
        id: &Id<'static>,
        progress: &mut Progress,
    ) -> Result<Found, ClientError> {
        let mut since_event = open.bytes();
        loop {
            let events = match open.next().await {
                Ok(Piece::Events(events)) => events,
                Ok(Piece::End) => return Ok(Found::Nothing("its stream ended before the answer".to_owned())),
                Err(reason) => return Ok(Found::Nothing(reason)),
            };
            if events.is_empty() {
                if open.bytes() - since_event > self.message_limit {
                    return Err(ClientError::TooLarge { what: "an event of the reply", limit: self.message_limit });
                }
                continue;
            }
            since_event = open.bytes();
            for event in &events {
                let mut received = progress.take(event)?;
                for reply in &received.replies {
                    // Whether the server wants our answer or not, its own answer decides.
                    drop(self.tell(reply, self.endpoint()).await);
                }
                if let Some(answer) = received.answer_to(id) {
                    return Ok(Found::Answer(answer));
                }
            }
        }
    }

    async fn resume(&self, last: &str, method: &str) -> Result<OpenReply, ClientError> {
        let broke_off = |reason: String| ClientError::BrokeOff { method: method.to_owned(), reason };
        let last = HeaderValue::try_from(last).map_err(|_| broke_off("its event id can't be sent back".to_owned()))?;
        let mut headers = self.headers();
        headers.insert(ACCEPT, EVENTS);
        headers.insert(LAST_EVENT, last);
        let what = "the rest of a reply";
        let ask = Ask {
            method: Method::GET,
            url: self.endpoint(),
            headers,
            body: bytes::Bytes::new(),
            what,
            may_be_repeated: true,
        };
        let open = self.send(ask).await?;
        if open.status == StatusCode::OK && open.is_event_stream() {
            return Ok(open);
        }
        let status = open.status.as_u16();
        self.read_other(open, what).await?;
        Err(broke_off(format!("its stream ended before the answer, and resuming it gave status {status}")))
    }

    /// Reads a reply that is no answer and keeps the connection.
    pub(super) async fn read_other(&self, open: OpenReply, method: &str) -> Result<Other, ClientError> {
        if open.is_event_stream() {
            let other = other(&open);
            open.abandon(Closer::Client).await;
            return Ok(other);
        }
        let mut open = open;
        self.read_to_end(&mut open, TEXT_LIMIT, method).await?;
        let other = other(&open);
        self.pool.keep(open);
        Ok(other)
    }

    /// Reads a small text and keeps the connection.
    pub(super) async fn read_text(&self, mut open: OpenReply, method: &str) -> Result<Vec<u8>, ClientError> {
        self.read_to_end(&mut open, TEXT_LIMIT, method).await?;
        let text = open.text().to_vec();
        self.pool.keep(open);
        Ok(text)
    }

    async fn read_to_end(&self, open: &mut OpenReply, limit: usize, method: &str) -> Result<(), ClientError> {
        loop {
            match open.next().await {
                Ok(Piece::End) => return Ok(()),
                Ok(Piece::Events(_)) if open.bytes() > limit => {
                    return Err(ClientError::TooLarge { what: "the reply", limit });
                }
                Ok(Piece::Events(_)) => {}
                Err(reason) => return Err(ClientError::BrokeOff { method: method.to_owned(), reason }),
            }
        }
    }
}

enum Found {
    Answer(Answer),
    /// How the stream ended instead.
    Nothing(String),
}

/// What was seen of a reply's stream so far.
#[derive(Default)]
struct Progress {
    events: usize,
    asked: usize,
    last_event_id: Option<String>,
    /// Where it was last resumed, and how often in a row.
    resumed: (Option<String>, usize),
}

impl Progress {
    fn take(&mut self, event: &sse::Event) -> Result<Received, ClientError> {
        self.events += 1;
        if self.events > EVENT_LIMIT {
            return Err(ClientError::TooLarge { what: "the number of events before the answer", limit: EVENT_LIMIT });
        }
        if let Some(id) = &event.id {
            self.last_event_id = (!id.is_empty()).then(|| id.clone());
        }
        if event.kind() != "message" || event.data.is_empty() {
            return Ok(Received::default());
        }
        let received = Received::of(event.data.as_bytes());
        self.asked += received.replies.len();
        if self.asked > ASKED_LIMIT {
            return Err(ClientError::TooLarge { what: "the number of the server's requests", limit: ASKED_LIMIT });
        }
        Ok(received)
    }

    /// The event after which to resume, unless that was tried often enough.
    fn resumes_at(&mut self) -> Option<String> {
        let last = self.last_event_id.clone()?;
        if self.resumed.0.as_ref() == Some(&last) {
            self.resumed.1 += 1;
        } else {
            self.resumed = (Some(last.clone()), 1);
        }
        (self.resumed.1 <= RESUME_LIMIT).then_some(last)
    }
}

/// A reply without a content type is read as JSON: servers written by hand often leave it out.
fn is_json(content_type: &str) -> bool {
    content_type.is_empty() || MediaType::of(content_type) == MediaType::Json
}

fn other(open: &OpenReply) -> Other {
    Other {
        status: open.status.as_u16(),
        content_type: open.content_type().to_owned(),
        text: quoted(&String::from_utf8_lossy(open.text())),
        retry_after: open.header("retry-after").map(quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resuming_goes_on_as_long_as_there_is_progress() {
        let mut progress = Progress::default();
        assert_eq!(progress.resumes_at(), None);
        let event = |id: &str| sse::Event { id: Some(id.to_owned()), ..sse::Event::default() };
        progress.take(&event("a")).unwrap();
        for _ in 0..RESUME_LIMIT {
            assert_eq!(progress.resumes_at().as_deref(), Some("a"));
        }
        assert_eq!(progress.resumes_at(), None);
        progress.take(&event("b")).unwrap();
        assert_eq!(progress.resumes_at().as_deref(), Some("b"));
    }

    #[test]
    fn a_page_is_not_mcp_and_a_busy_server_says_when_to_come_back() {
        let other = |status, content_type: &str, text: &str| Other {
            status,
            content_type: content_type.to_owned(),
            text: text.to_owned(),
            retry_after: Some("3".to_owned()),
        };
        let error = other(200, "text/html", "<html>").into_error("http://a/", true);
        assert_eq!(error.code(), "not-mcp");
        assert!(error.to_string().contains("status 200, text/html"), "{error}");
        let error = other(429, "text/plain", "slow down").into_error("http://a/", true);
        assert_eq!(error.code(), "http-status");
        assert!(error.to_string().contains("slow down") && error.to_string().contains("wait 3"), "{error}");
        assert_eq!(other(500, "", "").into_error("http://a/", false).code(), "http-status");
    }
}
