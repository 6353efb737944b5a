//! Streams of the store, fed to the connections that read them here.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcpace_wire::jsonrpc::{Id, Message, Payload, code, write_error};
use mcpace_wire::sse::Event;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::super::event_log::{Log, LogReader};
use super::super::http_session::HttpSession;
use super::SharedSessions;
use crate::outlet::Gone;
use crate::store::{Cursor, Down, EntryContent, LogId, Opened, Page, WriterState};

/// How long a feed waits for a word before it looks by itself: whether the writer lives, whether a word was lost.
const LOOK: Duration = Duration::from_secs(2);

/// Error message for a request whose process was killed.
const ENDED: &str = "the process that handled the request ended before it answered";
/// Error message for a request whose stream the store has lost.
const FORGOTTEN: &str = "what became of the request is no longer known";

/// One stream that a connection here reads.
pub(super) struct Feed {
    id: LogId,
    /// This reader's name in the store.
    pub(super) reader: String,
    log: Arc<Log>,
    woken: Notify,
    /// The last position that went to the connection.
    last: AtomicU64,
    over: CancellationToken,
}

/// Why a stream can't be read here.
pub(in super::super) enum Unreadable {
    /// It is being read.
    Taken,
    /// There is no such stream.
    Unknown,
    /// The store is away.
    Down,
}

/// Kept by the connection that reads.
pub(in super::super) struct Reading {
    feed: Arc<Feed>,
    sharing: Weak<SharedSessions>,
    _live: Arc<HttpSession>,
}

impl SharedSessions {
    /// Begins to read a stream. `retry`: the first event tells the client how to come back.
    pub(in super::super) async fn read_stream(
        self: &Arc<Self>,
        http_session: &Arc<HttpSession>,
        number: u64,
        from: Cursor,
        retry: Option<Duration>,
    ) -> Result<(LogReader, Arc<Reading>), Unreadable> {
        let id = LogId { session: http_session.key.store_name(), number };
        let known = self.lock_feeds().get(&id).cloned();
        if from == Cursor::Undelivered && known.is_some_and(|feed| feed.log.has_reader()) {
            return Err(Unreadable::Taken);
        }
        let reader = format!("{}.{}", self.own, self.next_number());
        let opened = self.stores.events.open(id, &reader, from, &self.bounds).await;
        let after = match opened.map_err(|Down| Unreadable::Down)? {
            Opened::After(after) => after,
            Opened::Taken => return Err(Unreadable::Taken),
            Opened::Unknown => return Err(Unreadable::Unknown),
        };
        let log = Log::new(None, self.streams.log);
        if let Some(retry) = retry {
            let retry = Some(u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
            log.push_event(&Event { id: Some(event_id(number, after)), retry, ..Event::default() });
        }
        let (woken, last, over) =
            (Notify::new(), AtomicU64::new(after), http_session.streams.session_ended().child_token());
        let feed = Arc::new(Feed { id, reader, log, woken, last, over });
        let reader = feed.log.open_reader(None);
        let before = self.lock_feeds().insert(id, Arc::clone(&feed));
        if let Some(before) = before {
            before.end_feed();
        }
        self.stores.broker.spawn(Box::pin(run_feed(Arc::downgrade(self), Arc::clone(&feed))));
        Ok((reader, Arc::new(Reading { feed, sharing: Arc::downgrade(self), _live: Arc::clone(http_session) })))
    }

    /// After a session was attached to the stream that a connection begins to read here: whether another process has taken it over
    /// meanwhile is known by now, and then nobody may be told anything by this one.
    pub(in super::super) fn session_attached(&self, http_session: &HttpSession) {
        let id = LogId::standalone(http_session.key.store_name());
        if self.lock_feeds().get(&id).is_none_or(|feed| feed.over.is_cancelled()) {
            http_session.session.detach();
        }
    }

    /// Ends what is read here of the standalone stream: its client is back on another connection, of which the one before may not
    /// know for long, and what is said there would be lost.
    pub(in super::super) fn leave_stream(&self, http_session: &HttpSession) {
        let before = self.lock_feeds().remove(&LogId::standalone(http_session.key.store_name()));
        if let Some(before) = before {
            before.end_feed();
        }
    }

    /// Lets all readers go: they would hold up a stop for ever.
    pub(in super::super) fn end_feeds(&self) {
        let feeds: Vec<_> = self.lock_feeds().drain().map(|(_, feed)| feed).collect();
        feeds.iter().for_each(|feed| feed.end_feed());
    }
}

impl Feed {
    pub(super) fn wake_reader(&self) {
        self.woken.notify_one();
    }

    /// The connection ends; the stream is read elsewhere, or not at all.
    pub(super) fn end_feed(&self) {
        self.log.end_stream();
        self.over.cancel();
    }

    /// Says something while no store is there to say it by. Without an id: where the client is in the store's stream stays where
    /// it was, or it would pass over what others put there meanwhile.
    pub(super) fn say_here(&self, message: &Bytes) -> Result<(), Gone> {
        self.log.push_as(None, message).then_some(()).ok_or(Gone)
    }

    fn give_event(&self, position: u64, message: &[u8]) -> bool {
        self.last.fetch_max(position, Relaxed);
        self.log.push_as(Some(&event_id(self.id.number, position)), message)
    }

    /// Gives a page once there is room. False where nobody reads any more.
    async fn give_page(&self, page: &Page) -> bool {
        for (position, message) in &page.events {
            poll_fn(|cx| self.log.poll_room(cx)).await;
            if !self.give_event(*position, message) {
                return false;
            }
        }
        true
    }

