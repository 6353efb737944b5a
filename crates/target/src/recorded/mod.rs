//! A recording as a server: each request gets the answer that the recorded server gave to it.
//!
//! A request is matched by its method and its parameters without `_meta` ([`index`]). The recorded handshake serves every
//! revision, and a result is adapted where the client speaks the other era ([`adaptation`]). HTTP and stdio share
//! [`RecordedServer::reply_to`].
//!
//! Deliberately absent: questions of the recorded server to its client, notifications outside of a request, and secrets.
//! The recorder masked the secrets, so an answer holds `[redacted …]` in their place.

mod adaptation;
mod answer;
mod index;
mod reading;

use std::io::{self, Read};
use std::time::Duration;

use mcpace_record::{Reader, RecordError};
use mcpace_wire::jsonrpc::{Id, Request, code, write_error, write_notification, write_result};
use mcpace_wire::mcp::ParamsOutline;
use serde::Serialize;
use serde_json::Value;

use self::adaptation::Handshake;
use self::answer::{RecordedAnswer, RecordedOutcome};
use self::index::{AnswerIndex, Found};
use self::reading::RecordingReading;
use crate::failure::RequestFailure;
use crate::profile::ResponseMode;

pub(crate) use self::answer::HttpRefusal;
pub(crate) use self::index::Closeness;
pub use self::index::Matching;
pub use self::reading::RecordedSummary;

/// The largest factor for the recorded times.
const LARGEST_SCALE: f64 = 1_000.0;
/// No part of a reply comes later than this after its request.
const LONGEST_TIME: Duration = Duration::from_secs(3_600);

/// Why a recording can't be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// The file can't be read as a recording.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No request has a whole answer.
    #[error("the recording has no request with a whole answer ({cut} cut by --body-limit, {unanswered} unanswered)")]
    NoAnswer {
        /// Requests whose answers were cut.
        cut: u64,
        /// Requests without an answer.
        unanswered: u64,
    },
    /// The factor for the recorded times is out of range.
    #[error("the time scale {given} is not a number from 0 to {LARGEST_SCALE}")]
    TimeScale {
        /// The given factor.
        given: f64,
    },
}

/// The answers of a recording, ready to be served.
#[derive(Debug)]
pub struct RecordedServer {
    index: AnswerIndex,
    handshake: Handshake,
    matching: Matching,
    time_scale: f64,
    summary: RecordedSummary,
    has_sessions: bool,
    has_standalone_stream: bool,
}

/// Reply to one request, with times from the arrival of the request.
#[derive(Debug)]
pub(crate) struct RecordedReply {
    /// When the head of an HTTP reply goes out.
    pub(crate) head: Duration,
    /// Notifications before the answer: when, and the JSON-RPC message.
    pub(crate) notices: Vec<(Duration, Vec<u8>)>,
    /// When the answer goes out.
    pub(crate) at: Duration,
    pub(crate) answer: ReplyContent,
    /// When the stream of an HTTP reply ends.
    pub(crate) end: Duration,
    /// Way in which the recorded server sent it over HTTP.
    pub(crate) mode: ResponseMode,
    pub(crate) closeness: Closeness,
}

/// Content of a reply.
#[derive(Debug)]
pub(crate) enum ReplyContent {
    /// A JSON-RPC response, and the code of its error.
    Message(Vec<u8>, Option<i64>),
    /// An HTTP error without a JSON-RPC response.
    Status(HttpRefusal),
}

