//! A recorded request and its answer.

use std::time::Duration;

use mcpace_record::Digest;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::RequestFailure;
use crate::profile::ResponseMode;

/// The beginning of a masked secret.
pub(super) const REDACTED: &str = "[redacted ";

/// A recorded request with its fate.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    pub(super) method: String,
    /// Parameters without `_meta`; `None` where the recording has not the whole text.
    pub(super) params: Option<Value>,
    /// Tool, prompt or resource.
    pub(super) name: Option<String>,
    /// Identity of a tool call's arguments, else of the parameters, before secrets were masked.
    pub(super) digest: Option<Digest>,
    pub(super) fate: Fate,
}

/// Outcome of a recorded request.
#[derive(Debug)]
pub(super) enum Fate {
    Answered(RecordedAnswer),
    /// The recording has only a part of the answer.
    Cut,
    /// The recording has no answer.
    Unanswered,
    /// HTTP refused the request.
    Refused,
}

/// An answer with its times, which count from the request's last byte.
#[derive(Debug)]
pub(super) struct RecordedAnswer {
    pub(super) outcome: RecordedOutcome,
    pub(super) notices: Vec<RecordedNotice>,
    pub(super) head: Duration,
    pub(super) at: Duration,
    pub(super) end: Duration,
    pub(super) mode: ResponseMode,
    /// Whether the request was of 2026-07-28 or later.
    pub(super) is_modern: bool,
    /// Whether the server asked its client something before it answered.
    pub(super) asked: bool,
}

impl RecordedAnswer {
    pub(super) fn is_result(&self) -> bool {
        matches!(self.outcome, RecordedOutcome::Result(_))
    }
}

#[derive(Debug)]
pub(super) enum RecordedOutcome {
    Result(Box<RawValue>),
    Error(RequestFailure),
    Refusal(HttpRefusal),
}

/// An HTTP error without a JSON-RPC response: 429 or 5xx.
#[derive(Debug, Clone)]
pub(crate) struct HttpRefusal {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
}

/// A notification that came before an answer.
#[derive(Debug)]
pub(super) struct RecordedNotice {
    pub(super) at: Duration,
    pub(super) method: &'static str,
    pub(super) params: Value,
}
