//! Reads the requests of a recording and their answers from its events.
//!
//! An answer belongs to the request with its JSON-RPC id in the same HTTP exchange, else to the earliest open one with that
//! id in the same session (a stream that was resumed, HTTP+SSE of 2024-11-05), else, over stdio, to the open one with that
//! id. Progress belongs to the request with its token in the same exchange, else to the last one of the same session.
//! Memory is bounded by [`MOST_BYTES`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use mcpace_record::{
    Body, Digest, Event, EventKind, ExchangeId, Header, LineFrom, MessageKind, MessageNote, Nanos, RecordError,
    ReplyEnding, Side,
};
use mcpace_wire::Revision;
use mcpace_wire::http::{Era, MediaType, RequestHeaders, name};
use mcpace_wire::jsonrpc::{Id, Message, Outcome, Payload, Response};
use mcpace_wire::mcp::{ParamsOutline, key};
use serde::Serialize;
use serde_json::Value;

use super::answer::{Fate, HttpRefusal, REDACTED, RecordedAnswer, RecordedNotice, RecordedOutcome, RecordedRequest};
use super::index::{comparable_params, request_digest, target_name};
use crate::failure::RequestFailure;
use crate::profile::ResponseMode;

pub(super) const PROGRESS: &str = "notifications/progress";
pub(super) const LOG_MESSAGE: &str = "notifications/message";

/// Bytes of memory that the requests and answers of a recording may take, nearly.
const MOST_BYTES: usize = 1 << 30;

/// Bytes of memory that a request takes beside its texts: itself, its places in the maps, and its part of the index.
const REQUEST_BYTES: usize = 2 * (size_of::<RecordedRequest>() + size_of::<OpenRequest>());

/// Where an open request stands: its exchange over HTTP, and its id.
type Place = (Option<ExchangeId>, String);

/// Where a progress token is unique.
#[derive(PartialEq, Eq, Hash)]
enum TokenScope {
    Exchange(ExchangeId),
    /// A session over HTTP, or the one client over stdio.
    Session(Option<String>),
}

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
pub(super) struct RecordingReading {
    requests: Vec<RecordedRequest>,
    /// Sorted, so that the first one is found at once.
    open: BTreeMap<Place, OpenRequest>,
    /// Open requests by session and id, in the order in which they were sent.
    by_session: HashMap<(Option<String>, String), VecDeque<ExchangeId>>,
    by_progress_token: HashMap<(TokenScope, String), Place>,
    exchanges: HashMap<ExchangeId, OpenExchange>,
    /// Lines of the client that were read and not yet passed on.
    lines: HashMap<Digest, Vec<Place>>,
    /// Bytes of memory that were taken, and the most that may be.
    bytes: usize,
    most_bytes: usize,
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
    /// Whether the header of the protocol's revision names a modern one.
    is_modern: bool,
    status: u16,
    head: Option<Nanos>,
    content_type: Option<String>,
    retry_after: Option<String>,
    /// Requests of the exchange, in order. Those at the front that were answered are removed when the first open one is sought.
    open: VecDeque<Place>,
    /// Answered requests of the exchange: their numbers, and when they were sent.
    answered: Vec<(usize, Nanos)>,
}

impl Default for RecordingReading {
    fn default() -> Self {
        Self::with_limit(MOST_BYTES)
    }
}

impl RecordingReading {
    fn with_limit(most_bytes: usize) -> Self {
        Self {
            requests: Vec::new(),
            open: BTreeMap::new(),
            by_session: HashMap::new(),
            by_progress_token: HashMap::new(),
            exchanges: HashMap::new(),
            lines: HashMap::new(),
            bytes: 0,
            most_bytes,
            summary: RecordedSummary::default(),
            has_sessions: false,
            has_standalone_stream: false,
            partial: false,
        }
    }