impl RecordedServer {
    /// Reads the answers of a recording. `open` opens the file; it is called twice where the events are far out of order.
    /// The recorded times are multiplied by `time_scale`; 0 answers at once.
    ///
    /// # Errors
    ///
    /// A file that is no recording or can't be read, a recording without a whole answer, or a `time_scale` out of range.
    pub fn read<R: Read + Send>(
        open: impl Fn() -> io::Result<R>,
        matching: Matching,
        time_scale: f64,
    ) -> Result<Self, RecordedError> {
        if !(0.0..=LARGEST_SCALE).contains(&time_scale) {
            return Err(RecordedError::TimeScale { given: time_scale });
        }
        let reading = match read_in_order(&open) {
            Err(RecordError::OutOfOrder) => read_whole(&open)?,
            reading => reading?,
        };
        let has_sessions = reading.has_sessions;
        let has_standalone_stream = reading.has_standalone_stream;
        let (requests, summary) = reading.finish();
        if summary.answers.is_empty() {
            return Err(RecordedError::NoAnswer { cut: summary.cut, unanswered: summary.unanswered });
        }
        let index = AnswerIndex::new(requests);
        let handshake = Handshake::of_recording(&index);
        Ok(Self { index, handshake, matching, time_scale, summary, has_sessions, has_standalone_stream })
    }

    /// Counts of the recording's requests.
    #[must_use]
    pub fn summary(&self) -> &RecordedSummary {
        &self.summary
    }

    /// Whether the recorded server kept sessions over HTTP.
    pub(crate) fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    /// Whether the recorded server opened a stream for a GET.
    pub(crate) fn has_standalone_stream(&self) -> bool {
        self.has_standalone_stream
    }

    /// Whether the recording has requests of the method.
    pub(crate) fn knows_method(&self, method: &str) -> bool {
        self.index.knows_method(method)
    }

    /// Whether the recording answers the tool, prompt or resource of this name, so that a count of it is bounded.
    pub(crate) fn knows_name(&self, method: &str, name: &str) -> bool {
        self.index.knows_name(method, name)
    }

    /// The reply to a request. `is_modern`: whether the request is of 2026-07-28 or later.
    pub(crate) fn reply_to(&self, request: &Request<'_>, is_modern: bool) -> RecordedReply {
        let method = request.method.as_ref();
        let handshake = match (method, is_modern) {
            ("initialize", false) => Some(self.handshake.initialize_result(asked_revision(request).as_deref())),
            ("server/discover", true) => Some(self.handshake.discover_result()),
            _ => None,
        };
        if let Some(result) = handshake {
            return match self.index.first_answer(method) {
                Some(failed) if !failed.is_result() => {
                    self.recorded_reply(request, failed, Closeness::Equal, is_modern)
                }
                times => self.timed_reply(times, Closeness::Equal, result_content(&request.id, &result), Vec::new()),
            };
        }
        let is_of_other_era = match method {
            "initialize" | "ping" => is_modern,
            "server/discover" => !is_modern,
            _ => false,
        };
        if is_of_other_era {
            let failure = RequestFailure::new(code::METHOD_NOT_FOUND, format!("{method} is of another revision"));
            return self.failed_reply(request, &failure);
        }
        match self.index.find_answer(request, self.matching) {
            Ok(Found { answer, closeness }) => self.recorded_reply(request, answer, closeness, is_modern),
            // The protocol obliges every legacy server to answer a ping.
            Err(_) if method == "ping" => {
                let content = result_content(&request.id, &Value::Object(serde_json::Map::new()));
                self.timed_reply(None, Closeness::Equal, content, Vec::new())
            }
            Err(failure) => self.failed_reply(request, &failure),
        }
    }

    fn recorded_reply(
        &self,
        request: &Request<'_>,
        answer: &RecordedAnswer,
        closeness: Closeness,
        is_modern: bool,
    ) -> RecordedReply {
        let content = match &answer.outcome {
            RecordedOutcome::Result(result) if answer.is_modern == is_modern => result_content(&request.id, result),
            RecordedOutcome::Result(result) => {
                match self.handshake.adapt_result(&request.method, result.get(), is_modern) {
                    Ok(result) => result_content(&request.id, &result),
                    Err(failure) => return self.failed_reply(request, &failure),
                }
            }
            RecordedOutcome::Error(failure) => {
                ReplyContent::Message(failure.to_response(Some(&request.id)), Some(failure.code))
            }
            RecordedOutcome::Refusal(refusal) => ReplyContent::Status(refusal.clone()),
        };
        let outline = ParamsOutline::parse(request.params).unwrap_or_default();
        let token = outline.meta.and_then(|meta| meta.progress_token);
        let notices = answer.notices.iter().filter_map(|notice| {
            let message = notice_message(notice, token.as_ref(), is_modern)?;
            Some((self.scaled(notice.at), message))
        });
        self.timed_reply(Some(answer), closeness, content, notices.collect())
    }

