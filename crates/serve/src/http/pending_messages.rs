//! Messages of calls that wait for the session's client to open its standalone stream.
//!
//! Where replies are JSON, progress and log messages of a call go out on the standalone stream. Many clients open that
//! stream only after their first calls. Constraint: messages are bounded in number, bytes and time, for each session and
//! for all together. The oldest are dropped first, and dropped messages are counted. A client that never opens the stream
//! costs no more than these bounds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

/// Messages of one session.
const MESSAGES: usize = 64;
/// Their bytes.
const BYTES: usize = 64 << 10;
/// Bytes of all sessions.
const ALL_BYTES: usize = 16 << 20;

/// The bounds and counters that all sessions share.
pub(super) struct PendingBounds {
    /// How long a message waits.
    time: Duration,
    /// Bytes that the messages of all sessions take.
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl PendingBounds {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, bytes: AtomicUsize::new(0), dropped: AtomicU64::new(0) }
    }

    /// How many messages nobody heard.
    pub(super) fn dropped_messages(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    pub(super) fn count_dropped(&self, count: usize) {
        if count > 0 {
            self.dropped.fetch_add(count as u64, Relaxed);
            tracing::debug!(count, "a client has no stream open for what its calls say: messages were dropped");
        }
    }
}

/// The pending messages of one session. Call [`PendingMessages::drop_all`] before dropping it, so that the shared byte count stays
/// right.
#[derive(Default)]
pub(super) struct PendingMessages {
    /// Each message with the time at which it expires.
    messages: VecDeque<(Instant, Bytes)>,
    bytes: usize,
}

impl PendingMessages {
    /// Keeps a message, in the place of older ones where there is no room for it.
    pub(super) fn keep_message(&mut self, message: Bytes, bounds: &PendingBounds) {
        self.drop_expired(bounds);
        let (size, mut dropped) = (message.len(), 0);
        while size <= BYTES && (self.messages.len() >= MESSAGES || self.bytes + size > BYTES) {
            self.forget_first(bounds);
            dropped += 1;
        }
        // Two sessions at the same moment may both take the last room.
        if size > BYTES || bounds.bytes.load(Relaxed) + size > ALL_BYTES {
            dropped += 1;
        } else {
            bounds.bytes.fetch_add(size, Relaxed);
            self.bytes += size;
            self.messages.push_back((Instant::now() + bounds.time, message));
        }
        bounds.count_dropped(dropped);
    }

    /// All that isn't too old, in its order.
    pub(super) fn take_fresh(&mut self, bounds: &PendingBounds) -> Vec<Bytes> {
        self.drop_expired(bounds);
        std::iter::from_fn(|| self.forget_first(bounds)).collect()
    }

    /// Drops what is too old.
    pub(super) fn drop_expired(&mut self, bounds: &PendingBounds) {
        // Most have none: they read no clock.
        if self.messages.is_empty() {
            return;
        }
        let (now, mut dropped) = (Instant::now(), 0);
        while self.messages.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_first(bounds);
            dropped += 1;
        }
        bounds.count_dropped(dropped);
    }

    /// Drops all: the session has ended.
    pub(super) fn drop_all(&mut self, bounds: &PendingBounds) {
        let dropped = std::iter::from_fn(|| self.forget_first(bounds)).count();
        bounds.count_dropped(dropped);
    }

    fn forget_first(&mut self, bounds: &PendingBounds) -> Option<Bytes> {
        let (_, message) = self.messages.pop_front()?;
        self.bytes -= message.len();
        bounds.bytes.fetch_sub(message.len(), Relaxed);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(5);

    fn text(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    #[tokio::test(start_paused = true)]
    async fn messages_wait_in_their_order_and_not_for_ever() {
        let (bounds, mut unheard) = (PendingBounds::new(TIME), PendingMessages::default());
        unheard.keep_message(text(1), &bounds);
        tokio::time::advance(TIME / 2).await;
        unheard.keep_message(text(2), &bounds);
        unheard.keep_message(text(3), &bounds);
        tokio::time::advance(TIME / 2).await;
        let taken: Vec<usize> = unheard.take_fresh(&bounds).iter().map(Bytes::len).collect();
        assert_eq!((taken, bounds.dropped_messages()), (vec![2, 3], 1));
        assert_eq!((unheard.take_fresh(&bounds).len(), bounds.bytes.load(Relaxed)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn number_and_bytes_are_bounded_and_the_oldest_go_first() {
        let (bounds, mut unheard) = (PendingBounds::new(TIME), PendingMessages::default());
        for length in 1..=MESSAGES + 2 {
            unheard.keep_message(text(length), &bounds);
        }
        assert_eq!((unheard.messages.len(), unheard.messages[0].1.len(), bounds.dropped_messages()), (MESSAGES, 3, 2));
        unheard.keep_message(text(BYTES), &bounds);
        assert_eq!((unheard.messages.len(), unheard.bytes, bounds.dropped_messages()), (1, BYTES, 2 + MESSAGES as u64));
        // One that never fits makes room for nothing.
        unheard.keep_message(text(BYTES + 1), &bounds);
        assert_eq!((unheard.messages.len(), bounds.dropped_messages()), (1, 3 + MESSAGES as u64));
        unheard.drop_all(&bounds);
        assert_eq!((bounds.bytes.load(Relaxed), bounds.dropped_messages()), (0, 4 + MESSAGES as u64));
    }

    #[tokio::test(start_paused = true)]
    async fn all_sessions_together_are_bounded_and_time_gives_it_back() {
        let bounds = PendingBounds::new(TIME);
        let mut sessions: Vec<PendingMessages> = (0..ALL_BYTES / BYTES).map(|_| PendingMessages::default()).collect();
        sessions.iter_mut().for_each(|unheard| unheard.keep_message(text(BYTES), &bounds));
        let mut other = PendingMessages::default();
        other.keep_message(text(1), &bounds);
        assert_eq!((other.messages.len(), bounds.dropped_messages()), (0, 1));
        tokio::time::advance(TIME).await;
        sessions.iter_mut().for_each(|unheard| unheard.drop_expired(&bounds));
        assert_eq!(bounds.bytes.load(Relaxed), 0);
        other.keep_message(text(1), &bounds);
        assert_eq!(other.take_fresh(&bounds).len(), 1);
    }
}
