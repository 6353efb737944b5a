//! Sessions and streams that several processes share, over the traits of [`crate::store`].
//!
//! A process takes up a session of another process when a request names it: it builds its own session from the stored
//! record. It asks the store again only after the store was away, so a call in a known session costs the store nothing. The
//! standalone stream is in the store: any process appends to it, and the process that holds the client's connection reads
//! it. A reply's stream stays in the process that writes it. The store has a copy of it ([`StoredStream`]) for a client
//! that reconnects elsewhere.
//!
//! Constraints: handlers never wait for the store, so their messages go through a bounded queue (`write_behind`). A message
//! that was acknowledged is in the store before. When a process dies, its in-flight streams are lost; clients that resume
//! them receive an error (`stream_reader`).

mod control_bus;
mod directory;
mod forward;
mod server_push;
mod stream_reader;
mod write_behind;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::http_session::HttpSession;
use super::lock::lock_mutex;
use super::options::Limits;
use super::session_streams::StreamBounds;
use super::sessions::Sessions;
use crate::Server;
use crate::session::QUESTION_BITS;
use crate::store::{Bounds, Life, LogId, OnDown, SessionName, Stores};
pub(super) use forward::Elsewhere;
pub(super) use server_push::Remote;
use stream_reader::Feed;
pub(super) use stream_reader::Unreadable;
pub(super) use write_behind::StoredStream;
use write_behind::WriteQueue;

/// The sessions and streams that this process shares with others.
pub(super) struct SharedSessions {
    stores: Stores,
    /// This process, among those that share.
    own: u32,
    server: Server,
    sessions: Arc<Sessions>,
    streams: Arc<StreamBounds>,
    resumable: bool,
    life: Life,
    bounds: Bounds,
    begun: Instant,
    /// The second from which on it may be said again that clients send other processes too much.
    complains: AtomicU64,
    /// Counts up when what is known of sessions may no longer hold.
    generation: AtomicU64,
    /// When that was last.
    renewed: Mutex<Option<Instant>>,
    /// Sessions by what the store calls them.
    known: Mutex<HashMap<SessionName, Weak<HttpSession>>>,
    /// Counts what was said of sessions that nobody here knows. Only ever changed under the lock of `known`.
    heard: AtomicU64,
    /// Sessions that ended while the store was away, and when: it is to be told, and they don't come back until then.
    ended: Mutex<HashMap<SessionName, Instant>>,
    /// Streams of the store that connections here read.
    feeds: Mutex<HashMap<LogId, Arc<Feed>>>,
    queue: Arc<WriteQueue>,
    last: AtomicU32,
    over: CancellationToken,
}

/// How long a stream's beginning waits for the store.
const CAUGHT_UP: Duration = Duration::from_secs(1);

/// Ended streams of one session that are kept.
const ENDED: usize = 64;

/// Sessions that ended while the store was away, and of which it was not told yet.
const ENDED_AWAY: usize = 10_000;

impl SharedSessions {
    /// Begins to share. Its tasks run with the store.
    pub(super) fn begin_sharing(
        stores: Stores,
        server: Server,
        sessions: Arc<Sessions>,
        streams: Arc<StreamBounds>,
        (limits, resumable): (&Limits, bool),
    ) -> Arc<Self> {
        let sharing = Arc::new(Self {
            own: stores.broker.number(),
            stores,
            server,
            sessions,
            streams,
            resumable,
            life: Life { idle: limits.session_idle, whole: limits.session_life },
            bounds: Bounds {
                events: limits.stream_events,
                bytes: limits.stream_bytes,
                ended_bytes: limits.session_replay_bytes,
                ended: ENDED,
                idle: limits.session_idle,
                after_end: limits.replay_time,
            },
            begun: Instant::now(),
            complains: AtomicU64::new(0),
            generation: AtomicU64::new(1),
            renewed: Mutex::default(),
            known: Mutex::default(),
            heard: AtomicU64::new(0),
            ended: Mutex::default(),
            feeds: Mutex::default(),
            queue: Arc::default(),
            last: AtomicU32::new(0),
            over: CancellationToken::new(),
        });
        let spawn = |task| sharing.stores.broker.spawn(task);
        let over = || sharing.over.clone().cancelled_owned();
        let pump =
            write_behind::pump_queue(Arc::downgrade(&sharing), Arc::clone(&sharing.queue), sharing.stores.clone());
        let receive = control_bus::receive_posts(Arc::downgrade(&sharing), Arc::clone(&sharing.stores.broker));
        spawn(Box::pin(run_until(over(), pump)));
        spawn(Box::pin(run_until(over(), receive)));
        spawn(Box::pin(run_until(over(), keep_alive(Arc::downgrade(&sharing), limits.session_idle))));
        sharing
    }

