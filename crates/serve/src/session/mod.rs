//! State that dispatch keeps for a legacy session (a session over HTTP, or the one session of a process over stdio).
//!
//! Constraint: an idle session is small (a few hundred bytes), since a server may have tens of thousands. The transport has the
//! ids, idle limits and storage. One lock protects all mutable state: the watched resources, the open questions, and the
//! changes for other processes, which each have a file.

mod change_marks;
mod change_replication;
mod questions;

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::outlet::{Gone, Outlet};
use crate::principal::Principal;
use crate::store::Record;
use change_marks::Watched;
pub(crate) use change_marks::{WATCHED_BYTES, WATCHED_URI};
use change_replication::ReplicatedSettings;
pub(crate) use change_replication::Tell;
use questions::Questions;
pub(crate) use questions::{ClientRefusal, ClientReply, QUESTION_BITS};

/// A legacy session.
pub struct Session {
    /// Session id that the transport gave.
    id: OnceLock<Box<str>>,
    revision: Revision,
    principal: Option<Principal>,
    client: Box<ClientDescription>,
    /// A [`LoggingLevel`] by number.
    log_level: AtomicU8,
    attachment: OnceLock<Box<dyn Any + Send + Sync>>,
    moving: Mutex<Moving>,
}

/// Description of the client, from `initialize`.
pub(crate) struct ClientDescription {
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
}

/// Mutable state of a session. All maps start without an allocation.
#[derive(Default)]
struct Moving {
    outlet: Option<Arc<dyn Outlet>>,
    /// Whether the server has the session in its list of those to tell.
    known: bool,
    in_flight: HashMap<Id<'static>, CancellationToken>,
    questions: Questions,
    watched: Watched,
    set_level: Option<LoggingLevel>,
    changes: ReplicatedSettings,
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
    pub(crate) fn new(revision: Revision, principal: Option<Principal>, client: ClientDescription) -> Self {
        Self {
            id: OnceLock::new(),
            revision,
            principal,
            client: Box::new(client),
            log_level: AtomicU8::new(level_rank(LoggingLevel::Debug)),
            attachment: OnceLock::new(),
            moving: Mutex::default(),
        }
    }

    /// A session that another process began, for a client that this one knows as `principal`. `None` where it is of a revision
    /// that nobody here speaks.
    pub(crate) fn from_record(record: Record, principal: Option<Principal>, limit: usize) -> Option<Self> {
        let revision = record.revision.parse().ok()?;
        let client = ClientDescription { info: record.info, capabilities: record.capabilities };
        let session = Self::new(revision, principal, client);
        record.changes.iter().for_each(|change| session.apply_change(change, limit));
        Some(session)
    }

    /// The session as another process can take it up, but for what the client set since. `owner`: what the store calls whose it
    /// is.
    pub(crate) fn to_record(&self, owner: Option<String>) -> Record {
        Record {
            revision: self.revision.as_str().to_owned(),
            owner,
            info: self.client.info.clone(),
            capabilities: self.client.capabilities.clone(),
            changes: Vec::new(),
        }
    }

    /// Whether a request of this id is under way here.
    pub(crate) fn has_under_way(&self, id: &Id<'_>) -> bool {
        self.lock_state().in_flight.contains_key(id)
    }

