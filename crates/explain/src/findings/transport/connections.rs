//! Connections that a client opened though one of its own was free: what `connection-per-request` and `stream-not-drained`
//! start from.
//!
//! A new connection is needless where an earlier one of the same session carries nothing at that moment and the server had
//! not closed it, and is never used again: pools open a second one where the first is about to be free, and then use both.
//! One that carries an open stream is busy, so the usual second connection beside a GET is healthy. One whose
//! reply the client broke off is lost to it: whether it had to be is for the rules to say. One that the client asked the
//! server to close could have been used again.

use std::collections::{HashMap, HashSet};

use mcpace_record::{Closer, ConnectionId, ReplyEnding};

use crate::findings::groups::Group;
use crate::findings::scene::Scene;
use crate::view::{Connection, EventIndex, Exchange, Stamp, Transport, View};

/// Requests of a session below which nothing is concluded.
const FEWEST: usize = 3;

/// A session whose requests mostly had a connection of their own.
pub(in crate::findings) struct Wasteful<'s, 'a> {
    /// Its requests and streams.
    pub(in crate::findings) used: Vec<&'s Exchange<'a>>,
    /// Whether it has an id.
    pub(in crate::findings) named: bool,
    /// Connections that its requests travelled on.
    pub(in crate::findings) connections: usize,
    /// Those that needn't have been.
    pub(in crate::findings) needless: Vec<Needless<'s, 'a>>,
}

/// A connection that was opened without need, by the exchange that it was opened for.
pub(in crate::findings) struct Needless<'e, 'a> {
    pub(in crate::findings) exchange: &'e Exchange<'a>,
    pub(in crate::findings) opened: Stamp,
    /// The one that could have been used, and its last exchange.
    pub(in crate::findings) free: ConnectionId,
    pub(in crate::findings) last: &'e Exchange<'a>,
}

impl<'s, 'a> Wasteful<'s, 'a> {
    pub(in crate::findings) fn post_requests(&self) -> impl Iterator<Item = &&'s Exchange<'a>> {
        self.used.iter().filter(|exchange| exchange.is_message())
    }

    /// Whether nearly all of it comes of replies that the client broke off.
    pub(in crate::findings) fn breaks_off(&self, view: &View<'_>) -> bool {
        let spoiled = self.needless.iter().filter(|needless| left_early(view, needless.last)).count();
        spoiled * 5 >= self.needless.len() * 4
    }
}

/// Every such session.
pub(in crate::findings) fn wasteful_sessions<'s, 'a>(scene: &Scene<'s, 'a>) -> Vec<Wasteful<'s, 'a>> {
    let view = scene.view;
    let last_uses = last_uses(view);
    let sessions = scene.groups.iter().filter_map(|(group, used)| {
        let http = || used.iter().copied().filter(|exchange| exchange.transport == Transport::Http);
        let posts = || http().filter(|exchange| exchange.is_message());
        let connections: HashSet<_> = posts().filter_map(|exchange| exchange.near()?.conn).collect();
        let (requests, connections) = (posts().count(), connections.len());
        if requests < FEWEST || connections * 4 < requests * 3 {
            return None;
        }
        let used: Vec<_> = http().collect();
        let mut needless = needless_connections(view, &used);
        needless.retain(|needless| last_uses.get(&needless.free).is_none_or(|last| *last < needless.opened.event));
        let named = matches!(group, Group::Session(_));
        (needless.len() >= 2).then_some(Wasteful { used, named, connections, needless })
    });
    sessions.collect()
}

/// The event at which each of the client's connections was used last, by whichever session.
fn last_uses(view: &View<'_>) -> HashMap<ConnectionId, EventIndex> {
    // Exchanges are in the order of their start: the last one of each connection stays.
    view.exchanges.iter().filter_map(|exchange| Some((exchange.near()?.conn?, exchange.start.event))).collect()
}

