//! Reading recordings: whole, or event by event for whoever keeps no events.
//!
//! Memory use is bounded, however large the file is once decompressed, and only requested events are kept. The file's
//! own bounds are those of [`lines`](crate::lines).

use std::collections::VecDeque;
use std::io::Read;

use crate::lines::{BOUNDS, Lines, RecordingBounds, memory_size, too_large};
use crate::{Event, Nanos, RecordError, Recording, RecordingHead};

/// How many events may stand before an earlier one: two threads append a few microseconds out of order.
const WINDOW: usize = 4096;

/// Reads recordings.
pub struct Reader;

impl Reader {
    /// Reads a whole recording, compressed or as plain JSON lines. One that was cut off comes back as far as it goes,
    /// with [`Recording::partial`] set.
    ///
    /// # Errors
    /// No recording, a newer format, a line in its middle that is no event, or more than can be meant.
    pub fn read(source: impl Read + Send) -> Result<Recording, RecordError> {
        read_recording(source, BOUNDS)
    }

    /// Reads a recording's events one by one, in the order of their time; see [`Events`].
    ///
    /// # Errors
    /// No recording, or a newer format.
    pub fn events<'r>(source: impl Read + Send + 'r) -> Result<Events<'r>, RecordError> {
        read_events(source, BOUNDS)
    }
}

fn read_events<'r>(source: impl Read + Send + 'r, bounds: RecordingBounds) -> Result<Events<'r>, RecordError> {
    let lines = Lines::open_source(source, bounds)?;
    Ok(Events { lines, order: EventOrder::new(bounds) })
}

fn read_recording(source: impl Read + Send, bounds: RecordingBounds) -> Result<Recording, RecordError> {
    let mut lines = Lines::open_source(source, bounds)?;
    let (mut events, mut held) = (Vec::new(), 0_u64);
    while let Some(event) = lines.next_event()? {
        held = held.saturating_add(memory_size(&event, lines.text.len()));
        if held > bounds.held {
            return Err(too_large(format!("the {} GiB of events that are kept in memory", bounds.held >> 30)));
        }
        events.push(event);
    }
    let mut recording = Recording::new(lines.head, events);
    recording.partial = lines.partial;
    Ok(recording)
}

/// The events of a recording as they are read, earliest first, equal times in the order of the file: the same order as
/// [`Recording::events`], so that their positions are the same.
///
/// Ends at the first error. [`RecordError::OutOfOrder`] is no fault of the file: its events stand further apart from their
/// order than is looked ahead, and [`Reader::read`] reads it.
pub struct Events<'r> {
    pub(crate) lines: Lines<'r>,
    pub(crate) order: EventOrder,
}

/// Puts events in the order of their time, as far as is looked ahead.
pub(crate) struct EventOrder {
    /// Each with the bytes that it takes.
    waiting: VecDeque<(u64, Event)>,
    /// Bytes of those that wait.
    held: u64,
    /// As many may.
    most: u64,
    /// The time of the last event that was handed out.
    passed: Nanos,
}

impl EventOrder {
    fn new(bounds: RecordingBounds) -> Self {
        Self { waiting: VecDeque::with_capacity(WINDOW + 1), held: 0, most: bounds.ahead, passed: Nanos::ZERO }
    }

    fn has_room(&self) -> bool {
        self.waiting.len() <= WINDOW && self.held <= self.most
    }

    /// Takes an event in, of `size` bytes.
    pub(crate) fn put_event(&mut self, size: u64, event: Event) -> Result<(), RecordError> {
        if event.at < self.passed {
            return Err(RecordError::OutOfOrder);
        }
        self.held += size;
        match self.waiting.back() {
            Some((_, last)) if event.at < last.at => {
                let place = self.waiting.partition_point(|(_, other)| other.at <= event.at);
                self.waiting.insert(place, (size, event));
            }
            _ => self.waiting.push_back((size, event)),
        }
        Ok(())
    }

    /// The next event, where no more need be looked at before it.
    pub(crate) fn next_of_many(&mut self) -> Option<Event> {
        if self.has_room() { None } else { self.next_event() }
    }