    /// Reads the next event.
    pub(super) fn add_event(&mut self, event: Event) -> Result<(), RecordError> {
        let at = event.at;
        match event.kind {
            EventKind::RequestHead { ex, method, headers, .. } if !headers.is_empty() || method == "GET" => {
                let exchange = self.exchanges.entry(ex).or_default();
                exchange.is_get = method == "GET";
                exchange.session = header(&headers, name::SESSION_ID).or(exchange.session.take());
                let revision = header(&headers, name::PROTOCOL_VERSION).and_then(|text| text.parse::<Revision>().ok());
                exchange.is_modern |= revision.is_some_and(Revision::is_modern);
                let bytes = size_of::<OpenExchange>() + exchange.session.as_ref().map_or(0, String::len);
                self.take_memory(bytes)?;
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
                self.has_sessions |= header(&headers, name::SESSION_ID).is_some();
                let is_stream = exchange.content_type.as_deref().map(MediaType::of) == Some(MediaType::EventStream);
                self.has_standalone_stream |= exchange.is_get && status == 200 && is_stream;
                let texts = [&exchange.content_type, &exchange.retry_after].into_iter().flatten();
                let bytes = size_of::<OpenExchange>() + texts.map(String::len).sum::<usize>();
                self.take_memory(bytes)?;
            }
            EventKind::ReplyEvent { side: Side::Back, ex, messages, body, .. } => {
                self.add_server_messages(Some(ex), at, &messages, body.as_ref(), ResponseMode::Sse)?;
            }
            EventKind::ReplyEnd { side: Side::Back, ex, messages, body, ending, .. } => {
                self.add_server_messages(Some(ex), at, &messages, body.as_ref(), ResponseMode::Json)?;
                self.end_exchange(ex, at, body, ending)?;
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
        let payload = parse_whole(body);
        let messages = payload.as_ref().map_or(&[][..], Payload::messages);
        let mut places = Vec::new();
        for (number, note) in notes.iter().enumerate().filter(|(_, note)| note.kind == MessageKind::Request) {
            let (Some(id), Some(method)) = (note.id.clone(), note.method.clone()) else { continue };
            let place = (ex, id);
            let raw = messages.get(number).filter(|message| message.method() == Some(&method)).map(Message::params);
            let outline = raw.map(|raw| ParamsOutline::parse_routing(raw).unwrap_or_default()).unwrap_or_default();
            let token = outline.meta.as_ref().and_then(|meta| meta.progress_token.as_ref()).map(Id::to_string);
            let params = raw.map(|raw| {
                comparable_params(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null))
            });
            let name = params.as_ref().map_or_else(|| note.name.clone(), target_name);
            let texts = [Some(&method), Some(&place.1), note.name.as_ref(), token.as_ref()].into_iter().flatten();
            let texts = texts.map(String::len).sum::<usize>();
            self.take_memory(REQUEST_BYTES + 2 * texts + params.as_ref().map_or(0, value_size))?;
            let digest = request_digest(note);
            let request = RecordedRequest { method, params, name, digest, fate: Fate::Unanswered };
            let mut is_modern = Era::of(&RequestHeaders::default(), &outline) == Era::Modern;
            let mut session = None;
            if let Some(ex) = ex {
                let exchange = self.exchanges.entry(ex).or_default();
                // The header decides where the text was cut.
                let names_revision = outline.meta.as_ref().is_some_and(|meta| meta.protocol_version.is_some());
                is_modern |= exchange.is_modern && !names_revision;
                exchange.open.push_back(place.clone());
                session.clone_from(&exchange.session);
                self.by_session.entry((session.clone(), place.1.clone())).or_default().push_back(ex);
                if let Some(token) = &token {
                    self.by_progress_token.insert((TokenScope::Exchange(ex), token.clone()), place.clone());
                }
            }
            if let Some(token) = token {
                self.by_progress_token.insert((TokenScope::Session(session), token), place.clone());
            }
            let open = OpenRequest { request, sent: at, notices: Vec::new(), is_modern, asked: false };
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
        let payload = parse_whole(body);
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
                        self.add_notice(ex, at, &notification.method, notification.params.map(|raw| raw.get()))?;
                    }
                }
                MessageKind::Result | MessageKind::Error => {
                    let response = match message {
                        Some(Message::Response(response)) => Some(response),
                        _ => None,
                    };
                    if let Some(id) = &note.id {
                        self.close_request(ex, id, at, response, mode)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_notice(
        &mut self,
        ex: Option<ExchangeId>,
        at: Nanos,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), RecordError> {
        let Some(params) = params.and_then(|params| serde_json::from_str::<Value>(params).ok()) else { return Ok(()) };
        let (method, place) = match method {
            PROGRESS => {
                let token = params[key::PROGRESS_TOKEN].to_string();
                (PROGRESS, self.place_of_token(ex, &token))
            }
            LOG_MESSAGE => (LOG_MESSAGE, self.enclosing_request(ex)),
            _ => return Ok(()),
        };
        self.take_memory(size_of::<RecordedNotice>() + value_size(&params))?;
        if let Some(open) = place.and_then(|place| self.open.get_mut(&place)) {
            open.notices.push(RecordedNotice { at: between(open.sent, at), method, params });
        }
        Ok(())
    }

    fn place_of_token(&self, ex: Option<ExchangeId>, token: &str) -> Option<Place> {
        let find = |scope| self.by_progress_token.get(&(scope, token.to_owned()));
        let session = ex.and_then(|ex| self.exchanges.get(&ex)).and_then(|exchange| exchange.session.clone());
        ex.and_then(|ex| find(TokenScope::Exchange(ex))).or_else(|| find(TokenScope::Session(session))).cloned()
    }

    /// The request that a message without an id belongs to: the first open one of the exchange, over stdio the only one.
    fn enclosing_request(&mut self, ex: Option<ExchangeId>) -> Option<Place> {
        let Some(ex) = ex else {
            return self.open.keys().next().filter(|_| self.open.len() == 1).cloned();
        };
        let places = &mut self.exchanges.get_mut(&ex)?.open;
        while places.front().is_some_and(|place| !self.open.contains_key(place)) {
            places.pop_front();
        }
        places.front().cloned()
    }

    fn close_request(
        &mut self,
        ex: Option<ExchangeId>,
        id: &str,
        at: Nanos,
        response: Option<&Response<'_>>,
        mode: ResponseMode,
    ) -> Result<(), RecordError> {
        let Some(place) = self.place_of_answer(ex, id) else { return Ok(()) };
        let Some(open) = self.open.remove(&place) else { return Ok(()) };
        let exchange = ex.and_then(|ex| self.exchanges.get_mut(&ex));
        let head = exchange.as_ref().and_then(|exchange| exchange.head).unwrap_or(at);
        let number = self.requests.len();
        if let Some(exchange) = exchange {
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
        self.take_memory(outcome.as_ref().map_or(0, RecordedOutcome::text_size))?;
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
        Ok(())
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

    fn end_exchange(
        &mut self,
        ex: ExchangeId,
        at: Nanos,
        body: Option<Body>,
        ending: ReplyEnding,
    ) -> Result<(), RecordError> {
        let Some(exchange) = self.exchanges.remove(&ex) else { return Ok(()) };
        for (number, sent) in &exchange.answered {
            if let Some(RecordedRequest { fate: Fate::Answered(answer), .. }) = self.requests.get_mut(*number) {
                answer.end = between(*sent, at);
            }
        }
        // A request that was accepted with 202 is answered elsewhere.
        if exchange.status < 400 || ending == ReplyEnding::NoReply {
            return Ok(());
        }
        for place in exchange.open {
            let Some(open) = self.open.remove(&place) else { continue };
            self.take_memory(body.as_ref().map_or(0, |body| body.text.len()))?;
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
        Ok(())
    }

    /// Counts bytes that are kept.
    fn take_memory(&mut self, bytes: usize) -> Result<(), RecordError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most_bytes {
            let what = format!("{} MiB of requests and answers in memory", self.most_bytes >> 20);
            return Err(RecordError::TooLarge { what });
        }
        Ok(())
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

impl RecordedOutcome {
    /// Bytes of its texts, nearly.
    fn text_size(&self) -> usize {
        match self {
            Self::Result(result) => result.get().len(),
            Self::Error(failure) => failure.message.len() + failure.data.as_ref().map_or(0, value_size),
            Self::Refusal(refusal) => refusal.body.len(),
        }
    }
}

/// The messages of a body that was recorded whole.
fn parse_whole(body: Option<&Body>) -> Option<Payload<'_>> {
    let body = body.filter(|body| !body.cut)?;
    Payload::parse(body.text.as_bytes()).ok()
}

/// Bytes of memory that a value takes, nearly.
fn value_size(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_size).sum(),
        // A member takes its name, and room in the map.
        Value::Object(members) => {
            members.iter().map(|(name, value)| 2 * size_of::<String>() + name.len() + value_size(value)).sum()
        }
        _ => 0,
    };
    size_of::<Value>() + inner
}

fn header(headers: &[Header], wanted: &str) -> Option<String> {
    headers.iter().find(|Header(name, _)| name.eq_ignore_ascii_case(wanted)).map(|Header(_, value)| value.clone())
}

fn between(from: Nanos, to: Nanos) -> Duration {
    Duration::from_nanos(to.0.saturating_sub(from.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request whose parameters take far more memory than text, and its answer.
    fn events(number: u64) -> [Event; 2] {
        let (ex, digest) = (ExchangeId(number), mcpace_record::digest_bytes(b"x"));
        let zeros = vec!["0"; 1_000].join(",");
        let asked = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"n":{number},"zeros":[{zeros}]}}}}"#);
        let messages = MessageNote::of(asked.as_bytes());
        let body = Some(Body { text: asked, cut: false });
        let sent = EventKind::RequestEnd { side: Side::Front, ex, bytes: 1, digest, messages, body };
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let messages = MessageNote::of(answer.as_bytes());
        let body = Some(Body { text: answer.to_owned(), cut: false });
        let ending = ReplyEnding::Complete;
        let answered = EventKind::ReplyEnd { side: Side::Back, ex, bytes: 1, digest, messages, body, ending };
        [Event { at: Nanos(number), kind: sent }, Event { at: Nanos(number), kind: answered }]
    }

    #[test]
    fn parameters_count_by_the_memory_that_they_take() {
        let limit = 100 * 1_000 * size_of::<Value>();
        let mut reading = RecordingReading::with_limit(limit);
        let failed = (0..1_000).flat_map(events).position(|event| reading.add_event(event).is_err()).unwrap() / 2;
        assert!((80..=100).contains(&failed), "{failed} requests had room");
        let (requests, _) = reading.finish();
        let kept: usize = requests.iter().filter_map(|request| request.params.as_ref()).map(value_size).sum();
        assert!(kept <= limit, "{kept}");
    }

    #[test]
    fn heads_without_an_end_count() {
        let mut reading = RecordingReading::with_limit(1 << 20);
        let head = |ex: u64| {
            let headers = vec![Header(name::SESSION_ID.to_owned(), "s".repeat(1_000))];
            let kind = EventKind::RequestHead {
                side: Side::Front,
                conn: mcpace_record::ConnectionId(1),
                ex: ExchangeId(ex),
                method: "POST".to_owned(),
                target: "/mcp".to_owned(),
                headers,
            };
            Event { at: Nanos(ex), kind }
        };
        assert!((0..2_000).any(|number| reading.add_event(head(number)).is_err()));
    }
}
