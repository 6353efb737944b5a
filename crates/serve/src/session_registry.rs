//! The legacy sessions that change notifications go to.
//!
//! Constraint: a server may have tens of thousands of sessions, and a session is not removed when it ends. Ended sessions are
//! removed when the list has doubled since the last sweep. A session is therefore visited a few times in its life, and the list
//! has at most twice its necessary length.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::session::Session;

/// Minimum length of a list for a sweep.
const SHORT: usize = 64;

/// Weak list of the legacy sessions that change notifications go to.
#[derive(Default)]
pub(crate) struct SessionRegistry {
    known: Mutex<KnownSessions>,
}

#[derive(Default)]
struct KnownSessions {
    sessions: Vec<Weak<Session>>,
    /// Number of sessions left by the last sweep.
    swept: usize,
    /// Number of sessions that all sweeps together have visited.
    #[cfg(test)]
    looked_at: usize,
}

impl SessionRegistry {
    /// Adds a session that is not in the list.
    pub(crate) fn add(&self, session: &Arc<Session>) {
        let mut known = self.lock_known();
        if known.sessions.len() >= SHORT.max(2 * known.swept) {
            known.remove_ended();
        }
        known.sessions.push(Arc::downgrade(session));
    }

    /// Returns the sessions that have not ended.
    pub(crate) fn live_sessions(&self) -> Vec<Arc<Session>> {
        self.lock_known().sessions.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownSessions> {
        // Nothing under the lock can panic half way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSessions {
    fn remove_ended(&mut self) {
        #[cfg(test)]
        {
            self.looked_at += self.sessions.len();
        }
        self.sessions.retain(|session| session.strong_count() > 0);
        self.swept = self.sessions.len();
    }
}

#[cfg(test)]
mod tests {
    use mcpace_wire::Revision;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation};

    use super::*;
    use crate::session::ClientDescription;

    fn session() -> Arc<Session> {
        let client = ClientDescription { info: Implementation::default(), capabilities: ClientCapabilities::default() };
        Arc::new(Session::new(Revision::V2025_11_25, None, client))
    }

    /// Attaches `count` sessions, of which the last `alive` live; how many were looked at, and how many are kept.
    fn attach(count: usize, alive: usize) -> (usize, usize) {
        let attached = SessionRegistry::default();
        let mut living = std::collections::VecDeque::new();
        for _ in 0..count {
            let session = session();
            attached.add(&session);
            living.push_back(session);
            if living.len() > alive {
                living.pop_front();
            }
        }
        assert_eq!(attached.live_sessions().len(), alive);
        let known = attached.lock_known();
        (known.looked_at, known.sessions.len())
    }

    #[test]
    fn the_work_for_a_session_does_not_grow_with_their_number() {
        const MANY: usize = 50_000;
        for alive in [0, 100, MANY / 2, MANY] {
            let (looked_at, _) = attach(MANY, alive);
            assert!(looked_at <= 2 * MANY, "{looked_at} looks with {alive} alive");
        }
    }

    #[test]
    fn the_dead_are_not_kept_for_long() {
        for alive in [0, 100, 1_000] {
            let (_, kept) = attach(20_000, alive);
            assert!(kept <= SHORT.max(2 * alive) + 1, "{kept} kept with {alive} alive");
        }
    }
}
