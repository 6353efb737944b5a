//! The streams of one session: the standalone ones, those being written, and those that have ended and can still be sent
//! again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::event_log::{Log, LogBounds, LogReader, position_after};
use super::pending_messages::{PendingBounds, PendingMessages};
use crate::outlet::{Gone, Outlet};

/// The bounds of streams, and the bytes that all sessions together keep.
pub(super) struct StreamBounds {
    pub(super) log: LogBounds,
    pub(super) standalone: usize,
    pub(super) open: usize,
    /// Bytes of one session's replies that may wait for the client.
    pub(super) session_reply_bytes: usize,
    pub(super) replay_bytes_each: usize,
    pub(super) replay_bytes_all: usize,
    pub(super) replay_bytes: AtomicUsize,
    pub(super) unheard: PendingBounds,
}

/// The streams of one session. Allocates nothing until there is a stream.
pub(super) struct SessionStreams {
    pub(super) bounds: Arc<StreamBounds>,
    resumable: bool,
    known: Mutex<Option<Box<KnownStreams>>>,
}

#[derive(Default)]
struct KnownStreams {
    last_number: u32,
    standalone: Vec<Arc<Log>>,
    open: Vec<Arc<Log>>,
    ended: VecDeque<EndedStream>,
    ended_bytes: usize,
    /// Messages that calls sent before there was a standalone stream.
    unheard: PendingMessages,
    /// A client has begun to read a standalone stream.
    read: Arc<Notify>,
    over: CancellationToken,
}

/// An ended stream, and what it takes.
struct EndedStream {
    log: Arc<Log>,
    bytes: usize,
}

/// As many streams as may be are there.
pub(super) struct TooMany;

impl SessionStreams {
    pub(super) fn new(bounds: Arc<StreamBounds>, resumable: bool) -> Self {
        Self { bounds, resumable, known: Mutex::default() }
    }

    /// Whether streams can be taken up again.
    pub(super) fn are_resumable(&self) -> bool {
        self.resumable
    }

    /// A log for the replies to one POST, not in the list yet.
    pub(super) fn new_log(&self) -> Arc<Log> {
        let number = self.resumable.then(|| self.with_known(KnownStreams::next_number));
        Log::new(number, self.bounds.log)
    }

    /// Puts a log into the list of those that are being written.
    pub(super) fn begin_log(&self, log: &Arc<Log>) -> Result<(), TooMany> {
        self.with_known(|known| {
            if known.open.len() >= self.bounds.open {
                return Err(TooMany);
            }
            known.open.push(Arc::clone(log));
            Ok(())
        })
    }

    /// The log is written to its end. It is kept for as long as there is room.
    pub(super) fn finish_log(&self, log: &Arc<Log>) {
        let bytes = log.buffered_bytes();
        let all = &self.bounds.replay_bytes;
        self.with_known(|known| {
            known.open.retain(|open| !Arc::ptr_eq(open, log));
            if known.over.is_cancelled() || bytes > self.bounds.replay_bytes_each {
                return;
            }
            while known.ended_bytes + bytes > self.bounds.replay_bytes_each || known.ended.len() >= MAX_ENDED {
                let Some(oldest) = known.ended.pop_front() else { break };
                known.ended_bytes -= oldest.bytes;
                all.fetch_sub(oldest.bytes, Relaxed);
            }
            if all.load(Relaxed) + bytes <= self.bounds.replay_bytes_all {
                known.ended.push_back(EndedStream { log: Arc::clone(log), bytes });
                known.ended_bytes += bytes;
                all.fetch_add(bytes, Relaxed);
            }
        });
    }

    /// A new standalone stream, which begins with an event to come back with where it is to, and with what waits for it. Those
    /// that nobody reads make room for it, so it has its reader from the beginning.
    pub(super) fn open_standalone(&self, primes: Option<Duration>) -> Result<LogReader, TooMany> {
        self.with_known(|known| {
            known.standalone.retain(|log| log.has_reader());
            if known.standalone.len() >= self.bounds.standalone {
                return Err(TooMany);
            }
            let number = self.resumable.then(|| known.next_number());
            let log = Log::new(number, self.bounds.log);
            primes.inspect(|&retry| log.add_prime(retry));
            // Before anybody else can say something on it.
            for message in known.unheard.take_fresh(&self.bounds.unheard) {
                self.bounds.unheard.count_dropped(usize::from(log.send(message).is_err()));
            }
            let reader = log.open_reader(None);
            known.standalone.push(log);
            Ok(reader)
        })
    }

    /// Lets go of those who wait for a standalone stream: one is being read.
    pub(super) fn is_read(&self) {
        if let Some(known) = self.lock_known().as_deref() {
            known.read.notify_waiters();
        }
    }

    /// Takes up the stream of the event that the client saw last. `None` if there is no such stream (any more).
    pub(super) fn resume_stream(&self, event_id: &str) -> Option<LogReader> {
        let (number, position) = position_after(event_id)?;
        let known = self.lock_known();
        let known = known.as_deref()?;
        let ended = known.ended.iter().map(|kept| &kept.log);
        let mut logs = known.standalone.iter().chain(&known.open).chain(ended);
        logs.find(|log| log.number() == Some(number)).map(|log| log.open_reader(Some(position)))
    }

    /// Ends with the session.
    pub(super) fn session_ended(&self) -> CancellationToken {
        self.with_known(|known| known.over.clone())
    }

    /// Ends the standalone streams; nobody takes them up again.
    pub(super) fn end_standalone(&self) {
        if let Some(known) = self.lock_known().as_deref_mut() {
            known.standalone.drain(..).for_each(|log| log.end_stream());
        }
    }

