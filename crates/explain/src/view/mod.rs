//! The recording as connections, exchanges, processes and calls: events joined by their ids, nothing judged yet.
//!
//! Every fact keeps the index of the event that it comes from, so that whatever is concluded later can name its proof. The
//! events themselves are let go: a view has what rules ask for, small, so that a recording of millions of exchanges can be
//! joined as it is read.
//!
//! Input is hostile: an id seen twice keeps its first facts, a fact without its beginning is kept as far as it goes.

mod bursts;
mod call_name;
mod calls;
mod connection;
mod exchange;
mod head;
mod inside;
mod join;
mod late_answers;
mod lateness;
mod leg;
mod note;
mod positions;
mod processor;
mod program_span;
mod sockets;
mod span_clock;
mod span_join;
mod span_tree;
mod stamp;
mod stdio;
mod texts;
mod traced_calls;
mod usage;
mod wire;

use std::collections::HashMap;

use mcpace_record::{CallId, ConnectionId, Events, ExchangeId, Nanos, RecordError, Recording, Span};

pub(crate) use bursts::Burst;
pub use calls::{Call, PackedOutcome};
pub use connection::{Connection, Process, TcpSample};
pub use exchange::{Exchange, ReplyShape, StreamEvent, Transport};
pub(crate) use inside::{
    HelperTime, InsideEvidence, ProgramPause, ProgramTimer, SampledStack, SampledThread, StackCall,
};
pub use lateness::Late;
pub use leg::Leg;
pub use note::Note;
pub(crate) use positions::Positions;
pub use program_span::DependencyKind;
pub(crate) use program_span::{ProgramSpan, SpanOwner};
pub(crate) use sockets::{ProgramSocket, SocketWait};
pub use span_clock::SpanClock;
pub(crate) use span_join::CLOCK_TOLERANCE;
pub use span_join::SpanFacts;
pub use stamp::{EventIndex, Stamp};
pub(crate) use stdio::NotifyingLine;
pub use texts::Texts;
pub use usage::{Look, Usage};

/// A recording, joined. Exchanges and connections are in order of their first event.
#[derive(Debug)]
pub struct View<'a> {
    /// Every transport connection of either side.
    pub connections: Vec<Connection<'a>>,
    /// Every HTTP exchange, and every line of a stdio client with the line that answers it.
    pub exchanges: Vec<Exchange<'a>>,
    /// Every operation of the client's program.
    pub calls: Vec<Call<'a>>,
    /// Every server process that was spawned.
    pub processes: Vec<Process<'a>>,
    /// Resource use of the processes of either side, where it was sampled.
    pub usage: Vec<Usage>,
    /// When the instrument itself was late, earliest first.
    pub late: Vec<Late>,
    /// The last event's time.
    pub end: Nanos,
    /// How many events it is made of.
    pub events: u64,
    /// How many the instrument could not keep.
    pub lost: u64,
    /// Whether its end is missing.
    pub partial: bool,
    /// Whether there are spans only: nobody recorded the traffic.
    pub(crate) is_of_traces: bool,
    /// Whether events are missing: lost by the instrument, or the recording was cut off.
    pub incomplete: bool,
    /// Reads of a server's stdout that brought several answers.
    pub(crate) bursts: Vec<Burst>,
    /// Lines with which stdio servers notify their clients.
    pub(crate) notifying: Vec<NotifyingLine<'a>>,
    /// Spans and stacks of the server's programs.
    pub(crate) inside: InsideEvidence<'a>,
    processor_times: HashMap<ExchangeId, Nanos>,
    connection_index: Positions,
    exchange_index: Positions,
    call_index: Positions,
}

/// Joins the events of `recording`. Time is O(n log n) in the number of events, whatever they are.
#[must_use]
pub fn join_events<'a>(recording: &Recording, texts: &'a Texts) -> View<'a> {
    let mut join = join::Join::new(texts);
    recording.events().iter().for_each(|event| join.join_event(event));
    join.finish_view(recording.partial)
}

