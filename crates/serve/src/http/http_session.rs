//! A session as the transport has it.
//!
//! Constraint: small, since there may be very many. It reads no clock: times are milliseconds since its table was made.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::held_results::{ReplyAccount, SessionAccount};
use super::session_key::SessionKey;
use super::session_streams::SessionStreams;
use crate::outlet::{Gone, Outlet};
use crate::session::Session;

/// One session: its key, its protocol state and its streams.
pub(super) struct HttpSession {
    pub(super) key: SessionKey,
    pub(super) session: Arc<Session>,
    pub(super) streams: SessionStreams,
    /// When it was last used; with [`UNUSED`] when it began.
    seen: AtomicU64,
    /// When it ends however much it is used.
    until: u64,
    /// Generation of the store in which the session was last known to live; 0 before the session is in a store.
    pub(super) verified: AtomicU64,
    /// Number of the session's answers, and of its cancellations, forwarded to other processes in the current second.
    answers: Passed,
    cancellations: Passed,
    /// Made for the first reply that counts.
    unsent: OnceLock<Arc<ReplyAccount>>,
}

/// Counter of forwarded messages: the second in the upper half, the count within that second in the lower.
#[derive(Default)]
struct Passed(AtomicU64);

/// A client's message that arrived at one process and is for another.
#[derive(Clone, Copy)]
pub(super) enum Passing {
    /// An answer of this many bytes.
    Answer(usize),
    Cancellation,
}

/// Nobody has used it since it began.
const UNUSED: u64 = 1 << 63;
/// How much of one client's a second is passed on to other processes, of answers and of cancellations each.
const PASSED_ON: u64 = 100;
/// An answer counts once more for each part of this many bytes.
const ANSWERS_PART: usize = 64 << 10;

impl HttpSession {
    pub(super) fn new(key: SessionKey, session: Arc<Session>, streams: SessionStreams, now: u64, until: u64) -> Self {
        session.set_id(key.to_string());
        Self {
            key,
            session,
            streams,
            seen: AtomicU64::new(now | UNUSED),
            until,
            verified: AtomicU64::new(0),
            answers: Passed::default(),
            cancellations: Passed::default(),
            unsent: OnceLock::new(),
        }
    }

    /// Whether so much waits that new requests are refused.
    pub(super) fn is_unsent_full(&self) -> bool {
        self.unsent.get().is_some_and(|account| account.is_closed())
    }

    /// Counts something as passed on to other processes in this second. False where that would be too much: it is to stay here then.
    pub(super) fn count_passing(&self, what: Passing, second: u64) -> bool {
        match what {
            // Cancellations are counted apart, so that many of them don't keep a client from answering.
            Passing::Answer(bytes) => self.answers.count_messages(1 + (bytes / ANSWERS_PART) as u64, second),
            Passing::Cancellation => self.cancellations.count_messages(1, second),
        }
    }

    /// It is used just now.
    pub(super) fn touch_at(&self, now: u64) {
        self.seen.store(now, Relaxed);
    }

    pub(super) fn is_unused(&self) -> bool {
        self.seen.load(Relaxed) & UNUSED != 0
    }

    pub(super) fn seen_at(&self) -> u64 {
        self.seen.load(Relaxed) & !UNUSED
    }

    /// Whether its whole life is over.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.until
    }

    /// Remaining lifetime, where the lifetime is limited.
    pub(super) fn remaining_lifetime(&self, now: u64) -> Option<Duration> {
        (self.until != u64::MAX).then(|| Duration::from_millis(self.until.saturating_sub(now)))
    }

    pub(super) fn owner(&self) -> Option<&Arc<str>> {
        self.session.principal().map(|principal| &principal.subject)
    }

    pub(super) fn end_session(&self) {
        self.session.cancel_all();
        self.streams.end_streams();
    }
}

impl Passed {
    /// Counts so much in this second. False where there is no room for it.
    fn count_messages(&self, much: u64, second: u64) -> bool {
        let (second, before) = (second << 32, self.0.load(Relaxed));
        let count = if before >> 32 << 32 == second { before & u64::from(u32::MAX) } else { 0 };
        if count + much > PASSED_ON {
            return false;
        }
        // Two at the same moment may count as one.
        self.0.store(second | (count + much), Relaxed);
        true
    }
}

impl SessionAccount for HttpSession {
    fn unsent_replies(&self) -> &Arc<ReplyAccount> {
        self.unsent.get_or_init(|| ReplyAccount::new(self.streams.bounds.session_reply_bytes))
    }
}

/// The standalone streams of a session as an outlet. Does not keep the session alive.
pub(super) struct Standalone(pub(super) Weak<HttpSession>);

impl Outlet for Standalone {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        self.0.upgrade().ok_or(Gone)?.streams.send_standalone(message)
    }

    fn tell(&self, message: Bytes) -> Result<(), Gone> {
        self.0.upgrade().ok_or(Gone)?.streams.tell_client(message)
    }

    fn opens(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let read = self.0.upgrade()?.streams.read_notice();
        // A reader that comes from here on is noticed, whether the future is polled or not.
        Some(Box::pin(read.notified_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{ANSWERS_PART, PASSED_ON, Passed};

    #[test]
    fn so_much_is_passed_on_in_a_second_and_as_much_again_in_the_next() {
        let passed = Passed::default();
        assert!((0..PASSED_ON).all(|_| passed.count_messages(1, 7)));
        assert!(!passed.count_messages(1, 7) && passed.count_messages(PASSED_ON, 8));
        assert!(!passed.count_messages(1, 8) && !passed.count_messages(PASSED_ON + 1, 9));
        let longest = 1 + (1 << 20) / ANSWERS_PART as u64;
        assert!(passed.count_messages(longest, 10), "the longest answer can be passed on");
    }
}
