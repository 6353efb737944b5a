//! The events of streams, for clients that resume a stream at another process, and for writers of a stream whose connection
//! another process has.

use std::time::Duration;

use bytes::Bytes;

use super::{Later, LogId};

/// Keeps streams. Any process appends to a stream; the process that has the client's connection reads it.
///
/// [`super::Post::Wake`] tells a reader about new events; it then reads. [`Bounds`] limit all streams; the oldest events are
/// dropped first.
pub trait EventStore: Send + Sync {
    /// Adds entries in their order. An entry whose first attempt seemed to fail and is sent
    /// again is not added twice.
    fn add<'a>(&'a self, entries: &'a [StreamEntry], bounds: &'a Bounds) -> Later<'a, Vec<Added>>;

    /// Begins to read as `reader`, a name that the caller chooses. The previous reader gets [`super::Post::LetGo`].
    fn open<'a>(&'a self, log: LogId, reader: &'a str, from: Cursor, bounds: &'a Bounds) -> Later<'a, Opened>;

    /// Whether anybody reads a stream.
    fn is_read(&self, log: LogId) -> Later<'_, bool>;

    /// The events after a position, or from the beginning, as many as one page takes; these count as delivered. A stream that is
    /// read is kept, and nobody but its latest reader reads it.
    fn read<'a>(&'a self, log: LogId, reader: &'a str, after: Option<u64>, bounds: &'a Bounds) -> Later<'a, Page>;

    /// Reads no more.
    fn close<'a>(&'a self, log: LogId, reader: &'a str) -> Later<'a, ()>;
}

/// Limits of the kept streams.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events of a stream.
    pub events: usize,
    /// Bytes of a stream.
    pub bytes: usize,
    /// Bytes of all streams of a session that have ended, together.
    pub ended_bytes: usize,
    /// Number of ended streams of a session.
    pub ended: usize,
    /// How long a stream without new events and without a reader is kept.
    pub idle: Duration,
    /// How long a stream is kept after its end.
    pub after_end: Duration,
}

/// Something for one stream.
#[derive(Clone, Debug)]
pub struct StreamEntry {
    /// Stream of the entry.
    pub log: LogId,
    /// Number that rises in this process; a repeated entry has the number of the first attempt.
    pub sequence: u64,
    /// Content of the entry.
    pub what: EntryContent,
}

impl StreamEntry {
    /// Size of the content in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.what {
            EntryContent::Event(_, message) => message.len(),
            EntryContent::Begin(asked) => asked.len(),
            EntryContent::End => 0,
        }
    }
}

/// Content of an [`StreamEntry`].
#[derive(Clone, Debug)]
pub enum EntryContent {
    /// A reply's stream begins; the ids of the requests that it answers, a JSON array.
    Begin(Box<str>),
    /// A message, with its position in the stream of a reply. In other streams the store assigns the position.
    Event(Option<u64>, Bytes),
    /// No more messages.
    End,
}

/// Outcome of adding an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Whether a process reads the stream, and was told.
    pub is_read: bool,
    /// Number of older, unread messages that were dropped for this one.
    pub dropped: u64,
    /// Whether the store refused the entry for good. The log of the store has the reason.
    pub refused: bool,
}

/// Position to begin reading at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// After the last delivered event.
    Undelivered,
    /// After this position.
    After(u64),
    /// After this position, for a reader that the store may have lost. A live reader that has the stream by now keeps it.
    Again(u64),
}

/// Outcome of [`EventStore::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// To be read after this position.
    After(u64),
    /// Another process that lives reads it, and only a client that names its last event takes it over.
    Taken,
    /// There is no such stream (any more).
    Unknown,
}

/// A part of a stream.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Messages with their positions.
    pub events: Vec<(u64, Bytes)>,
    /// Whether more is there already.
    pub has_more: bool,
    /// Whether there will be no more.
    pub ended: bool,
    /// State of the process that writes the stream.
    pub writer: WriterState,
    /// The ids of the requests that it answers, a JSON array.
    pub asked: Option<String>,
    /// Whether another reader has the stream by now; nothing was read.
    pub taken: bool,
}

/// State of the process that writes a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterState {
    /// Any process: the standalone stream.
    #[default]
    Anybody,
    /// A process that lives.
    Alive,
    /// A process that is gone: its requests in flight will never be answered.
    Gone,
    /// The store no longer has the stream.
    Unknown,
}
