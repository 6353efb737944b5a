//! Where an instrument's events go: kept in memory, written to a file, or both, off the path that is measured.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use mcpace_record::{
    CallId, ConnectionId, Event, EventKind, ExchangeId, LineFrom, Nanos, Peer, RecordError, Recording, RecordingHead,
    Redactor, Side, Writer,
};

use crate::flight_ring::{FlightRing, RingOptions, count_events};
use crate::lock::lock_mutex;
use crate::private::create_private;
use crate::processor_clock::ProcessorClock;
use crate::{NetError, TrafficMetrics, monotonic_now};

/// How long events may wait before the writer thread takes them: what a kill can lose.
const WRITE_PERIOD: Duration = Duration::from_millis(50);

/// Bytes of memory for events: of those that wait for the writer, and again of those that are kept. Past it events are
/// counted as lost.
const MEMORY_LIMIT: usize = 512 * 1024 * 1024;

/// Storage of a [`Sink`]'s events: in memory, in a file, or both.
#[derive(Clone, Debug)]
pub struct SinkOptions {
    /// Keep all events for [`Sink::recording`].
    pub keep: bool,
    /// Append to this file as they come.
    pub file: Option<PathBuf>,
    /// Append to the files of a flight recorder, instead of `file`.
    pub ring: Option<RingOptions>,
    /// Bytes of each body that are recorded; 0 for none.
    pub body_limit: usize,
    /// Counts the events that go to `file` or `ring`, on the thread that writes them.
    pub metrics: Option<Arc<TrafficMetrics>>,
}

impl Default for SinkOptions {
    fn default() -> Self {
        Self { keep: true, file: None, ring: None, body_limit: 64 * 1024, metrics: None }
    }
}

/// Collects the events of one instrument. Cheap to share and to push to; writing happens on its own thread.
pub struct Sink {
    shared: Arc<SinkShared>,
    head: RecordingHead,
    redactor: Redactor,
    body_limit: usize,
    /// Whether the events are those of a flight recorder.
    is_ring: bool,
    connections: AtomicU64,
    exchanges: AtomicU64,
    calls: AtomicU64,
    /// Processes whose processor time is read at each exchange.
    clocks: RwLock<Vec<ProcessorClock>>,
    writer: Mutex<Option<JoinHandle<Result<(), RecordError>>>>,
}

#[derive(Default)]
struct SinkShared {
    queue: Mutex<EventQueue>,
    wake: Condvar,
    failed: AtomicBool,
}

#[derive(Default)]
struct EventQueue {
    /// Events that no writer has taken yet.
    fresh: BoundedEvents,
    /// Batches that the writer took, for [`Sink::recording`]; shared with it, so that they can be seen while they are
    /// being written.
    kept: Vec<Arc<Vec<Event>>>,
    /// Bytes of `kept`.
    kept_size: usize,
    /// Events that were written and that there was no room to keep.
    unkept: u64,
    ended: bool,
    keep: bool,
    writing: bool,
    /// Whether a failed call waits to be written.
    is_urgent: bool,
    /// [`MEMORY_LIMIT`], but in tests.
    limit: usize,
}

/// Events up to a limit of memory, and how many came after it.
#[derive(Default)]
struct BoundedEvents {
    events: Vec<Event>,
    size: usize,
    lost: u64,
}

impl BoundedEvents {
    fn push_event(&mut self, event: Event, size: usize, limit: usize) {
        let size = self.size.saturating_add(size);
        if size > limit {
            self.lost += 1;
        } else {
            self.size = size;
            self.events.push(event);
        }
    }

    /// All of them, with a last one that tells how many are missing.
    fn with_missing(mut self) -> Vec<Event> {
        if self.lost > 0 {
            self.events.push(Event { at: monotonic_now(), kind: EventKind::EventsLost { count: self.lost } });
        }
        self.events
    }
}

impl EventQueue {
    /// Takes the batch that the writer writes next.
    fn take_batch(&mut self) -> Arc<Vec<Event>> {
        let fresh = std::mem::take(&mut self.fresh);
        self.is_urgent = false;
        let size = self.kept_size.saturating_add(fresh.size);
        let batch = Arc::new(fresh.with_missing());
        if self.keep && size > self.limit {
            self.unkept += count_events(&batch);
        } else if self.keep {
            self.kept_size = size;
            self.kept.push(Arc::clone(&batch));
        }
        batch
    }
}

