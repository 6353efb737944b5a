//! The events of one stream: written by handlers, read by at most one connection at a time.
//!
//! A resumable log has a number, gives each event an id and keeps what it can, so that a client that lost its connection
//! takes up where it was. Any other log forgets an event once it is sent.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use mcpace_wire::sse::{Event, encode_message};

use super::sharing::Tee;
use crate::exchange::{Gone, Outlet, Reply};

/// How much a log holds that its client has not read yet; a resumable one, how much in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogBounds {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// See the module.
pub(super) struct Log {
    /// Its number in its session, where it is resumable.
    number: Option<u64>,
    bounds: LogBounds,
    /// Where others read it too.
    tee: Option<Box<Tee>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// As they go over the wire.
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The position of the first event held; positions count up from 0.
    first: u64,
    /// The position that the reader gets next.
    read: u64,
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
    /// Of whoever waits for room.
    writer: Option<Waker>,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Log {
    pub(super) fn new(number: Option<u64>, bounds: LogBounds) -> Arc<Self> {
        Arc::new(Self { number, bounds, tee: None, state: Mutex::default() })
    }

    /// A resumable one, of which other processes learn.
    pub(super) fn shared(number: u64, bounds: LogBounds, tee: Tee) -> Arc<Self> {
        Arc::new(Self { number: Some(number), bounds, tee: Some(Box::new(tee)), state: Mutex::default() })
    }

    /// The stream begins, so that its client may come back: to another process, too.
    pub(super) fn announce(&self) {
        if let Some(tee) = &self.tee {
            tee.begin();
        }
    }

    /// The number that its event ids begin with.
    pub(super) fn number(&self) -> Option<u64> {
        self.number
    }

    /// The first event of a resumable stream: an id to come back with, and how long to wait before that (2025-11-25,
    /// basic/transports, "Sending Messages to the Server").
    pub(super) fn prime(&self, retry: Duration) {
        let mut state = self.state();
        let event = Event {
            id: self.id(state.next()),
            retry: Some(u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
            ..Event::default()
        };
        let mut bytes = Vec::with_capacity(48);
        event.encode(&mut bytes);
        self.add(&mut state, bytes.into());
    }

    /// An event of its own kind, such as `endpoint` in 2024-11-05.
    pub(super) fn push_event(&self, event: &Event) {
        let mut bytes = Vec::with_capacity(64);
        event.encode(&mut bytes);
        self.add(&mut self.state(), bytes.into());
    }

    /// Adds a reply, which is never refused: who asked for it waits for it.
    pub(super) fn push_reply(&self, message: &[u8]) {
        let mut state = self.state();
        if !state.abandoned {
            if let Some(tee) = &self.tee {
                tee.event(state.next(), Bytes::copy_from_slice(message));
            }
            let encoded = self.encode(&state, message);
            self.add(&mut state, encoded);
        }
    }

    /// Adds the reply of a call that ended. One that was taken back is not answered: its stream just ends.
    pub(super) fn push(&self, reply: &Reply) {
        if !reply.cancelled {
            self.push_reply(&reply.message);
        }
    }

    /// No more events.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if let Some(tee) = self.tee.as_ref().filter(|_| !state.ended) {
            tee.end();
        }
        state.ended = true;
        state.wake();
        state.wake_writer();
    }

    /// Ends the connection that reads, not the stream: the client comes back with the last id it got. Without an id to
    /// come back with it would be lost, so nothing happens then.
    pub(super) fn release_reader(&self) {
        let mut state = self.state();
        if self.number.is_none() || state.next() == 0 {
            return;
        }
        if state.has_reader {
            state.reader = state.reader.wrapping_add(1);
            state.has_reader = false;
        } else if state.reader == 0 {
            state.released = true;
            state.spoken = true;
        }
        state.wake();
    }

    pub(super) fn has_reader(&self) -> bool {
        self.state().has_reader
    }

    pub(super) fn has_spoken(&self) -> bool {
        self.state().spoken
    }

    /// What it holds.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Adds a message that has an id already, or gets none. False where nobody will read it.
    pub(super) fn push_as(&self, id: Option<&str>, message: &[u8]) -> bool {
        let mut state = self.state();
        if state.ended || state.abandoned {
            return false;
        }
        let mut bytes = Vec::with_capacity(message.len() + 64);
        encode_message(message, id, &mut bytes);
        self.add(&mut state, bytes.into());
        true
    }

