//! Which exchanges are one client's: those of a session or, without session ids, those since the last connect.

use std::collections::BTreeMap;

use crate::view::{Exchange, View};

/// Requests and streams that one client could send over the same connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Group<'a> {
    Session(&'a str),
    /// No session ids: everything since the last connect.
    Epoch(usize),
}

/// Exchanges of each group, in order.
pub(super) type Groups<'s, 'a> = BTreeMap<Group<'a>, Vec<&'s Exchange<'a>>>;

/// The messages and standalone streams of each group.
pub(super) fn group_exchanges<'s, 'a>(view: &'s View<'a>) -> Groups<'s, 'a> {
    let mut groups: Groups<'_, '_> = BTreeMap::new();
    let (mut epoch, mut connect) = (0, None);
    for exchange in &view.exchanges {
        if !exchange.is_message() && !exchange.is_standalone_stream() {
            continue;
        }
        let call = exchange.call.and_then(|call| view.call(call));
        let connecting = call.filter(|call| call.operation == "connect");
        let connecting = connecting.map(|call| call.id);
        let introduces = exchange.requests("initialize") || exchange.requests("server/discover");
        if introduces || (connecting.is_some() && connecting != connect) {
            epoch += 1;
        }
        connect = connecting.or(connect);
        let group = exchange.session().map_or(Group::Epoch(epoch), Group::Session);
        groups.entry(group).or_default().push(exchange);
    }
    groups
}