impl Sink {
    /// Opens the file, where there is one, and writes the recording's head to it.
    ///
    /// # Errors
    /// The file can't be made or written.
    pub fn new(head: RecordingHead, options: SinkOptions) -> Result<Arc<Self>, NetError> {
        Self::with_memory(head, options, MEMORY_LIMIT)
    }

    fn with_memory(head: RecordingHead, options: SinkOptions, limit: usize) -> Result<Arc<Self>, NetError> {
        let shared = Arc::new(SinkShared::default());
        {
            let mut queue = lock_mutex(&shared.queue);
            queue.keep = options.keep;
            queue.writing = options.file.is_some() || options.ring.is_some();
            queue.limit = limit;
        }
        let is_ring = options.ring.is_some();
        let period = options.ring.as_ref().map_or(WRITE_PERIOD, |ring| ring.period);
        let destination = match (options.ring, options.file) {
            (Some(ring), _) => Some(Destination::Ring(Box::new(FlightRing::open(ring, head.clone())))),
            (None, Some(path)) => {
                let file = create_private(&path)
                    .map_err(|reason| NetError::Io { what: "could not create the recording's file", reason })?;
                Some(Destination::File(Writer::new(file, &head)?))
            }
            (None, None) => None,
        };
        let writer = match destination {
            Some(destination) => {
                let shared = Arc::clone(&shared);
                let metrics = options.metrics;
                let run = move || write_until_ended(&shared, destination, period, metrics.as_deref());
                let thread = std::thread::Builder::new().name("mcpace-recording".to_owned()).spawn(run);
                Some(thread.map_err(|reason| NetError::Io { what: "could not start the recording's thread", reason })?)
            }
            None => None,
        };
        Ok(Arc::new(Self {
            shared,
            head,
            redactor: Redactor::new(rand::random()),
            body_limit: options.body_limit,
            is_ring,
            connections: AtomicU64::new(1),
            exchanges: AtomicU64::new(1),
            calls: AtomicU64::new(1),
            clocks: RwLock::default(),
            writer: Mutex::new(writer),
        }))
    }

    /// Appends an event that happens now and returns its stamp.
    pub fn note(&self, kind: EventKind) -> Nanos {
        let at = monotonic_now();
        self.note_at(at, kind);
        at
    }

    /// Appends an event that happened at `at`, and the processor time of the watched processes where it is the end of a
    /// request or of a reply.
    pub fn note_at(&self, at: Nanos, kind: EventKind) {
        let is_boundary = is_exchange_boundary(&kind);
        self.push_event(at, kind);
        if is_boundary {
            self.note_processor_times();
        }
    }

    /// Reads the processor time of a server's process at each exchange from now on.
    pub(crate) fn watch_process(&self, pid: u32) {
        self.clocks.write().unwrap_or_else(PoisonError::into_inner).push(ProcessorClock::new(pid));
    }

    /// Ends the readings of a process that has ended.
    pub(crate) fn forget_process(&self, pid: u32) {
        self.clocks.write().unwrap_or_else(PoisonError::into_inner).retain(|clock| clock.pid() != pid);
    }

