//! Reading recordings: whole, or event by event for whoever keeps no events.
//!
//! A file is a stranger's: it may be cut off, of another version, or a few hundred kilobytes that unfold to terabytes. So a
//! line, the text of all lines, their number and how far they unfold are bounded, and nothing is kept but what is asked for.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::parse_head;
use crate::{Event, Nanos, RecordError, Recording, RecordingHead};

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much a file may hold.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Bytes of one line. A longer one is no event of ours: bodies are cut long before.
    line: u64,
    /// Bytes of all lines.
    text: u64,
    events: u64,
    /// Bytes of lines for each byte of the file: traffic is repetitive, but has ids, stamps and digests of its own.
    unfolding: u64,
    /// Short files may unfold as they like.
    short: u64,
}

const BOUNDS: Bounds = Bounds { line: 64 << 20, text: 32 << 30, events: 100_000_000, unfolding: 256, short: 256 << 20 };

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
        read(source, BOUNDS)
    }

    /// Reads a recording's events one by one, in the order of their time; see [`Events`].
    ///
    /// # Errors
    /// No recording, or a newer format.
    pub fn events<'r>(source: impl Read + Send + 'r) -> Result<Events<'r>, RecordError> {
        let lines = Lines::open(source, BOUNDS)?;
        Ok(Events { lines, waiting: VecDeque::with_capacity(WINDOW + 1), passed: Nanos::ZERO })
    }
}

fn read(source: impl Read + Send, bounds: Bounds) -> Result<Recording, RecordError> {
    let mut lines = Lines::open(source, bounds)?;
    let mut events = Vec::new();
    while let Some(event) = lines.event()? {
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
    lines: Lines<'r>,
    waiting: VecDeque<Event>,
    /// The time of the last event that was handed out.
    passed: Nanos,
}

impl Events<'_> {
    /// What it is a recording of.
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
        while self.waiting.len() <= WINDOW {
            let Some(event) = self.lines.event()? else { break };
            if event.at < self.passed {
                return Err(RecordError::OutOfOrder);
            }
            match self.waiting.back() {
                Some(last) if event.at < last.at => {
                    let place = self.waiting.partition_point(|other| other.at <= event.at);
                    self.waiting.insert(place, event);
                }
                _ => self.waiting.push_back(event),
            }
        }
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.look_ahead() {
            self.waiting.clear();
            self.lines.ended = true;
            return Some(Err(error));
        }
        let event = self.waiting.pop_front()?;
        self.passed = event.at;
        Some(Ok(event))
    }
}

/// The lines of a file.
struct Lines<'r> {
    head: RecordingHead,
    source: Box<dyn BufRead + Send + 'r>,
    text: String,
    number: usize,
    partial: bool,
    ended: bool,
    /// Bytes of lines so far.
    unfolded: u64,
    /// Bytes of the file so far.
    taken: Arc<AtomicU64>,
    bounds: Bounds,
}

