//! The events of streams, for clients that take them up again at another process, and for whoever speaks to a stream that
//! another process holds.

use std::time::Duration;

use bytes::Bytes;

use super::{Later, LogId};

/// Keeps streams: appended to by whoever has something to say, read by the process that holds the client's connection.
///
/// A reader is told of what is new by [`super::Post::Wake`]; it then reads. All is bounded by [`Bounds`], oldest first.
pub trait EventStore: Send + Sync {
    /// Adds entries in their order. What was added before, as far as anybody knows in vain, is not added twice.
    fn add<'a>(&'a self, entries: &'a [Entry], bounds: &'a Bounds) -> Later<'a, Vec<Added>>;

    /// Begins to read as `reader`, a name that the caller makes up. Who read before learns it by [`super::Post::LetGo`].
    fn open<'a>(&'a self, log: LogId, reader: &'a str, from: Cursor, bounds: &'a Bounds) -> Later<'a, Opened>;

    /// Whether anybody reads a stream.
    fn is_read(&self, log: LogId) -> Later<'_, bool>;

    /// The events after a position, or from the beginning, as many as one page takes; these count as delivered. A stream that is
    /// read is kept, and nobody but its latest reader reads it.
    fn read<'a>(&'a self, log: LogId, reader: &'a str, after: Option<u64>, bounds: &'a Bounds) -> Later<'a, Page>;

    /// Reads no more.
    fn close<'a>(&'a self, log: LogId, reader: &'a str) -> Later<'a, ()>;
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events of a stream.
    pub events: usize,
    /// Bytes of a stream.
    pub bytes: usize,
    /// Bytes of all streams of a session that have ended, together.
    pub ended_bytes: usize,
    /// How many of those.
    pub ended: usize,
    /// How long a stream is kept that nobody says anything on and nobody reads.
    pub idle: Duration,
    /// How long one that has ended.
    pub after_end: Duration,
}

/// Something for one stream.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which.
    pub log: LogId,
    /// Counts up in this process: what is sent twice is known by it.
    pub sequence: u64,
    /// What.
    pub what: What,
}

impl Entry {
    /// Bytes of what is said.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.what {
            What::Event(_, message) => message.len(),
            What::Begin(asked) => asked.len(),
            What::End => 0,
        }
    }
}

/// See [`Entry`].
#[derive(Clone, Debug)]
pub enum What {
    /// A reply's stream begins; the ids of the requests that it answers, a JSON array.
    Begin(Box<str>),
    /// A message. Of a reply's stream it has a position already; elsewhere the store gives it one.
    Event(Option<u64>, Bytes),
    /// No more messages.
    End,
}

/// How an entry was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Whether a process reads the stream, and was told.
    pub is_read: bool,
    /// How many older messages that nobody had read it pushed out.
    pub dropped: u64,
    /// It was not taken, and never will be: the store says why.
    pub refused: bool,
}

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// After what was delivered to anybody.
    Undelivered,
    /// After this position.
    After(u64),
    /// After this position, for a reader that the store may have lost: whoever lives and reads it by now keeps it.
    Again(u64),
}

/// How it began.
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
    /// Who writes it.
    pub writer: Writer,
    /// The ids of the requests that it answers, a JSON array.
    pub asked: Option<String>,
    /// Somebody else reads it by now; nothing was read.
    pub taken: bool,
}

/// Who writes a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    /// Anybody: the standalone stream.
    #[default]
    Anybody,
    /// A process that lives.
    Alive,
    /// A process that is gone: what it had under way will never be answered.
    Gone,
    /// Nobody knows the stream any more.
    Unknown,
}
