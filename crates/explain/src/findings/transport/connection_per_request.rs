//! `connection-per-request`: a new connection for each request though an open one was free (rust-sdk #790 by design;
//! python-sdk #3281 for SSE).
//!
//! A new connection is needless where an earlier one of the same session carries nothing at that moment and the server had
//! not closed it. One that carries an open stream is busy, so the usual second connection beside a GET is healthy. A client
//! that leaves each reply once it has the result can't reuse its connection: needless if the server was about to end the
//! reply, sensible if it would have held it open. The wire doesn't tell which, and the finding says so.

use std::collections::{BTreeMap, HashMap, HashSet};

use mcpace_record::{Closer, ConnectionId, Nanos, ReplyEnding};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, ConnectionPerRequest, Disproof, Finding, Level, Reason, ReplyKind, Role};
use crate::view::{Connection, Exchange, ReplyShape, Stamp, Transport, View};

/// Requests of a session below which nothing is concluded.
const FEWEST: usize = 3;

/// Requests and streams that one client could send over the same connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Group<'a> {
    Session(&'a str),
    /// No session ids: everything since the last connect.
    Epoch(usize),
}

/// A connection that was opened without need, by the exchange that it was opened for.
struct Needless<'e, 'a> {
    exchange: &'e Exchange<'a>,
    opened: Stamp,
    free: ConnectionId,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut context = ConnectionPerRequest {
        requests: 0,
        connections: 0,
        needless: 0,
        left_early: 0,
        replies: ReplyKind::Json,
        closed_by: None,
    };
    let (mut shapes, mut named, mut all) = (HashSet::new(), true, Vec::new());
    for (group, used) in groups(scene.view) {
        let posts = || used.iter().filter(|e| e.is_message());
        let requests = posts().count();
        let connections: HashSet<_> = posts().filter_map(|e| e.near()?.conn).collect();
        let needless = needless(scene.view, &used);
        if requests < FEWEST || connections.len() * 4 < requests * 3 || needless.len() < 2 {
            continue;
        }
        context.requests += requests as u64;
        context.connections += connections.len() as u64;
        context.needless += needless.len() as u64;
        context.left_early += posts().filter(|e| left_early(e)).count() as u64;
        shapes.extend(posts().map(|e| e.shape == ReplyShape::Events));
        named &= matches!(group, Group::Session(_));
        all.extend(needless);
    }
    let closers = all.iter().filter_map(|n| scene.view.connection(n.free));
    context.closed_by = closers.filter_map(|c| c.closed_by).next();
    context.replies = match (shapes.contains(&true), shapes.contains(&false)) {
        (true, true) => ReplyKind::Mixed,
        (true, false) => ReplyKind::Sse,
        _ => ReplyKind::Json,
    };
    charge(scene, &all)
        .into_iter()
        .map(|(operation, tally)| {
            let severity = tally.severity();
            let confidence = if context.left_early > 0 {
                scene.confidence(Level::Low, Reason::EndNotSeen)
            } else {
                let level = if named { Level::High } else { Level::Medium };
                scene.confidence(level, Reason::Repeated)
            };
            let cause = Cause::ConnectionPerRequest(context.clone());
            let disproof = Disproof::ReuseOneClient;
            tally.finding(cause, operation, severity, confidence, disproof)
        })
        .collect()
}

fn charge<'s, 'a>(scene: &mut Scene<'s, 'a>, all: &[Needless<'s, 'a>]) -> ByOperation<'s, Tally> {
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for needless in all {
        let exchange = needless.exchange;
        let tally = operations.of(scene.operation(exchange));
        let connect = scene.view.opened_for(exchange).and_then(|connection| {
            let from = connection.begun()?.at;
            Some((from, connection.ready()?.at))
        });
        let (from, to) = connect.unwrap_or((Nanos::ZERO, Nanos::ZERO));
        let time = scene.claim(exchange.call, from, to);
        tally.cost(exchange.call, time, 0, 0);
        let freed = scene.view.connection(needless.free);
        tally.prove(&[
            (Role::ConnectionClosed, freed.and_then(|c| c.closed)),
            (Role::ConnectionOpened, Some(needless.opened)),
        ]);
    }
    operations
}