    fn note_processor_times(&self) {
        for clock in self.clocks.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some((at, cpu)) = clock.read_time() {
                self.push_event(at, EventKind::ProcessorTime { of: Peer::Server, pid: clock.pid(), cpu });
            }
        }
    }

    fn push_event(&self, at: Nanos, kind: EventKind) {
        let event = Event { at, kind };
        // Every thread that is measured takes this lock: what can be done before is done before.
        let size = event.size();
        let is_urgent = self.is_ring && is_failed_reply(&event.kind);
        let mut queue = lock_mutex(&self.shared.queue);
        if queue.ended || !(queue.keep || queue.writing) {
            return;
        }
        let limit = queue.limit;
        queue.fresh.push_event(event, size, limit);
        if is_urgent {
            queue.is_urgent = true;
            self.shared.wake.notify_all();
        }
    }

    /// A fresh connection id.
    pub fn connection(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    /// A fresh exchange id.
    pub fn exchange(&self) -> ExchangeId {
        ExchangeId(self.exchanges.fetch_add(1, Ordering::Relaxed))
    }

    /// How many exchanges there have been so far.
    #[must_use]
    pub fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed) - 1
    }

    /// A fresh call id.
    pub fn call(&self) -> CallId {
        CallId(self.calls.fetch_add(1, Ordering::Relaxed))
    }

    /// This recording's redactor.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Bytes of each body that are recorded.
    #[must_use]
    pub fn body_limit(&self) -> usize {
        self.body_limit
    }

    /// Whether writing the file has failed: the recording on disk ends there.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// A copy of what was recorded so far, where the sink keeps events.
    #[must_use]
    pub fn recording(&self) -> Recording {
        let queue = lock_mutex(&self.shared.queue);
        let mut events: Vec<Event> = queue.kept.iter().flat_map(|batch| batch.iter()).cloned().collect();
        events.extend(queue.fresh.events.iter().cloned());
        let lost = queue.fresh.lost + queue.unkept;
        if lost > 0 {
            events.push(Event { at: monotonic_now(), kind: EventKind::EventsLost { count: lost } });
        }
        let mut recording = Recording::new(self.head.clone(), events);
        recording.partial = !queue.ended;
        recording
    }

    /// Ends the recording: later events are ignored, the file is completed.
    ///
    /// # Errors
    /// Writing the file failed, now or earlier.
    pub fn finish(&self) -> Result<(), NetError> {
        lock_mutex(&self.shared.queue).ended = true;
        self.shared.wake.notify_all();
        let writer = lock_mutex(&self.writer).take();
        match writer.map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.into()),
            Some(Err(_)) => {
                Err(NetError::Io { what: "the recording's thread died", reason: std::io::Error::other("it panicked") })
            }
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // A sink that is dropped without being finished reports no write error; the file is completed all the same.
        let _ = self.finish();
    }
}

/// Whether an event is the end of a request to the server, or brings a part of its reply.
fn is_exchange_boundary(kind: &EventKind) -> bool {
    match kind {
        EventKind::RequestEnd { side, .. } | EventKind::ReplyEvent { side, .. } | EventKind::ReplyEnd { side, .. } => {
            *side == Side::Back
        }
        EventKind::StdioLine { from, .. } => *from != LineFrom::ServerStderr,
        _ => false,
    }
}

/// Whether the event brings an error of a request or of a tool to the client.
fn is_failed_reply(kind: &EventKind) -> bool {
    let messages = match kind {
        EventKind::ReplyEvent { side: Side::Back, messages, .. }
        | EventKind::ReplyEnd { side: Side::Back, messages, .. }
        | EventKind::StdioLine { from: LineFrom::Server, messages, .. } => messages,
        EventKind::ProcessExited { .. } => return true,
        _ => return false,
    };
    messages.iter().any(|message| message.is_error || message.code.is_some())
}

/// Where the writer's thread puts the events.
enum Destination {
    File(Writer<File>),
    Ring(Box<FlightRing>),
}

