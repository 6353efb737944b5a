//! A virtual user: its connection, its session, and the request that it is waiting for.

use std::time::Instant;

use crate::events::Scan;
use crate::link::TargetLink;
use crate::program::RequestPurpose;
use crate::reader::ReplyReader;

/// A virtual user. In the open model, a slot for a call.
#[derive(Debug)]
pub(crate) struct User {
    /// Its number among all threads' users.
    pub(crate) number: u64,
    /// Goes up with each connection, so that an event of an old one is known.
    pub(crate) generation: u32,
    pub(crate) state: UserActivity,
    pub(crate) link: Option<TargetLink>,
    /// Whether the connection has had a request.
    pub(crate) is_used: bool,
    /// How many of the target's addresses were tried in vain.
    pub(crate) tried: usize,
    /// The session's own header lines, once `initialize` has been answered.
    pub(crate) session: Option<Box<[u8]>>,
    /// Whether the server gave the session an id.
    pub(crate) has_session_id: bool,
    /// Whether the server was told that the session is ready.
    pub(crate) has_greeted: bool,
    /// Whether it hasn't made a call yet.
    pub(crate) is_fresh: bool,
    /// Which operation is next, where they are called in sequence.
    pub(crate) turn: u16,
    /// Whether it is to end.
    pub(crate) is_leaving: bool,
    /// The call that it is to make.
    pub(crate) job: Option<Job>,
    pub(crate) request: SentRequest,
    pub(crate) reader: ReplyReader,
    pub(crate) scan: Scan,
    /// Over stdio, a line in progress. Over HTTP, nothing.
    pub(crate) line: Vec<u8>,
    /// Bytes of a request that the socket has not accepted yet.
    pub(crate) unsent: Vec<u8>,
    /// How often in a row its connection failed.
    pub(crate) failures: u32,
    /// When its pause ends.
    pub(crate) pause_ns: u64,
}

/// Current activity of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserActivity {
    /// Nothing: it isn't there (any more).
    Parked,
    /// Nothing: it is free.
    Idle,
    /// It thinks, or doesn't try again at once.
    Pausing,
    Connecting,
    /// A request was sent.
    Awaiting,
    /// It has its result, but the reply's stream is not over.
    Draining,
}

/// A call that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) operation: u16,
    /// When it was due. In the closed model, of a call that needs a session first: when it was sent.
    pub(crate) due_ns: u64,
    pub(crate) begun_ns: u64,
}

/// The request that was sent last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRequest {
    pub(crate) what: RequestPurpose,
    pub(crate) id: u64,
    pub(crate) sent_ns: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl User {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            generation: 0,
            state: UserActivity::Parked,
            link: None,
            is_used: false,
            tried: 0,
            session: None,
            has_session_id: false,
            has_greeted: false,
            is_fresh: true,
            turn: 0,
            is_leaving: false,
            job: None,
            request: SentRequest { what: RequestPurpose::Delete, id: 0, sent_ns: 0, sent_bytes: 0, received_bytes: 0 },
            reader: ReplyReader::default(),
            scan: Scan::default(),
            line: Vec::new(),
            unsent: Vec::new(),
            failures: 0,
            pause_ns: 0,
        }
    }

    /// The number that its connection's events have.
    pub(crate) fn event_number(index: u32, generation: u32) -> u64 {
        // The highest bit is the standard input's.
        u64::from(index) | u64::from(generation & 0x7FFF_FFFF) << 32
    }

    pub(crate) fn forget_session(&mut self) {
        self.session = None;
        self.has_session_id = false;
        self.has_greeted = false;
    }

    /// Drops the connection and all that was on its way over it. A process's session goes with it.
    pub(crate) fn drop_connection(&mut self) -> Option<TargetLink> {
        self.generation = self.generation.wrapping_add(1);
        self.is_used = false;
        self.reader.reset_reply();
        self.scan = Scan::default();
        self.line = Vec::new();
        self.unsent = Vec::new();
        let link = self.link.take();
        if matches!(link, Some(TargetLink::Process(_))) {
            self.forget_session();
        }
        link
    }
}

/// The time since the run's start, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock(pub(crate) Instant);

impl RunClock {
    pub(crate) fn now(self) -> u64 {
        // 584 years fit.
        self.0.elapsed().as_nanos() as u64
    }
}