/// Whether the client broke off a reply to a message: whether the server would have ended it soon is not seen. One that
/// was handed over to its end is broken off, too, where the client then resets the connection: it left that end unread.
pub(in crate::findings) fn left_early(view: &View<'_>, exchange: &Exchange<'_>) -> bool {
    let unread = || {
        let connection = exchange.near().and_then(|near| view.connection(near.conn?));
        connection.is_some_and(|connection| {
            connection.reset
                && connection.closed_by == Some(Closer::Client)
                && connection.last_exchange == Some(exchange.id)
        })
    };
    exchange.is_message() && (exchange.ending == Some(ReplyEnding::ClientLeft) || unread())
}

enum ConnectionMark<'e, 'a> {
    Opened(&'e Connection<'a>, &'e Exchange<'a>),
    Begun(&'e Exchange<'a>),
    Ended(&'e Exchange<'a>),
    Closed(&'e Connection<'a>),
}

/// Replays a group's connections in the order of events and notes what is opened while another one is free.
fn needless_connections<'s, 'a>(view: &'s View<'a>, used: &[&'s Exchange<'a>]) -> Vec<Needless<'s, 'a>> {
    let mut found = Vec::new();
    let mut busy: HashMap<ConnectionId, i64> = HashMap::new();
    let mut free: Vec<(ConnectionId, &Exchange<'_>)> = Vec::new();
    let (mut lost, mut given_up) = (HashSet::new(), HashSet::new());
    for (event, mark) in connection_marks(view, used) {
        match mark {
            ConnectionMark::Opened(connection, exchange) => {
                // Stale entries are dropped as they surface, which keeps this linear.
                while let Some((id, last)) = free.last() {
                    let idle = busy.get(id) == Some(&0) && !lost.contains(id);
                    if idle && *id != connection.id {
                        let at = connection.opened.map_or(exchange.start.at, |o| o.at);
                        found.push(Needless { exchange, opened: Stamp { at, event }, free: *id, last });
                        // It could have carried one request: of a burst, the others had need of their connections.
                        free.pop();
                        break;
                    }
                    free.pop();
                }
            }
            ConnectionMark::Begun(exchange) => *busy.entry(connection_of(exchange)).or_default() += 1,
            ConnectionMark::Ended(exchange) => {
                let id = connection_of(exchange);
                let carried = busy.entry(id).or_default();
                *carried -= 1;
                // A client that leaves in mid-reply spoils a connection that the server may have kept.
                let spoiled = left_early(view, exchange);
                let kept = exchange.ending == Some(ReplyEnding::Complete) || spoiled;
                let asked = exchange.asks_to_close();
                if kept && (asked || !exchange.closes_connection()) && *carried == 0 {
                    free.push((id, exchange));
                    given_up.extend(asked.then_some(id));
                } else {
                    lost.insert(id);
                }
            }
            ConnectionMark::Closed(connection) => {
                if connection.closed_by != Some(Closer::Client) && !given_up.contains(&connection.id) {
                    lost.insert(connection.id);
                }
            }
        }
    }
    found
}

fn connection_marks<'s, 'a>(
    view: &'s View<'a>,
    used: &[&'s Exchange<'a>],
) -> Vec<(EventIndex, ConnectionMark<'s, 'a>)> {
    let mut marks = Vec::new();
    for exchange in used {
        let Some(connection) = exchange.near().and_then(|near| near.conn).and_then(|conn| view.connection(conn)) else {
            continue;
        };
        if connection.first_exchange == Some(exchange.id) {
            let opened = connection.opened.unwrap_or(exchange.start).event;
            marks.push((opened, ConnectionMark::Opened(connection, exchange)));
            if let Some(closed) = connection.closed {
                marks.push((closed.event, ConnectionMark::Closed(connection)));
            }
        }
        marks.push((exchange.start.event, ConnectionMark::Begun(exchange)));
        if let Some(end) = exchange.ended() {
            marks.push((end.event, ConnectionMark::Ended(exchange)));
        }
    }
    marks.sort_by_key(|(event, _)| *event);
    marks
}

/// The client's connection; marks are made only of exchanges that have one.
fn connection_of(exchange: &Exchange<'_>) -> ConnectionId {
    let near = exchange.near().and_then(|near| near.conn);
    near.unwrap_or(ConnectionId(u64::MAX))
}