    /// The process that wrote the stream is gone, or the stream itself: each request without an answer gets one that says so. False
    /// where that isn't so after all. Nothing is said where the store can't be asked what was answered.
    async fn give_up(&self, sharing: &SharedSessions, mut open: Vec<Id<'static>>, reason: &str) -> Result<bool, Down> {
        // Events that the client received from another process may have answered some of the requests.
        let mut after = None;
        loop {
            let page = self.read_page(sharing, after).await?;
            if page.taken || page.ended || page.writer == WriterState::Alive {
                return Ok(false);
            }
            page.events.iter().for_each(|(_, message)| remove_answered(&mut open, message));
            match page.events.last() {
                Some((last, _)) if page.has_more => after = Some(*last),
                _ => break,
            }
        }
        for id in &open {
            let mut message = Vec::with_capacity(160);
            // Without data there is nothing that could fail to be written.
            let _ = write_error(&mut message, Some(id), code::INTERNAL_ERROR, reason, None::<&()>);
            let position = self.last.load(Relaxed) + 1;
            self.give_event(position, &message);
            sharing.queue.push_change(self.id, EntryContent::Event(Some(position), message.into()));
        }
        sharing.queue.push_change(self.id, EntryContent::End);
        self.end_feed();
        Ok(true)
    }

    async fn read_page(&self, sharing: &SharedSessions, after: Option<u64>) -> Result<Page, Down> {
        sharing.stores.events.read(self.id, &self.reader, after, &sharing.bounds).await
    }

    /// The store may be another one than before: it has to know who reads. Where the client has gone to another process
    /// meanwhile, it stays there.
    async fn register_reader(&self, sharing: &SharedSessions) -> Result<(), Down> {
        let after = Cursor::Again(self.last.load(Relaxed));
        sharing.stores.events.open(self.id, &self.reader, after, &sharing.bounds).await.map(|_| ())
    }

    /// Gives what is new. True once there is nothing more to be given here.
    async fn give_new(&self, sharing: &SharedSessions, asked: &mut Option<Vec<Id<'static>>>) -> Result<bool, Down> {
        loop {
            let page = self.read_page(sharing, Some(self.last.load(Relaxed))).await?;
            if page.taken {
                // Another reader has taken the stream over. Its message was lost, or came before this reader was known.
                sharing.let_go(self.id, &self.reader);
                self.end_feed();
                return Ok(true);
            }
            if asked.is_none() {
                *asked = page.asked.as_deref().map(parse_ids);
            }
            let open = asked.get_or_insert_default();
            page.events.iter().for_each(|(_, message)| remove_answered(open, message));
            if !self.give_page(&page).await {
                return Ok(true);
            }
            let reason = match page.writer {
                _ if page.has_more => continue,
                _ if page.ended => {
                    self.end_feed();
                    return Ok(true);
                }
                // After the store was away processes are back one after the other.
                WriterState::Gone if sharing.is_settled() => ENDED,
                WriterState::Unknown if !self.id.is_standalone() => FORGOTTEN,
                _ => return Ok(false),
            };
            return self.give_up(sharing, open.clone(), reason).await;
        }
    }
}

/// Feeds a connection until the stream ends or nobody reads.
async fn run_feed(sharing: Weak<SharedSessions>, feed: Arc<Feed>) {
    let fed = async {
        let mut generation = sharing.upgrade().map(|sharing| sharing.generation.load(Relaxed));
        // The requests that are to be answered, until their answer has passed.
        let mut asked = None;
        loop {
            let Some(sharing) = sharing.upgrade() else { return };
            let current = Some(sharing.generation.load(Relaxed));
            if current != generation && feed.register_reader(&sharing).await.is_ok() {
                generation = current;
            }
            let looked = feed.give_new(&sharing, &mut asked).await;
            // Not held while nothing comes.
            drop(sharing);
            match looked {
                Ok(true) => return,
                Ok(false) => {}
                Err(Down) => tokio::time::sleep(LOOK / 8).await,
            }
            let _ = tokio::time::timeout(LOOK, feed.woken.notified()).await;
        }
    };
    tokio::select! {
        () = feed.over.cancelled() => feed.log.end_stream(),
        () = fed => {}
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.feed.over.cancel();
        let Some(sharing) = self.sharing.upgrade() else { return };
        {
            let mut feeds = sharing.lock_feeds();
            if feeds.get(&self.feed.id).is_some_and(|feed| Arc::ptr_eq(feed, &self.feed)) {
                feeds.remove(&self.feed.id);
            }
        }
        let (stores, feed, alive) = (sharing.stores.clone(), Arc::clone(&self.feed), self.sharing.clone());
        let closed = async move {
            // Where the store is away it learns it later, by the next reader, or by this process's end.
            while stores.events.close(feed.id, &feed.reader).await.is_err() && alive.strong_count() > 0 {
                tokio::time::sleep(LOOK / 8).await;
            }
        };
        sharing.stores.broker.spawn(Box::pin(closed));
    }
}

fn event_id(number: u64, position: u64) -> String {
    format!("{number:x}-{position:x}")
}

fn parse_ids(asked: &str) -> Vec<Id<'static>> {
    serde_json::from_str::<Vec<Id<'static>>>(asked).unwrap_or_default()
}

/// Takes the request out that a message answers.
fn remove_answered(open: &mut Vec<Id<'static>>, message: &Bytes) {
    if open.is_empty() {
        return;
    }
    if let Ok(payload) = Payload::parse_with_limit(message, 1) {
        for message in payload.messages() {
            if let Message::Response(response) = message {
                open.retain(|id| response.id.as_ref() != Some(id));
            }
        }
    }
}
