//! Speaking to a session's client on its standalone stream, whichever process holds that.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcpace_wire::http::SessionId;

use super::super::event_log::{Log, LogBounds};
use super::super::http_session::HttpSession;
use super::super::http_session::Standalone;
use super::super::session_key::SessionKey;
use super::{SharedSessions, StoredStream};
use crate::outlet::{Gone, Outlet};
use crate::push::NotifyError;
use crate::store::{BroadcastChange, Down, EntryContent, FoundSession, LogId, Post, StreamEntry, To};

impl SharedSessions {
    /// A log for the replies to a POST, of which the store has a copy once something is said on it. `asked`: the ids of its
    /// requests, a JSON array.
    pub(in super::super) fn new_log(&self, http_session: &HttpSession, asked: &str, bounds: LogBounds) -> Arc<Log> {
        let number = u64::from(self.own) << 32 | u64::from(self.next_number());
        let log = LogId { session: http_session.key.store_name(), number };
        Log::new_shared(number, bounds, StoredStream::new(Arc::clone(&self.queue), log, asked.into()))
    }

    /// Says something on the standalone stream. `waits`: where this process is alone and there is none, it may wait for one. The
    /// store has all wait.
    fn push_message(&self, http_session: &HttpSession, message: Bytes, waits: bool) -> Result<(), Gone> {
        let log = LogId::standalone(http_session.key.store_name());
        if self.is_alone() {
            let feed = self.lock_feeds().get(&log).cloned();
            return match feed {
                Some(feed) => feed.say_here(&message),
                None if waits => http_session.streams.tell_client(message),
                None => http_session.streams.send_standalone(message),
            };
        }
        self.queue.push_change(log, EntryContent::Event(None, message));
        Ok(())
    }

    /// Says something to a session that any process may have. It is in the store when this returns.
    pub(in super::super) async fn notify_session(&self, id: &SessionId, message: Bytes) -> Result<(), NotifyError> {
        let key = SessionKey::parse_id(id.as_str()).ok_or(NotifyError::Unknown)?;
        let here = self.sessions.peek_session(key);
        if self.is_alone() {
            return self
                .push_message(&*here.ok_or(NotifyError::Unknown)?, message, false)
                .map_err(|Gone| NotifyError::Unread);
        }
        let down = |Down| NotifyError::StoreDown;
        match self.stores.sessions.find(key.store_name()).await.map_err(down)? {
            FoundSession::Session(..) => {}
            // The store may have lost it since: its process puts it there again when it is used.
            FoundSession::Unknown if here.is_some() => {}
            FoundSession::Ended | FoundSession::Unknown => return Err(NotifyError::Unknown),
        }
        let what = EntryContent::Event(None, message);
        let entry = StreamEntry { log: LogId::standalone(key.store_name()), sequence: 0, what };
        let added = self.stores.events.add(&[entry], &self.bounds).await.map_err(down)?;
        if added.iter().any(|added| added.refused) { Err(NotifyError::Refused) } else { Ok(()) }
    }

    /// Has the other processes tell their clients, too.
    pub(in super::super) async fn tell_others(&self, told: BroadcastChange) -> Result<(), NotifyError> {
        match self.stores.broker.post(To::Others, &Post::Told(told)).await {
            Ok(_) => Ok(()),
            Err(Down) if self.is_alone() => Ok(()),
            Err(Down) => Err(NotifyError::StoreDown),
        }
    }
}

impl SharedSessions {
    /// Has the other processes tell their clients, without waiting for the store.
    pub(in super::super) fn tell_others_soon(&self, told: BroadcastChange) {
        let broker = Arc::clone(&self.stores.broker);
        let post = Post::Told(told);
        self.stores.broker.spawn(Box::pin(async move {
            // Clients of other processes list again when they come back.
            let _ = broker.post(To::Others, &post).await;
        }));
    }
}

/// The standalone stream of a session, wherever it is read. Keeps neither.
pub(in super::super) struct Remote {
    pub(in super::super) http_session: Weak<HttpSession>,
    pub(in super::super) sharing: Weak<SharedSessions>,
}

impl Outlet for Remote {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        let http_session = self.http_session.upgrade().ok_or(Gone)?;
        self.sharing.upgrade().ok_or(Gone)?.push_message(&http_session, message, false)
    }

    fn tell(&self, message: Bytes) -> Result<(), Gone> {
        let http_session = self.http_session.upgrade().ok_or(Gone)?;
        self.sharing.upgrade().ok_or(Gone)?.push_message(&http_session, message, true)
    }

    fn opens(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        Standalone(Weak::clone(&self.http_session)).opens()
    }
}