impl Destination {
    fn write_batch(&mut self, batch: &[Event]) -> Result<(), RecordError> {
        match self {
            Self::File(writer) => {
                batch.iter().try_for_each(|event| writer.write(event))?;
                if batch.is_empty() { Ok(()) } else { writer.flush() }
            }
            Self::Ring(ring) => {
                ring.write_batch(batch);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<(), RecordError> {
        match self {
            Self::File(writer) => writer.finish().map(drop),
            Self::Ring(ring) => {
                ring.finish();
                Ok(())
            }
        }
    }
}

/// Writes batches until the end, or until writing fails. Where the events are counted, too, counting goes on after that.
fn write_until_ended(
    shared: &SinkShared,
    mut destination: Destination,
    period: Duration,
    metrics: Option<&TrafficMetrics>,
) -> Result<(), RecordError> {
    let mut failure = None;
    loop {
        let (batch, ended) = {
            let queue = lock_mutex(&shared.queue);
            // The whole period, whatever comes meanwhile: small batches would compress badly and cost a write each.
            let waited = shared.wake.wait_timeout_while(queue, period, |queue| !queue.ended && !queue.is_urgent);
            let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            (queue.take_batch(), queue.ended)
        };
        if failure.is_none()
            && let Err(error) = destination.write_batch(&batch)
        {
            shared.failed.store(true, Ordering::Relaxed);
            if metrics.is_none() {
                lock_mutex(&shared.queue).writing = false;
                return Err(error);
            }
            failure = Some(error);
        }
        if let Some(metrics) = metrics {
            metrics.count_batch(&batch, failure.is_none());
        }
        // Once ended nothing is added, so that was the last batch.
        if ended {
            return failure.map_or_else(|| destination.finish(), Err);
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpace_record::{Body, Digest, Instrument, MessageKind, MessageNote, Reader};

    use super::*;

    fn head() -> RecordingHead {
        RecordingHead::bare(Instrument::Client)
    }

    fn note(sink: &Sink, size: usize) {
        let body = Some(Body { text: "x".repeat(size), cut: false });
        let (side, digest) = (mcpace_record::Side::Front, Digest::new(0));
        sink.note(EventKind::RequestEnd { side, ex: sink.exchange(), bytes: 0, digest, messages: Vec::new(), body });
    }

    #[test]
    fn what_has_no_room_in_memory_is_counted() {
        let sink = Sink::with_memory(head(), SinkOptions::default(), 50_000).unwrap();
        (0..100).for_each(|_| note(&sink, 1_000));
        let recording = sink.recording();
        assert_eq!(recording.events().len() as u64 - 1 + recording.lost(), 100);
        assert!((50..65).contains(&recording.lost()), "{}", recording.lost());
    }

    #[test]
    fn what_is_written_is_kept_as_well_and_both_are_whole_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recording");
        let sink = Sink::new(head(), SinkOptions { file: Some(file.clone()), ..SinkOptions::default() }).unwrap();
        for round in 1..=3 {
            (0..1_000).for_each(|_| note(&sink, 10));
            // Whether the writer has them or not, they can be seen.
            assert_eq!(sink.recording().events().len(), round * 1_000);
        }
        sink.finish().unwrap();
        let written = Reader::read(File::open(&file).unwrap()).unwrap();
        assert_eq!(written, sink.recording());
        assert_eq!(written.events().len(), 3_000);
    }

    #[cfg(unix)]
    #[test]
    fn the_traffic_is_counted_after_writing_has_failed() {
        let metrics = TrafficMetrics::new(&[]);
        let shared = SinkShared::default();
        lock_mutex(&shared.queue).writing = true;
        let (reader, writer) = std::io::pipe().unwrap();
        let writer = Writer::new(File::from(std::os::fd::OwnedFd::from(writer)), &head()).unwrap();
        drop(reader);
        let push = || {
            let kind = EventKind::ReplyBodyStart { side: Side::Front, ex: ExchangeId(1) };
            let event = Event { at: monotonic_now(), kind };
            lock_mutex(&shared.queue).fresh.push_event(event, 1, 1_000);
        };
        let began = std::time::Instant::now();
        let ended = std::thread::scope(|scope| {
            let (shared, metrics, destination) = (&shared, &metrics, Destination::File(writer));
            let period = Duration::from_millis(1);
            let thread = scope.spawn(move || write_until_ended(shared, destination, period, Some(metrics)));
            push();
            while !shared.failed.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
            push();
            lock_mutex(&shared.queue).ended = true;
            thread.join().unwrap()
        });
        assert!(ended.is_err());
        let found = metrics.snapshot();
        assert_eq!((found.events, found.lost_events), (2, 2));
        assert!(lock_mutex(&shared.queue).writing);
    }

    #[test]
    fn a_flight_recorder_writes_a_failed_reply_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let ring = RingOptions {
            period: Duration::from_secs(3_600),
            ..RingOptions::new(folder.path().to_owned(), 1_000_000, |_| {})
        };
        let sink = Sink::new(head(), SinkOptions { keep: false, ring: Some(ring), ..SinkOptions::default() }).unwrap();
        let began = std::time::Instant::now();
        note(&sink, 10);
        let message = MessageNote { is_error: true, ..MessageNote::new(MessageKind::Result) };
        let (from, digest, blocked) = (LineFrom::Server, Digest::new(0), Nanos::ZERO);
        let (side, began_at, messages) = (Side::Back, Nanos::ZERO, vec![message]);
        sink.note(EventKind::StdioLine {
            side,
            from,
            began: began_at,
            bytes: 1,
            digest,
            messages,
            body: None,
            blocked,
        });
        let mut paths = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let path = paths.find(|path| path.extension().is_some_and(|extension| extension == "zst")).unwrap();
        while Reader::read(File::open(&path).unwrap()).unwrap().events().len() < 2 {
            assert!(began.elapsed() < Duration::from_secs(20), "the reply was not written");
            std::thread::yield_now();
        }
        assert!(!lock_mutex(&sink.shared.queue).is_urgent);
        sink.finish().unwrap();
    }
}