    /// The upper bits of the number of each request that this process sends to a client.
    pub(super) fn question_prefix(&self) -> u64 {
        u64::from(self.own) << QUESTION_BITS
    }

    /// How many messages were dropped here, since the store was away for too long.
    pub(super) fn dropped_messages(&self) -> u64 {
        self.queue.dropped_changes()
    }

    /// Waits until all that was said so far is in the store, for so long only, and not for a store that is away.
    pub(super) async fn caught_up(&self) {
        if self.stores.broker.is_up() {
            let _ = tokio::time::timeout(CAUGHT_UP, self.queue.caught_up()).await;
        }
    }

    /// Waits until all that was said is in the store, for so long only. Blocks.
    pub(super) fn flush_writes(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.queue.is_empty() && self.stores.broker.is_up() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether what is said goes to this process's own streams only.
    fn is_alone(&self) -> bool {
        self.stores.on_down == OnDown::Memory && !self.stores.broker.is_up()
    }

    /// Whether a stream of this number may be one that some process had by itself, while the store was away.
    pub(super) fn is_ones_own(&self, number: u64) -> bool {
        self.stores.on_down == OnDown::Memory && number != 0 && number >> 32 == 0
    }

    /// Whether the store has been there for so long that who is missing in it is gone.
    fn is_settled(&self) -> bool {
        lock_mutex(&self.renewed).is_none_or(|renewed| renewed.elapsed() > self.stores.broker.settling())
    }

    fn known_session(&self, name: SessionName) -> Option<Arc<HttpSession>> {
        self.lock_known().get(&name)?.upgrade()
    }

    /// The session that something is said of; where nobody here knows it, whoever is just taking it up learns that.
    fn heard_of(&self, name: &str) -> Option<Arc<HttpSession>> {
        let name = name.parse().ok()?;
        let known = self.lock_known();
        let http_session = known.get(&name).and_then(Weak::upgrade);
        if http_session.is_none() {
            self.heard.fetch_add(1, Relaxed);
        }
        http_session
    }

    fn lock_known(&self) -> MutexGuard<'_, HashMap<SessionName, Weak<HttpSession>>> {
        lock_mutex(&self.known)
    }

    fn lock_feeds(&self) -> MutexGuard<'_, HashMap<LogId, Arc<Feed>>> {
        lock_mutex(&self.feeds)
    }

    fn next_number(&self) -> u32 {
        self.last.fetch_add(1, Relaxed).wrapping_add(1)
    }
}

impl Drop for SharedSessions {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

async fn run_until(over: impl Future<Output = ()>, task: impl Future<Output = ()>) {
    tokio::select! {
        () = over => {}
        () = task => {}
    }
}

/// Tells the store of sessions in use, every now and then: requests don't.
async fn keep_alive(sharing: Weak<SharedSessions>, idle: Duration) {
    let interval = (idle / 8).clamp(Duration::from_millis(10), Duration::from_secs(30));
    let mut told = Instant::now();
    loop {
        tokio::time::sleep(interval).await;
        let Some(sharing) = sharing.upgrade() else { return };
        sharing.lock_known().retain(|_, http_session| http_session.strong_count() > 0);
        // Telling takes its time, too: what was used meanwhile is among the next.
        let now = Instant::now();
        let used = sharing.sessions.used_within(now - told, now);
        told = now;
        let names: Vec<SessionName> = used.into_iter().map(|key| key.store_name()).collect();
        for some in names.chunks(TOUCHED) {
            // When it is back, all sessions are looked up again.
            if sharing.stores.sessions.touch(some, sharing.life).await.is_err() {
                break;
            }
        }
    }
}

/// Sessions told of at a time.
const TOUCHED: usize = 256;
