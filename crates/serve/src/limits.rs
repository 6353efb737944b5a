//! Limits on the memory and work that one client can cause.

use std::time::Duration;

/// Bounds on what dispatch keeps on a client's behalf. Transports have their own, on bytes, connections and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests under way in a session at a time.
    pub in_flight: usize,
    /// Requests of ours to the client that wait in a session at a time.
    pub asked: usize,
    /// How long the client may take to answer one.
    pub answer_time: Duration,
    /// How long a request of ours is held for the stream that takes it to the client, where that is still to be opened.
    pub stream_time: Duration,
    /// Streams of `subscriptions/listen` at a time, in the whole server.
    pub subscriptions: usize,
    /// Resources that one session or subscription may watch.
    pub watched_resources: usize,
    /// The longest `requestState` taken, in bytes.
    pub request_state: usize,
    /// How long a `requestState` is good for.
    pub request_state_time: Duration,
    /// Rounds of one multi-round-trip request.
    pub rounds: u32,
    /// Tasks kept at a time, in the whole server. Once half of them are taken, an authenticated caller may begin no more
    /// than a tenth of them.
    pub tasks: usize,
    /// How long a task is kept, where its tool sets no other time.
    pub task_time: Duration,
    /// Bytes of results that tasks keep, in the whole server. A result that finds no room is an error of its task.
    pub task_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 1_000,
            asked: 64,
            answer_time: Duration::from_secs(300),
            stream_time: Duration::from_secs(5),
            subscriptions: 10_000,
            watched_resources: 1_000,
            request_state: 64 * 1024,
            request_state_time: Duration::from_secs(900),
            rounds: 32,
            tasks: 10_000,
            task_time: Duration::from_secs(900),
            task_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Whether a caller who has `own` of the `taken` places may take another of `limit`: one caller alone must not keep all
/// others out. `own` gives `None` for a caller without a token, who has no share.
pub(crate) fn has_room(limit: usize, taken: usize, own: impl FnOnce() -> Option<usize>) -> bool {
    taken < limit && (taken < limit / 2 || own().is_none_or(|own| own < (limit / 10).max(1)))
}
