//! What dispatch keeps for a legacy session (one over HTTP, one a process over stdio).
//!
//! Constraint: an idle session is small (a few hundred bytes), since a server may have tens of thousands. Ids, idle
//! limits and storage are the transport's.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Gone, Outlet, Principal};
use crate::store::{Change, Record};

/// The longest URI that can be watched.
pub(crate) const WATCHED_URI: usize = 2 << 10;
/// All that one session or subscription watches, in bytes.
pub(crate) const WATCHED_BYTES: usize = 128 << 10;
/// Questions of one process in one session are numbered in so many bits; above them stands which process asks.
pub(crate) const QUESTION_BITS: u32 = 20;

/// A legacy session.
pub struct Session {
    /// What the transport's clients call it.
    id: OnceLock<Box<str>>,
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
    /// What the number of each question has in its upper bits, and the lower ones of the last.
    questions: u64,
    last_asked: u64,
    /// Whether no answers can come any more.
    is_deaf: bool,
    subscriptions: BTreeSet<Box<str>>,
    /// Their bytes.
    watched_bytes: usize,
    set_level: Option<LoggingLevel>,
    /// What the client set and no other process knows yet; only where others are to know.
    changed: Option<Box<Changed>>,
    /// Counts up with all that is set, here or elsewhere, and when others know it.
    version: u64,
    /// How many are telling others at the moment.
    telling: u32,
}

/// The last word on each thing, so that it takes no more than what it is about.
#[derive(Default)]
struct Changed {
    level: Option<LoggingLevel>,
    /// Whether a resource is watched.
    watched: BTreeMap<Box<str>, bool>,
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
            id: OnceLock::new(),
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

    /// The session as another process can take it up, but for what the client set since. `owner`: what the store calls whose it
    /// is.
    pub(crate) fn record(&self, owner: Option<String>) -> Record {
        Record {
            revision: self.revision.as_str().to_owned(),
            owner,
            info: self.client.info.clone(),
            capabilities: self.client.capabilities.clone(),
            changes: Vec::new(),
        }
    }

