//! Shaping results into HTTP replies: JSON or SSE, with everything that goes wrong on the way out.
//!
//! The order of what a body does is the order of this file's steps; nothing is decided later.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use mcpace_wire::http::name;
use mcpace_wire::sse::{self, Event};
use tokio::sync::watch;

use crate::faults::{FaultKind, Faults};
use crate::profile::ResponseMode;
use crate::script::{Script, ScriptStep};
use crate::timer::Timer;

/// Settings that all replies of a target share.
#[derive(Debug, Clone)]
pub(crate) struct Shaper {
    pub(crate) faults: Faults,
    /// How long SSE replies stay open after their result.
    pub(crate) hold: Duration,
    pub(crate) timer: Timer,
    /// True once the target is to stop: nothing waits any longer then.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// The opening of an SSE reply that must have one (to be delayed or written apart).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// An event with an id and no data, which clients of 2025-11-25 know.
    Priming,
    /// A comment, which every client skips.
    Comment,
}

impl Shaper {
    /// The reply as JSON or as an event stream.
    pub(crate) fn shape_reply(
        &self,
        mode: ResponseMode,
        method: &str,
        opening: Opening,
        reply: Reply,
    ) -> Response<Script> {
        match mode {
            ResponseMode::Json => self.json_reply(method, reply),
            ResponseMode::Sse => self.sse_reply(method, opening, reply),
        }
    }

    fn json_reply(&self, method: &str, reply: Reply) -> Response<Script> {
        let last = reply.messages.iter().map(|message| message.at).max().unwrap_or_default();
        let (received, part_period) = (reply.received, reply.part_period);
        let due = received + last;
        let body = reply.into_json();
        let length = body.len();
        let mut steps = Vec::new();
        self.add_pause(&mut steps, self.faults.delay_for(FaultKind::FirstByte, method));
        match part_period {
            Some(period) => self.add_parts(&mut steps, received, last, period, &body.into()),
            None => {
                self.add_wait_until(&mut steps, due);
                self.add_result(&mut steps, method, body.into());
            }
        }
        let end = self.faults.delay_for(FaultKind::StreamEnd, method);
        let script = if end.is_zero() {
            Script::with_length(length, steps)
        } else {
            // A body of known length ends with its last byte; only a chunked one can end later.
            self.add_pause(&mut steps, end);
            Script::chunked(steps)
        };
        with_type(script, "application/json")
    }

    fn sse_reply(&self, method: &str, opening: Opening, mut reply: Reply) -> Response<Script> {
        let between = self.faults.delay_for(FaultKind::BetweenEvents, method);
        let two_writes = self.faults.is_on(FaultKind::TwoWrites, method);
        let mut steps = Vec::new();
        self.add_pause(&mut steps, self.faults.delay_for(FaultKind::FirstByte, method));
        if two_writes || !between.is_zero() {
            steps.push(ScriptStep::Write(opening.encode_event()));
            steps.push(ScriptStep::Flush);
        }
        if !self.faults.is_on(FaultKind::NoResult, method) {
            reply.messages.sort_by_key(|message| message.at);
            for message in reply.messages {
                if let (MessageKind::Answer, Some(period)) = (message.kind, reply.part_period) {
                    let event = sse_event(&message.bytes).into();
                    self.add_parts(&mut steps, reply.received, message.at, period, &event);
                    continue;
                }
                self.add_wait_until(&mut steps, reply.received + message.at);
                self.add_pause(&mut steps, between);
                match message.kind {
                    MessageKind::Answer => self.add_result(&mut steps, method, sse_event(&message.bytes).into()),
                    MessageKind::Notice => steps.push(ScriptStep::Write(sse_event(&message.bytes).into())),
                    MessageKind::Comment => steps.push(ScriptStep::Write(Opening::Comment.encode_event())),
                }
            }
            self.add_pause(&mut steps, self.hold);
            self.add_wait_until(&mut steps, reply.received + reply.end);
        }
        self.add_pause(&mut steps, self.faults.delay_for(FaultKind::StreamEnd, method));
        event_stream(Script::chunked(steps))
    }

    /// One result's bytes, whole, in two halves, or only the first half.
    fn add_result(&self, steps: &mut Vec<ScriptStep>, method: &str, bytes: Bytes) {
        let middle = bytes.len() / 2;
        let mid_result = self.faults.delay_for(FaultKind::MidResult, method);
        if self.faults.is_on(FaultKind::CloseMidReply, method) {
            steps.push(ScriptStep::Write(bytes.slice(..middle)));
            steps.push(ScriptStep::Flush);
            steps.push(ScriptStep::Abort);
        } else if mid_result.is_zero() {
            steps.push(ScriptStep::Write(bytes));
        } else {
            steps.push(ScriptStep::Write(bytes.slice(..middle)));
            self.add_pause(steps, mid_result);
            steps.push(ScriptStep::Write(bytes.slice(middle..)));
        }
    }

