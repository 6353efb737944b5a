//! What one client may make the server keep.

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
    /// Tasks kept at a time, in the whole server.
    pub tasks: usize,
    /// How long a task is kept.
    pub task_time: Duration,
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
        }
    }
}
