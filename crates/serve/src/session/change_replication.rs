//! Replication of a client's settings in a session between the processes that share the session.
//!
//! Constraint: no I/O. The sender takes a [`Replication`] and reports its end. Only one replication runs at a time, so
//! that later changes arrive later. Memory is bounded: only the last change of each setting is kept. A change that could not be sent is
//! sent again, unless a newer change of its setting exists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcpace_wire::mcp::LoggingLevel;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::change_marks::{WATCHED_BYTES, WATCHED_URI, Watched};
use super::{Moving, Session, level_rank};
use crate::store::SettingChange;

/// Settings of the client that other processes need.
#[derive(Default)]
pub(super) struct ReplicatedSettings {
    /// Changes that no other process has yet; `None` if the session is not shared.
    unsent: Option<Box<Unsent>>,
    /// Rises with each change, here or elsewhere, and when a replication ends.
    version: u64,
    /// Cancelled when the replication that is under way ends.
    replicating: Option<CancellationToken>,
}

/// Next step of the sender.
pub(crate) enum Tell {
    /// The other processes have all changes.
    Nothing,
    /// A replication is under way and may fail: check again after its end.
    After(WaitForCancellationFutureOwned),
    /// Send these changes now.
    Now(Replication),
}

/// The last change of each setting that has not been sent, so that memory is bounded by the number of settings.
#[derive(Default)]
struct Unsent {
    level: Option<LoggingLevel>,
    /// Whether a resource is watched.
    watched: BTreeMap<Box<str>, bool>,
}

impl Session {
    /// Marks the session as shared with other processes: changes are recorded for them, and questions get these upper bits.
    pub(crate) fn share_with_processes(&self, questions: u64) {
        let mut moving = self.lock_state();
        moving.questions.of_process(questions);
        moving.changes.unsent = Some(Box::default());
    }

    /// Takes the changes that have not been sent to the other processes.
    pub(crate) fn tell_changes(self: &Arc<Self>) -> Tell {
        let mut moving = self.lock_state();
        if let Some(replicating) = &moving.changes.replicating {
            return Tell::After(replicating.clone().cancelled_owned());
        }
        match moving.changes.begin_replication() {
            Some(changes) => Tell::Now(Replication { session: Arc::clone(self), changes, is_sent: false }),
            None => Tell::Nothing,
        }
    }

    /// Returns all settings of the client, for another process.
    pub(crate) fn all_settings(&self) -> Vec<SettingChange> {
        let moving = self.lock_state();
        let watched = moving.watched.iter().map(|uri| SettingChange::Watch(uri.to_owned()));
        moving.set_level.map(SettingChange::LogLevel).into_iter().chain(watched).collect()
    }

    /// Version of the client settings, which rises with each change.
    pub(crate) fn settings_version(&self) -> u64 {
        self.lock_state().changes.version
    }

    /// Applies a change that the client made at another process.
    pub(crate) fn apply_change(&self, change: &SettingChange, limit: usize) {
        let mut moving = self.lock_state();
        moving.changes.version += 1;
        self.apply_under_lock(&mut moving, change, limit);
    }

    /// Replaces all settings by those of the store, and applies the unsent changes of this process to them. Returns false if a
    /// setting has changed since `version`: the store's answer may be older than the change.
    pub(crate) fn replace_settings(&self, changes: &[SettingChange], version: u64, limit: usize) -> bool {
        let mut moving = self.lock_state();
        if moving.changes.version != version || moving.changes.replicating.is_some() {
            return false;
        }
        (moving.watched, moving.set_level) = (Watched::default(), None);
        self.log_level.store(level_rank(LoggingLevel::Debug), Ordering::Relaxed);
        let unsent = moving.changes.unsent.as_deref().map(Unsent::to_changes).unwrap_or_default();
        changes.iter().chain(&unsent).for_each(|change| self.apply_under_lock(&mut moving, change, limit));
        true
    }

    fn apply_under_lock(&self, moving: &mut Moving, change: &SettingChange, limit: usize) {
        match change {
            SettingChange::LogLevel(level) => {
                moving.set_level = Some(*level);
                self.log_level.store(level_rank(*level), Ordering::Relaxed);
            }
            SettingChange::Watch(uri) => {
                moving.watched.add(uri, limit);
            }
            SettingChange::Unwatch(uri) => {
                moving.watched.remove(uri);
            }
        }
    }
}

impl ReplicatedSettings {
    /// Changes of an ended session: nothing to send, but the replication that is under way has still to end.
    pub(super) fn ended_changes(&mut self) -> Self {
        Self { replicating: self.replicating.take(), ..Self::default() }
    }

    pub(super) fn note_level(&mut self, level: LoggingLevel) {
        self.record_change(|unsent| unsent.level = Some(level));
    }

    pub(super) fn note_watched(&mut self, uri: &str, is_watched: bool) {
        self.record_change(|unsent| {
            unsent.watched.insert(uri.into(), is_watched);
        });
    }

    /// Whether there is room for another unsent change of a watched resource.
    pub(super) fn have_room(&self, uri: &str, limit: usize) -> bool {
        if uri.len() > WATCHED_URI {
            return false;
        }
        let Some(unsent) = &self.unsent else { return true };
        let bytes: usize = unsent.watched.keys().map(|uri| uri.len()).sum();
        unsent.watched.contains_key(uri) || unsent.watched.len() < 2 * limit && bytes + uri.len() <= 2 * WATCHED_BYTES
    }

