//! Sessions here and in the store: found, adopted, saved, ended.
//!
//! Constraint: a session that is known to live costs the store nothing; it is asked again only after it was away.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use http::StatusCode;

use super::super::http_response::HttpResponse;
use super::super::http_session::HttpSession;
use super::super::session_key::SessionKey;
use super::super::session_streams::SessionStreams;
use super::{ENDED_AWAY, SharedSessions, lock_mutex};
use crate::principal::Principal;
use crate::session::Session;
use crate::store::{Down, FoundSession, Life, OnDown, Post, Put, Record, SessionName, To};

impl SharedSessions {
    /// The session of this id, taken up from the store where this process doesn't have it. `None` where there is none, or it
    /// is another principal's.
    pub(in super::super) async fn find_session(
        &self,
        id: Option<&str>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<HttpSession>>, HttpResponse> {
        let Some(key) = id.and_then(SessionKey::parse_id) else { return Ok(None) };
        self.verify_session(key, self.sessions.peek_session(key), principal, now).await
    }

    /// Verifies a session that this process may know already: asks the store where the local state may be stale.
    pub(super) async fn verify_session(
        &self,
        key: SessionKey,
        here: Option<Arc<HttpSession>>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<HttpSession>>, HttpResponse> {
        if !self.stores.broker.is_up() {
            return self.while_away().map(|()| here);
        }
        // Read before the store is asked: what changes meanwhile is asked for again.
        let generation = self.generation.load(Relaxed);
        if here.as_ref().is_some_and(|http_session| http_session.verified.load(Relaxed) == generation) {
            return Ok(here);
        }
        if here.is_none() && self.lock_ended().contains_key(&key.store_name()) {
            return Ok(None);
        }
        let heard = self.heard.load(Relaxed);
        let version = here.as_ref().map(|http_session| http_session.session.settings_version()).unwrap_or_default();
        match (self.stores.sessions.find(key.store_name()).await, here) {
            (Err(Down), here) => self.while_away().map(|()| here),
            (Ok(FoundSession::Session(record, _)), Some(http_session)) => {
                self.overwrite_settings(&http_session, &record, version, generation);
                Ok(Some(http_session))
            }
            (Ok(FoundSession::Session(record, left)), None) => {
                let Some(http_session) = self.adopt_session(key, *record, principal, (now, left))? else {
                    return Ok(None);
                };
                self.recheck_session(http_session, heard, generation).await
            }
            (Ok(FoundSession::Ended), Some(http_session)) => {
                self.sessions.end_session(&http_session);
                Ok(None)
            }
            // Begun while the store was away, or the store has lost it: this process knows it still.
            (Ok(FoundSession::Unknown), Some(http_session)) => match self.save_session(&http_session).await {
                Ok(Put::Kept) => Ok(Some(http_session)),
                Ok(Put::Ended) => Ok(None),
                Err(Down) => self.while_away().map(|()| Some(http_session)),
            },
            (Ok(FoundSession::Ended | FoundSession::Unknown), None) => Ok(None),
        }
    }

    /// Makes a session of one's own out of the store's record. `None` where it is another principal's, or of a revision that nobody
    /// here speaks.
    fn adopt_session(
        &self,
        key: SessionKey,
        record: Record,
        principal: Option<&Principal>,
        (now, left): (Instant, Option<Duration>),
    ) -> Result<Option<Arc<HttpSession>>, HttpResponse> {
        if record.owner != owner_hash(key, principal) {
            return Ok(None);
        }
        let place = self.sessions.reserve_place(principal).ok_or_else(capacity_answer)?;
        let limit = self.server.limits().watched_resources;
        let Some(session) = Session::from_record(record, principal.cloned(), limit) else { return Ok(None) };
        session.share_with_processes(self.question_prefix());
        let streams = SessionStreams::new(Arc::clone(&self.streams), self.resumable);
        let http_session = place.adopt_session(key, Arc::new(session), streams, (now, left));
        if let Some(http_session) = &http_session {
            self.remember_session(http_session);
        }
        Ok(http_session)
    }

    /// Asks the store once more if a message about a session arrived between the store's answer and now, when nobody here could
    /// apply it.
    async fn recheck_session(
        &self,
        http_session: Arc<HttpSession>,
        heard: u64,
        generation: u64,
    ) -> Result<Option<Arc<HttpSession>>, HttpResponse> {
        if self.heard.load(Relaxed) == heard {
            http_session.verified.store(generation, Relaxed);
            return Ok(Some(http_session));
        }
        let version = http_session.session.settings_version();
        match self.stores.sessions.find(http_session.key.store_name()).await {
            Ok(FoundSession::Session(record, _)) => {
                self.overwrite_settings(&http_session, &record, version, generation)
            }
            Ok(FoundSession::Ended) => {
                self.sessions.end_session(&http_session);
                return Ok(None);
            }
            // The next request asks again.
            Ok(FoundSession::Unknown) | Err(Down) => {}
        }
        Ok(Some(http_session))
    }

    /// Sets what the client set at other processes. Where something was set here meanwhile, the next request asks again.
    fn overwrite_settings(&self, http_session: &HttpSession, record: &Record, version: u64, generation: u64) {
        if http_session.session.replace_settings(&record.changes, version, self.server.limits().watched_resources) {
            http_session.verified.store(generation, Relaxed);
        }
    }

    /// An answer that begins a session goes out once the store has it.
    pub(in super::super) async fn persist_session(&self, answer: HttpResponse) -> HttpResponse {
        let http_session =
            answer.begun_session().and_then(SessionKey::parse_id).and_then(|key| self.sessions.peek_session(key));
        let Some(http_session) = http_session else { return answer };
        self.remember_session(&http_session);
        match self.save_session(&http_session).await {
            Ok(_) => answer,
            Err(Down) => match self.while_away() {
                Ok(()) => answer,
                Err(refusal) => {
                    self.sessions.end_session(&http_session);
                    refusal
                }
            },
        }
    }

    /// Ends a session for all.
    pub(in super::super) async fn end_session(&self, http_session: &HttpSession) -> Result<(), HttpResponse> {
        let name = http_session.key.store_name();
        if self.end_for_all(name).await.is_err() {
            self.while_away()?;
            self.note_ended(name);
        }
        self.sessions.end_session(http_session);
        Ok(())
    }

    async fn end_for_all(&self, name: SessionName) -> Result<(), Down> {
        self.stores.sessions.end(name, self.life).await?;
        self.stores.broker.post(To::Others, &Post::Ended(name.to_string())).await.map(|_| ())
    }

    /// Ended while nobody could be told.
    fn note_ended(&self, name: SessionName) {
        let mut ended = self.lock_ended();
        // Nobody believes in it any longer than that.
        ended.retain(|_, since| since.elapsed() < self.life.idle);
        if ended.len() < ENDED_AWAY {
            ended.insert(name, Instant::now());
        } else {
            tracing::warn!("too many sessions ended while the store was away: the last of them may be found again");
        }
    }

    /// Tells those that ended meanwhile, as far as somebody can be told.
    pub(super) async fn tell_ended(&self) {
        let names: Vec<SessionName> = self.lock_ended().keys().copied().collect();
        for name in names {
            if self.end_for_all(name).await.is_err() {
                return;
            }
            self.lock_ended().remove(&name);
        }
    }

    fn lock_ended(&self) -> MutexGuard<'_, HashMap<SessionName, Instant>> {
        lock_mutex(&self.ended)
    }

    async fn save_session(&self, http_session: &Arc<HttpSession>) -> Result<Put, Down> {
        let generation = self.generation.load(Relaxed);
        let (name, session) = (http_session.key.store_name(), &http_session.session);
        // A life that began before goes on.
        let life = Life { whole: self.sessions.remaining_lifetime(http_session, Instant::now()), ..self.life };
        let put = self
            .stores
            .sessions
            .put(name, &session.to_record(owner_hash(http_session.key, session.principal())), life)
            .await?;
        match put {
            Put::Kept => {
                let changes = session.all_settings();
                if !changes.is_empty() {
                    self.stores.sessions.change(name, &changes).await?;
                }
                http_session.verified.store(generation, Relaxed);
            }
            Put::Ended => self.sessions.end_session(http_session),
        }
        Ok(put)
    }

    fn remember_session(&self, http_session: &Arc<HttpSession>) {
        self.lock_known().insert(http_session.key.store_name(), Arc::downgrade(http_session));
    }

    /// Whether to go on without the store.
    pub(in super::super) fn while_away(&self) -> Result<(), HttpResponse> {
        match self.stores.on_down {
            OnDown::Memory => Ok(()),
            OnDown::Refuse => Err(HttpResponse::overloaded(StatusCode::SERVICE_UNAVAILABLE, &Down.to_string())),
        }
    }
}

fn capacity_answer() -> HttpResponse {
    HttpResponse::overloaded(StatusCode::SERVICE_UNAVAILABLE, "as many sessions as may be are open")
}

/// Hash of a session's owner, as the store keeps it. The hash includes the session's id, so a reader of the store can't try
/// names.
fn owner_hash(key: SessionKey, principal: Option<&Principal>) -> Option<String> {
    principal.map(|principal| SessionName::of(&format!("{key} {}", principal.subject)).to_string())
}
