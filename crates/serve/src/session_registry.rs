//! The legacy sessions that can be told of changes.
//!
//! Constraint: sessions come and go by the ten thousand, and none is taken out when it ends. The dead are swept out when the
//! list has doubled since the last sweep: so a session is looked at a few times in its life, however many there are, and the
//! list is at most twice as long as it has to be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::session::Session;

/// A shorter list is not swept.
const SHORT: usize = 64;

/// See the module.
#[derive(Default)]
pub(crate) struct Attached {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    sessions: Vec<Weak<Session>>,
    /// How many were left by the last sweep.
    swept: usize,
    /// How many sessions all sweeps together have looked at.
    #[cfg(test)]
    looked_at: usize,
}

impl Attached {
    /// Adds one that is not among them.
    pub(crate) fn add(&self, session: &Arc<Session>) {
        let mut known = self.known();
        if known.sessions.len() >= SHORT.max(2 * known.swept) {
            known.sweep();
        }
        known.sessions.push(Arc::downgrade(session));
    }

    /// Those that live.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.known().sessions.iter().filter_map(Weak::upgrade).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing under the lock can panic half way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn sweep(&mut self) {
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
    use crate::session::Client;

    fn session() -> Arc<Session> {
        let client = Client { info: Implementation::default(), capabilities: ClientCapabilities::default() };
        Arc::new(Session::new(Revision::V2025_11_25, None, client))
    }

    /// Attaches `count` sessions, of which the last `alive` live; how many were looked at, and how many are kept.
    fn attach(count: usize, alive: usize) -> (usize, usize) {
        let attached = Attached::default();
        let mut living = std::collections::VecDeque::new();
        for _ in 0..count {
            let session = session();
            attached.add(&session);
            living.push_back(session);
            if living.len() > alive {
                living.pop_front();
            }
        }
        assert_eq!(attached.all().len(), alive);
        let known = attached.known();
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