    /// All that the client set, as another process can take it over.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let moving = self.moving();
        let watched = moving.subscriptions.iter().map(|uri| Change::Watch(uri.to_string()));
        moving.set_level.map(Change::LogLevel).into_iter().chain(watched).collect()
    }

    /// Other processes know the session too: what the client sets is noted for them, and questions have these upper bits.
    pub(crate) fn share(&self, questions: u64) {
        let mut moving = self.moving();
        moving.questions = questions;
        moving.changed = Some(Box::default());
    }

    /// What the client set and nobody was told yet, to be told now. `None` where that is nothing.
    pub(crate) fn tell_changes(self: &Arc<Self>) -> Option<Telling> {
        let mut moving = self.moving();
        let changed = std::mem::take(&mut **moving.changed.as_mut()?);
        let changes = changed.to_changes();
        if changes.is_empty() {
            return None;
        }
        moving.telling += 1;
        drop(moving);
        Some(Telling { session: Arc::clone(self), changes, is_told: false })
    }

    /// As of which setting of the client's it is.
    pub(crate) fn version(&self) -> u64 {
        self.moving().version
    }

    /// Takes over what the client set at another process.
    pub(crate) fn apply(&self, change: &Change, limit: usize) {
        let mut moving = self.moving();
        moving.version += 1;
        moving.apply(change, limit, &self.log_level);
    }

    /// Takes over all that the client set, as the store had it, with what was set here and nobody was told yet. False where
    /// something was set since `version`: the store may have been asked before that.
    pub(crate) fn replace(&self, changes: &[Change], version: u64, limit: usize) -> bool {
        let mut moving = self.moving();
        if moving.version != version || moving.telling > 0 {
            return false;
        }
        (moving.subscriptions, moving.watched_bytes, moving.set_level) = (BTreeSet::new(), 0, None);
        self.log_level.store(rank(LoggingLevel::Debug), Ordering::Relaxed);
        let untold = moving.changed.as_ref().map(|changed| changed.to_changes()).unwrap_or_default();
        changes.iter().chain(&untold).for_each(|change| moving.apply(change, limit, &self.log_level));
        true
    }

    /// Whether a request of this id is under way here.
    pub(crate) fn has_under_way(&self, id: &Id<'_>) -> bool {
        self.moving().in_flight.contains_key(id)
    }

    /// What the transport's clients call it, where they call it anything. Not what a request claims: what the transport gave.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.get().map(|id| &**id)
    }

    /// Said once, by the transport.
    pub(crate) fn is_called(&self, id: impl Into<Box<str>>) {
        // A second name would be somebody else's.
        let _ = self.id.set(id.into());
    }

    /// Who opened it, where anybody was authenticated.
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
        let ended = {
            let mut moving = self.moving();
            // Whoever is telling others at the moment has still to come back.
            let telling = moving.telling;
            std::mem::replace(&mut *moving, Moving { telling, ..Moving::default() })
        };
        ended.in_flight.values().for_each(CancellationToken::cancel);
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
        let mut moving = self.moving();
        self.log_level.store(rank(level), Ordering::Relaxed);
        moving.set_level = Some(level);
        moving.note(|changed| changed.level = Some(level));
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
        let id = loop {
            // Within its bits, or it would be another process's; those that wait are few.
            moving.last_asked = moving.last_asked % ((1 << QUESTION_BITS) - 1) + 1;
            let id = moving.questions | moving.last_asked;
            if !moving.asked.contains_key(&id) {
                break id;
            }
        };
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
        // While nobody can be told, what is given up is kept too.
        let is_watched = moving.subscriptions.contains(uri) || moving.may_note(uri, limit) && moving.watch(uri, limit);
        if is_watched {
            moving.note(|changed| changed.watch(uri, true));
        }
        is_watched
    }

    pub(crate) fn unsubscribe(&self, uri: &str, limit: usize) {
        let mut moving = self.moving();
        let was_watched = moving.unwatch(uri);
        // Another process may know that it is watched before this one does.
        if was_watched || uri.len() <= WATCHED_URI && moving.may_note(uri, limit) {
            moving.note(|changed| changed.watch(uri, false));
        }
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
    fn apply(&mut self, change: &Change, limit: usize, log_level: &AtomicU8) {
        match change {
            Change::LogLevel(level) => {
                self.set_level = Some(*level);
                log_level.store(rank(*level), Ordering::Relaxed);
            }
            Change::Watch(uri) => {
                self.watch(uri, limit);
            }
            Change::Unwatch(uri) => {
                self.unwatch(uri);
            }
        }
    }

    /// False when the limit is reached.
    fn watch(&mut self, uri: &str, limit: usize) -> bool {
        if self.subscriptions.contains(uri) {
            return true;
        }
        let bytes = self.watched_bytes + uri.len();
        if self.subscriptions.len() >= limit || uri.len() > WATCHED_URI || bytes > WATCHED_BYTES {
            return false;
        }
        self.watched_bytes = bytes;
        self.subscriptions.insert(uri.into())
    }

    fn unwatch(&mut self, uri: &str) -> bool {
        let was_watched = self.subscriptions.remove(uri);
        if was_watched {
            self.watched_bytes -= uri.len();
        }
        was_watched
    }

    /// Whether there is room for another word on what is watched that nobody was told.
    fn may_note(&self, uri: &str, limit: usize) -> bool {
        let Some(changed) = &self.changed else { return true };
        let bytes: usize = changed.watched.keys().map(|uri| uri.len()).sum();
        changed.watched.contains_key(uri) || changed.watched.len() < 2 * limit && bytes + uri.len() <= 2 * WATCHED_BYTES
    }

    fn note(&mut self, change: impl FnOnce(&mut Changed)) {
        self.version += 1;
        if let Some(changed) = &mut self.changed {
            change(changed);
        }
    }
}

impl Changed {
    fn watch(&mut self, uri: &str, is_watched: bool) {
        self.watched.insert(uri.into(), is_watched);
    }

    fn to_changes(&self) -> Vec<Change> {
        let watched = self.watched.iter().map(|(uri, is_watched)| match is_watched {
            true => Change::Watch(uri.to_string()),
            false => Change::Unwatch(uri.to_string()),
        });
        self.level.map(Change::LogLevel).into_iter().chain(watched).collect()
    }

    /// Puts something back that was said before all that is here.
    fn add_earlier(&mut self, change: Change) {
        let (uri, is_watched) = match change {
            Change::LogLevel(level) => {
                self.level.get_or_insert(level);
                return;
            }
            Change::Watch(uri) => (uri, true),
            Change::Unwatch(uri) => (uri, false),
        };
        self.watched.entry(uri.into()).or_insert(is_watched);
    }
}

/// What a client set, on its way to the other processes. Dropped before it arrived, it is to be told again.
pub(crate) struct Telling {
    session: Arc<Session>,
    pub(crate) changes: Vec<Change>,
    is_told: bool,
}

