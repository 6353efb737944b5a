//! The events of one stream: written by handlers, read by at most one connection at a time.
//!
//! A resumable log has a number, gives each event an id and keeps what it can, so that a client that lost its connection
//! takes up where it was. Any other log forgets an event once it is sent.

mod buffer;
mod event_id;
mod reader;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use mcpace_wire::sse::{Event, encode_message};

use super::held_results::{Finished, Permit};
use crate::outlet::{Gone, Outlet};
pub(super) use buffer::LogBounds;
pub(super) use event_id::position_after;
pub(super) use reader::LogReader;

use buffer::EventBuffer;
use event_id::event_id;

/// Copy of a reply's stream that other processes can read.
pub(super) trait StreamMirror: Send + Sync {
    /// Announces which requests the stream answers. Only the first time counts.
    fn begin_stream(&self);

    /// Copies an event.
    fn mirror_event(&self, position: u64, message: Bytes);

    /// Ends the copy, if it has begun.
    fn end_stream(&self);
}

/// The events of one stream, shared between the handlers that write it and the connection that reads it.
pub(super) struct Log {
    /// Its number in its session, where it is resumable.
    number: Option<u64>,
    bounds: LogBounds,
    /// Copy of the stream for other processes.
    mirror: Option<Box<dyn StreamMirror>>,
    state: Mutex<LogState>,
}

#[derive(Default)]
struct LogState {
    held: EventBuffer,
    /// A handler has said something, or let the connection go; replies and priming don't count.
    spoken: bool,
    /// Let go before anybody read: the first reader gets what is there, and comes back for the rest.
    released: bool,
    ended: bool,
    /// Not resumable, and its reader went away.
    abandoned: bool,
    /// Which reader may read: the latest.
    reader: u32,
    has_reader: bool,
    waker: Option<Waker>,
    /// The waker of the writer that waits for room.
    writer: Option<Waker>,
}

