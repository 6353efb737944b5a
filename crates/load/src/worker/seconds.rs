//! The run second by second: each is closed when it is over, and told.

use super::{LoadWorker, SECOND_NS, ThreadReport};
use crate::tally::SecondPart;

impl LoadWorker {
    /// Closes the seconds that are over.
    pub(super) fn close_seconds(&mut self, now: u64) {
        while now >= (self.part.second + 1) * SECOND_NS {
            let end = (self.part.second + 1) * SECOND_NS;
            self.close_part(end, SECOND_NS);
        }
    }

    /// The rest of a second, if anything happened in it.
    pub(super) fn last_part(&mut self, now: u64) {
        let length = now.saturating_sub(self.part.second * SECOND_NS);
        self.close_part(now, length);
        // Calls that were due later than this do not belong to the run.
        if !self.program.is_open() {
            self.tally.intended = self.tally.begun;
        } else if self.program.plan.max_calls.is_some() && self.budget == 0 {
            self.tally.intended = self.tally.intended.min(self.tally.begun);
        }
    }

    fn close_part(&mut self, end: u64, length: u64) {
        let limit = end.min(self.measured_end);
        while let Some(due) = self.next_counted.filter(|due| *due < limit) {
            self.part.intended += 1;
            self.tally.intended += u64::from(self.program.is_measured(due));
            self.next_counted = self.counted.next();
        }
        self.part.users = self.alive - self.idle.len() as u64;
        self.part.length_ns = length;
        let next = SecondPart::new(self.part.second + 1);
        let mut part = std::mem::replace(&mut self.part, next);
        if self.program.plan.share.is_some() {
            part.cut = Some(Box::new(self.tally.cut_operations(self.program.is_open())));
        }
        // Nobody listens any more where the run was dropped.
        let _ = self.reports.send(ThreadReport::Second(Box::new(part)));
    }
}