    /// The session is over: readers are let go, handlers are cancelled, what was kept is forgotten.
    pub(super) fn end_streams(&self) {
        let Some(known) = &mut *self.lock_known() else { return };
        known.over.cancel();
        known.standalone.drain(..).chain(known.open.drain(..)).for_each(|log| log.end_stream());
        known.ended.clear();
        known.unheard.drop_all(&self.bounds.unheard);
        self.bounds.replay_bytes.fetch_sub(std::mem::take(&mut known.ended_bytes), Relaxed);
    }

    /// A message that belongs to no request: on one standalone stream, never on two.
    pub(super) fn send_standalone(&self, message: Bytes) -> Result<(), Gone> {
        let log = self.lock_known().as_deref().and_then(KnownStreams::heard_log).cloned();
        log.ok_or(Gone)?.send(message)
    }

    /// Sends a message of a call on a standalone stream. Without such a stream the message waits a while for one.
    pub(super) fn tell_client(&self, message: Bytes) -> Result<(), Gone> {
        let log = {
            let mut known = self.lock_known();
            let known = known.get_or_insert_default();
            match known.heard_log() {
                Some(log) => Arc::clone(log),
                None if known.over.is_cancelled() => return Err(Gone),
                None => {
                    known.unheard.keep_message(message, &self.bounds.unheard);
                    return Ok(());
                }
            }
        };
        log.send(message)
    }

    /// Drops what has waited for too long.
    pub(super) fn drop_expired(&self) {
        if let Some(known) = self.lock_known().as_deref_mut() {
            known.unheard.drop_expired(&self.bounds.unheard);
        }
    }

    fn with_known<T>(&self, act: impl FnOnce(&mut KnownStreams) -> T) -> T {
        act(self.lock_known().get_or_insert_default())
    }

    fn lock_known(&self) -> MutexGuard<'_, Option<Box<KnownStreams>>> {
        // Nothing under the lock can panic half way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many ended streams a session keeps, however small they are.
const MAX_ENDED: usize = 64;

impl KnownStreams {
    /// The standalone stream that takes messages.
    fn heard_log(&self) -> Option<&Arc<Log>> {
        // One that was lost may be taken up again, so what is said meanwhile is kept.
        let read = self.standalone.iter().find(|log| log.has_reader());
        read.or(self.standalone.first().filter(|log| log.number().is_some()))
    }

    fn next_number(&mut self) -> u64 {
        self.last_number = self.last_number.wrapping_add(1);
        u64::from(self.last_number)
    }
}

impl SessionStreams {
    /// Notified when a client begins to read a standalone stream.
    pub(super) fn read_notice(&self) -> Arc<Notify> {
        self.with_known(|known| Arc::clone(&known.read))
    }
}

impl Drop for SessionStreams {
    fn drop(&mut self) {
        self.end_streams();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::held_results::Permit;
    use super::*;

    /// Streams of a session with small bounds.
    pub(in super::super) fn small_streams() -> SessionStreams {
        let bounds = StreamBounds {
            log: LogBounds { events: 8, bytes: 1024 },
            standalone: 1,
            open: 1,
            session_reply_bytes: usize::MAX,
            replay_bytes_each: 100,
            replay_bytes_all: 150,
            replay_bytes: AtomicUsize::new(0),
            unheard: PendingBounds::new(Duration::from_secs(1)),
        };
        SessionStreams::new(Arc::new(bounds), true)
    }

    #[test]
    fn what_a_call_says_waits_for_a_stream_and_ends_with_the_session() {
        let message = |text: &'static str| Bytes::from_static(text.as_bytes());
        let streams = small_streams();
        assert!(streams.send_standalone(message("of no call")).is_err());
        for text in ["1", "2"] {
            streams.tell_client(message(text)).unwrap();
        }
        let reader = streams.open_standalone(Some(Duration::from_secs(1))).ok().unwrap();
        assert!(streams.open_standalone(None).is_err(), "its place isn't another's before it is polled");
        streams.tell_client(message("3")).unwrap();
        let sent = String::from_utf8(reader.log().take_all().concat()).unwrap();
        let said: Vec<&str> =
            sent.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty()).collect();
        assert_eq!(said, ["1", "2", "3"]);
        assert!(sent.starts_with("id: 1-0"), "first of all what a client comes back with: {sent}");
        // Its connection is gone, and it can be taken up again: it waits there.
        drop(reader);
        streams.tell_client(message("4")).unwrap();
        assert_eq!(streams.bounds.unheard.dropped_messages(), 0);
        streams.end_standalone();
        streams.tell_client(message("5")).unwrap();
        streams.end_streams();
        assert_eq!(streams.bounds.unheard.dropped_messages(), 1);
        assert!(streams.tell_client(message("6")).is_err());
    }

    #[test]
    fn what_ended_streams_take_is_bounded_and_given_back() {
        let streams = small_streams();
        let ended = |length: usize| {
            let log = streams.new_log();
            log.push_reply(&vec![b'x'; length], Permit::default());
            log.end_stream();
            streams.finish_log(&log);
            log.number().unwrap()
        };
        let is_kept = |number: u64| streams.resume_stream(&format!("{number:x}-0")).is_some();
        let (first, second) = (ended(10), ended(10));
        assert!(is_kept(first) && is_kept(second));
        let third = ended(20);
        assert!(!is_kept(first) && is_kept(third));
        assert!(!is_kept(ended(200)));
        streams.end_streams();
        assert!(!is_kept(third));
    }
}
