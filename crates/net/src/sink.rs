//! Where an instrument's events go: kept in memory, written to a file, or both, off the path that is measured.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mcpace_record::{
    CallId, ConnectionId, Event, EventKind, ExchangeId, Nanos, RecordError, Recording, RecordingHead, Redactor, Writer,
};

use crate::{NetError, now};

/// How long events may wait before the writer thread takes them: what a kill can lose.
const WRITE_PERIOD: Duration = Duration::from_millis(50);

/// Queued events past which new ones are counted as lost rather than kept: about 400 MB.
const QUEUE_LIMIT: usize = 1_000_000;

/// What a [`Sink`] keeps and where.
#[derive(Clone, Debug)]
pub struct SinkOptions {
    /// Keep all events for [`Sink::recording`].
    pub keep: bool,
    /// Append to this file as they come.
    pub file: Option<PathBuf>,
    /// Bytes of each body that are recorded; 0 for none.
    pub body_limit: usize,
}

impl Default for SinkOptions {
    fn default() -> Self {
        Self { keep: true, file: None, body_limit: 64 * 1024 }
    }
}

/// Collects the events of one instrument. Cheap to share and to push to; writing happens on its own thread.
pub struct Sink {
    shared: Arc<Shared>,
    head: RecordingHead,
    redactor: Redactor,
    body_limit: usize,
    connections: AtomicU64,
    exchanges: AtomicU64,
    calls: AtomicU64,
    writer: Mutex<Option<JoinHandle<Result<(), RecordError>>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    failed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    fresh: Vec<Event>,
    kept: Vec<Event>,
    lost: u64,
    ended: bool,
    keep: bool,
    writing: bool,
}

impl Sink {
    /// Opens the file, where there is one, and writes the recording's head to it.
    ///
    /// # Errors
    /// The file can't be made or written.
    pub fn new(head: RecordingHead, options: SinkOptions) -> Result<Arc<Self>, NetError> {
        let shared = Arc::new(Shared::default());
        {
            let mut queue = lock(&shared.queue);
            queue.keep = options.keep;
            queue.writing = options.file.is_some();
        }
        let writer = match options.file {
            Some(path) => {
                let file = File::create(&path)
                    .map_err(|reason| NetError::Io { what: "could not create the recording's file", reason })?;
                let writer = Writer::new(file, &head)?;
                let shared = Arc::clone(&shared);
                let run = move || write_until_ended(&shared, writer);
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
            connections: AtomicU64::new(1),
            exchanges: AtomicU64::new(1),
            calls: AtomicU64::new(1),
            writer: Mutex::new(writer),
        }))
    }

    /// Appends an event that happens now and returns its stamp.
    pub fn note(&self, kind: EventKind) -> Nanos {
        let at = now();
        self.note_at(at, kind);
        at
    }

    /// Appends an event that happened at `at`.
    pub fn note_at(&self, at: Nanos, kind: EventKind) {
        let mut queue = lock(&self.shared.queue);
        if queue.ended || !(queue.keep || queue.writing) {
            return;
        }
        if queue.fresh.len() >= QUEUE_LIMIT {
            queue.lost += 1;
            return;
        }
        queue.fresh.push(Event { at, kind });
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
        let queue = lock(&self.shared.queue);
        let mut events = queue.kept.clone();
        events.extend(queue.fresh.iter().cloned());
        if queue.lost > 0 {
            events.push(Event { at: now(), kind: EventKind::EventsLost { count: queue.lost } });
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
        lock(&self.shared.queue).ended = true;
        self.shared.wake.notify_all();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        // Who drops a sink without finishing it doesn't ask how writing went; the file is completed all the same.
        let _ = self.finish();
    }
}

fn write_until_ended(shared: &Shared, mut writer: Writer<File>) -> Result<(), RecordError> {
    loop {
        let (batch, keep, lost, ended) = {
            let mut queue = lock(&shared.queue);
            if queue.fresh.is_empty() && !queue.ended {
                queue = shared.wake.wait_timeout(queue, WRITE_PERIOD).unwrap_or_else(PoisonError::into_inner).0;
            }
            (std::mem::take(&mut queue.fresh), queue.keep, std::mem::take(&mut queue.lost), queue.ended)
        };
        let outcome = write_batch(&mut writer, &batch, lost);
        let mut queue = lock(&shared.queue);
        if keep {
            queue.kept.extend(batch);
        }
        if let Err(error) = outcome {
            shared.failed.store(true, Ordering::Relaxed);
            queue.writing = false;
            return Err(error);
        }
        if ended && queue.fresh.is_empty() {
            drop(queue);
            return writer.finish().map(|_| ());
        }
    }
}

fn write_batch(writer: &mut Writer<File>, batch: &[Event], lost: u64) -> Result<(), RecordError> {
    for event in batch {
        writer.write(event)?;
    }
    if lost > 0 {
        writer.write(&Event { at: now(), kind: EventKind::EventsLost { count: lost } })?;
    }
    if batch.is_empty() { Ok(()) } else { writer.flush() }
}

/// A thread that panicked while it held the queue leaves it whole: every change to it is one push or one swap.
fn lock(queue: &Mutex<Queue>) -> std::sync::MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
