//! Concurrency of the guards that lists and subscriptions ask.
//!
//! Constraint: one small request may ask about a thousand components, and calls need the threads that permissions run on. Hence
//! a limit for all callers together, and one for each caller. A caller waits for at most one round of each other caller, and a
//! permission that hangs blocks its own caller alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::AccessRequest;

/// Guards that are asked at a time for all callers.
const MOST_OF_ALL: usize = 24;
/// Guards that are asked at a time for one caller. Callers with neither token nor session count as one.
pub(crate) const MOST_OF_ONE: usize = 8;

/// AuthorizationTurns of all callers of one server.
pub(crate) struct AuthorizationTurns {
    all: Semaphore,
    /// Shares of the callers that ask at the moment.
    shares: Mutex<HashMap<Box<str>, CallerTurns>>,
}

/// One caller's turns, and the number of its requests that ask.
struct CallerTurns {
    own: Arc<Semaphore>,
    users: usize,
}

impl Default for AuthorizationTurns {
    fn default() -> Self {
        Self { all: Semaphore::new(MOST_OF_ALL), shares: Mutex::default() }
    }
}

impl AuthorizationTurns {
    /// The share of a caller.
    pub(crate) fn share_of(&self, asked: &AccessRequest<'_>) -> Share<'_> {
        let key: Box<str> = match (asked.principal, asked.session) {
            (Some(principal), _) => format!("p{}", principal.subject).into(),
            (None, Some(session)) => format!("s{session}").into(),
            (None, None) => "".into(),
        };
        let mut shares = self.lock_shares();
        let kept = shares
            .entry(key.clone())
            .or_insert_with(|| CallerTurns { own: Arc::new(Semaphore::new(MOST_OF_ONE)), users: 0 });
        kept.users += 1;
        Share { turns: self, key, own: Arc::clone(&kept.own) }
    }

    fn lock_shares(&self) -> MutexGuard<'_, HashMap<Box<str>, CallerTurns>> {
        // Nothing under the lock can panic half way.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller's turns, for as long as one of its requests asks.
pub(crate) struct Share<'p> {
    turns: &'p AuthorizationTurns,
    key: Box<str>,
    own: Arc<Semaphore>,
}

impl Share<'_> {
    /// Waits for a turn: first among the caller's own, so that others wait for no more of them than there are.
    pub(crate) async fn wait_turn(&self) -> Turn<'_> {
        // Neither is ever closed.
        let own = self.own.acquire().await.ok();
        Turn { _all: self.turns.all.acquire().await.ok(), _own: own }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut shares = self.turns.lock_shares();
        if let Some(kept) = shares.get_mut(&self.key) {
            kept.users -= 1;
            if kept.users == 0 {
                shares.remove(&self.key);
            }
        }
    }
}

/// Somebody is being asked.
pub(crate) struct Turn<'p> {
    _all: Option<SemaphorePermit<'p>>,
    _own: Option<SemaphorePermit<'p>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::ComponentKind;
    use crate::principal::Principal;

    #[tokio::test]
    async fn a_caller_has_one_share_for_as_long_as_it_asks() {
        let turns = AuthorizationTurns::default();
        let (ada, bob) = (Principal::new("ada", vec![]), Principal::new("bob", vec![]));
        let asked = |who| AccessRequest { principal: who, ..AccessRequest::new(ComponentKind::Tool, "t") };
        let (first, second) = (turns.share_of(&asked(Some(&ada))), turns.share_of(&asked(Some(&ada))));
        let other = turns.share_of(&asked(Some(&bob)));
        // One that calls itself as a session is called has its own.
        let session = turns.share_of(&AccessRequest { session: Some("ada"), ..asked(None) });
        assert!(Arc::ptr_eq(&first.own, &second.own));
        assert!(!Arc::ptr_eq(&first.own, &other.own) && !Arc::ptr_eq(&first.own, &session.own));
        let held = first.wait_turn().await;
        assert_eq!((first.own.available_permits(), turns.all.available_permits()), (MOST_OF_ONE - 1, MOST_OF_ALL - 1));
        drop(held);
        assert_eq!((first.own.available_permits(), turns.all.available_permits()), (MOST_OF_ONE, MOST_OF_ALL));
        drop((first, other, session));
        assert_eq!(turns.lock_shares().len(), 1);
        drop(second);
        assert_eq!(turns.lock_shares().len(), 0);
    }
}
