//! Lines of a server's stdout that came in one read, as far as their sizes may tell of a buffer.

use mcpace_record::{ExchangeId, Nanos};

use super::{Exchange, Stamp};

/// Bytes of a burst past which its size tells of the pipe's own buffer (64 KiB on Linux) or of the reader's.
const LARGEST: u64 = 48 * 1024;

/// Several lines that were read at once.
#[derive(Debug)]
pub(crate) struct Burst {
    /// When.
    pub(crate) at: Stamp,
    /// When the line before it came.
    pub(crate) since: Option<Nanos>,
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

/// Where a burst ends, as measured by blocks of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Whether a block's end lies there.
    pub(crate) at_block: bool,
    /// How probable that is for a burst that ends anywhere.
    pub(crate) chance: f64,
}

impl Burst {
    /// Where it ends, by blocks of so many bytes. A block's end lies within the next line where it was cut in one, else
    /// within its last line or the one after it, since runtimes that cut between lines write before a line that has no room,
    /// or after it. `None` where these lines are so long that a block would end in them anyhow.
    pub(crate) fn block_edge(&self, block: u64) -> Option<Edge> {
        let (from, to) = match self.next {
            0 => (self.bytes.saturating_sub(self.last), self.bytes.saturating_add(self.after)),
            next => (self.total, self.total.saturating_add(next)),
        };
        let span = to.saturating_sub(from);
        let tells = span > 0 && span <= block / 4 && self.bytes <= LARGEST;
        tells.then(|| Edge { at_block: to / block > from / block, chance: span as f64 / block as f64 })
    }
}

#[derive(Default)]
pub(super) struct Bursts {
    /// With the positions of the exchanges that each answers.
    ended: Vec<(Burst, Vec<usize>)>,
    current: Option<(Burst, Vec<usize>)>,
    total: u64,
    /// When the last line came.
    latest: Option<Nanos>,
}

impl Bursts {
    /// A line that was complete at `at`, and answers the exchange at `answered`.
    pub(super) fn add_line(&mut self, at: Stamp, began: Nanos, bytes: u64, answered: Option<usize>) {
        let bytes = bytes.saturating_add(1);
        let same = self.current.as_ref().is_some_and(|(burst, _)| burst.at.at == at.at);
        if !same {
            let begun = self.current.as_ref().is_some_and(|(burst, _)| burst.at.at == began);
            self.end_burst(if begun { bytes } else { 0 }, bytes);
        }
        self.total = self.total.saturating_add(bytes);
        let (total, since) = (self.total, self.latest.replace(at.at));
        let (burst, exchanges) = self.current.get_or_insert_with(|| {
            let exchanges = Vec::new();
            (Burst { at, since, exchanges, lines: 0, bytes: 0, last: 0, total, next: 0, after: 0 }, Vec::new())
        });
        burst.lines += 1;
        burst.bytes = burst.bytes.saturating_add(bytes);
        (burst.last, burst.total) = (bytes, total);
        exchanges.extend(answered);
    }

    /// Another process begins: its buffers are its own.
    pub(super) fn end_process(&mut self) {
        self.end_burst(0, 0);
        (self.total, self.latest) = (0, None);
    }

    pub(super) fn finish_bursts(mut self, exchanges: &[Exchange<'_>]) -> Vec<Burst> {
        self.end_burst(0, 0);
        let named = self.ended.into_iter().map(|(burst, answered)| {
            let exchanges = answered.iter().map(|at| exchanges[*at].id).collect();
            Burst { exchanges, ..burst }
        });
        named.collect()
    }

    /// Single lines are no burst.
    fn end_burst(&mut self, next: u64, after: u64) {
        if let Some((burst, answered)) = self.current.take()
            && burst.lines > 1
            && answered.len() > 1
        {
            self.ended.push((Burst { next, after, ..burst }, answered));
        }
    }
}
