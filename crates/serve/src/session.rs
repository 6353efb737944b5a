//! What dispatch keeps for a legacy session (one over HTTP, one a process over stdio).
//!
//! Constraint: an idle session is small (a few hundred bytes), since a server may have tens of thousands. Ids, idle
//! limits and storage are the transport's.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Gone, Outlet, Principal};
use crate::store::{Change, Name, Record};

/// A legacy session.
pub struct Session {
    revision: Revision,
    principal: Option<Principal>,
    client: Box<Client>,
    /// A [`LoggingLevel`] by number.
    log_level: AtomicU8,
    attachment: OnceLock<Box<dyn Any + Send + Sync>>,
    moving: Mutex<Moving>,
}

/// Who asked for the session, as `initialize` told.
pub(crate) struct Client {
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
}

/// What changes while the session lives. All maps start without an allocation.
#[derive(Default)]
struct Moving {
    outlet: Option<Arc<dyn Outlet>>,
    /// Whether the server has the session in its list of those to tell.
    known: bool,
    in_flight: HashMap<Id<'static>, CancellationToken>,
    asked: HashMap<u64, oneshot::Sender<Answer>>,
    last_asked: u64,
    /// Whether no answers can come any more.
    is_deaf: bool,
    subscriptions: BTreeSet<Box<str>>,
    /// What the client set and no other process knows yet; only where others are to know.
    changed: Option<Vec<Change>>,
}

/// A client's answer to a request of ours: the result's text, or its error.
pub(crate) type Answer = Result<Box<str>, ClientError>;

/// A client's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// Why a request can't begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// One of the same id is under way.
    SameId,
    /// As many as the limit are under way.
    TooMany,
}

impl Session {
    pub(crate) fn new(revision: Revision, principal: Option<Principal>, client: Client) -> Self {
        Self {
            revision,
            principal,
            client: Box::new(client),
            log_level: AtomicU8::new(rank(LoggingLevel::Debug)),
            attachment: OnceLock::new(),
            moving: Mutex::default(),
        }
    }

    /// A session that another process began, for a client that this one knows as `principal`. `None` where it is of a revision
    /// that nobody here speaks.
    pub(crate) fn restored(record: Record, principal: Option<Principal>, limit: usize) -> Option<Self> {
        let revision = record.revision.parse().ok()?;
        let client = Client { info: record.info, capabilities: record.capabilities };
        let session = Self::new(revision, principal, client);
        record.changes.iter().for_each(|change| session.apply(change, limit));
        Some(session)
    }

    /// The session as another process can take it up.
    pub(crate) fn record(&self) -> Record {
        Record {
            revision: self.revision.as_str().to_owned(),
            owner: self.principal.as_ref().map(|principal| Name::of(&principal.subject).to_string()),
            info: self.client.info.clone(),
            capabilities: self.client.capabilities.clone(),
            changes: Vec::new(),
        }
    }

    /// Other processes know the session too: what the client sets is noted for them, and questions are numbered from here on.
    pub(crate) fn share(&self, first_question: u64) {
        let mut moving = self.moving();
        moving.last_asked = first_question;
        moving.changed = Some(Vec::new());
    }

    /// What the client set since this was asked last.
    pub(crate) fn take_changes(&self) -> Vec<Change> {
        self.moving().changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Those could not be told: they are to be taken again.
    pub(crate) fn put_changes_back(&self, mut changes: Vec<Change>) {
        if let Some(changed) = &mut self.moving().changed {
            changes.append(changed);
            *changed = changes;
        }
    }

    /// Takes over what the client set at another process.
    pub(crate) fn apply(&self, change: &Change, limit: usize) {
        match change {
            Change::LogLevel(level) => self.log_level.store(rank(*level), Ordering::Relaxed),
            Change::Watch(uri) => {
                self.moving().watch(uri, limit);
            }
            Change::Unwatch(uri) => {
                self.moving().subscriptions.remove(uri.as_str());
            }
        }
    }

    /// Whether a request of this id is under way here.
    pub(crate) fn has_under_way(&self, id: &Id<'_>) -> bool {
        self.moving().in_flight.contains_key(id)
    }

    /// The revision that `initialize` agreed on.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether `principal` is who opened the session. Nobody else may use it, whatever id they know.
    #[must_use]
    pub fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        Principal::are_one(self.principal.as_ref(), principal)
    }

    /// Who the client says it is.
    #[must_use]
    pub fn client_info(&self) -> &Implementation {
        &self.client.info
    }

