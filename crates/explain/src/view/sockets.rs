//! Connections that a server's programs made, as the kernel tells of them.

use std::collections::HashMap;

use mcpace_record::{EventKind, Nanos, SocketCloser, SocketId, SocketTraffic, TcpInfo};

use super::Stamp;
use super::texts::Keeper;

/// Connections and waits that are kept at most; later ones are counted as left out.
const MOST_SOCKETS: usize = 1_000_000;
const MOST_WAITS: usize = 5_000_000;

/// One connection that a program made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramSocket<'a> {
    /// When it was seen first. For a connection that was too short to be seen while it was open, when it ended.
    pub(crate) seen: Stamp,
    /// When it was not there yet; `None` for a connection that is older than the watching.
    pub(crate) absent: Option<Nanos>,
    /// When it ended; `None` for a connection that was open at the end.
    pub(crate) closed: Option<Stamp>,
    /// Address of the other end.
    pub(crate) address: &'a str,
    /// Whether it was established, not refused.
    pub(crate) established: bool,
    /// The end that closed it first, where that is known.
    pub(crate) closed_by: Option<SocketCloser>,
    /// The kernel's statistics at its end.
    pub(crate) info: Option<TcpInfo>,
    /// When the program first sent data on it, where that was seen.
    pub(crate) first_sent: Option<Nanos>,
}

impl ProgramSocket<'_> {
    /// When it was opened, nearly: in the middle of the time in which it was.
    pub(crate) fn opened(&self) -> Option<Nanos> {
        self.absent.map(|absent| Nanos(absent.0 / 2 + self.seen.at.0 / 2))
    }

    /// Whether it was closed before `at`.
    pub(crate) fn is_closed_at(&self, at: Nanos) -> bool {
        self.closed.is_some_and(|closed| closed.at <= at)
    }
}

/// A time in which a program had sent a request on a connection, and nothing had come back yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketWait {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// Index of the connection.
    pub(crate) socket: u32,
}

#[derive(Default)]
pub(super) struct SocketJoin<'a> {
    sockets: Vec<ProgramSocket<'a>>,
    waits: Vec<SocketWait>,
    open: HashMap<SocketId, OpenSocket>,
    left_out: u64,
}

struct OpenSocket {
    number: u32,
    traffic: SocketTraffic,
    /// When the data was sent that no data has followed yet.
    request_sent: Option<Nanos>,
}

