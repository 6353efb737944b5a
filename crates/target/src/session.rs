//! Sessions of the legacy revisions (`Mcp-Session-Id`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::bounded::Bounded;
use crate::secret::random_text;

/// How many sessions are remembered; a peer that begins more loses its oldest.
const CAPACITY: usize = 20_000;

/// All sessions of one target.
#[derive(Debug)]
pub(crate) struct TargetSessions {
    sessions: Mutex<Bounded<String, TargetSession>>,
    /// After how many requests a session is forgotten, where the fault is on.
    lost_after: Option<u64>,
}

#[derive(Debug)]
struct TargetSession {
    served: u64,
    /// Its end wakes the session's standalone streams: the receivers see the sender go.
    alive: watch::Sender<()>,
}

/// No session has this id (any more).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnknownSession;

impl TargetSessions {
    pub(crate) fn new(lost_after: Option<u64>) -> Self {
        Self { sessions: Mutex::new(Bounded::new(CAPACITY)), lost_after }
    }

    /// Begins a session and returns its id: visible ASCII, not to be guessed.
    pub(crate) fn begin_session(&self) -> String {
        let id = random_text();
        let session = TargetSession { served: 0, alive: watch::Sender::new(()) };
        self.lock_sessions().insert(id.clone(), session);
        id
    }

    /// Notes a request in the session; forgets the session first where its time has come.
    pub(crate) fn enter_session(&self, id: &str) -> Result<(), UnknownSession> {
        let mut sessions = self.lock_sessions();
        let session = sessions.find_mut(id).ok_or(UnknownSession)?;
        if self.lost_after.is_some_and(|most| session.served >= most) {
            sessions.remove(id);
            return Err(UnknownSession);
        }
        session.served += 1;
        Ok(())
    }

    /// Receiver that stays pending for as long as the session lives.
    pub(crate) fn life_receiver(&self, id: &str) -> Result<watch::Receiver<()>, UnknownSession> {
        self.lock_sessions().find(id).map(|session| session.alive.subscribe()).ok_or(UnknownSession)
    }

    /// Ends a session.
    pub(crate) fn end_session(&self, id: &str) -> Result<(), UnknownSession> {
        self.lock_sessions().remove(id).map(drop).ok_or(UnknownSession)
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Bounded<String, TargetSession>> {
        // Each change is one insertion or removal, so a poisoned lock is sound.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_lost_after_as_many_requests_as_said() {
        let sessions = TargetSessions::new(Some(2));
        let id = sessions.begin_session();
        assert_eq!([sessions.enter_session(&id), sessions.enter_session(&id)], [Ok(()), Ok(())]);
        assert_eq!(sessions.enter_session(&id), Err(UnknownSession));
        assert_eq!(sessions.end_session(&id), Err(UnknownSession));
    }

    #[tokio::test]
    async fn the_end_of_a_session_is_seen_by_its_streams() {
        let sessions = TargetSessions::new(None);
        let id = sessions.begin_session();
        let mut alive = sessions.life_receiver(&id).unwrap();
        sessions.end_session(&id).unwrap();
        assert!(alive.changed().await.is_err());
        assert!(sessions.life_receiver(&id).is_err());
    }
}
