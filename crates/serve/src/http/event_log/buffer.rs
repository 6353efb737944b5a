//! The events that a log holds, and how far its readers are in them: no lock, no waker, no word of who reads.

use std::collections::VecDeque;

use bytes::Bytes;

/// How much a log holds that its client has not read yet; a resumable one, how much in all.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct LogBounds {
    pub(in crate::http) events: usize,
    pub(in crate::http) bytes: usize,
}

/// Bytes of events that are read in one piece.
const TOGETHER: usize = 64 << 10;

/// The buffered events of one log. Positions count up from 0.
#[derive(Default)]
pub(super) struct EventBuffer {
    /// As they go over the wire.
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The position of the first event held.
    first: u64,
    /// The position that the reader gets next.
    read: u64,
}

impl EventBuffer {
    /// The position of the event that is added next.
    pub(super) fn next_position(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_read(&self) -> bool {
        self.read == self.next_position()
    }

    pub(super) fn add_event(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back(event);
    }

    /// Makes room by forgetting what has been read. False where all of it has still to be.
    pub(super) fn has_room(&mut self, bounds: LogBounds) -> bool {
        while self.events.len() >= bounds.events || self.bytes >= bounds.bytes {
            if self.first >= self.read {
                return false;
            }
            self.forget_first();
        }
        true
    }

    /// Reads on from `position`. Events that are no longer held can't be read again; those after them can.
    pub(super) fn go_to(&mut self, position: u64) {
        self.read = position.clamp(self.first, self.next_position());
    }

    /// The next events that are not read yet: one that is large by itself, several in one piece of up to [`TOGETHER`].
    pub(super) fn read_on(&mut self) -> Option<Bytes> {
        let begin = usize::try_from(self.read - self.first).unwrap_or(usize::MAX);
        let mut unread = self.events.range(begin.min(self.events.len())..);
        let first = unread.next()?.clone();
        let mut left = TOGETHER.saturating_sub(first.len());
        let together = unread.clone().take_while(|event| {
            let fits = event.len() <= left;
            left = left.saturating_sub(event.len());
            fits
        });
        let count = together.count();
        let whole = if count == 0 {
            first
        } else {
            let mut whole = first.to_vec();
            unread.by_ref().take(count).for_each(|event| whole.extend_from_slice(event));
            whole.into()
        };
        self.read += 1 + count as u64;
        Some(whole)
    }

    /// Holds what was read no longer.
    pub(super) fn forget_read(&mut self) {
        while self.first < self.read {
            self.forget_first();
        }
    }

    /// Holds nothing any more, read or not.
    pub(super) fn forget_all(&mut self) {
        self.first = self.next_position();
        self.read = self.first;
        self.events.clear();
        self.bytes = 0;
    }

    fn forget_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= event.len();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(held: &mut EventBuffer) -> Option<String> {
        held.read_on().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn short_events_are_read_together_and_a_large_one_where_it_is() {
        let mut held = EventBuffer::default();
        let large = Bytes::from(vec![b'l'; TOGETHER + 1]);
        for event in [Bytes::from_static(b"a"), Bytes::from_static(b"b"), large.clone(), Bytes::from_static(b"c")] {
            held.add_event(event);
        }
        assert_eq!(held.read_on().unwrap(), "ab");
        held.forget_read();
        assert_eq!(held.buffered_bytes(), large.len() + 1);
        assert_eq!(held.read_on().unwrap().as_ptr(), large.as_ptr());
        assert_eq!((held.read_on().unwrap(), held.is_read(), held.read_on()), (Bytes::from_static(b"c"), true, None));
    }

    #[test]
    fn what_is_forgotten_leaves_positions_as_they_are() {
        let bounds = LogBounds { events: 2, bytes: 100 };
        let mut held = EventBuffer::default();
        for event in ["a", "b"] {
            assert!(held.has_room(bounds));
            held.add_event(Bytes::from_static(event.as_bytes()));
        }
        assert!(!held.has_room(bounds), "nothing of it is read");
        assert_eq!((text(&mut held).as_deref(), text(&mut held)), (Some("ab"), None));
        assert!(held.has_room(bounds));
        held.add_event(Bytes::from_static(b"c"));
        held.go_to(0);
        assert_eq!((text(&mut held).as_deref(), held.next_position(), held.buffered_bytes()), (Some("bc"), 3, 2));
        held.forget_all();
        assert_eq!((held.is_read(), held.next_position(), held.buffered_bytes(), text(&mut held)), (true, 3, 0, None));
    }
}