impl<'a> SocketJoin<'a> {
    pub(super) fn join_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::SocketOpened { socket, address, absent, .. } => {
                let number = u32::try_from(self.sockets.len()).ok().filter(|_| self.sockets.len() < MOST_SOCKETS);
                let Some(number) = number.filter(|_| !self.open.contains_key(socket)) else {
                    self.left_out += 1;
                    return;
                };
                self.sockets.push(ProgramSocket {
                    seen: at,
                    absent: absent.map(|absent| absent.min(at.at)),
                    closed: None,
                    address: keeper.keep_text(address),
                    established: true,
                    closed_by: None,
                    info: None,
                    first_sent: None,
                });
                self.open.insert(*socket, OpenSocket { number, traffic: SocketTraffic::default(), request_sent: None });
            }
            EventKind::SocketTraffic { socket, traffic } => self.add_traffic(*socket, traffic, at.at),
            EventKind::SocketClosed { socket, established, by, info } => {
                let Some(open) = self.open.remove(socket) else { return };
                let own = &mut self.sockets[open.number as usize];
                (own.closed, own.established, own.closed_by, own.info) = (Some(at), *established, *by, *info);
            }
            _ => {}
        }
    }

    fn add_traffic(&mut self, socket: SocketId, traffic: &SocketTraffic, at: Nanos) {
        let Some(open) = self.open.get_mut(&socket) else { return };
        let own = &mut self.sockets[open.number as usize];
        let has_sent = traffic.sent > open.traffic.sent;
        let has_received = traffic.received > open.traffic.received;
        let (sent, received) = (traffic.last_sent.min(at), traffic.last_received.min(at));
        if has_sent && own.first_sent.is_none() && own.absent.is_some() {
            own.first_sent = Some(sent);
        }
        let mut answered = None;
        if has_received {
            // An answer to what was sent before, or to what was sent since the last look.
            let request_sent = open.request_sent.take().or((has_sent && sent <= received).then_some(sent));
            answered = request_sent
                .filter(|request_sent| *request_sent < received)
                .map(|request_sent| (request_sent, received));
        }
        if has_sent && (!has_received || sent > received) {
            open.request_sent = open.request_sent.or(Some(sent));
        }
        open.traffic = *traffic;
        if let Some((from, to)) = answered {
            if self.waits.len() < MOST_WAITS {
                self.waits.push(SocketWait { from, to, socket: open.number });
            } else {
                self.left_out += 1;
            }
        }
    }

    /// The connections by the time at which they were first seen, the waits by their beginning, and the number of those
    /// for which there was no room.
    pub(super) fn finish_sockets(mut self) -> (Vec<ProgramSocket<'a>>, Vec<SocketWait>, u64) {
        self.waits.sort_by_key(|wait| wait.from);
        (self.sockets, self.waits, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use mcpace_record::{Event, Instrument, Recording, RecordingHead};

    use crate::view::{Texts, join_events};

    use super::*;

    fn traffic(sent: u64, received: u64, last_sent: u64, last_received: u64) -> SocketTraffic {
        SocketTraffic { sent, received, last_sent: Nanos(last_sent), last_received: Nanos(last_received) }
    }

    /// The waits on one connection with this data at these times.
    fn waits(looks: &[(u64, SocketTraffic)]) -> Vec<(u64, u64)> {
        let socket = SocketId(4);
        let opened =
            EventKind::SocketOpened { socket, pid: Some(1), address: "10.0.0.5:5432".to_owned(), absent: None };
        let mut events = vec![Event { at: Nanos(0), kind: opened }];
        let event = |(at, traffic): &(u64, SocketTraffic)| {
            let kind = EventKind::SocketTraffic { socket, traffic: *traffic };
            Event { at: Nanos(*at), kind }
        };
        events.extend(looks.iter().map(event));
        let texts = Texts::default();
        let view = join_events(&Recording::new(RecordingHead::bare(Instrument::Client), events), &texts);
        view.inside.socket_waits.iter().map(|wait| (wait.from.0, wait.to.0)).collect()
    }

    #[test]
    fn a_wait_lasts_from_what_was_sent_to_what_came_back() {
        // At one look each, both at one look, and an answer with the next request behind it.
        assert_eq!(waits(&[(10, traffic(5, 0, 8, 0)), (40, traffic(5, 9, 8, 35))]), [(8, 35)]);
        assert_eq!(waits(&[(40, traffic(5, 9, 8, 35))]), [(8, 35)]);
        let next = [(10, traffic(5, 0, 8, 0)), (40, traffic(9, 9, 36, 35)), (60, traffic(9, 20, 36, 59))];
        assert_eq!(waits(&next), [(8, 35), (36, 59)]);
        // A request in two parts is one.
        assert_eq!(
            waits(&[(10, traffic(5, 0, 8, 0)), (20, traffic(6, 0, 18, 0)), (40, traffic(6, 9, 18, 35))]),
            [(8, 35)]
        );
    }

    #[test]
    fn data_that_nobody_asked_for_and_questions_without_an_answer_are_no_waits() {
        assert_eq!(waits(&[(10, traffic(0, 5, 0, 9))]), []);
        assert_eq!(waits(&[(10, traffic(5, 0, 9, 0))]), []);
        // Times of a hostile recording.
        assert_eq!(waits(&[(10, traffic(5, 5, u64::MAX, 3)), (11, traffic(2, 1, 0, u64::MAX))]), []);
    }
}