/// The exchanges of each group, in order.
fn groups<'s, 'a>(view: &'s View<'a>) -> BTreeMap<Group<'a>, Vec<&'s Exchange<'a>>> {
    let mut groups: BTreeMap<Group<'_>, Vec<&Exchange<'_>>> = BTreeMap::new();
    let (mut epoch, mut connect) = (0, None);
    for exchange in &view.exchanges {
        let relevant = exchange.is_message() || exchange.is_standalone_stream();
        if exchange.transport != Transport::Http || !relevant {
            continue;
        }
        let call = exchange.call.and_then(|call| view.call(call));
        let connecting = call.filter(|call| call.operation == "connect");
        let connecting = connecting.map(|call| call.id);
        if exchange.requests("initialize") || (connecting.is_some() && connecting != connect) {
            epoch += 1;
        }
        connect = connecting.or(connect);
        let group = exchange.session().map_or(Group::Epoch(epoch), Group::Session);
        groups.entry(group).or_default().push(exchange);
    }
    groups
}

enum Mark<'e, 'a> {
    Opened(&'e Connection<'a>, &'e Exchange<'a>),
    Begun(&'e Exchange<'a>),
    Ended(&'e Exchange<'a>),
    Closed(&'e Connection<'a>),
}

/// Replays a group's connections in the order of events and notes what is opened while another one is free.
fn needless<'s, 'a>(view: &'s View<'a>, used: &[&'s Exchange<'a>]) -> Vec<Needless<'s, 'a>> {
    let mut found = Vec::new();
    let mut busy: HashMap<ConnectionId, i64> = HashMap::new();
    let mut free: Vec<ConnectionId> = Vec::new();
    let mut lost: HashSet<ConnectionId> = HashSet::new();
    for (event, mark) in marks(view, used) {
        match mark {
            Mark::Opened(connection, exchange) => {
                // Stale entries are dropped as they surface, which keeps this linear.
                while let Some(last) = free.last() {
                    let idle = busy.get(last) == Some(&0) && !lost.contains(last);
                    if idle && *last != connection.id {
                        let at = connection.opened.map_or(exchange.start.at, |o| o.at);
                        found.push(Needless { exchange, opened: Stamp { at, event }, free: *last });
                        break;
                    }
                    free.pop();
                }
            }
            Mark::Begun(exchange) => *busy.entry(conn(exchange)).or_default() += 1,
            Mark::Ended(exchange) => {
                let id = conn(exchange);
                let carried = busy.entry(id).or_default();
                *carried -= 1;
                // A client that leaves in mid-reply spoils a connection that the server may have kept.
                let spoiled = left_early(exchange);
                let kept = exchange.ending == Some(ReplyEnding::Complete) || spoiled;
                if kept && !exchange.closes_connection && *carried == 0 {
                    free.push(id);
                } else {
                    lost.insert(id);
                }
            }
            Mark::Closed(connection) => {
                if connection.closed_by != Some(Closer::Client) {
                    lost.insert(connection.id);
                }
            }
        }
    }
    found
}

fn marks<'s, 'a>(view: &'s View<'a>, used: &[&'s Exchange<'a>]) -> Vec<(usize, Mark<'s, 'a>)> {
    let mut marks = Vec::new();
    for exchange in used {
        let Some(connection) = exchange.near().and_then(|near| near.conn).and_then(|conn| view.connection(conn)) else {
            continue;
        };
        if connection.first_exchange == Some(exchange.id) {
            let opened = connection.opened.unwrap_or(exchange.start).event;
            marks.push((opened, Mark::Opened(connection, exchange)));
            if let Some(closed) = connection.closed {
                marks.push((closed.event, Mark::Closed(connection)));
            }
        }
        marks.push((exchange.start.event, Mark::Begun(exchange)));
        if let Some(end) = exchange.ended() {
            marks.push((end.event, Mark::Ended(exchange)));
        }
    }
    marks.sort_by_key(|(event, _)| *event);
    marks
}

/// Whether the client broke off a reply to a message: whether the server would have ended it soon is not seen.
fn left_early(exchange: &Exchange<'_>) -> bool {
    exchange.is_message() && exchange.ending == Some(ReplyEnding::ClientLeft)
}

/// The client's connection; marks are made only of exchanges that have one.
fn conn(exchange: &Exchange<'_>) -> ConnectionId {
    let near = exchange.near().and_then(|near| near.conn);
    near.unwrap_or(ConnectionId(u64::MAX))
}