    /// Session id that the transport gave, if it gave one. It is not taken from a request.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.get().map(|id| &**id)
    }

    /// Sets the session id. The transport calls this once.
    pub(crate) fn set_id(&self, id: impl Into<Box<str>>) {
        // A second name would be somebody else's.
        let _ = self.id.set(id.into());
    }

    /// Principal that opened the session, if it was authenticated.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
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

    /// Name and version that the client declared.
    #[must_use]
    pub fn client_info(&self) -> &Implementation {
        &self.client.info
    }

    /// Capabilities that the client declared.
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
    pub(crate) fn attach_outlet(&self, outlet: Arc<dyn Outlet>) -> bool {
        let mut moving = self.lock_state();
        moving.outlet = Some(outlet);
        !std::mem::replace(&mut moving.known, true)
    }

    /// Lets the standalone outlet go: its stream ended.
    pub fn detach(&self) {
        self.lock_state().outlet = None;
    }

    /// Cancels all that is under way: the session ended.
    pub fn cancel_all(&self) {
        let ended = {
            let mut moving = self.lock_state();
            let changes = moving.changes.ended_changes();
            std::mem::replace(&mut *moving, Moving { changes, ..Moving::default() })
        };
        ended.in_flight.values().for_each(CancellationToken::cancel);
    }

    /// How many requests of the client are under way (asynchronous ones: others never are).
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.lock_state().in_flight.len()
    }

    pub(crate) fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        let mut moving = self.lock_state();
        self.log_level.store(level_rank(level), Ordering::Relaxed);
        moving.set_level = Some(level);
        moving.changes.note_level(level);
    }

    pub(crate) fn begin_request(&self, id: &Id<'static>, token: &CancellationToken, limit: usize) -> Result<(), Busy> {
        let mut moving = self.lock_state();
        if moving.in_flight.len() >= limit {
            return Err(Busy::TooMany);
        }
        if moving.in_flight.contains_key(id) {
            return Err(Busy::SameId);
        }
        moving.in_flight.insert(id.clone(), token.clone());
        Ok(())
    }

    pub(crate) fn end_request(&self, id: &Id<'static>) {
        self.lock_state().in_flight.remove(id);
    }

    pub(crate) fn cancel_request(&self, id: &Id<'static>) {
        let token = self.lock_state().in_flight.get(id).cloned();
        if let Some(token) = token {
            // Outside the lock: wakers run.
            token.cancel();
        }
    }

    /// Opens a request of ours. `None` when `limit` of them wait already.
    pub(crate) fn open_question(&self, limit: usize) -> Option<(u64, oneshot::Receiver<ClientReply>)> {
        self.lock_state().questions.open_question(limit)
    }

    pub(crate) fn forget_question(&self, id: u64) {
        self.lock_state().questions.forget_question(id);
    }

    /// The client can say nothing any more: whoever waits for an answer of its, now or later, learns so at once.
    pub(crate) fn expect_no_answers(&self) {
        let waiting = self.lock_state().questions.expect_none();
        // Outside the lock: wakers run.
        drop(waiting);
    }

    /// Answers to nothing that was asked are passed over.
    pub(crate) fn deliver_answer(&self, id: &Id<'_>, answer: ClientReply) {
        let sender = self.lock_state().questions.take_answered(id);
        if let Some(sender) = sender {
            // Nobody may be waiting any more, which is fine.
            let _ = sender.send(answer);
        }
    }

    /// False when the limit is reached.
    pub(crate) fn subscribe(&self, uri: &str, limit: usize) -> bool {
        let mut moving = self.lock_state();
        // While nobody can be told, what is given up is kept too.
        let is_watched =
            moving.watched.contains(uri) || moving.changes.have_room(uri, limit) && moving.watched.add(uri, limit);
        if is_watched {
            moving.changes.note_watched(uri, true);
        }
        is_watched
    }

    pub(crate) fn unsubscribe(&self, uri: &str, limit: usize) {
        let mut moving = self.lock_state();
        let was_watched = moving.watched.remove(uri);
        // Another process may know that it is watched before this one does.
        if was_watched || moving.changes.have_room(uri, limit) {
            moving.changes.note_watched(uri, false);
        }
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.lock_state().watched.contains(uri)
    }

    /// Sends on the standalone outlet.
    pub(crate) fn send_standalone(&self, message: Bytes) -> Result<(), Gone> {
        let outlet = self.lock_state().outlet.clone().ok_or(Gone)?;
        outlet.send(message)
    }

    fn lock_state(&self) -> MutexGuard<'_, Moving> {
        // Nothing under the lock can panic half way.
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("revision", &self.revision).field("client", &self.client.info.name).finish()
    }
}

pub(crate) fn level_rank(level: LoggingLevel) -> u8 {
    level as u8
}

#[cfg(test)]
mod tests {
    use super::{ClientDescription, Session};

    #[test]
    fn an_idle_session_is_small() {
        let bytes = size_of::<Session>() + size_of::<ClientDescription>();
        assert!(bytes < 2_048, "{bytes} bytes");
    }
}
