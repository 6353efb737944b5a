//! Shaping results into HTTP replies: JSON or SSE, with everything that goes wrong on the way out.
//!
//! The order of what a body does is the order of this file's steps; nothing is decided later.

use std::time::Duration;

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
    /// The reply that carries `results`: one JSON-RPC response, or those of a batch.
    pub(crate) fn shape_reply(
        &self,
        mode: ResponseMode,
        method: &str,
        opening: Opening,
        results: Results,
    ) -> Response<Script> {
        match mode {
            ResponseMode::Json => self.json_reply(method, results.into_json()),
            ResponseMode::Sse => self.sse_reply(method, opening, results.into_events()),
        }
    }

    fn json_reply(&self, method: &str, body: Vec<u8>) -> Response<Script> {
        let length = body.len();
        let mut steps = Vec::new();
        self.add_pause(&mut steps, self.faults.delay_for(FaultKind::FirstByte, method));
        self.add_result(&mut steps, method, body.into());
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

    fn sse_reply(&self, method: &str, opening: Opening, events: Vec<Vec<u8>>) -> Response<Script> {
        let between = self.faults.delay_for(FaultKind::BetweenEvents, method);
        let two_writes = self.faults.is_on(FaultKind::TwoWrites, method);
        let mut steps = Vec::new();
        self.add_pause(&mut steps, self.faults.delay_for(FaultKind::FirstByte, method));
        if two_writes || !between.is_zero() {
            steps.push(ScriptStep::Write(opening.encode_event()));
            steps.push(ScriptStep::Flush);
        }
        if !self.faults.is_on(FaultKind::NoResult, method) {
            for event in events {
                self.add_pause(&mut steps, between);
                self.add_result(&mut steps, method, event.into());
            }
            self.add_pause(&mut steps, self.hold);
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
            let (timer, mut stopping) = (self.timer.clone(), self.stopping.clone());
            steps.push(ScriptStep::Wait(Box::pin(async move {
                tokio::select! {
                    _ = timer.sleep(delay) => {}
                    _ = stopping.wait_for(|stopping| *stopping) => {}
                }
            })));
        }
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

/// Encoded JSON-RPC responses.
#[derive(Debug)]
pub(crate) enum Results {
    /// Reply to one request.
    One(Vec<u8>),
    /// Replies to a batch; at least one.
    Batch(Vec<Vec<u8>>),
}

impl Results {
    fn into_json(self) -> Vec<u8> {
        match self {
            Self::One(response) => response,
            Self::Batch(responses) => {
                let mut body = vec![b'['];
                body.extend(responses.join(&b','));
                body.push(b']');
                body
            }
        }
    }

    fn into_events(self) -> Vec<Vec<u8>> {
        let responses = match self {
            Self::One(response) => vec![response],
            Self::Batch(responses) => responses,
        };
        responses.into_iter().map(|response| sse_event(&response)).collect()
    }
}

/// JSON-RPC responses are made by `serde_json`, so they are UTF-8 and have no line breaks.
fn sse_event(response: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(response.len() + 32);
    let data = String::from_utf8_lossy(response).into_owned();
    Event { event: Some("message".to_owned()), data, ..Event::default() }.encode(&mut bytes);
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