    /// What the client says it can do.
    #[must_use]
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.client.capabilities
    }

    /// Room for something that a server behind the registry keeps for as long as the session lives.
    #[must_use]
    pub fn attachment(&self) -> &OnceLock<Box<dyn Any + Send + Sync>> {
        &self.attachment
    }

    /// Takes `outlet` for what belongs to no request: the standalone GET stream, or stdout. It replaces the one before.
    /// See [`crate::Server::attach`], which also makes list changes come this way. True the first time.
    pub(crate) fn attach(&self, outlet: Arc<dyn Outlet>) -> bool {
        let mut moving = self.moving();
        moving.outlet = Some(outlet);
        !std::mem::replace(&mut moving.known, true)
    }

    /// Lets the standalone outlet go: its stream ended.
    pub fn detach(&self) {
        self.moving().outlet = None;
    }

    /// Cancels all that is under way: the session ended.
    pub fn cancel_all(&self) {
        let moving = std::mem::take(&mut *self.moving());
        moving.in_flight.values().for_each(CancellationToken::cancel);
    }

    /// How many requests of the client are under way (asynchronous ones: others never are).
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.moving().in_flight.len()
    }

    pub(crate) fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        self.log_level.store(rank(level), Ordering::Relaxed);
        self.moving().note(|| Change::LogLevel(level));
    }

    pub(crate) fn begin(&self, id: &Id<'static>, token: &CancellationToken, limit: usize) -> Result<(), Busy> {
        let mut moving = self.moving();
        if moving.in_flight.len() >= limit {
            return Err(Busy::TooMany);
        }
        if moving.in_flight.contains_key(id) {
            return Err(Busy::SameId);
        }
        moving.in_flight.insert(id.clone(), token.clone());
        Ok(())
    }

    pub(crate) fn end(&self, id: &Id<'static>) {
        self.moving().in_flight.remove(id);
    }

    pub(crate) fn cancel(&self, id: &Id<'static>) {
        let token = self.moving().in_flight.get(id).cloned();
        if let Some(token) = token {
            // Outside the lock: wakers run.
            token.cancel();
        }
    }

    /// Opens a request of ours. `None` when `limit` of them wait already.
    pub(crate) fn ask(&self, limit: usize) -> Option<(u64, oneshot::Receiver<Answer>)> {
        let mut moving = self.moving();
        // Those that nobody waits for any more don't count.
        moving.asked.retain(|_, sender| !sender.is_closed());
        if moving.asked.len() >= limit {
            return None;
        }
        moving.last_asked += 1;
        let id = moving.last_asked;
        let (sender, receiver) = oneshot::channel();
        if !moving.is_deaf {
            moving.asked.insert(id, sender);
        }
        Some((id, receiver))
    }

    pub(crate) fn forget(&self, id: u64) {
        self.moving().asked.remove(&id);
    }

    /// The client can say nothing any more: whoever waits for an answer of its, now or later, learns so at once.
    pub(crate) fn expect_no_answers(&self) {
        let asked = {
            let mut moving = self.moving();
            moving.is_deaf = true;
            std::mem::take(&mut moving.asked)
        };
        // Outside the lock: wakers run.
        drop(asked);
    }

    /// Answers to nothing that was asked are passed over.
    pub(crate) fn answered(&self, id: &Id<'_>, answer: Answer) {
        let Id::Integer(id) = id else { return };
        let Ok(id) = u64::try_from(*id) else { return };
        let sender = self.moving().asked.remove(&id);
        if let Some(sender) = sender {
            // Nobody may be waiting any more, which is fine.
            let _ = sender.send(answer);
        }
    }

    /// False when the limit is reached.
    pub(crate) fn subscribe(&self, uri: &str, limit: usize) -> bool {
        let mut moving = self.moving();
        let is_watched = moving.watch(uri, limit);
        if is_watched {
            moving.note(|| Change::Watch(uri.to_owned()));
        }
        is_watched
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        let mut moving = self.moving();
        moving.subscriptions.remove(uri);
        moving.note(|| Change::Unwatch(uri.to_owned()));
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.moving().subscriptions.contains(uri)
    }

    /// Sends on the standalone outlet.
    pub(crate) fn send(&self, message: Bytes) -> Result<(), Gone> {
        let outlet = self.moving().outlet.clone().ok_or(Gone)?;
        outlet.send(message)
    }

    fn moving(&self) -> MutexGuard<'_, Moving> {
        // Nothing under the lock can panic half way.
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moving {
    /// False when the limit is reached.
    fn watch(&mut self, uri: &str, limit: usize) -> bool {
        if self.subscriptions.len() >= limit && !self.subscriptions.contains(uri) {
            return false;
        }
        self.subscriptions.insert(uri.into());
        true
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changed) = &mut self.changed {
            changed.push(change());
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("revision", &self.revision).field("client", &self.client.info.name).finish()
    }
}

pub(crate) fn rank(level: LoggingLevel) -> u8 {
    level as u8
}

#[cfg(test)]
mod tests {
    use super::{Client, Session};

    #[test]
    fn an_idle_session_is_small() {
        let bytes = size_of::<Session>() + size_of::<Client>();
        assert!(bytes < 2_048, "{bytes} bytes");
    }
}