    /// Ready once there is room for more, or nobody will read it; of a log that forgets what it sent.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.ended || state.abandoned || self.has_room(&mut state) {
            return Poll::Ready(());
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready once a handler has said something.
    pub(super) fn poll_spoken(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.spoken {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// All events in one piece, for a reply that is sent whole. In a resumable log they count as sent and stay.
    pub(super) fn take_all(&self) -> Bytes {
        let mut state = self.state();
        let whole = self.unread(&mut state);
        whole.unwrap_or_default()
    }

    /// Begins to read, at `from` or at the first event not sent yet. Whoever read before gets no more.
    pub(super) fn reader(self: &Arc<Self>, from: Option<u64>) -> Reader {
        let mut state = self.state();
        state.reader = state.reader.wrapping_add(1);
        state.has_reader = true;
        if let Some(from) = from {
            // Events that are no longer held can't be sent again; those after them can.
            state.read = from.clamp(state.first, state.next());
            state.released = false;
        }
        state.wake();
        Reader { log: Arc::clone(self), number: state.reader }
    }

    fn id(&self, position: u64) -> Option<String> {
        self.number.map(|number| {
            let mut id = String::with_capacity(16);
            // Writing to a string can't fail.
            let _ = write!(id, "{number:x}-{position:x}");
            id
        })
    }

    fn encode(&self, state: &State, message: &[u8]) -> Bytes {
        let mut bytes = Vec::with_capacity(message.len() + 48);
        encode_message(message, self.id(state.next()).as_deref(), &mut bytes);
        bytes.into()
    }

    fn add(&self, state: &mut State, event: Bytes) {
        state.bytes += event.len();
        state.events.push_back(event);
        state.wake();
    }

    /// Makes room by forgetting what has been sent. False where all of it has still to be.
    fn has_room(&self, state: &mut State) -> bool {
        while state.events.len() >= self.bounds.events || state.bytes >= self.bounds.bytes {
            if state.first >= state.read {
                return false;
            }
            forget_first(state);
        }
        true
    }

    fn unread(&self, state: &mut State) -> Option<Bytes> {
        let begin = usize::try_from(state.read - state.first).unwrap_or(usize::MAX);
        let mut unread = state.events.range(begin.min(state.events.len())..);
        let first = unread.next()?.clone();
        let whole = if unread.len() == 0 {
            first
        } else {
            let mut whole = first.to_vec();
            unread.for_each(|event| whole.extend_from_slice(event));
            whole.into()
        };
        state.read = state.next();
        state.wake_writer();
        if self.number.is_none() {
            state.first = state.read;
            state.events.clear();
            state.bytes = 0;
        }
        Some(whole)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_first(state: &mut State) {
    if let Some(event) = state.events.pop_front() {
        state.bytes -= event.len();
        state.first += 1;
    }
}

impl Outlet for Log {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        let mut state = self.state();
        if state.ended || state.abandoned || !self.has_room(&mut state) {
            return Err(Gone);
        }
        state.spoken = true;
        let encoded = self.encode(&state, &message);
        if let Some(tee) = &self.tee {
            tee.event(state.next(), message);
        }
        self.add(&mut state, encoded);
        Ok(())
    }

    fn release(&self) {
        self.release_reader();
    }
}

/// Which event comes next, out of a `Last-Event-ID`: the stream's number and the position after the one seen.
pub(super) fn position_after(event_id: &str) -> Option<(u64, u64)> {
    let (number, position) = event_id.split_once('-')?;
    let number = u64::from_str_radix(number, 16).ok()?;
    let position = u64::from_str_radix(position, 16).ok()?;
    Some((number, position.checked_add(1)?))
}

/// The right to read a log, until somebody else reads it.
pub(super) struct Reader {
    log: Arc<Log>,
    number: u32,
}

impl Reader {
    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// All events that are there, in one piece; `None` when there will be no more for this reader.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.log.state();
        if state.reader != self.number {
            return Poll::Ready(None);
        }
        if let Some(events) = self.log.unread(&mut state) {
            return Poll::Ready(Some(events));
        }
        if state.ended || state.released {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether [`Reader::poll`] will give nothing more.
    pub(super) fn is_at_end(&self) -> bool {
        let state = self.log.state();
        state.reader != self.number || ((state.ended || state.released) && state.read == state.next())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.log.state();
        if state.reader != self.number {
            return;
        }
        state.has_reader = false;
        state.waker = None;
        if self.log.number.is_none() {
            state.abandoned = true;
            state.events.clear();
        }
        state.wake_writer();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LogBounds = LogBounds { events: 4, bytes: 1 << 20 };

    fn text(polled: Poll<Option<Bytes>>) -> Option<String> {
        match polled {
            Poll::Ready(Some(bytes)) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            _ => None,
        }
    }

    fn read(reader: &mut Reader) -> Option<String> {
        text(reader.poll(&mut Context::from_waker(Waker::noop())))
    }

    fn send(log: &Log, message: &'static str) -> Result<(), Gone> {
        log.send(Bytes::from_static(message.as_bytes()))
    }

    #[test]
    fn a_lost_stream_is_taken_up_after_the_event_seen() {
        let log = Log::new(Some(10), BOUNDS);
        let mut reader = log.reader(None);
        send(&log, "1").unwrap();
        send(&log, "2").unwrap();
        let both = read(&mut reader).unwrap();
        assert_eq!(both, "event: message\nid: a-0\ndata: 1\n\nevent: message\nid: a-1\ndata: 2\n\n");
        drop(reader);
        send(&log, "3").unwrap();
        assert_eq!(position_after("a-0"), Some((10, 1)));
        let again = read(&mut log.reader(Some(1))).unwrap();
        assert_eq!(again, "event: message\nid: a-1\ndata: 2\n\nevent: message\nid: a-2\ndata: 3\n\n");
    }

    #[test]
    fn the_latest_reader_reads_alone() {
        let log = Log::new(Some(1), BOUNDS);
        let mut old = log.reader(None);
        let mut new = log.reader(None);
        send(&log, "1").unwrap();
        assert!(read(&mut old).is_none());
        assert!(old.is_at_end());
        assert!(read(&mut new).is_some());
        drop(old);
        assert!(log.has_reader());
    }

    #[test]
    fn a_client_that_does_not_read_is_refused_more_but_gets_its_reply() {
        for number in [None, Some(1)] {
            let log = Log::new(number, BOUNDS);
            let mut reader = log.reader(None);
            for _ in 0..BOUNDS.events {
                send(&log, "m").unwrap();
            }
            assert_eq!(send(&log, "m"), Err(Gone));
            log.push_reply(b"reply");
            log.end();
            assert_eq!(read(&mut reader).unwrap().matches("data: ").count(), BOUNDS.events + 1);
            assert!(reader.is_at_end());
        }
    }

    #[test]
    fn a_log_holds_so_many_bytes_that_are_not_read() {
        const MESSAGE: &str = "a message of some length";
        for number in [None, Some(1)] {
            let log = Log::new(number, LogBounds { events: 100, bytes: 100 });
            let mut reader = log.reader(None);
            let taken = (0..100).take_while(|_| send(&log, MESSAGE).is_ok()).count();
            assert!((2..=4).contains(&taken), "{taken}");
            // What it held when the last came was less; so it holds at most one more.
            assert!(log.bytes() < 100 + 2 * MESSAGE.len() + 24, "{}", log.bytes());
            assert!(read(&mut reader).is_some());
            assert_eq!(send(&log, MESSAGE), Ok(()));
        }
    }

    #[test]
    fn a_resumable_log_forgets_the_oldest_that_was_sent() {
        let log = Log::new(Some(1), BOUNDS);
        let mut reader = log.reader(None);
        for _ in 0..3 * BOUNDS.events {
            send(&log, "m").unwrap();
            assert!(read(&mut reader).is_some());
        }
        let all = read(&mut log.reader(Some(0))).unwrap();
        assert_eq!(all.matches("data: ").count(), BOUNDS.events);
        assert!(all.ends_with("id: 1-b\ndata: m\n\n"), "{all}");
    }

    #[test]
    fn nobody_speaks_to_a_client_that_left_a_plain_stream() {
        let log = Log::new(None, BOUNDS);
        drop(log.reader(None));
        assert_eq!(send(&log, "m"), Err(Gone));
    }

    #[test]
    fn a_stream_released_before_it_is_read_gives_what_there_is_and_goes_on_later() {
        let log = Log::new(Some(1), BOUNDS);
        log.prime(Duration::from_secs(1));
        log.release_reader();
        assert!(log.has_spoken(), "a stream has to begin for the client to learn the id");
        let mut reader = log.reader(None);
        assert!(read(&mut reader).is_some());
        assert!(reader.is_at_end());
        send(&log, "m").unwrap();
        let mut again = log.reader(Some(1));
        assert!(read(&mut again).is_some());
        assert!(!again.is_at_end());
    }

    #[test]
    fn a_client_without_an_id_to_come_back_with_is_not_let_go() {
        let log = Log::new(Some(1), BOUNDS);
        let reader = log.reader(None);
        log.release_reader();
        assert!(!reader.is_at_end());
    }

    #[test]
    fn a_released_reader_ends_and_the_stream_goes_on() {
        let log = Log::new(Some(1), BOUNDS);
        log.prime(Duration::from_secs(1));
        let reader = log.reader(None);
        log.release_reader();
        assert!(reader.is_at_end());
        send(&log, "m").unwrap();
        assert!(read(&mut log.reader(Some(0))).is_some());
    }

    #[test]
    fn a_position_is_two_hexadecimal_numbers() {
        assert_eq!(position_after("1f-a"), Some((31, 11)));
        for bad in ["", "1", "-", "1-", "-1", "g-1", "1-2-3", "1-ffffffffffffffff", "10000000000000000-0"] {
            assert_eq!(position_after(bad), None, "{bad}");
        }
    }
}