    /// Waits until the target is to stop.
    pub(crate) async fn stopped(&self) {
        // The sender goes only with the target.
        let _ = self.stopping.clone().wait_for(|stopping| *stopping).await;
    }

    /// The bytes in equal parts, one each `period`, the last at `at`.
    fn add_parts(&self, steps: &mut Vec<ScriptStep>, received: Instant, at: Duration, period: Duration, bytes: &Bytes) {
        let parts = (at.as_millis() / period.as_millis().max(1)).clamp(1, bytes.len().max(1) as u128) as usize;
        for part in 0..parts {
            let due = at * (part as u32 + 1) / parts as u32;
            self.add_wait_until(steps, received + due);
            steps.push(ScriptStep::Write(bytes.slice(bytes.len() * part / parts..bytes.len() * (part + 1) / parts)));
        }
    }

    /// A stream that stays open until its session ends.
    pub(crate) fn standalone_stream(&self, mut session: watch::Receiver<()>) -> Response<Script> {
        let mut stopping = self.stopping.clone();
        let until_either_ends = async move {
            tokio::select! {
                // The sender says nothing; what is waited for is that it goes.
                () = async { while session.changed().await.is_ok() {} } => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        };
        event_stream(Script::chunked([ScriptStep::Wait(Box::pin(until_either_ends))]))
    }

    fn add_pause(&self, steps: &mut Vec<ScriptStep>, delay: Duration) {
        if !delay.is_zero() {
            self.add_wait(steps, move || delay);
        }
    }

    /// Waits until the time has come, if it has not when the step is reached.
    fn add_wait_until(&self, steps: &mut Vec<ScriptStep>, due: Instant) {
        if due > Instant::now() {
            self.add_wait(steps, move || due.saturating_duration_since(Instant::now()));
        }
    }

    /// `delay` is asked when the step is reached.
    fn add_wait(&self, steps: &mut Vec<ScriptStep>, delay: impl FnOnce() -> Duration + Send + 'static) {
        let (timer, mut stopping) = (self.timer.clone(), self.stopping.clone());
        steps.push(ScriptStep::Wait(Box::pin(async move {
            tokio::select! {
                _ = timer.sleep(delay()) => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        })));
    }
}

impl Opening {
    fn encode_event(self) -> Bytes {
        let mut bytes = Vec::new();
        match self {
            Self::Priming => {
                let id = Some(crate::secret::random_text());
                Event { id, ..Event::default() }.encode(&mut bytes);
            }
            Self::Comment => sse::encode_comment("open", &mut bytes),
        }
        bytes.into()
    }
}

/// JSON-RPC messages that a reply carries, with the times from `received` at which they go out.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) received: Instant,
    pub(crate) messages: Vec<TimedMessage>,
    /// Whether the answers are an array in a JSON body.
    pub(crate) is_batch: bool,
    /// When an event stream ends at the earliest.
    pub(crate) end: Duration,
    /// Time between two parts of the last answer, which is then complete at its time, if it is sent in parts.
    pub(crate) part_period: Option<Duration>,
}

/// One JSON-RPC message of a reply.
#[derive(Debug)]
pub(crate) struct TimedMessage {
    pub(crate) at: Duration,
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: MessageKind,
}

/// Kinds of a reply's messages. A JSON body has no place for any but answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Answer,
    /// A notification.
    Notice,
    /// A comment of the event stream, without bytes of its own.
    Comment,
}

impl TimedMessage {
    /// An answer that goes out at once.
    pub(crate) fn now(bytes: Vec<u8>) -> Self {
        Self { at: Duration::ZERO, bytes, kind: MessageKind::Answer }
    }
}

impl Reply {
    fn into_json(self) -> Vec<u8> {
        let mut answers = self
            .messages
            .into_iter()
            .filter(|message| message.kind == MessageKind::Answer)
            .map(|message| message.bytes);
        if !self.is_batch {
            return answers.next().unwrap_or_default();
        }
        let mut body = vec![b'['];
        body.extend(answers.collect::<Vec<_>>().join(&b','));
        body.push(b']');
        body
    }
}

/// JSON-RPC messages are made by `serde_json` or were parsed by it, so they are UTF-8.
fn sse_event(response: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(response.len() + 32);
    sse::encode_message(response, None, &mut bytes);
    bytes
}

/// A JSON reply with no faults of its own: errors before a request is understood, metadata, tokens.
pub(crate) fn plain_json(status: StatusCode, body: Vec<u8>) -> Response<Script> {
    let mut reply = with_type(Script::whole(body), "application/json");
    *reply.status_mut() = status;
    reply
}

/// A reply that is only a status.
pub(crate) fn status_reply(status: StatusCode) -> Response<Script> {
    let mut reply = Response::new(Script::empty());
    *reply.status_mut() = status;
    reply
}

fn event_stream(script: Script) -> Response<Script> {
    let mut reply = with_type(script, "text/event-stream");
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(name::X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    reply
}

fn with_type(script: Script, content_type: &'static str) -> Response<Script> {
    let mut reply = Response::new(script);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