/// Joins events as they are read, so that they need not be kept.
///
/// # Errors
/// Those of reading, and [`RecordError::TooLarge`] where too much of it would have to be kept.
pub fn exchanges_of_file<'a>(events: &mut Events<'_>, texts: &'a Texts) -> Result<View<'a>, RecordError> {
    let mut join = join::Join::new(texts);
    events.each(|event| {
        join.join_event(event);
        texts.check_size()
    })?;
    Ok(join.finish_view(events.partial()))
}

/// Takes a span and the time of its end.
pub type TakeSpan<'t> = dyn FnMut(Nanos, &Span) + 't;

/// Joins a recording with spans from elsewhere, which `read` hands over. Their times plus `offset` are those of the recording's
/// clock, unless they come from another machine.
///
/// # Errors
/// Those of `read`.
pub(crate) fn join_with_spans<'a, E>(
    recording: &Recording,
    texts: &'a Texts,
    offset: i64,
    read: impl FnOnce(&mut TakeSpan<'_>) -> Result<(), E>,
) -> Result<View<'a>, E> {
    let mut join = join::Join::new(texts);
    join.set_file_offset(offset);
    recording.events().iter().for_each(|event| join.join_event(event));
    read(&mut |ended, span| join.join_file_span(ended, span))?;
    Ok(join.finish_view(recording.partial))
}

/// Joins spans alone to the calls of servers that they tell of.
///
/// # Errors
/// Those of `read`.
pub(crate) fn calls_of_spans<E>(
    texts: &Texts,
    read: impl FnOnce(&mut TakeSpan<'_>) -> Result<(), E>,
) -> Result<View<'_>, E> {
    let mut join = join::Join::new(texts);
    read(&mut |ended, span| join.join_file_span(ended, span))?;
    Ok(join.finish_traces())
}

impl<'a> View<'a> {
    /// The connection `id`.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection<'a>> {
        self.connection_index.get(id.0).map(|at| &self.connections[at])
    }

    /// The exchange `id`.
    #[must_use]
    pub fn exchange(&self, id: ExchangeId) -> Option<&Exchange<'a>> {
        self.exchange_index.get(id.0).map(|at| &self.exchanges[at])
    }

    /// The call `id`.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call<'a>> {
        self.call_index.get(id.0).map(|at| &self.calls[at])
    }

    /// Processor time that the server's process spent on `exchange`, where it was watched and served nothing else.
    #[must_use]
    pub fn processor_time(&self, exchange: &Exchange<'_>) -> Option<Nanos> {
        self.processor_times.get(&exchange.id).copied()
    }

    /// When `call` returned; the recording's end where that was not seen. Never before its start.
    #[must_use]
    pub fn end_of(&self, call: &Call<'_>) -> Nanos {
        call.end.map_or(self.end, |end| end.at).max(call.start.at)
    }

    /// The server-facing connection that was opened for `exchange` and not for an earlier one.
    #[must_use]
    pub fn opened_for(&self, exchange: &Exchange<'a>) -> Option<&Connection<'a>> {
        self.connection(exchange.back()?.conn?).filter(|connection| connection.first_exchange == Some(exchange.id))
    }
}

#[cfg(test)]
mod tests {
    use mcpace_record::{CallId, Event, EventKind, Instrument, Nanos, Reader, RecordingHead, Writer};

    use super::*;

    #[test]
    fn a_file_of_texts_that_all_differ_is_refused_before_they_take_all_memory() {
        let read = |differ: bool| {
            let head = RecordingHead {
                instrument: Instrument::Recorder,
                started: "2026-01-01T00:00:00Z".into(),
                started_at: None,
                mcpace: "0".into(),
                upstream: "test".into(),
            };
            let mut writer = Writer::new(Vec::new(), &head).unwrap();
            for number in 0..64_u64 {
                let operation = format!("{:>9000}", if differ { number } else { 0 });
                let kind = EventKind::CallStart { call: CallId(number), operation, tool: None };
                writer.write(&Event { at: Nanos(number), kind }).unwrap();
            }
            let file = writer.finish().unwrap();
            let texts = Texts::at_most(256 << 10);
            exchanges_of_file(&mut Reader::events(file.as_slice()).unwrap(), &texts).map(|view| view.events)
        };
        assert_eq!(read(false).unwrap(), 64);
        assert!(matches!(read(true), Err(RecordError::TooLarge { .. })));
    }
}
