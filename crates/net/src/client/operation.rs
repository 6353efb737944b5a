//! The stamps around one operation, and its limit.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mcpace_record::{CallId, CallOutcome, EventKind};

use super::ClientError;
use crate::{Sink, monotonic_now};

/// An operation under way. Dropped in the middle, it notes that the operation was given up.
pub(super) struct RecordedOperation {
    sink: Arc<Sink>,
    call: CallId,
    name: &'static str,
    ended: bool,
}

impl RecordedOperation {
    pub(super) fn begin_operation(sink: &Arc<Sink>, name: &'static str, tool: Option<&str>) -> Self {
        let call = sink.call();
        let tool = tool.map(str::to_owned);
        // The edge: nothing of the operation is before this stamp.
        sink.note(EventKind::CallStart { call, operation: name.to_owned(), tool });
        Self { sink: Arc::clone(sink), call, name, ended: false }
    }

    pub(super) async fn run_limited<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let expired = Err(ClientError::TimeLimit { what: self.name.to_owned(), limit });
        tokio::time::timeout(limit, work).await.unwrap_or(expired)
    }

    pub(super) fn end_operation<T>(
        mut self,
        outcome: Result<T, ClientError>,
        told: impl FnOnce(&T) -> CallOutcome,
    ) -> Result<T, ClientError> {
        // The edge: stamped before the outcome is put into words.
        let at = monotonic_now();
        self.ended = true;
        let noted = match &outcome {
            Ok(value) => told(value),
            Err(error) => CallOutcome::failed(&error.to_string()),
        };
        self.sink.note_at(at, EventKind::CallEnd { call: self.call, outcome: noted });
        outcome
    }
}

impl Drop for RecordedOperation {
    fn drop(&mut self) {
        if !self.ended {
            let outcome = CallOutcome::Failed("given up by the caller".to_owned());
            self.sink.note(EventKind::CallEnd { call: self.call, outcome });
        }
    }
}