impl<'r> Lines<'r> {
    fn open(mut source: impl Read + Send + 'r, bounds: Bounds) -> Result<Self, RecordError> {
        const BUFFER: usize = 128 * 1024;
        let mut magic = [0; 4];
        let got = read_up_to(&mut source, &mut magic)?;
        let taken = Arc::new(AtomicU64::new(0));
        let whole =
            Counted { source: io::Cursor::new(magic).take(got as u64).chain(source), taken: Arc::clone(&taken) };
        let mut source: Box<dyn BufRead + Send + 'r> = if magic == ZSTD {
            Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(whole)?))
        } else {
            Box::new(BufReader::with_capacity(BUFFER, whole))
        };
        let mut text = String::new();
        let head = match next_line(&mut source, &mut text, bounds.line)? {
            Next::Line | Next::CutLine if !text.trim().is_empty() => parse_head(&text)?,
            _ => return Err(RecordError::NotARecording("it is empty or starts with something else".to_owned())),
        };
        Ok(Self { head, source, text, number: 1, partial: false, ended: false, unfolded: 0, taken, bounds })
    }

    /// The next event as the file has it; `None` at its end.
    fn event(&mut self) -> Result<Option<Event>, RecordError> {
        if self.ended {
            return Ok(None);
        }
        self.number += 1;
        let next = next_line(&mut self.source, &mut self.text, self.bounds.line)?;
        self.check_bounds()?;
        match next {
            Next::Line => {
                let bad =
                    |error: serde_json::Error| RecordError::BadLine { line: self.number, reason: error.to_string() };
                return serde_json::from_str(&self.text).map(Some).map_err(bad);
            }
            // A last line without its line end: whole in a hand-made file, half in one that was cut.
            Next::CutLine => match serde_json::from_str(&self.text) {
                Ok(event) => return Ok(Some(event)),
                Err(_) => self.partial = true,
            },
            Next::CutStream => self.partial = true,
            Next::End => {}
        }
        self.ended = true;
        Ok(None)
    }

    fn check_bounds(&mut self) -> Result<(), RecordError> {
        let Bounds { text, events, unfolding, short, .. } = self.bounds;
        self.unfolded = self.unfolded.saturating_add(self.text.len() as u64);
        let too_large = |what: String| Err(RecordError::TooLarge { what });
        if self.unfolded > text {
            return too_large(format!("{} GiB of text", text >> 30));
        }
        if self.unfolded > short && self.unfolded / unfolding > self.taken.load(Ordering::Relaxed) {
            return too_large(format!("{unfolding} times its own size"));
        }
        if !self.text.is_empty() && self.number as u64 > events.saturating_add(1) {
            return too_large(format!("{events} events"));
        }
        Ok(())
    }
}

/// Counts what passes.
struct Counted<R> {
    source: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

enum Next {
    Line,
    /// Text without a line end, then the end.
    CutLine,
    /// The compressed stream breaks off.
    CutStream,
    End,
}

fn next_line(lines: &mut impl BufRead, text: &mut String, limit: u64) -> Result<Next, RecordError> {
    text.clear();
    match lines.take(limit).read_line(text) {
        Ok(0) => Ok(Next::End),
        Ok(_) if text.ends_with('\n') => Ok(Next::Line),
        Ok(_) => Ok(Next::CutLine),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Next::CutStream),
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Other) => {
            Err(RecordError::NotARecording(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, CallOutcome, EventKind, Instrument, Writer};

    /// Events that end calls, at these times, numbered in the order in which they are written.
    fn written(times: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let head = RecordingHead {
            instrument: Instrument::Recorder,
            started: String::new(),
            started_at: None,
            mcpace: String::new(),
            upstream: String::new(),
        };
        let mut writer = Writer::new(Vec::new(), &head).unwrap();
        for (number, at) in times.into_iter().enumerate() {
            let call = CallId(number as u64);
            let kind = EventKind::CallEnd { call, outcome: CallOutcome::Ok };
            writer.write(&Event { at: Nanos(at), kind }).unwrap();
        }
        writer.finish().unwrap()
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
    fn a_file_that_unfolds_without_end_is_refused_and_said_to_be_too_large() {
        let file = written((0..20_000).map(|_| 7));
        let refused = |bounds: Bounds| read(file.as_slice(), bounds).map_err(|error| (error.code(), error.to_string()));
        let loose = Bounds { short: 0, ..BOUNDS };
        assert!(refused(loose).is_ok());
        for (bounds, what) in [
            (Bounds { events: 19_999, ..loose }, "19999 events"),
            (Bounds { text: 1 << 16, ..loose }, "0 GiB"),
            (Bounds { unfolding: 2, ..loose }, "2 times its own size"),
        ] {
            let (code, text) = refused(bounds).unwrap_err();
            assert!(code == "too-large" && text.contains(what), "{text}");
        }
        assert!(refused(Bounds { events: 20_000, ..loose }).is_ok());
        assert!(refused(Bounds { unfolding: 2, ..BOUNDS }).is_ok(), "short files may unfold as they like");
    }
}