impl LogState {
    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    fn wake_readers(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Log {
    pub(super) fn new(number: Option<u64>, bounds: LogBounds) -> Arc<Self> {
        Arc::new(Self { number, bounds, mirror: None, state: Mutex::default() })
    }

    /// A resumable one, of which other processes learn.
    pub(super) fn new_shared(number: u64, bounds: LogBounds, mirror: impl StreamMirror + 'static) -> Arc<Self> {
        Arc::new(Self { number: Some(number), bounds, mirror: Some(Box::new(mirror)), state: Mutex::default() })
    }

    /// The stream begins, so that its client may come back: to another process, too.
    pub(super) fn announce_stream(&self) {
        if let Some(mirror) = &self.mirror {
            mirror.begin_stream();
        }
    }

    /// The number that its event ids begin with.
    pub(super) fn number(&self) -> Option<u64> {
        self.number
    }

    /// The first event of a resumable stream: an id to come back with, and how long to wait before that (2025-11-25,
    /// basic/transports, "Sending Messages to the Server").
    pub(super) fn add_prime(&self, retry: Duration) {
        let mut state = self.lock_state();
        let event = Event {
            id: self.event_id(state.held.next_position()),
            retry: Some(u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
            ..Event::default()
        };
        let mut bytes = Vec::with_capacity(48);
        event.encode(&mut bytes);
        self.add_event(&mut state, bytes.into());
    }

    /// An event of its own kind, such as `endpoint` in 2024-11-05.
    pub(super) fn push_event(&self, event: &Event) {
        let mut bytes = Vec::with_capacity(64);
        event.encode(&mut bytes);
        self.add_event(&mut self.lock_state(), bytes.into());
    }

    /// Adds a reply, which is never refused: who asked for it waits for it.
    pub(super) fn push_reply(&self, message: &[u8], permit: Permit) {
        let mut state = self.lock_state();
        if !state.abandoned {
            if let Some(mirror) = &self.mirror {
                mirror.mirror_event(state.held.next_position(), Bytes::copy_from_slice(message));
            }
            let encoded = self.encode_event(&state, message);
            self.add_event(&mut state, permit.attach_to(encoded));
        }
    }

    /// Adds the reply of a call that ended. One that was taken back is not answered: its stream just ends.
    pub(super) fn push_finished(&self, finished: Finished) {
        let Finished { reply, permit } = finished;
        if !reply.cancelled {
            self.push_reply(&reply.message, permit);
        }
    }

    /// No more events.
    pub(super) fn end_stream(&self) {
        let mut state = self.lock_state();
        if let Some(mirror) = self.mirror.as_ref().filter(|_| !state.ended) {
            mirror.end_stream();
        }
        state.ended = true;
        state.wake_readers();
        state.wake_writer();
    }

    /// Ends the connection that reads, not the stream: the client comes back with the last id it got. Without an id to
    /// come back with it would be lost, so nothing happens then.
    pub(super) fn release_reader(&self) {
        let mut state = self.lock_state();
        if self.number.is_none() || state.held.next_position() == 0 {
            return;
        }
        if state.has_reader {
            state.reader = state.reader.wrapping_add(1);
            state.has_reader = false;
        } else if state.reader == 0 {
            state.released = true;
            state.spoken = true;
        }
        state.wake_readers();
    }

    pub(super) fn has_reader(&self) -> bool {
        self.lock_state().has_reader
    }

    pub(super) fn has_spoken(&self) -> bool {
        self.lock_state().spoken
    }

    /// Number of bytes that the log buffers.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.lock_state().held.buffered_bytes()
    }

    /// Adds a message that has an id already, or gets none. False where nobody will read it.
    pub(super) fn push_as(&self, id: Option<&str>, message: &[u8]) -> bool {
        let mut state = self.lock_state();
        if state.ended || state.abandoned {
            return false;
        }
        let mut bytes = Vec::with_capacity(message.len() + 64);
        encode_message(message, id, &mut bytes);
        self.add_event(&mut state, bytes.into());
        true
    }

    /// Ready once there is room for more, or nobody will read it; of a log that forgets what it sent.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock_state();
        if state.ended || state.abandoned || state.held.has_room(self.bounds) {
            return Poll::Ready(());
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready once a handler has said something.
    pub(super) fn poll_spoken(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock_state();
        if state.spoken {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// All events, for a reply that is sent whole. In a resumable log they count as sent and stay.
    pub(super) fn take_all(&self) -> Vec<Bytes> {
        let mut state = self.lock_state();
        std::iter::from_fn(|| self.take_unread(&mut state)).collect()
    }

    /// Begins to read, at `from` or at the first event not sent yet. An earlier reader gets no more events.
    pub(super) fn open_reader(self: &Arc<Self>, from: Option<u64>) -> LogReader {
        let mut state = self.lock_state();
        state.reader = state.reader.wrapping_add(1);
        state.has_reader = true;
        if let Some(from) = from {
            state.held.go_to(from);
            state.released = false;
        }
        state.wake_readers();
        LogReader::new(Arc::clone(self), state.reader)
    }

    fn event_id(&self, position: u64) -> Option<String> {
        self.number.map(|number| event_id(number, position))
    }

    fn encode_event(&self, state: &LogState, message: &[u8]) -> Bytes {
        let mut bytes = Vec::with_capacity(message.len() + 48);
        encode_message(message, self.event_id(state.held.next_position()).as_deref(), &mut bytes);
        bytes.into()
    }

    fn add_event(&self, state: &mut LogState, event: Bytes) {
        state.held.add_event(event);
        state.wake_readers();
    }

    /// The next events that are not read yet. A log that isn't resumable holds them no longer.
    fn take_unread(&self, state: &mut LogState) -> Option<Bytes> {
        let unread = state.held.read_on()?;
        state.wake_writer();
        if self.number.is_none() {
            state.held.forget_read();
        }
        Some(unread)
    }

    fn lock_state(&self) -> MutexGuard<'_, LogState> {
        // Nothing under the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlet for Log {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        let mut state = self.lock_state();
        if state.ended || state.abandoned || !state.held.has_room(self.bounds) {
            return Err(Gone);
        }
        state.spoken = true;
        let encoded = self.encode_event(&state, &message);
        if let Some(mirror) = &self.mirror {
            mirror.mirror_event(state.held.next_position(), message);
        }
        self.add_event(&mut state, encoded);
        Ok(())
    }

    fn release(&self) {
        self.release_reader();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const BOUNDS: LogBounds = LogBounds { events: 4, bytes: 1 << 20 };

    fn text(polled: Poll<Option<Bytes>>) -> Option<String> {
        match polled {
            Poll::Ready(Some(bytes)) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            _ => None,
        }
    }

    pub(super) fn read(reader: &mut LogReader) -> Option<String> {
        text(reader.poll(&mut Context::from_waker(Waker::noop())))
    }

    pub(super) fn send(log: &Log, message: &'static str) -> Result<(), Gone> {
        log.send(Bytes::from_static(message.as_bytes()))
    }

    #[test]
    fn a_client_that_does_not_read_is_refused_more_but_gets_its_reply() {
        for number in [None, Some(1)] {
            let log = Log::new(number, BOUNDS);
            let mut reader = log.open_reader(None);
            for _ in 0..BOUNDS.events {
                send(&log, "m").unwrap();
            }
            assert_eq!(send(&log, "m"), Err(Gone));
            log.push_reply(b"reply", Permit::default());
            log.end_stream();
            assert_eq!(read(&mut reader).unwrap().matches("data: ").count(), BOUNDS.events + 1);
            assert!(reader.is_at_end());
        }
    }

    #[test]
    fn a_log_holds_so_many_bytes_that_are_not_read() {
        const MESSAGE: &str = "a message of some length";
        for number in [None, Some(1)] {
            let log = Log::new(number, LogBounds { events: 100, bytes: 100 });
            let mut reader = log.open_reader(None);
            let taken = (0..100).take_while(|_| send(&log, MESSAGE).is_ok()).count();
            assert!((2..=4).contains(&taken), "{taken}");
            // The last message was accepted while the log was below its bound, so the log exceeds it by one message at most.
            assert!(log.buffered_bytes() < 100 + 2 * MESSAGE.len() + 24, "{}", log.buffered_bytes());
            assert!(read(&mut reader).is_some());
            assert_eq!(send(&log, MESSAGE), Ok(()));
        }
    }

    #[test]
    fn a_resumable_log_forgets_the_oldest_that_was_sent() {
        let log = Log::new(Some(1), BOUNDS);
        let mut reader = log.open_reader(None);
        for _ in 0..3 * BOUNDS.events {
            send(&log, "m").unwrap();
            assert!(read(&mut reader).is_some());
        }
        let all = read(&mut log.open_reader(Some(0))).unwrap();
        assert_eq!(all.matches("data: ").count(), BOUNDS.events);
        assert!(all.ends_with("id: 1-b\ndata: m\n\n"), "{all}");
    }
}
