//! Reading a log: one reader at a time, the latest, which gets what is there at once.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::Log;

/// The right to read a log, until somebody else reads it.
pub(in crate::http) struct LogReader {
    log: Arc<Log>,
    number: u32,
}

impl LogReader {
    /// The reader that the log knows by `number`.
    pub(super) fn new(log: Arc<Log>, number: u32) -> Self {
        Self { log, number }
    }

    pub(in crate::http) fn log(&self) -> &Log {
        &self.log
    }

    /// All events that are there, in one piece; `None` when there will be no more for this reader.
    pub(in crate::http) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.log.lock_state();
        if state.reader != self.number {
            return Poll::Ready(None);
        }
        if let Some(events) = self.log.take_unread(&mut state) {
            return Poll::Ready(Some(events));
        }
        if state.ended || state.released {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether [`LogReader::poll`] will give nothing more.
    pub(in crate::http) fn is_at_end(&self) -> bool {
        let state = self.log.lock_state();
        state.reader != self.number || ((state.ended || state.released) && state.held.is_read())
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        let mut state = self.log.lock_state();
        if state.reader != self.number {
            return;
        }
        state.has_reader = false;
        state.waker = None;
        if self.log.number.is_none() {
            state.abandoned = true;
            state.held.forget_all();
        }
        state.wake_writer();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::position_after;
    use super::super::tests::{BOUNDS, read, send};
    use super::*;
    use crate::outlet::Gone;

    #[test]
    fn a_lost_stream_is_taken_up_after_the_event_seen() {
        let log = Log::new(Some(10), BOUNDS);
        let mut reader = log.open_reader(None);
        send(&log, "1").unwrap();
        send(&log, "2").unwrap();
        let both = read(&mut reader).unwrap();
        assert_eq!(both, "event: message\nid: a-0\ndata: 1\n\nevent: message\nid: a-1\ndata: 2\n\n");
        drop(reader);
        send(&log, "3").unwrap();
        assert_eq!(position_after("a-0"), Some((10, 1)));
        let again = read(&mut log.open_reader(Some(1))).unwrap();
        assert_eq!(again, "event: message\nid: a-1\ndata: 2\n\nevent: message\nid: a-2\ndata: 3\n\n");
    }

    #[test]
    fn the_latest_reader_reads_alone() {
        let log = Log::new(Some(1), BOUNDS);
        let mut old = log.open_reader(None);
        let mut new = log.open_reader(None);
        send(&log, "1").unwrap();
        assert!(read(&mut old).is_none());
        assert!(old.is_at_end());
        assert!(read(&mut new).is_some());
        drop(old);
        assert!(log.has_reader());
    }

    #[test]
    fn nobody_speaks_to_a_client_that_left_a_plain_stream() {
        let log = Log::new(None, BOUNDS);
        drop(log.open_reader(None));
        assert_eq!(send(&log, "m"), Err(Gone));
    }

    #[test]
    fn a_stream_released_before_it_is_read_gives_what_there_is_and_goes_on_later() {
        let log = Log::new(Some(1), BOUNDS);
        log.add_prime(Duration::from_secs(1));
        log.release_reader();
        assert!(log.has_spoken(), "a stream has to begin for the client to learn the id");
        let mut reader = log.open_reader(None);
        assert!(read(&mut reader).is_some());
        assert!(reader.is_at_end());
        send(&log, "m").unwrap();
        let mut again = log.open_reader(Some(1));
        assert!(read(&mut again).is_some());
        assert!(!again.is_at_end());
    }

    #[test]
    fn a_client_without_an_id_to_come_back_with_is_not_let_go() {
        let log = Log::new(Some(1), BOUNDS);
        let reader = log.open_reader(None);
        log.release_reader();
        assert!(!reader.is_at_end());
    }

    #[test]
    fn a_released_reader_ends_and_the_stream_goes_on() {
        let log = Log::new(Some(1), BOUNDS);
        log.add_prime(Duration::from_secs(1));
        let reader = log.open_reader(None);
        log.release_reader();
        assert!(reader.is_at_end());
        send(&log, "m").unwrap();
        assert!(read(&mut log.open_reader(Some(0))).is_some());
    }
}
