//! What a client set in a session that other processes know too: noted, told, and taken over.
//!
//! Constraint: no I/O: who tells others takes a [`Telling`] and says when it is done, one at a time: what is on its way is known to
//! nobody yet, and what was said later must arrive later. Bounded by what it is about: of each thing only the last word is kept. What
//! couldn't be told is told again, unless something newer was said meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcpace_wire::mcp::LoggingLevel;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::change_marks::{WATCHED_BYTES, WATCHED_URI, Watched};
use super::{Moving, Session, rank};
use crate::store::Change;

/// What the client set, as far as others are concerned.
#[derive(Default)]
pub(super) struct Changes {
    /// What no other process knows yet; only where others are to know.
    untold: Option<Box<Untold>>,
    /// Counts up with all that is set, here or elsewhere, and when others know it.
    version: u64,
    /// While somebody is telling others: ends with it.
    telling: Option<CancellationToken>,
}

/// What there is to tell.
pub(crate) enum Tell {
    /// All is known.
    Nothing,
    /// Something is being told at the moment, and perhaps in vain: look again after that.
    After(WaitForCancellationFutureOwned),
    /// This, now.
    Now(Telling),
}

/// The last word on each thing, so that it takes no more than what it is about.
#[derive(Default)]
struct Untold {
    level: Option<LoggingLevel>,
    /// Whether a resource is watched.
    watched: BTreeMap<Box<str>, bool>,
}

impl Session {
    /// Other processes know the session too: what the client sets is noted for them, and questions have these upper bits.
    pub(crate) fn share(&self, questions: u64) {
        let mut moving = self.moving();
        moving.questions.of_process(questions);
        moving.changes.untold = Some(Box::default());
    }

    /// What the client set and nobody was told yet.
    pub(crate) fn tell_changes(self: &Arc<Self>) -> Tell {
        let mut moving = self.moving();
        if let Some(telling) = &moving.changes.telling {
            return Tell::After(telling.clone().cancelled_owned());
        }
        match moving.changes.begin_telling() {
            Some(changes) => Tell::Now(Telling { session: Arc::clone(self), changes, is_told: false }),
            None => Tell::Nothing,
        }
    }

    /// All that the client set, as another process can take it over.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let moving = self.moving();
        let watched = moving.watched.iter().map(|uri| Change::Watch(uri.to_owned()));
        moving.set_level.map(Change::LogLevel).into_iter().chain(watched).collect()
    }

    /// As of which setting of the client's it is.
    pub(crate) fn version(&self) -> u64 {
        self.moving().changes.version
    }

    /// Takes over what the client set at another process.
    pub(crate) fn apply(&self, change: &Change, limit: usize) {
        let mut moving = self.moving();
        moving.changes.version += 1;
        self.apply_under_lock(&mut moving, change, limit);
    }

    /// Takes over all that the client set, as the store had it, with what was set here and nobody was told yet. False where
    /// something was set since `version`: the store may have been asked before that.
    pub(crate) fn replace(&self, changes: &[Change], version: u64, limit: usize) -> bool {
        let mut moving = self.moving();
        if moving.changes.version != version || moving.changes.telling.is_some() {
            return false;
        }
        (moving.watched, moving.set_level) = (Watched::default(), None);
        self.log_level.store(rank(LoggingLevel::Debug), Ordering::Relaxed);
        let untold = moving.changes.untold.as_deref().map(Untold::to_changes).unwrap_or_default();
        changes.iter().chain(&untold).for_each(|change| self.apply_under_lock(&mut moving, change, limit));
        true
    }

    fn apply_under_lock(&self, moving: &mut Moving, change: &Change, limit: usize) {
        match change {
            Change::LogLevel(level) => {
                moving.set_level = Some(*level);
                self.log_level.store(rank(*level), Ordering::Relaxed);
            }
            Change::Watch(uri) => {
                moving.watched.add(uri, limit);
            }
            Change::Unwatch(uri) => {
                moving.watched.remove(uri);
            }
        }
    }
}

impl Changes {
    /// The session has ended: there is nothing to tell, but whoever is telling others at the moment has still to come back.
    pub(super) fn ended(&mut self) -> Self {
        Self { telling: self.telling.take(), ..Self::default() }
    }