impl Telling {
    /// All know.
    pub(crate) fn done(mut self) {
        self.is_told = true;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let mut moving = self.session.moving();
        moving.telling -= 1;
        moving.version += 1;
        if self.is_told {
            return;
        }
        // A session that has ended has nobody to tell.
        if let Some(changed) = &mut moving.changed {
            self.changes.drain(..).for_each(|change| changed.add_earlier(change));
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
    use std::sync::Arc;

    use mcpace_wire::Revision;
    use mcpace_wire::jsonrpc::Id;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};

    use super::{Client, QUESTION_BITS, Session, WATCHED_BYTES, WATCHED_URI};
    use crate::store::Change;

    const LIMIT: usize = 4;

    fn session() -> Arc<Session> {
        let client = Client { info: Implementation::default(), capabilities: ClientCapabilities::default() };
        Arc::new(Session::new(Revision::V2025_11_25, None, client))
    }

    fn watch(uri: &str) -> Change {
        Change::Watch(uri.to_owned())
    }

    #[test]
    fn an_idle_session_is_small() {
        let bytes = size_of::<Session>() + size_of::<Client>();
        assert!(bytes < 2_048, "{bytes} bytes");
    }

    #[test]
    fn what_is_watched_is_bounded_in_number_and_in_bytes() {
        let session = session();
        assert!(!session.subscribe(&"x".repeat(WATCHED_URI + 1), LIMIT));
        for number in 0..LIMIT {
            assert!(session.subscribe(&number.to_string(), LIMIT));
        }
        assert!(session.subscribe("0", LIMIT) && !session.subscribe("another", LIMIT));
        let many = WATCHED_BYTES / WATCHED_URI;
        let long = |number| format!("{number:0>width$}", width = WATCHED_URI);
        let taken = (0..2 * many).filter(|number| session.subscribe(&long(*number), 10 * many)).count();
        assert_eq!(taken, many - 1, "what was watched before takes a little");
        // What is given up makes room.
        session.unsubscribe(&long(0), LIMIT);
        assert!(session.subscribe(&long(many), 10 * many));
    }

    #[test]
    fn what_nobody_can_be_told_is_bounded_and_its_last_word_counts() {
        let session = session();
        session.share(0);
        for round in 0..10 {
            for number in 0..100 {
                session.unsubscribe(&format!("nobody watches {round} {number}"), LIMIT);
            }
            session.set_log_level(LoggingLevel::Error);
        }
        let telling = session.tell_changes().unwrap();
        assert_eq!(telling.changes.len(), 2 * LIMIT + 1);
        telling.done();
        assert!(session.tell_changes().is_none());
        session.subscribe("a", LIMIT);
        let telling = session.tell_changes().unwrap();
        session.unsubscribe("a", LIMIT);
        session.subscribe("b", LIMIT);
        // It could not be told: what was said since stands.
        drop(telling);
        let telling = session.tell_changes().unwrap();
        assert_eq!(telling.changes, [Change::Unwatch("a".to_owned()), watch("b")]);
    }

    #[test]
    fn what_the_store_has_replaces_all_but_what_was_set_since() {
        let session = session();
        session.share(0);
        session.subscribe("told", LIMIT);
        session.tell_changes().unwrap().done();
        session.subscribe("untold", LIMIT);
        let version = session.version();
        assert!(session.replace(&[watch("elsewhere")], version, LIMIT));
        let watched = ["told", "untold", "elsewhere"].map(|uri| session.is_subscribed(uri));
        assert_eq!(watched, [false, true, true]);
        assert_eq!(session.changes(), [watch("elsewhere"), watch("untold")]);
        // The store was asked before it had this, whether it is being told or was.
        let version = session.version();
        session.subscribe("new", LIMIT);
        assert!(!session.replace(&[], version, LIMIT));
        let version = session.version();
        let telling = session.tell_changes().unwrap();
        assert!(!session.replace(&[], version, LIMIT));
        telling.done();
        assert!(!session.replace(&[], version, LIMIT));
        assert!(session.replace(&[], session.version(), LIMIT) && !session.is_subscribed("new"));
    }

    #[test]
    fn questions_keep_to_their_processs_numbers() {
        let session = session();
        session.share(7 << QUESTION_BITS);
        let (first, _held) = session.ask(4).unwrap();
        assert_eq!(first, 7 << QUESTION_BITS | 1);
        session.moving().last_asked = (1 << QUESTION_BITS) - 2;
        assert_eq!(session.ask(4).unwrap().0, (8 << QUESTION_BITS) - 1);
        // The first still waits.
        assert_eq!(session.ask(4).unwrap().0, 7 << QUESTION_BITS | 2);
        session.answered(&Id::Integer(i64::try_from(first).unwrap()), Ok("{}".into()));
    }
}
