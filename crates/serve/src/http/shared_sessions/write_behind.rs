//! Queue of handlers' messages on their way to the store, so that handlers never wait for it.
//!
//! The queue is bounded. It keeps messages while the store is away, and sends them when the store is back. A message that
//! doesn't fit drops the oldest; dropped messages are counted and logged.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcpace_wire::jsonrpc::{Id, Payload};
use tokio::sync::Notify;

use super::super::event_log::StreamMirror;
use super::SharedSessions;
use crate::store::{Down, EntryContent, LogId, Stores, StreamEntry};

/// Entries that wait.
const ENTRIES: usize = 8_192;
/// Their bytes.
const BYTES: usize = 16 << 20;
/// Entries that go to the store at a time.
const BATCH: usize = 128;
/// Their bytes, but for one that has more by itself: others wait for the same connection.
const BATCH_BYTES: usize = 256 << 10;
/// Before the store is asked again after it failed.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks whether a stream is read.
const LOOK: Duration = Duration::from_millis(100);

/// The entries that wait to be stored.
#[derive(Default)]
pub(super) struct WriteQueue {
    waiting: Mutex<WaitingEntries>,
    added: Notify,
    /// The sequence of what was stored last.
    stored: AtomicU64,
    progress: Notify,
    dropped: AtomicU64,
}

#[derive(Default)]
struct WaitingEntries {
    entries: VecDeque<StreamEntry>,
    bytes: usize,
    sequence: u64,
    /// Taken out, and not known to have arrived.
    under_way: usize,
}

impl WriteQueue {
    pub(super) fn push_change(&self, log: LogId, what: EntryContent) {
        let mut waiting = self.lock_waiting();
        waiting.sequence += 1;
        let entry = StreamEntry { log, sequence: waiting.sequence, what };
        waiting.bytes += entry.size();
        waiting.entries.push_back(entry);
        while waiting.entries.len() > ENTRIES || waiting.bytes > BYTES {
            let Some(oldest) = waiting.entries.pop_front() else { break };
            waiting.bytes -= oldest.size();
            self.dropped.fetch_add(1, Relaxed);
        }
        drop(waiting);
        self.added.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        let waiting = self.lock_waiting();
        waiting.entries.is_empty() && waiting.under_way == 0
    }