    fn failed_reply(&self, request: &Request<'_>, failure: &RequestFailure) -> RecordedReply {
        let content = ReplyContent::Message(failure.to_response(Some(&request.id)), Some(failure.code));
        self.timed_reply(None, Closeness::None, content, Vec::new())
    }

    fn timed_reply(
        &self,
        times: Option<&RecordedAnswer>,
        closeness: Closeness,
        answer: ReplyContent,
        notices: Vec<(Duration, Vec<u8>)>,
    ) -> RecordedReply {
        let time =
            |part: fn(&RecordedAnswer) -> Duration| times.map_or(Duration::ZERO, |times| self.scaled(part(times)));
        RecordedReply {
            head: time(|answer| answer.head),
            notices,
            at: time(|answer| answer.at),
            answer,
            end: time(|answer| answer.end),
            mode: times.map_or(ResponseMode::Json, |times| times.mode),
            closeness,
        }
    }

    fn scaled(&self, time: Duration) -> Duration {
        Duration::try_from_secs_f64(time.as_secs_f64() * self.time_scale)
            .map_or(LONGEST_TIME, |time| time.min(LONGEST_TIME))
    }
}

/// The response to a request that can't be served, as over stdio for an HTTP error.
pub(crate) fn refusal_message(id: &Id<'_>, refusal: &HttpRefusal) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = format!("the recorded server answered with HTTP status {}", refusal.status);
    // Writing fails on maps whose keys are no strings; there is no data here.
    let _ = write_error(&mut bytes, Some(id), code::INTERNAL_ERROR, &message, None::<&()>);
    bytes
}

fn read_in_order<R: Read + Send>(open: &impl Fn() -> io::Result<R>) -> Result<RecordingReading, RecordError> {
    let mut events = Reader::events(open()?)?;
    let mut reading = RecordingReading::default();
    for event in events.by_ref() {
        reading.add_event(event?)?;
    }
    reading.partial = events.partial();
    Ok(reading)
}

fn read_whole<R: Read + Send>(open: &impl Fn() -> io::Result<R>) -> Result<RecordingReading, RecordError> {
    let recording = Reader::read(open()?)?;
    let mut reading = RecordingReading::default();
    for event in recording.events() {
        reading.add_event(event.clone())?;
    }
    reading.partial = recording.partial;
    Ok(reading)
}

fn result_content(id: &Id<'_>, result: &impl Serialize) -> ReplyContent {
    let mut bytes = Vec::new();
    // Writing fails on maps whose keys are no strings; JSON has none.
    let _ = write_result(&mut bytes, id, result);
    ReplyContent::Message(bytes, None)
}

/// The notification for this client: progress under the token of its own request, log messages in the legacy revisions.
fn notice_message(notice: &answer::RecordedNotice, token: Option<&Id<'_>>, is_modern: bool) -> Option<Vec<u8>> {
    let mut params = notice.params.clone();
    match (notice.method, token) {
        (reading::PROGRESS, Some(token)) => params["progressToken"] = serde_json::to_value(token).ok()?,
        (reading::LOG_MESSAGE, _) if !is_modern => {}
        _ => return None,
    }
    let mut bytes = Vec::new();
    write_notification(&mut bytes, notice.method, Some(&params)).ok()?;
    Some(bytes)
}

fn asked_revision(request: &Request<'_>) -> Option<String> {
    let params: Value = serde_json::from_str(request.params?.get()).ok()?;
    params["protocolVersion"].as_str().map(str::to_owned)
}
