//! The numbers of connections, exchanges, operations, stacks and sockets in a list of events, so that two lists can stand in one.

use crate::{Event, EventKind};

/// How many numbers of each kind are taken.
pub(crate) struct Numbers {
    connections: u64,
    exchanges: u64,
    calls: u64,
    stacks: u64,
    sockets: u64,
}

/// The numbers that an event names.
#[derive(Default)]
struct EventNumbers<'e> {
    connections: [Option<&'e mut u64>; 2],
    exchange: Option<&'e mut u64>,
    call: Option<&'e mut u64>,
    stack: Option<&'e mut u64>,
    socket: Option<&'e mut u64>,
}

impl Numbers {
    /// Past all those that `events` name; changes nothing.
    pub(crate) fn past_all(events: &mut [Event]) -> Self {
        let mut past = Self { connections: 0, exchanges: 0, calls: 0, stacks: 0, sockets: 0 };
        for event in events {
            let named = EventNumbers::of(&mut event.kind);
            let after = |most: u64, number: Option<&mut u64>| number.map_or(most, |n| most.max(n.saturating_add(1)));
            let [first, second] = named.connections;
            past.connections = after(after(past.connections, first), second);
            past.exchanges = after(past.exchanges, named.exchange);
            past.calls = after(past.calls, named.call);
            past.stacks = after(past.stacks, named.stack);
            past.sockets = after(past.sockets, named.socket);
        }
        past
    }

    /// Moves an event's numbers past these.
    pub(crate) fn shift_event(&self, kind: &mut EventKind) {
        let named = EventNumbers::of(kind);
        let shift = |number: Option<&mut u64>, by: u64| {
            if let Some(number) = number {
                *number = number.saturating_add(by);
            }
        };
        let [first, second] = named.connections;
        shift(first, self.connections);
        shift(second, self.connections);
        shift(named.exchange, self.exchanges);
        shift(named.call, self.calls);
        shift(named.stack, self.stacks);
        shift(named.socket, self.sockets);
    }
}

impl<'e> EventNumbers<'e> {
    fn of(kind: &'e mut EventKind) -> Self {
        let mut named = Self::default();
        match kind {
            EventKind::ConnectionOpened { conn, serves, .. } => {
                named.connections = [Some(&mut conn.0), serves.as_mut().map(|serves| &mut serves.0)];
            }
            EventKind::ConnectStart { conn, .. }
            | EventKind::TlsReady { conn, .. }
            | EventKind::ConnectFailed { conn, .. }
            | EventKind::ConnectionClosed { conn, .. }
            | EventKind::TcpInfo { conn, .. } => named.connections[0] = Some(&mut conn.0),
            EventKind::RequestHead { conn, ex, .. } => {
                named.connections[0] = Some(&mut conn.0);
                named.exchange = Some(&mut ex.0);
            }
            EventKind::RequestEnd { ex, .. }
            | EventKind::ReplyHead { ex, .. }
            | EventKind::ReplyBodyStart { ex, .. }
            | EventKind::ReplyEvent { ex, .. }
            | EventKind::ReplyEnd { ex, .. } => named.exchange = Some(&mut ex.0),
            EventKind::ServerTiming { ex, .. } => named.exchange = ex.as_mut().map(|ex| &mut ex.0),
            EventKind::CallStart { call, .. } | EventKind::CallEnd { call, .. } => named.call = Some(&mut call.0),
            EventKind::StackSeen { stack, .. }
            | EventKind::StackSample { stack, .. }
            | EventKind::TimerFired { stack, .. } => named.stack = Some(&mut stack.0),
            EventKind::SocketOpened { socket, .. }
            | EventKind::SocketTraffic { socket, .. }
            | EventKind::SocketClosed { socket, .. } => named.socket = Some(&mut socket.0),
            EventKind::StdioLine { .. }
            | EventKind::ProcessStarted { .. }
            | EventKind::ProcessExited { .. }
            | EventKind::ProcessSample { .. }
            | EventKind::ProcessRan { .. }
            | EventKind::PoolWork { .. }
            | EventKind::ProcessorTime { .. }
            | EventKind::Span(_)
            | EventKind::RuntimePause { .. }
            | EventKind::SourceMissing { .. }
            | EventKind::InstrumentLate { .. }
            | EventKind::EventsLost { .. } => {}
        }
        named
    }
}
