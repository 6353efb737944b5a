//! Resumption of a stream of events that ended before the answer (2025-03-26 to 2025-11-25, "Resumability and Redelivery").

use std::time::Duration;

/// Number of times in a row that a stream is resumed without any event.
const MOST_ATTEMPTS: usize = 5;
/// Pause before a stream is resumed, if the server named none.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// Shortest and longest pause that a server can impose.
const SHORTEST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// State of one reply's resumption.
#[derive(Debug, Default)]
pub struct Resumption {
    attempts: usize,
    position: Option<Position>,
}

/// Place and time at which a stream is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Value for the `Last-Event-ID` header.
    pub last_event_id: String,
    /// Pause before the request.
    pub delay: Duration,
}

impl Resumption {
    /// Notes an event: the stream makes progress, so it may be resumed as often as before.
    pub fn handle_event(&mut self) {
        self.attempts = 0;
    }

    /// Notes the end of a stream with its last event id and its `retry` field in milliseconds. A stream without an event
    /// id leaves the position of the stream before it. Returns where to resume; `None` if it can't be, or was tried often
    /// enough.
    pub fn handle_end(&mut self, last_event_id: Option<&str>, retry_ms: Option<u64>) -> Option<&Position> {
        if let Some(id) = last_event_id.filter(|id| !id.is_empty()) {
            self.position = Some(Position { last_event_id: id.to_owned(), delay: reconnect_pause(retry_ms) });
        }
        let position = self.position.as_ref().filter(|_| self.attempts < MOST_ATTEMPTS)?;
        self.attempts += 1;
        Some(position)
    }
}

/// Pause before a stream is opened again, from its `retry` field in milliseconds.
#[must_use]
pub fn reconnect_pause(retry_ms: Option<u64>) -> Duration {
    retry_ms.map_or(DEFAULT_DELAY, Duration::from_millis).clamp(SHORTEST_DELAY, LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_event_ids_is_not_resumed() {
        let mut resumption = Resumption::default();
        assert_eq!(resumption.handle_end(None, Some(1)), None);
        assert_eq!(resumption.handle_end(Some(""), None), None);
    }

    #[test]
    fn resumption_goes_on_as_long_as_events_come() {
        let mut resumption = Resumption::default();
        resumption.handle_event();
        for _ in 0..MOST_ATTEMPTS {
            let position = resumption.handle_end(Some("a"), None).unwrap();
            assert_eq!((position.last_event_id.as_str(), position.delay), ("a", DEFAULT_DELAY));
        }
        assert_eq!(resumption.handle_end(None, None), None);
        resumption.handle_event();
        assert_eq!(resumption.handle_end(Some("b"), None).unwrap().last_event_id, "b");
    }

    #[test]
    fn a_server_can_neither_hold_the_client_up_nor_make_it_hurry() {
        let mut resumption = Resumption::default();
        assert_eq!(resumption.handle_end(Some("a"), Some(0)).unwrap().delay, SHORTEST_DELAY);
        assert_eq!(resumption.handle_end(Some("a"), Some(u64::MAX)).unwrap().delay, LONGEST_DELAY);
        // A stream that was resumed keeps the position of the one before it.
        assert_eq!(resumption.handle_end(None, Some(20)).unwrap().delay, LONGEST_DELAY);
    }
}
