//! Rows for things that overlap: each gets the first row that is free at its start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mcpace_record::Nanos;

/// Rows of one group. Things come in the order of their starts.
#[derive(Default)]
pub(crate) struct Lanes {
    busy: BinaryHeap<Reverse<(Nanos, u64)>>,
    free: BinaryHeap<Reverse<u64>>,
    rows: u64,
}

impl Lanes {
    /// The row of a thing that takes from `from` to `to`.
    pub(crate) fn place_span(&mut self, from: Nanos, to: Nanos) -> u64 {
        while let Some(Reverse((end, row))) = self.busy.peek().copied()
            && end <= from
        {
            self.busy.pop();
            self.free.push(Reverse(row));
        }
        let row = self.free.pop().map_or_else(
            || {
                self.rows += 1;
                self.rows - 1
            },
            |Reverse(row)| row,
        );
        self.busy.push(Reverse((to.max(from), row)));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_lies_in_different_rows_and_what_follows_in_the_first_that_is_free() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.place_span(Nanos(0), Nanos(10)), 0);
        assert_eq!(lanes.place_span(Nanos(5), Nanos(20)), 1);
        assert_eq!(lanes.place_span(Nanos(10), Nanos(12)), 0);
        assert_eq!(lanes.place_span(Nanos(11), Nanos(13)), 2);
        assert_eq!(lanes.place_span(Nanos(30), Nanos(31)), 0);
    }
}
