//! The lines of a recording's file, compressed or plain, within bounds.
//!
//! A file is a stranger's: it may be cut off, of another version, or a few hundred kilobytes that unfold to terabytes. So a
//! line, the text of all lines and their number are bounded. How far text unfolds says nothing: large bodies that are all
//! alike take a few bytes each, thousands of times less.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::parse_head;
use crate::{Event, RecordError, RecordingHead};

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much a file may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordingBounds {
    /// Bytes of one line. A longer one is no event of ours: bodies are cut long before.
    pub(crate) line: u64,
    /// Bytes of all lines.
    pub(crate) text: u64,
    pub(crate) events: u64,
    /// Events for each byte of the file: alike as they may be, each has a stamp and ids of its own, seven bytes at the least.
    pub(crate) crowded: u64,
    /// Number of events up to which `crowded` is not checked.
    pub(crate) few: u64,
    /// Bytes of the events that are held where all are.
    pub(crate) held: u64,
    /// Bytes of the events that are looked ahead at where they come one by one.
    pub(crate) ahead: u64,
}

pub(crate) const BOUNDS: RecordingBounds = RecordingBounds {
    line: 64 << 20,
    text: 32 << 30,
    events: 100_000_000,
    crowded: 4,
    few: 1_000_000,
    held: 6 << 30,
    ahead: 256 << 20,
};

/// The lines of a file.
pub(crate) struct Lines<'r> {
    pub(crate) head: RecordingHead,
    source: Box<dyn BufRead + Send + 'r>,
    pub(crate) text: String,
    pub(crate) number: usize,
    pub(crate) partial: bool,
    pub(crate) ended: bool,
    /// Bytes of lines so far.
    unfolded: u64,
    /// Bytes of the file so far.
    taken: Arc<AtomicU64>,
    pub(crate) bounds: RecordingBounds,
}

impl<'r> Lines<'r> {
    pub(crate) fn open_source(mut source: impl Read + Send + 'r, bounds: RecordingBounds) -> Result<Self, RecordError> {
        const BUFFER: usize = 128 * 1024;
        let mut magic = [0; 4];
        let got = read_up_to(&mut source, &mut magic)?;
        let taken = Arc::new(AtomicU64::new(0));
        let whole =
            CountingReader { source: io::Cursor::new(magic).take(got as u64).chain(source), taken: Arc::clone(&taken) };
        let mut source: Box<dyn BufRead + Send + 'r> = if magic == ZSTD {
            Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::new(whole)?))
        } else {
            Box::new(BufReader::with_capacity(BUFFER, whole))
        };
        let mut text = String::new();
        let head = match next_line(&mut source, &mut text, bounds.line)? {
            LineEnd::Line | LineEnd::CutLine if !text.trim().is_empty() => parse_head(&text)?,
            _ => return Err(RecordError::NotARecording("it is empty or starts with something else".to_owned())),
        };
        Ok(Self { head, source, text, number: 1, partial: false, ended: false, unfolded: 0, taken, bounds })
    }

    /// The next event as the file has it; `None` at its end.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, RecordError> {
        let Some(cut) = self.read_line()? else { return Ok(None) };
        let event = parse_event(&self.text, self.number, cut)?;
        if event.is_none() {
            (self.partial, self.ended) = (true, true);
        }
        Ok(event)
    }

    /// Fills `batch` with the next lines; an empty one is the end.
    pub(crate) fn fill_batch(&mut self, batch: &mut LineBatch) -> Result<(), RecordError> {
        (batch.first, batch.cut) = (self.number + 1, false);
        batch.text.clear();
        batch.ends.clear();
        while batch.ends.len() < BATCH_LINES && batch.text.len() < BATCH_BYTES {
            let Some(cut) = self.read_line()? else { break };
            batch.text.push_str(&self.text);
            batch.ends.push(batch.text.len());
            batch.cut = cut;
        }
        Ok(())
    }

    /// Reads the next line; `None` at the end, else whether its line end is missing: the last one's, whole in a hand-made
    /// file, half in one that was cut.
    fn read_line(&mut self) -> Result<Option<bool>, RecordError> {
        if self.ended {
            return Ok(None);
        }
        self.number += 1;
        let next = next_line(&mut self.source, &mut self.text, self.bounds.line)?;
        self.check_bounds()?;
        Ok(match next {
            LineEnd::Line => Some(false),
            LineEnd::CutLine => {
                self.ended = true;
                Some(true)
            }
            LineEnd::CutStream | LineEnd::End => {
                (self.partial, self.ended) = (matches!(next, LineEnd::CutStream), true);
                None
            }
        })
    }

    fn check_bounds(&mut self) -> Result<(), RecordError> {
        let RecordingBounds { text, events, crowded, few, .. } = self.bounds;
        self.unfolded = self.unfolded.saturating_add(self.text.len() as u64);
        if self.unfolded > text {
            return Err(too_large(format!("{} GiB of text", text >> 30)));
        }
        if self.text.is_empty() {
            return Ok(());
        }
        // The first line is the head.
        let number = (self.number as u64).saturating_sub(1);
        if number > events {
            return Err(too_large(format!("{events} events")));
        }
        if number > few && number / crowded > self.taken.load(Ordering::Relaxed) {
            return Err(too_large(format!("{crowded} events for each byte of its size")));
        }
        Ok(())
    }
}

pub(crate) fn too_large(what: String) -> RecordError {
    RecordError::TooLarge { what }
}

/// The event of a line; `None` where it is half of one.
fn parse_event(text: &str, number: usize, cut: bool) -> Result<Option<Event>, RecordError> {
    match serde_json::from_str(text) {
        Ok(event) => Ok(Some(event)),
        Err(_) if cut => Ok(None),
        Err(error) => Err(RecordError::BadLine { line: number, reason: error.to_string() }),
    }
}

/// Bytes that `event`, of a line of `text` bytes, takes: no fewer than its line has, for [`Event::size`] doesn't count what is
/// short in any event of ours, such as an address.
pub(crate) fn memory_size(event: &Event, text: usize) -> u64 {
    event.size().max(text) as u64
}

/// Some lines of a file, as they stand there.
#[derive(Default)]
pub(crate) struct LineBatch {
    text: String,
    /// Where each ends in the text.
    ends: Vec<usize>,
    /// The number of the first.
    first: usize,
    /// Whether the last one's line end is missing.
    cut: bool,
}

const BATCH_LINES: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;

impl LineBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Takes the lines apart into events with their sizes, up to the first that is none; says whether the last one was half.
    pub(crate) fn parse_events(&self, events: &mut Vec<(u64, Event)>) -> Result<bool, RecordError> {
        let mut from = 0;
        for (at, to) in self.ends.iter().enumerate() {
            let text = &self.text[from..*to];
            let last = at + 1 == self.ends.len();
            let Some(event) = parse_event(text, self.first + at, self.cut && last)? else { return Ok(true) };
            events.push((memory_size(&event, text.len()), event));
            from = *to;
        }
        Ok(false)
    }
}

/// Counts what passes.
struct CountingReader<R> {
    source: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

enum LineEnd {
    Line,
    /// Text without a line end, then the end.
    CutLine,
    /// The compressed stream breaks off.
    CutStream,
    End,
}

fn next_line(lines: &mut impl BufRead, text: &mut String, limit: u64) -> Result<LineEnd, RecordError> {
    text.clear();
    match lines.take(limit).read_line(text) {
        Ok(0) => Ok(LineEnd::End),
        Ok(_) if text.ends_with('\n') => Ok(LineEnd::Line),
        Ok(_) => Ok(LineEnd::CutLine),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(LineEnd::CutStream),
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
