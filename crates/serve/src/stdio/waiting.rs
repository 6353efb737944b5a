//! Requests that came while as many as may be were in flight.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use mcpace_wire::jsonrpc::Id;

/// A line with requests in it.
pub(super) struct WaitingLine {
    pub(super) body: Bytes,
    pub(super) received: Instant,
    /// Ids of its requests.
    pub(super) ids: Vec<Id<'static>>,
}

/// Lines that wait, first come first served, bounded in bytes.
pub(super) struct WaitingLines {
    lines: VecDeque<WaitingLine>,
    bytes: usize,
    limit: usize,
}

impl WaitingLines {
    pub(super) fn new(limit: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, limit }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Gives the line back where there is no room.
    pub(super) fn add(&mut self, line: WaitingLine) -> Result<(), WaitingLine> {
        if self.bytes + line.body.len() > self.limit {
            return Err(line);
        }
        self.bytes += line.body.len();
        self.lines.push_back(line);
        Ok(())
    }

    pub(super) fn next(&mut self) -> Option<WaitingLine> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.body.len();
        Some(line)
    }

    /// Takes out a line that is this one request. One of a batch stays: the batch was sent as a whole.
    pub(super) fn cancel_line(&mut self, id: &Id<'static>) {
        let at = self.lines.iter().position(|line| matches!(&*line.ids, [only] if only == id));
        if let Some(line) = at.and_then(|at| self.lines.remove(at)) {
            self.bytes -= line.body.len();
        }
    }
}
