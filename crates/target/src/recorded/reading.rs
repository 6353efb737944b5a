//! Reads the requests of a recording and their answers from its events.
//!
//! An answer belongs to the request with its JSON-RPC id in the same HTTP exchange, else to the earliest open one with that
//! id in the same session (a stream that was resumed, HTTP+SSE of 2024-11-05), else, over stdio, to the open one with that
//! id. Memory is bounded by [`MOST_BYTES`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use mcpace_record::{
    Body, Digest, Event, EventKind, ExchangeId, Header, LineFrom, MessageKind, MessageNote, Nanos, RecordError,
    ReplyEnding, Side,
};
use mcpace_wire::http::MediaType;
use mcpace_wire::jsonrpc::{Message, Outcome, Payload, Response};
use mcpace_wire::mcp::{ParamsOutline, key};
use serde::Serialize;
use serde_json::Value;

use super::answer::{Fate, HttpRefusal, REDACTED, RecordedAnswer, RecordedNotice, RecordedOutcome, RecordedRequest};
use super::index::{comparable_params, request_digest, target_name};
use crate::failure::RequestFailure;
use crate::profile::ResponseMode;

pub(super) const PROGRESS: &str = "notifications/progress";
pub(super) const LOG_MESSAGE: &str = "notifications/message";

/// Bytes of text that the requests and answers of a recording may have.
const MOST_BYTES: usize = 1 << 30;

/// Where an open request stands: its exchange over HTTP, and its id.
type Place = (Option<ExchangeId>, String);

/// Counts of a recording's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecordedSummary {
    /// Answers that can be given, by method.
    pub answers: BTreeMap<String, u64>,
    /// Requests whose answers the recording holds only in part: they were longer than `--body-limit`, or no UTF-8 text.
    pub cut: u64,
    /// Requests without an answer in the recording.
    pub unanswered: u64,
    /// Requests that HTTP refused with another status than 429 and 5xx, for example for want of a token.
    pub refused: u64,
    /// Answers with masked secrets.
    pub redacted: u64,
    /// Answers before which the server asked its client something.
    pub asked: u64,
    /// Whether the end of the recording is missing.
    pub partial: bool,
}

/// The state of reading.
#[derive(Default)]
pub(super) struct RecordingReading {
    requests: Vec<RecordedRequest>,
    open: HashMap<Place, OpenRequest>,
    /// Open requests by session and id, in the order in which they were sent.
    by_session: HashMap<(Option<String>, String), VecDeque<ExchangeId>>,
    by_progress_token: HashMap<String, Place>,
    exchanges: HashMap<ExchangeId, OpenExchange>,
    /// Lines of the client that were read and not yet passed on.
    lines: HashMap<Digest, Vec<Place>>,
    bytes: usize,
    summary: RecordedSummary,
    pub(super) has_sessions: bool,
    pub(super) has_standalone_stream: bool,
    pub(super) partial: bool,
}

struct OpenRequest {
    request: RecordedRequest,
    sent: Nanos,
    notices: Vec<RecordedNotice>,
    is_modern: bool,
    asked: bool,
}

#[derive(Default)]
struct OpenExchange {
    is_get: bool,
    session: Option<String>,
    status: u16,
    head: Option<Nanos>,
    content_type: Option<String>,
    retry_after: Option<String>,
    open: Vec<Place>,
    /// Answered requests of the exchange: their numbers, and when they were sent.
    answered: Vec<(usize, Nanos)>,
}

