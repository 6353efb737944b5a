//! One pass over the events: each goes to those whom it concerns.

use mcpace_record::{Event, EventKind, Nanos, Span};

use super::calls::CallJoin;
use super::inside::InsideJoin;
use super::positions::Positions;
use super::processor::ProcessorJoin;
use super::stdio::StdioJoin;
use super::texts::{Keeper, Texts};
use super::usage::UsageJoin;
use super::wire::WireJoin;
use super::{Connection, EventIndex, Exchange, Late, Stamp, View, late_answers};

pub(super) struct Join<'a> {
    keeper: Keeper<'a>,
    wire: WireJoin<'a>,
    stdio: StdioJoin<'a>,
    calls: CallJoin<'a>,
    usage: UsageJoin,
    processor: ProcessorJoin,
    inside: InsideJoin<'a>,
    late: Vec<Late>,
    events: usize,
    lost: u64,
    end: Nanos,
}

impl<'a> Join<'a> {
    pub(super) fn new(texts: &'a Texts) -> Self {
        Self {
            keeper: Keeper::new(texts),
            wire: WireJoin::default(),
            stdio: StdioJoin::default(),
            calls: CallJoin::default(),
            usage: UsageJoin::default(),
            processor: ProcessorJoin::default(),
            inside: InsideJoin::default(),
            late: Vec::new(),
            events: 0,
            lost: 0,
            end: Nanos::ZERO,
        }
    }

    /// The next event, in the order of time.
    pub(super) fn join_event(&mut self, event: &Event) {
        let at = Stamp { at: event.at, event: EventIndex::new(self.events) };
        let (keeper, kind) = (&mut self.keeper, &event.kind);
        match kind {
            EventKind::CallStart { .. } | EventKind::CallEnd { .. } => self.calls.join_event(keeper, at, kind),
            EventKind::StdioLine { .. }
            | EventKind::ProcessStarted { .. }
            | EventKind::ProcessExited { .. }
            | EventKind::ServerTiming { ex: None, .. } => self.stdio.join_event(keeper, at, kind),
            EventKind::ProcessSample { .. } => self.usage.join_event(at, kind),
            EventKind::ProcessorTime { .. } => self.processor.join_event(event.at, kind),
            EventKind::Span(_)
            | EventKind::StackSeen { .. }
            | EventKind::StackSample { .. }
            | EventKind::RuntimePause { .. }
            | EventKind::ProcessRan { .. }
            | EventKind::PoolWork { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SocketOpened { .. }
            | EventKind::SocketTraffic { .. }
            | EventKind::SocketClosed { .. }
            | EventKind::SourceMissing { .. } => self.inside.join_event(keeper, at, kind),
            EventKind::InstrumentLate { by, busy } => self.late.push(Late { at, by: *by, busy: *busy }),
            EventKind::EventsLost { count } => self.lost = self.lost.saturating_add(*count),
            _ => self.wire.join_event(keeper, at, kind),
        }
        self.events += 1;
        self.end = event.at;
    }

    /// Nanoseconds from the times of a file's spans to the recording's clock.
    pub(super) fn set_file_offset(&mut self, offset: i64) {
        self.inside.spans.file_offset = offset;
    }

    /// A span of a file, after all events.
    pub(super) fn join_file_span(&mut self, ended: Nanos, span: &Span) {
        let at = Stamp { at: ended, event: EventIndex::new(self.events) };
        self.inside.spans.join_span(&mut self.keeper, at, span, true);
        self.events += 1;
    }

    /// The view of spans alone.
    pub(super) fn finish_traces(mut self) -> View<'a> {
        self.end = self.inside.spans.end();
        let (mut calls, mut exchanges) = (Vec::new(), Vec::new());
        let keeper = &mut self.keeper;
        let inside = std::mem::take(&mut self.inside).finish_evidence(|spans| {
            let (traced, joined) = spans.finish_traces(keeper);
            (calls, exchanges) = (traced.calls, traced.exchanges);
            joined
        });
        let view = self.finish_view(false);
        View {
            exchange_index: exchanges.iter().map(|exchange| exchange.id.0).collect(),
            call_index: calls.iter().map(|call| call.id.0).collect(),
            lost: inside.left_out,
            incomplete: inside.left_out > 0,
            exchanges,
            calls,
            inside,
            is_of_traces: true,
            ..view
        }
    }

    /// The view of all of them; `partial` where the recording was cut off.
    pub(super) fn finish_view(self, partial: bool) -> View<'a> {
        let keeper = self.keeper;
        let (wire, mut contexts) = self.wire.finish_wire(&keeper);
        let (mut connections, mut exchanges) = wire;
        let taken: Positions = exchanges.iter().map(|exchange| exchange.id.0).collect();
        let lines = self.stdio.finish_lines(&taken);
        contexts.extend(lines.contexts);
        if !lines.exchanges.is_empty() {
            exchanges.extend(lines.exchanges);
            exchanges.sort_by_key(|exchange| exchange.start.event);
        }
        late_answers::attach_answers(&mut exchanges);
        let inside = self.inside.finish_evidence(|spans| spans.finish_recorded(&exchanges, &contexts));
        let lost = self.lost.saturating_add(inside.left_out);
        let calls = self.calls.finish_calls(&keeper, &mut exchanges, &connections);
        let exchange_index: Positions = exchanges.iter().map(|exchange| exchange.id.0).collect();
        let processor_times = self.processor.finish_times(&exchanges, &exchange_index, &lines.processes);
        let connection_index: Positions = connections.iter().map(|connection| connection.id.0).collect();
        note_exchanges(&mut connections, &connection_index, &exchanges);
        View {
            processor_times,
            inside,
            is_of_traces: false,
            connection_index,
            exchange_index,
            call_index: calls.iter().map(|call| call.id.0).collect(),
            connections,
            exchanges,
            calls,
            processes: lines.processes,
            usage: self.usage.finish_usage(),
            late: self.late,
            bursts: lines.bursts,
            notifying: lines.notifying,
            end: self.end,
            events: self.events as u64,
            lost,
            partial,
            incomplete: partial || lost > 0,
        }
    }
}

fn note_exchanges(connections: &mut [Connection<'_>], index: &Positions, exchanges: &[Exchange<'_>]) {
    for exchange in exchanges {
        for leg in [exchange.front(), exchange.back()].into_iter().flatten() {
            let at = leg.conn.and_then(|conn| index.get(conn.0));
            if let Some(at) = at {
                connections[at].first_exchange.get_or_insert(exchange.id);
                connections[at].last_exchange = Some(exchange.id);
            }
        }
    }
}
