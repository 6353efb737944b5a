//! Lines of a server's stdout that came in one read, as far as their sizes may tell of a buffer.

use mcpace_record::{ExchangeId, Nanos};

use super::{Exchange, Stamp};

/// The smallest block that C libraries and runtimes buffer a pipe's output in.
const BLOCK: u64 = 4096;

/// Several lines that were read at once.
#[derive(Debug)]
pub(crate) struct Burst {
    /// When.
    pub(crate) at: Stamp,
    /// The requests that it answers.
    pub(crate) exchanges: Vec<ExchangeId>,
    lines: u64,
    /// Bytes of its lines, ends included.
    bytes: u64,
    /// Bytes of the last of them.
    last: u64,
    /// Bytes of all lines of the process up to its end.
    total: u64,
    /// Bytes of the line that had begun when it ended; 0 where it ended with a line.
    next: u64,
    /// Bytes of the line after it.
    after: u64,
}

impl Burst {
    /// Whether a block's end lies where it ends: within the next line where it was cut in one, else within its last line or
    /// the one after it, since runtimes that cut between lines write before a line that has no room, or after it.
    pub(crate) fn fills_buffer(&self) -> bool {
        let crossed = |from: u64, to: u64| to / BLOCK > from / BLOCK;
        match self.next {
            0 => crossed(self.bytes.saturating_sub(self.last), self.bytes.saturating_add(self.after)),
            next => crossed(self.total, self.total.saturating_add(next)),
        }
    }
}

#[derive(Default)]
pub(super) struct Bursts {
    /// With the positions of the exchanges that each answers.
    ended: Vec<(Burst, Vec<usize>)>,
    current: Option<(Burst, Vec<usize>)>,
    total: u64,
}

impl Bursts {
    /// A line that was complete at `at`, and answers the exchange at `answered`.
    pub(super) fn line(&mut self, at: Stamp, began: Nanos, bytes: u64, answered: Option<usize>) {
        let bytes = bytes.saturating_add(1);
        let same = self.current.as_ref().is_some_and(|(burst, _)| burst.at.at == at.at);
        if !same {
            let begun = self.current.as_ref().is_some_and(|(burst, _)| burst.at.at == began);
            self.end(if begun { bytes } else { 0 }, bytes);
        }
        self.total = self.total.saturating_add(bytes);
        let total = self.total;
        let (burst, exchanges) = self.current.get_or_insert_with(|| {
            (Burst { at, exchanges: Vec::new(), lines: 0, bytes: 0, last: 0, total, next: 0, after: 0 }, Vec::new())
        });
        burst.lines += 1;
        burst.bytes = burst.bytes.saturating_add(bytes);
        (burst.last, burst.total) = (bytes, total);
        exchanges.extend(answered);
    }

    /// Another process begins: its buffers are its own.
    pub(super) fn end_process(&mut self) {
        self.end(0, 0);
        self.total = 0;
    }

    pub(super) fn finish(mut self, exchanges: &[Exchange<'_>]) -> Vec<Burst> {
        self.end(0, 0);
        let named = self.ended.into_iter().map(|(burst, answered)| {
            let exchanges = answered.iter().map(|at| exchanges[*at].id).collect();
            Burst { exchanges, ..burst }
        });
        named.collect()
    }

    /// Single lines are no burst, and short ones fill no buffer.
    fn end(&mut self, next: u64, after: u64) {
        if let Some((burst, answered)) = self.current.take()
            && burst.lines > 1
            && answered.len() > 1
        {
            self.ended.push((Burst { next, after, ..burst }, answered));
        }
    }
}