    fn record_change(&mut self, change: impl FnOnce(&mut Unsent)) {
        self.version += 1;
        if let Some(unsent) = &mut self.unsent {
            change(unsent);
        }
    }

    fn begin_replication(&mut self) -> Option<Vec<SettingChange>> {
        let changes = std::mem::take(&mut **self.unsent.as_mut()?).to_changes();
        if changes.is_empty() {
            return None;
        }
        self.replicating = Some(CancellationToken::new());
        Some(changes)
    }

    /// Ends the replication that is under way. `unsent` has the changes that could not be sent. The caller cancels the returned
    /// token to wake waiting senders.
    fn end_replication(&mut self, unsent: impl Iterator<Item = SettingChange>) -> Option<CancellationToken> {
        self.version += 1;
        // An ended session has nothing to send.
        if let Some(all) = &mut self.unsent {
            unsent.for_each(|change| all.add_earlier(change));
        }
        self.replicating.take()
    }
}

impl Unsent {
    fn to_changes(&self) -> Vec<SettingChange> {
        let watched = self.watched.iter().map(|(uri, is_watched)| match is_watched {
            true => SettingChange::Watch(uri.to_string()),
            false => SettingChange::Unwatch(uri.to_string()),
        });
        self.level.map(SettingChange::LogLevel).into_iter().chain(watched).collect()
    }

    /// Adds a change that is older than all changes here.
    fn add_earlier(&mut self, change: SettingChange) {
        let (uri, is_watched) = match change {
            SettingChange::LogLevel(level) => {
                self.level.get_or_insert(level);
                return;
            }
            SettingChange::Watch(uri) => (uri, true),
            SettingChange::Unwatch(uri) => (uri, false),
        };
        self.watched.entry(uri.into()).or_insert(is_watched);
    }
}

/// Changes on their way to the other processes. They are sent again if this is dropped before [`Self::mark_sent`].
pub(crate) struct Replication {
    session: Arc<Session>,
    pub(crate) changes: Vec<SettingChange>,
    is_sent: bool,
}

impl Replication {
    /// All other processes have the changes.
    pub(crate) fn mark_sent(mut self) {
        self.is_sent = true;
    }
}

impl Drop for Replication {
    fn drop(&mut self) {
        let unsent = if self.is_sent { Vec::new() } else { std::mem::take(&mut self.changes) };
        let waiting = self.session.lock_state().changes.end_replication(unsent.into_iter());
        // Outside the lock: wakers run.
        waiting.inspect(CancellationToken::cancel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcpace_wire::Revision;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};

    use super::super::{ClientDescription, Session};
    use super::{Replication, Tell};
    use crate::store::SettingChange;

    const LIMIT: usize = 4;

    fn session() -> Arc<Session> {
        let client = ClientDescription { info: Implementation::default(), capabilities: ClientCapabilities::default() };
        let session = Arc::new(Session::new(Revision::V2025_11_25, None, client));
        session.share_with_processes(0);
        session
    }

    fn tell(session: &Arc<Session>) -> Option<Replication> {
        match session.tell_changes() {
            Tell::Now(replicating) => Some(replicating),
            Tell::Nothing => None,
            Tell::After(_) => panic!("somebody is replicating already"),
        }
    }

    fn watch(uri: &str) -> SettingChange {
        SettingChange::Watch(uri.to_owned())
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
        let replicating = tell(&session).unwrap();
        assert_eq!(replicating.changes.len(), 2 * LIMIT + 1);
        replicating.mark_sent();
        assert!(tell(&session).is_none());
        session.subscribe("a", LIMIT);
        let replicating = tell(&session).unwrap();
        session.unsubscribe("a", LIMIT);
        session.subscribe("b", LIMIT);
        // Later words arrive later.
        let Tell::After(end) = session.tell_changes() else { panic!("two are replicating at once") };
        // It could not be told: what was said since stands.
        drop(replicating);
        end.await;
        let replicating = tell(&session).unwrap();
        assert_eq!(replicating.changes, [SettingChange::Unwatch("a".to_owned()), watch("b")]);
    }

    #[test]
    fn what_the_store_has_replaces_all_but_what_was_set_since() {
        let session = session();
        session.subscribe("told", LIMIT);
        tell(&session).unwrap().mark_sent();
        session.subscribe("unsent", LIMIT);
        let version = session.settings_version();
        assert!(session.replace_settings(&[watch("elsewhere")], version, LIMIT));
        let watched = ["told", "unsent", "elsewhere"].map(|uri| session.is_subscribed(uri));
        assert_eq!(watched, [false, true, true]);
        assert_eq!(session.all_settings(), [watch("elsewhere"), watch("unsent")]);
        // The store was asked before it had this, whether it is being told or was.
        let version = session.settings_version();
        session.subscribe("new", LIMIT);
        assert!(!session.replace_settings(&[], version, LIMIT));
        let version = session.settings_version();
        let replicating = tell(&session).unwrap();
        assert!(!session.replace_settings(&[], version, LIMIT));
        replicating.mark_sent();
        assert!(!session.replace_settings(&[], version, LIMIT));
        assert!(session.replace_settings(&[], session.settings_version(), LIMIT) && !session.is_subscribed("new"));
    }
}