    pub(super) fn note_level(&mut self, level: LoggingLevel) {
        self.note(|untold| untold.level = Some(level));
    }

    pub(super) fn note_watched(&mut self, uri: &str, is_watched: bool) {
        self.note(|untold| {
            untold.watched.insert(uri.into(), is_watched);
        });
    }

    /// Whether there is room for another word on what is watched that nobody was told.
    pub(super) fn have_room(&self, uri: &str, limit: usize) -> bool {
        if uri.len() > WATCHED_URI {
            return false;
        }
        let Some(untold) = &self.untold else { return true };
        let bytes: usize = untold.watched.keys().map(|uri| uri.len()).sum();
        untold.watched.contains_key(uri) || untold.watched.len() < 2 * limit && bytes + uri.len() <= 2 * WATCHED_BYTES
    }

    fn note(&mut self, change: impl FnOnce(&mut Untold)) {
        self.version += 1;
        if let Some(untold) = &mut self.untold {
            change(untold);
        }
    }

    fn begin_telling(&mut self) -> Option<Vec<Change>> {
        let changes = std::mem::take(&mut **self.untold.as_mut()?).to_changes();
        if changes.is_empty() {
            return None;
        }
        self.telling = Some(CancellationToken::new());
        Some(changes)
    }

    /// `untold`: what nobody could be told after all. Whoever waits for that is to be told by what is returned.
    fn end_telling(&mut self, untold: impl Iterator<Item = Change>) -> Option<CancellationToken> {
        self.version += 1;
        // A session that has ended has nobody to tell.
        if let Some(all) = &mut self.untold {
            untold.for_each(|change| all.add_earlier(change));
        }
        self.telling.take()
    }
}

impl Untold {
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
        let untold = if self.is_told { Vec::new() } else { std::mem::take(&mut self.changes) };
        let waiting = self.session.moving().changes.end_telling(untold.into_iter());
        // Outside the lock: wakers run.
        waiting.inspect(CancellationToken::cancel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcpace_wire::Revision;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};

    use super::super::{Client, Session};
    use super::{Tell, Telling};
    use crate::store::Change;

    const LIMIT: usize = 4;

    fn session() -> Arc<Session> {
        let client = Client { info: Implementation::default(), capabilities: ClientCapabilities::default() };
        let session = Arc::new(Session::new(Revision::V2025_11_25, None, client));
        session.share(0);
        session
    }

    fn tell(session: &Arc<Session>) -> Option<Telling> {
        match session.tell_changes() {
            Tell::Now(telling) => Some(telling),
            Tell::Nothing => None,
            Tell::After(_) => panic!("somebody is telling already"),
        }
    }

    fn watch(uri: &str) -> Change {
        Change::Watch(uri.to_owned())
    }

    #[tokio::test]
    async fn what_nobody_can_be_told_is_bounded_and_its_last_word_counts() {
        let session = session();
        for round in 0..10 {
            for number in 0..100 {
                session.unsubscribe(&format!("nobody watches {round} {number}"), LIMIT);
            }
            session.set_log_level(LoggingLevel::Error);
        }
        let telling = tell(&session).unwrap();
        assert_eq!(telling.changes.len(), 2 * LIMIT + 1);
        telling.done();
        assert!(tell(&session).is_none());
        session.subscribe("a", LIMIT);
        let telling = tell(&session).unwrap();
        session.unsubscribe("a", LIMIT);
        session.subscribe("b", LIMIT);
        // Later words arrive later.
        let Tell::After(end) = session.tell_changes() else { panic!("two are telling at once") };
        // It could not be told: what was said since stands.
        drop(telling);
        end.await;
        let telling = tell(&session).unwrap();
        assert_eq!(telling.changes, [Change::Unwatch("a".to_owned()), watch("b")]);
    }

    #[test]
    fn what_the_store_has_replaces_all_but_what_was_set_since() {
        let session = session();
        session.subscribe("told", LIMIT);
        tell(&session).unwrap().done();
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
        let telling = tell(&session).unwrap();
        assert!(!session.replace(&[], version, LIMIT));
        telling.done();
        assert!(!session.replace(&[], version, LIMIT));
        assert!(session.replace(&[], session.version(), LIMIT) && !session.is_subscribed("new"));
    }
}