impl RecordingReading {
    /// Reads the next event.
    pub(super) fn add_event(&mut self, event: Event) -> Result<(), RecordError> {
        let at = event.at;
        match event.kind {
            EventKind::RequestHead { ex, method, headers, .. } if !headers.is_empty() || method == "GET" => {
                let exchange = self.exchanges.entry(ex).or_default();
                exchange.is_get = method == "GET";
                exchange.session = header(&headers, "mcp-session-id").or(exchange.session.take());
            }
            EventKind::RequestEnd { ex, messages, body, .. } => {
                if messages.is_empty() {
                    self.set_sent(ex, at);
                } else {
                    self.add_client_messages(Some(ex), at, &messages, body.as_ref())?;
                }
            }
            EventKind::ReplyHead { side: Side::Back, ex, status, headers } => {
                let exchange = self.exchanges.entry(ex).or_default();
                exchange.head = Some(at);
                exchange.status = status;
                exchange.content_type = header(&headers, "content-type");
                exchange.retry_after = header(&headers, "retry-after");
                self.has_sessions |= header(&headers, "mcp-session-id").is_some();
                let is_stream = exchange.content_type.as_deref().map(MediaType::of) == Some(MediaType::EventStream);
                self.has_standalone_stream |= exchange.is_get && status == 200 && is_stream;
            }
            EventKind::ReplyEvent { side: Side::Back, ex, messages, body, .. } => {
                self.add_server_messages(Some(ex), at, &messages, body.as_ref(), ResponseMode::Sse)?;
            }
            EventKind::ReplyEnd { side: Side::Back, ex, messages, body, ending, .. } => {
                self.add_server_messages(Some(ex), at, &messages, body.as_ref(), ResponseMode::Json)?;
                self.end_exchange(ex, at, body, ending);
            }
            EventKind::StdioLine { side, from: LineFrom::Client, digest, messages, body, .. } => {
                if side == Side::Back && messages.is_empty() {
                    for place in self.lines.remove(&digest).unwrap_or_default() {
                        if let Some(open) = self.open.get_mut(&place) {
                            open.sent = at;
                        }
                    }
                } else {
                    let places = self.add_client_messages(None, at, &messages, body.as_ref())?;
                    self.lines.insert(digest, places);
                }
            }
            EventKind::StdioLine { from: LineFrom::Server, messages, body, .. } if !messages.is_empty() => {
                self.add_server_messages(None, at, &messages, body.as_ref(), ResponseMode::Json)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// All requests, in the order in which they were answered, and their counts.
    pub(super) fn finish(mut self) -> (Vec<RecordedRequest>, RecordedSummary) {
        self.requests.extend(self.open.into_values().map(|open| open.request));
        let mut summary = self.summary;
        summary.partial = self.partial;
        for request in &self.requests {
            match &request.fate {
                Fate::Answered(answer) => {
                    *summary.answers.entry(request.method.clone()).or_default() += 1;
                    summary.redacted += u64::from(answer.is_redacted());
                    summary.asked += u64::from(answer.asked);
                }
                Fate::Cut => summary.cut += 1,
                Fate::Unanswered => summary.unanswered += 1,
                Fate::Refused => summary.refused += 1,
            }
        }
        (self.requests, summary)
    }

    /// Corrects when the requests of an exchange were sent: the recorder passed them on a little later than it read them.
    fn set_sent(&mut self, ex: ExchangeId, at: Nanos) {
        let Some(exchange) = self.exchanges.get(&ex) else { return };
        for place in &exchange.open {
            if let Some(open) = self.open.get_mut(place) {
                open.sent = at;
            }
        }
    }

    fn add_client_messages(
        &mut self,
        ex: Option<ExchangeId>,
        at: Nanos,
        notes: &[MessageNote],
        body: Option<&Body>,
    ) -> Result<Vec<Place>, RecordError> {
        let text = self.kept_text(body)?;
        let payload = text.and_then(|text| Payload::parse(text.as_bytes()).ok());
        let messages = payload.as_ref().map_or(&[][..], Payload::messages);
        let mut places = Vec::new();
        for (number, note) in notes.iter().enumerate().filter(|(_, note)| note.kind == MessageKind::Request) {
            let (Some(id), Some(method)) = (note.id.clone(), note.method.clone()) else { continue };
            let place = (ex, id);
            let raw = messages.get(number).filter(|message| message.method() == Some(&method)).map(Message::params);
            let outline = raw.map(|raw| ParamsOutline::parse_routing(raw).unwrap_or_default()).unwrap_or_default();
            let meta = outline.meta.as_ref();
            if let Some(token) = meta.and_then(|meta| meta.progress_token.as_ref()) {
                self.by_progress_token.insert(token.to_string(), place.clone());
            }
            let params = raw.map(|raw| {
                comparable_params(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null))
            });
            let name = params.as_ref().and_then(target_name).or_else(|| note.name.clone());
            let digest = request_digest(note);
            let request = RecordedRequest { method, params, name, digest, fate: Fate::Unanswered };
            let is_modern = meta.is_some_and(|meta| meta.protocol_version.is_some());
            let open = OpenRequest { request, sent: at, notices: Vec::new(), is_modern, asked: false };
            if let Some(ex) = ex {
                let exchange = self.exchanges.entry(ex).or_default();
                exchange.open.push(place.clone());
                let session = (exchange.session.clone(), place.1.clone());
                self.by_session.entry(session).or_default().push_back(ex);
            }
            // An id that is used again ends the wait for the earlier request.
            if let Some(earlier) = self.open.insert(place.clone(), open) {
                self.requests.push(earlier.request);
            }
            places.push(place);
        }
        Ok(places)
    }

    fn add_server_messages(
        &mut self,
        ex: Option<ExchangeId>,
        at: Nanos,
        notes: &[MessageNote],
        body: Option<&Body>,
        mode: ResponseMode,
    ) -> Result<(), RecordError> {
        if notes.is_empty() {
            return Ok(());
        }
        let text = self.kept_text(body)?;
        let payload = text.and_then(|text| Payload::parse(text.as_bytes()).ok());
        let messages = payload.as_ref().map_or(&[][..], Payload::messages);
        for (number, note) in notes.iter().enumerate() {
            let message = messages.get(number);
            match note.kind {
                MessageKind::Request => {
                    if let Some(open) = self.enclosing_request(ex).and_then(|place| self.open.get_mut(&place)) {
                        open.asked = true;
                    }
                }
                MessageKind::Notification => {
                    if let Some(Message::Notification(notification)) = message {
                        self.add_notice(ex, at, &notification.method, notification.params.map(|raw| raw.get()));
                    }
                }
                MessageKind::Result | MessageKind::Error => {
                    let response = match message {
                        Some(Message::Response(response)) => Some(response),
                        _ => None,
                    };
                    if let Some(id) = &note.id {
                        self.close_request(ex, id, at, response, mode);
                    }
                }
            }
        }
        Ok(())
    }

    fn add_notice(&mut self, ex: Option<ExchangeId>, at: Nanos, method: &str, params: Option<&str>) {
        let Some(params) = params.and_then(|params| serde_json::from_str::<Value>(params).ok()) else { return };
        let (method, place) = match method {
            PROGRESS => {
                let token = params[key::PROGRESS_TOKEN].to_string();
                (PROGRESS, self.by_progress_token.get(&token).cloned())
            }
            LOG_MESSAGE => (LOG_MESSAGE, self.enclosing_request(ex)),
            _ => return,
        };
        if let Some(open) = place.and_then(|place| self.open.get_mut(&place)) {
            open.notices.push(RecordedNotice { at: between(open.sent, at), method, params });
        }
    }

    /// The request that a message without an id belongs to: the first open one of the exchange, over stdio the only one.
    fn enclosing_request(&self, ex: Option<ExchangeId>) -> Option<Place> {
        match ex {
            Some(ex) => self.exchanges.get(&ex)?.open.first().cloned(),
            None => self.open.keys().next().filter(|_| self.open.len() == 1).cloned(),
        }
    }

    fn close_request(
        &mut self,
        ex: Option<ExchangeId>,
        id: &str,
        at: Nanos,
        response: Option<&Response<'_>>,
        mode: ResponseMode,
    ) {
        let Some(place) = self.place_of_answer(ex, id) else { return };
        let Some(open) = self.open.remove(&place) else { return };
        let exchange = ex.and_then(|ex| self.exchanges.get_mut(&ex));
        let head = exchange.as_ref().and_then(|exchange| exchange.head).unwrap_or(at);
        let number = self.requests.len();
        if let Some(exchange) = exchange {
            exchange.open.retain(|other| *other != place);
            exchange.answered.push((number, open.sent));
        }
        let answered = between(open.sent, at);
        // Over stdio there is no head, and notifications need an event stream over HTTP.
        let first_notice = open.notices.first().map_or(answered, |notice| notice.at);
        let mode = if open.notices.is_empty() { mode } else { ResponseMode::Sse };
        let outcome = response.map(|response| match &response.outcome {
            Outcome::Result(result) => RecordedOutcome::Result((*result).to_owned()),
            Outcome::Error(error) => RecordedOutcome::Error(RequestFailure {
                code: error.code,
                message: error.message.to_string().into(),
                data: error.data.and_then(|data| serde_json::from_str(data.get()).ok()),
            }),
        });
        let fate = match outcome {
            Some(outcome) => Fate::Answered(RecordedAnswer {
                outcome,
                notices: open.notices,
                head: between(open.sent, head).min(first_notice),
                at: answered,
                end: answered,
                mode,
                is_modern: open.is_modern,
                asked: open.asked,
            }),
            None => Fate::Cut,
        };
        self.requests.push(RecordedRequest { fate, ..open.request });
    }

    fn place_of_answer(&mut self, ex: Option<ExchangeId>, id: &str) -> Option<Place> {
        let place = (ex, id.to_owned());
        if self.open.contains_key(&place) {
            return Some(place);
        }
        let session = self.exchanges.get(&ex?)?.session.clone();
        let waiting = self.by_session.get_mut(&(session, id.to_owned()))?;
        while let Some(ex) = waiting.pop_front() {
            let place = (Some(ex), id.to_owned());
            if self.open.contains_key(&place) {
                return Some(place);
            }
        }
        None
    }

    fn end_exchange(&mut self, ex: ExchangeId, at: Nanos, body: Option<Body>, ending: ReplyEnding) {
        let Some(exchange) = self.exchanges.remove(&ex) else { return };
        for (number, sent) in &exchange.answered {
            if let Some(RecordedRequest { fate: Fate::Answered(answer), .. }) = self.requests.get_mut(*number) {
                answer.end = between(*sent, at);
            }
        }
        // A request that was accepted with 202 is answered elsewhere.
        if exchange.status < 400 || ending == ReplyEnding::NoReply {
            return;
        }
        for place in exchange.open {
            let Some(open) = self.open.remove(&place) else { continue };
            let fate = match exchange.status {
                429 | 500.. => Fate::Answered(RecordedAnswer {
                    outcome: RecordedOutcome::Refusal(HttpRefusal {
                        status: exchange.status,
                        content_type: exchange.content_type.clone(),
                        retry_after: exchange.retry_after.clone(),
                        body: body.as_ref().map(|body| body.text.clone()).unwrap_or_default(),
                    }),
                    notices: Vec::new(),
                    head: between(open.sent, exchange.head.unwrap_or(at)),
                    at: between(open.sent, at),
                    end: between(open.sent, at),
                    mode: ResponseMode::Json,
                    is_modern: open.is_modern,
                    asked: false,
                }),
                _ => Fate::Refused,
            };
            self.requests.push(RecordedRequest { fate, ..open.request });
        }
    }

    /// The whole text of a body.
    fn kept_text<'b>(&mut self, body: Option<&'b Body>) -> Result<Option<&'b str>, RecordError> {
        let Some(body) = body.filter(|body| !body.cut) else { return Ok(None) };
        self.bytes += body.text.len();
        if self.bytes > MOST_BYTES {
            return Err(RecordError::TooLarge { what: format!("{} GiB of requests and answers", MOST_BYTES >> 30) });
        }
        Ok(Some(&body.text))
    }
}

impl RecordedAnswer {
    /// Whether the recorder masked a secret in the answer.
    fn is_redacted(&self) -> bool {
        match &self.outcome {
            RecordedOutcome::Result(result) => result.get().contains(REDACTED),
            RecordedOutcome::Error(failure) => {
                failure.message.contains(REDACTED)
                    || failure.data.as_ref().is_some_and(|data| data.to_string().contains(REDACTED))
            }
            RecordedOutcome::Refusal(refusal) => refusal.body.contains(REDACTED),
        }
    }
}

fn header(headers: &[Header], wanted: &str) -> Option<String> {
    headers.iter().find(|Header(name, _)| name.eq_ignore_ascii_case(wanted)).map(|Header(_, value)| value.clone())
}

fn between(from: Nanos, to: Nanos) -> Duration {
    Duration::from_nanos(to.0.saturating_sub(from.0))
}