    pub(super) fn dropped_changes(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Once all that is waiting now is stored.
    pub(super) async fn caught_up(&self) {
        let last = self.lock_waiting().sequence;
        loop {
            let progress = self.progress.notified();
            if self.stored.load(Relaxed) >= last {
                return;
            }
            progress.await;
        }
    }

    fn store_batch(&self, batch: &[StreamEntry]) {
        self.lock_waiting().under_way = 0;
        if let Some(last) = batch.last() {
            self.stored.store(last.sequence, Relaxed);
        }
        self.progress.notify_waiters();
    }

    async fn take_batch(&self) -> Vec<StreamEntry> {
        loop {
            let added = self.added.notified();
            {
                let mut waiting = self.lock_waiting();
                if !waiting.entries.is_empty() {
                    let mut bytes = 0;
                    let fitting = waiting.entries.iter().take(BATCH).take_while(|entry| {
                        bytes += entry.size();
                        bytes <= BATCH_BYTES
                    });
                    let count = fitting.count().max(1);
                    let batch: Vec<_> = waiting.entries.drain(..count).collect();
                    waiting.bytes -= batch.iter().map(StreamEntry::size).sum::<usize>();
                    waiting.under_way = count;
                    return batch;
                }
            }
            added.await;
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, WaitingEntries> {
        // Nothing under the lock can panic half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes all to the store, in its order. Never ends.
pub(super) async fn pump_queue(sharing: Weak<SharedSessions>, queue: Arc<WriteQueue>, stores: Stores) {
    let mut said = 0;
    let mut is_refusal_said = false;
    loop {
        let batch = queue.take_batch().await;
        let Some(bounds) = sharing.upgrade().map(|sharing| sharing.bounds) else { return };
        let added = loop {
            match stores.events.add(&batch, &bounds).await {
                Ok(added) => break added,
                Err(Down) => tokio::time::sleep(PAUSE).await,
            }
        };
        queue.store_batch(&batch);
        let dropped = queue.dropped_changes();
        if dropped > said {
            tracing::warn!(
                dropped = dropped - said,
                "messages were dropped: the store of sessions was away for too long"
            );
            said = dropped;
        }
        for (entry, added) in batch.iter().zip(added) {
            if added.refused && !std::mem::replace(&mut is_refusal_said, true) {
                tracing::warn!("the store refuses a message to a client, which is lost; more of them are not said");
            }
            if added.dropped > 0 {
                tracing::debug!(dropped = added.dropped, "a client does not read: its oldest messages were dropped");
            }
            if let EntryContent::Event(None, message) = &entry.what
                && !added.is_read
                && let Some(id) = question_id(message)
            {
                match added.refused {
                    // It is lost: whoever asked need not wait for an answer.
                    true => forget_question(&sharing, entry.log, id),
                    false => stores.broker.spawn(Box::pin(forget_unless_read(
                        sharing.clone(),
                        stores.clone(),
                        entry.log,
                        id,
                    ))),
                }
            }
        }
    }
}

/// The id of a question to the client, if it is one.
fn question_id(message: &Bytes) -> Option<u64> {
    use mcpace_wire::jsonrpc::Message;
    match Payload::parse_with_limit(message, 1).ok()?.messages() {
        [Message::Request(request)] => match request.id {
            Id::Integer(id) => u64::try_from(id).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// A question that no stream takes to the client is given up, and whoever asked learns so.
async fn forget_unless_read(sharing: Weak<SharedSessions>, stores: Stores, log: LogId, question: u64) {
    let Some(limit) = sharing.upgrade().map(|sharing| sharing.server.limits().stream_time) else { return };
    let heard = async {
        while !stores.events.is_read(log).await.unwrap_or(false) {
            tokio::time::sleep(LOOK).await;
        }
    };
    if tokio::time::timeout(limit, heard).await.is_err() {
        forget_question(&sharing, log, question);
    }
}

fn forget_question(sharing: &Weak<SharedSessions>, log: LogId, question: u64) {
    if let Some(http_session) = sharing.upgrade().and_then(|sharing| sharing.known_session(log.session)) {
        http_session.session.forget_question(question);
    }
}

/// Copy of a reply's stream in the store.
pub(in super::super) struct StoredStream {
    queue: Arc<WriteQueue>,
    log: LogId,
    asked: Mutex<Option<Box<str>>>,
}

impl StoredStream {
    pub(super) fn new(queue: Arc<WriteQueue>, log: LogId, asked: Box<str>) -> Self {
        Self { queue, log, asked: Mutex::new(Some(asked)) }
    }
}

impl StreamMirror for StoredStream {
    /// Holds the lock until the announcement is in the queue, so that no event comes before it.
    fn begin_stream(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = asked.take() {
            self.queue.push_change(self.log, EntryContent::Begin(asked));
        }
    }

    fn mirror_event(&self, position: u64, message: Bytes) {
        self.begin_stream();
        self.queue.push_change(self.log, EntryContent::Event(Some(position), message));
    }

    /// A stream without events is not copied: it would take the place of a stream that a client may resume.
    fn end_stream(&self) {
        let has_begun = self.asked.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if has_begun {
            self.queue.push_change(self.log, EntryContent::End);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SessionName;

    fn log() -> LogId {
        LogId::standalone(SessionName::of("a session"))
    }

    #[tokio::test]
    async fn the_oldest_goes_first_and_is_counted() {
        let queue = WriteQueue::default();
        for number in 0..ENTRIES + 3 {
            queue.push_change(log(), EntryContent::Event(None, Bytes::from(number.to_string())));
        }
        assert_eq!(queue.dropped_changes(), 3);
        let first = queue.take_batch().await;
        assert!(matches!(&first[0].what, EntryContent::Event(None, message) if message == "3"), "{:?}", first[0]);
        assert_eq!((first[0].sequence, first.len()), (4, BATCH));
    }

    #[tokio::test]
    async fn who_waits_goes_on_once_all_before_is_stored() {
        let queue = WriteQueue::default();
        queue.caught_up().await;
        queue.push_change(log(), EntryContent::End);
        let mut waiting = std::pin::pin!(queue.caught_up());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx))).await.is_pending());
        let batch = queue.take_batch().await;
        queue.push_change(log(), EntryContent::End);
        queue.store_batch(&batch);
        waiting.await;
    }

    #[tokio::test]
    async fn bytes_are_bounded_too() {
        let queue = WriteQueue::default();
        for _ in 0..20 {
            queue.push_change(log(), EntryContent::Event(None, Bytes::from(vec![b'x'; 1 << 20])));
        }
        assert_eq!(queue.dropped_changes(), 4);
    }

    #[tokio::test]
    async fn a_batch_has_few_bytes_or_one_entry() {
        let queue = WriteQueue::default();
        for bytes in [BATCH_BYTES * 3, BATCH_BYTES / 2, BATCH_BYTES / 2, 1] {
            queue.push_change(log(), EntryContent::Event(None, Bytes::from(vec![b'x'; bytes])));
        }
        for count in [1, 2, 1] {
            assert_eq!(queue.take_batch().await.len(), count);
        }
        assert_eq!(queue.lock_waiting().bytes, 0);
    }

    #[test]
    fn a_stream_that_ends_unsaid_is_nobodys_business() {
        let queue = Arc::new(WriteQueue::default());
        let mirror = || StoredStream::new(Arc::clone(&queue), log(), "[1]".into());
        mirror().end_stream();
        assert!(queue.is_empty());
        let said = mirror();
        said.mirror_event(1, Bytes::from_static(b"{}"));
        said.end_stream();
        let kinds: Vec<bool> =
            queue.lock_waiting().entries.iter().map(|entry| matches!(entry.what, EntryContent::End)).collect();
        assert_eq!(kinds, [false, false, true]);
    }

    #[test]
    fn a_question_is_told_from_a_notification() {
        let question = |text: &'static str| question_id(&Bytes::from_static(text.as_bytes()));
        assert_eq!(question(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#), Some(7));
        assert_eq!(question(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#), None);
        assert_eq!(question("rubbish"), None);
    }
}
