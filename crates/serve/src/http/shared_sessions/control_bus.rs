//! Control messages from the other processes.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use mcpace_wire::jsonrpc::{Message, Payload};

use super::{SharedSessions, lock_mutex};
use crate::exchange::{Channel, Incoming, Peer};
use crate::outlet::{Gone, Outlet};
use crate::store::{Broker, LogId, Post, SessionName};

/// Takes what comes, for as long as anybody is there to tell. Never ends by itself.
pub(super) async fn receive_posts(sharing: Weak<SharedSessions>, broker: Arc<dyn Broker>) {
    loop {
        let received = broker.receive().await;
        let Some(sharing) = sharing.upgrade() else { return };
        received.posts.into_iter().for_each(|post| sharing.take_post(post));
        if received.renewed {
            sharing.renew_after_outage();
        }
    }
}

impl SharedSessions {
    fn take_post(&self, post: Post) {
        match post {
            Post::Wake(log) => {
                if let Some(feed) = log.parse().ok().and_then(|log: LogId| self.lock_feeds().get(&log).cloned()) {
                    feed.wake_reader();
                }
            }
            Post::LetGo(log, reader) => {
                if let Ok(log) = log.parse() {
                    self.let_go(log, &reader);
                }
            }
            Post::Ended(name) => {
                if let Some(http_session) = self.heard_of(&name) {
                    self.sessions.end_session(&http_session);
                }
            }
            Post::Changed(name, change) => {
                if let Some(http_session) = self.heard_of(&name) {
                    http_session.session.apply_change(&change, self.server.limits().watched_resources);
                }
            }
            Post::Inbound(name, body) => self.take_inbound(&name, body.into()),
            Post::Told(told) => self.server.hear(told),
        }
    }

    /// Called when the store is back: sessions may have changed meanwhile, and streams may have new events.
    fn renew_after_outage(self: &Arc<Self>) {
        self.generation.fetch_add(1, Relaxed);
        *lock_mutex(&self.renewed) = Some(Instant::now());
        // Streams that were opened while this process was alone are ended. Their clients reconnect, and all processes know the
        // new streams.
        self.sessions.end_standalone_streams();
        let feeds: Vec<_> = self.lock_feeds().values().cloned().collect();
        feeds.iter().for_each(|feed| feed.wake_reader());
        let (sharing, known): (_, Vec<_>) = (Arc::clone(self), self.lock_known().values().cloned().collect());
        self.stores.broker.spawn(Box::pin(async move {
            sharing.tell_ended().await;
            for http_session in known.iter().filter_map(Weak::upgrade) {
                // One that the store has lost is put there again; whoever can't be looked up now is when it is used.
                let _ = sharing
                    .verify_session(http_session.key, Some(Arc::clone(&http_session)), None, Instant::now())
                    .await;
            }
        }));
    }

    /// The client reads that stream elsewhere.
    pub(super) fn let_go(&self, log: LogId, reader: &str) {
        let feed = self.lock_feeds().get(&log).cloned();
        if feed.as_ref().is_some_and(|feed| feed.reader != reader) {
            return;
        }
        // First of all: once its connection has ended, nobody may be told anything by this process.
        if log.is_standalone()
            && let Some(http_session) = self.known_session(log.session)
        {
            http_session.session.detach();
        }
        if let Some(feed) = feed {
            feed.end_feed();
        }
    }

    /// An answer or a cancellation that a client sent to another process.
    fn take_inbound(&self, name: &str, body: Bytes) {
        let Some(http_session) = self.find_named(name) else { return };
        let limit = mcpace_wire::jsonrpc::DEFAULT_BATCH_LIMIT;
        let Ok(payload) = Payload::parse_with_limit(&body, limit) else { return };
        let session = Arc::clone(&http_session.session);
        let peer = Peer { revision: session.revision(), session: Some(session), principal: None };
        for message in payload.messages() {
            // Requests were answered where they came in.
            if !matches!(message, Message::Request(_)) {
                let (received, channel) = (Instant::now(), &Silent);
                let incoming =
                    Incoming { message, outline: None, body: &body, peer: &peer, channel, received, timed: false };
                let _ = self.server.handle(incoming);
            }
        }
    }

    fn find_named(&self, name: &str) -> Option<Arc<super::HttpSession>> {
        self.known_session(name.parse::<SessionName>().ok()?)
    }
}

/// Nothing is said in reply to what isn't asked.
struct Silent;

impl Channel for Silent {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::new(Silent)
    }
}

impl Outlet for Silent {
    fn send(&self, _message: Bytes) -> Result<(), Gone> {
        Err(Gone)
    }
}