    /// The next event of those that wait.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let (size, event) = self.waiting.pop_front()?;
        self.held -= size;
        self.passed = event.at;
        Some(event)
    }
}

impl Events<'_> {
    /// Head of the recording.
    #[must_use]
    pub fn head(&self) -> &RecordingHead {
        &self.lines.head
    }

    /// Whether the end is missing; known when all events were read.
    #[must_use]
    pub fn partial(&self) -> bool {
        self.lines.partial
    }

    fn look_ahead(&mut self) -> Result<(), RecordError> {
        while self.order.has_room() {
            let Some(event) = self.lines.next_event()? else { break };
            self.order.put_event(memory_size(&event, self.lines.text.len()), event)?;
        }
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.look_ahead() {
            self.order.waiting.clear();
            self.lines.ended = true;
            return Some(Err(error));
        }
        self.order.next_event().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Body, CallId, CallOutcome, ConnectionId, EventKind, Instrument, LineFrom, MessageNote, Side, Writer,
        digest_bytes,
    };

    fn file_of(events: impl IntoIterator<Item = Event>) -> Vec<u8> {
        let head = RecordingHead::bare(Instrument::Recorder);
        let mut writer = Writer::new(Vec::new(), &head).unwrap();
        for event in events {
            writer.write(&event).unwrap();
        }
        writer.finish().unwrap()
    }

    fn end_of(call: u64, at: u64) -> Event {
        Event { at: Nanos(at), kind: EventKind::CallEnd { call: CallId(call), outcome: CallOutcome::Ok } }
    }

    /// Events that end calls, at these times, numbered in the order in which they are written.
    fn written(times: impl IntoIterator<Item = u64>) -> Vec<u8> {
        file_of(times.into_iter().enumerate().map(|(call, at)| end_of(call as u64, at)))
    }

    /// A server's line that says `text`, as the recorder of stdio keeps it.
    fn line_of(text: &str, at: u64) -> Event {
        let kind = EventKind::StdioLine {
            side: Side::Back,
            from: LineFrom::Server,
            began: Nanos(at - 5_000),
            bytes: text.len() as u64,
            digest: digest_bytes(text.as_bytes()),
            messages: MessageNote::of(text.as_bytes()),
            body: Some(Body { text: text.to_owned(), cut: false }),
            blocked: Nanos::ZERO,
        };
        Event { at: Nanos(at), kind }
    }

    /// Answers of nearly 64 KiB, alike but for their ids.
    fn large_answers(count: u64) -> Vec<Event> {
        let text = "x".repeat(61_000);
        let answer =
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#);
        (1..=count).map(|id| line_of(&answer(id), id * 712_345)).collect()
    }

    #[test]
    fn events_come_one_by_one_in_the_order_of_the_whole() {
        let file = written([1, 5, 5, 3, 5, 2, 9]);
        let mut events = Reader::events(file.as_slice()).unwrap();
        let read: Vec<Event> = events.by_ref().map(Result::unwrap).collect();
        assert_eq!(read, Reader::read(file.as_slice()).unwrap().events());
        assert!(!events.partial());
        let mut cut = Reader::events(&file[..file.len() - 1]).unwrap();
        assert!(cut.by_ref().all(|event| event.is_ok()));
        assert!(cut.partial());
    }

    #[test]
    fn an_event_that_comes_too_late_ends_them() {
        let late = written((1..=WINDOW as u64 + 2).chain([0]));
        let mut events = Reader::events(late.as_slice()).unwrap();
        let failed = events.find_map(Result::err).map(|error| error.code());
        assert_eq!((failed, events.next().is_none()), (Some("out-of-order"), true));
        let whole = Reader::read(late.as_slice()).unwrap();
        assert_eq!(whole.events()[0].at, Nanos(0));
        // As far as is looked ahead, it is in time.
        let in_time = written((1..=WINDOW as u64).chain([0]));
        assert!(Reader::events(in_time.as_slice()).unwrap().all(|event| event.is_ok()));
    }

    #[test]
    fn a_file_of_more_than_can_be_meant_is_refused_and_said_to_be_too_large() {
        let file = written((0..20_000).map(|number| number * 712_345));
        let refused = |bounds: RecordingBounds| {
            read_recording(file.as_slice(), bounds).map_err(|error| (error.code(), error.to_string()))
        };
        let counted = RecordingBounds { few: 0, ..BOUNDS };
        assert!(refused(counted).is_ok());
        for (bounds, what) in [
            (RecordingBounds { events: 19_999, ..counted }, "19999 events"),
            (RecordingBounds { text: 1 << 16, ..counted }, "0 GiB of text"),
            (RecordingBounds { held: 1 << 16, ..counted }, "0 GiB of events"),
        ] {
            let (code, text) = refused(bounds).unwrap_err();
            assert!(code == "too-large" && text.contains(what), "{text}");
        }
        assert!(refused(RecordingBounds { events: 20_000, ..counted }).is_ok());
        let held = RecordingBounds { held: 1 << 16, ..counted };
        assert!(
            read_events(file.as_slice(), held).unwrap().all(|event| event.is_ok()),
            "what comes one by one isn't held"
        );
    }

    #[test]
    fn a_file_that_unfolds_without_end_is_refused_long_before() {
        // As few bytes as zstd can make of so many events: all are the same.
        let bomb = file_of((0..100_000).map(|_| end_of(1, 7)));
        assert!(bomb.len() < 2_000, "{} bytes", bomb.len());
        let bounds = RecordingBounds { few: 1_000, ..BOUNDS };
        let mut read_so_far = read_events(bomb.as_slice(), bounds).unwrap();
        let failed = read_so_far.by_ref().find_map(Result::err).unwrap();
        assert!(failed.code() == "too-large" && failed.to_string().contains("4 events for each byte"), "{failed}");
        assert!(read_so_far.lines.number < 20_000, "{} lines were read", read_so_far.lines.number);
        assert_eq!(read_recording(bomb.as_slice(), bounds).unwrap_err().code(), "too-large");
        assert!(read_recording(bomb.as_slice(), BOUNDS).is_ok(), "few may be as alike as they like");
        // Lines that no event of ours is as long as are neither kept whole nor waited for.
        let address = "x".repeat(1 << 20);
        let kind = EventKind::ConnectStart { conn: ConnectionId(1), address };
        let bomb = file_of((0..12).map(|at| Event { at: Nanos(at), kind: kind.clone() }));
        assert!(bomb.len() < 16 << 10, "{} bytes", bomb.len());
        let bounds = RecordingBounds { held: 10 << 20, ahead: 2 << 20, ..BOUNDS };
        assert_eq!(read_recording(bomb.as_slice(), bounds).unwrap_err().code(), "too-large");
        let mut ahead = read_events(bomb.as_slice(), bounds).unwrap();
        while let Some(event) = ahead.next() {
            assert!(event.is_ok() && ahead.order.waiting.len() <= 3, "{} wait", ahead.order.waiting.len());
        }
    }

    #[test]
    fn what_our_writer_makes_of_large_bodies_that_are_all_alike_is_read() {
        let answers = large_answers(100);
        let file = file_of(answers.iter().cloned());
        assert!(file.len() * 1_000 < answers.iter().map(Event::size).sum(), "{} bytes unfold further", file.len());
        let counted = RecordingBounds { few: 0, ..BOUNDS };
        assert_eq!(read_recording(file.as_slice(), counted).unwrap().events(), answers);
        let one_by_one: Result<Vec<Event>, RecordError> = read_events(file.as_slice(), counted).unwrap().collect();
        assert_eq!(one_by_one.unwrap(), answers);
    }

    #[test]
    fn of_large_events_fewer_are_looked_ahead_at() {
        let answers = large_answers(40);
        let file = file_of(answers.iter().cloned());
        let mut ahead = read_events(file.as_slice(), RecordingBounds { ahead: 300_000, ..BOUNDS }).unwrap();
        let mut read = Vec::new();
        while let Some(event) = ahead.next() {
            read.push(event.unwrap());
            assert!(ahead.order.waiting.len() <= 5, "{} wait", ahead.order.waiting.len());
        }
        assert_eq!((read, ahead.order.held), (answers, 0));
    }
}
