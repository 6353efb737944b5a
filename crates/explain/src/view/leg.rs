//! One exchange on one side of the instrument. A recording has two for each of millions of exchanges, so they are kept
//! packed, and handed out as copies.

use mcpace_record::ConnectionId;

use super::Stamp;
use super::stamp::PackedStamp;

/// One exchange on one side of the instrument.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leg {
    /// The connection (HTTP).
    pub conn: Option<ConnectionId>,
    /// The request's first byte.
    pub request_start: Option<Stamp>,
    /// The request's last byte.
    pub request_end: Option<Stamp>,
    /// The reply's head.
    pub reply_head: Option<Stamp>,
    /// The reply's first body byte.
    pub body_start: Option<Stamp>,
    /// First byte of the message that carries the result.
    pub result_start: Option<Stamp>,
    /// Last byte of that message.
    pub result_end: Option<Stamp>,
    /// The reply's end.
    pub end: Option<Stamp>,
}

/// A fact of a leg that has a time.
#[derive(Clone, Copy)]
pub(super) enum Fact {
    RequestStart,
    RequestEnd,
    ReplyHead,
    BodyStart,
    ResultStart,
    ResultEnd,
    End,
}

const FACTS: usize = Fact::End as usize + 1;

/// A [`Leg`] as it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackedLeg {
    stamps: [PackedStamp; FACTS],
    /// The connection's number by halves: whole, it would take a multiple of eight bytes.
    conn: [u32; 2],
    has_conn: bool,
    seen: bool,
}

impl PackedLeg {
    /// The leg; `None` where nothing was seen of it.
    pub(super) fn stamped_leg(&self) -> Option<Leg> {
        let conn = self.has_conn.then(|| ConnectionId(u64::from(self.conn[0]) << 32 | u64::from(self.conn[1])));
        self.seen.then(|| Leg {
            conn,
            request_start: self.fact_stamp(Fact::RequestStart),
            request_end: self.fact_stamp(Fact::RequestEnd),
            reply_head: self.fact_stamp(Fact::ReplyHead),
            body_start: self.fact_stamp(Fact::BodyStart),
            result_start: self.fact_stamp(Fact::ResultStart),
            result_end: self.fact_stamp(Fact::ResultEnd),
            end: self.fact_stamp(Fact::End),
        })
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen
    }

    pub(super) fn fact_stamp(&self, fact: Fact) -> Option<Stamp> {
        self.stamps[fact as usize].to_stamp()
    }

    /// Notes that there is this leg.
    pub(super) fn mark_seen(&mut self) -> &mut Self {
        self.seen = true;
        self
    }

    /// Notes a fact; the first time counts.
    pub(super) fn note_fact(&mut self, fact: Fact, at: Stamp) {
        if self.fact_stamp(fact).is_none() {
            self.set_fact(fact, Some(at));
        }
    }

    pub(super) fn set_fact(&mut self, fact: Fact, at: Option<Stamp>) {
        self.stamps[fact as usize] = PackedStamp::of(at);
    }

    /// The result: its first byte and its last.
    pub(super) fn set_result(&mut self, first: Option<Stamp>, last: Option<Stamp>) {
        self.set_fact(Fact::ResultStart, first);
        self.set_fact(Fact::ResultEnd, last);
    }

    /// Notes the connection; the first one counts.
    pub(super) fn note_connection(&mut self, conn: ConnectionId) {
        if !self.has_conn {
            (self.conn, self.has_conn) = ([(conn.0 >> 32) as u32, conn.0 as u32], true);
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpace_record::Nanos;

    use super::*;
    use crate::view::EventIndex;

    #[test]
    fn what_is_noted_comes_back_whatever_its_size() {
        for number in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let at = |index| Stamp { at: Nanos(number), event: EventIndex::new(index) };
            let mut packed = PackedLeg::default();
            assert!(packed.stamped_leg().is_none());
            packed.mark_seen().note_fact(Fact::RequestStart, at(0));
            packed.note_fact(Fact::RequestStart, at(1));
            packed.note_fact(Fact::End, at(usize::MAX));
            packed.note_connection(ConnectionId(number));
            packed.note_connection(ConnectionId(7));
            let leg = packed.stamped_leg().unwrap();
            assert_eq!((leg.request_start, leg.end), (Some(at(0)), Some(at(usize::MAX))));
            assert_eq!((leg.conn, leg.reply_head), (Some(ConnectionId(number)), None));
        }
    }

    #[test]
    fn a_leg_takes_no_room_for_alignment() {
        assert_eq!(size_of::<PackedLeg>(), FACTS * 12 + 8 + 4);
    }
}
