//! Sessions here and in the store: found, adopted, saved, ended.
//!
//! Constraint: a session that is known to live costs the store nothing; it is asked again only after it was away.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use http::StatusCode;

use super::super::http_response::Answer;
use super::super::http_session::HttpSession;
use super::super::session_key::Key;
use super::super::session_streams::SessionStreams;
use super::{ENDED_AWAY, SharedSessions, lock};
use crate::principal::Principal;
use crate::session::Session;
use crate::store::{Down, Found, Life, Name, OnDown, Post, Put, Record, To};

impl SharedSessions {
    /// The session of this id, taken up from the store where this process doesn't have it. `None` where there is none, or it
    /// is another principal's.
    pub(in super::super) async fn find(
        &self,
        id: Option<&str>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<HttpSession>>, Answer> {
        let Some(key) = id.and_then(Key::parse) else { return Ok(None) };
        self.verify(key, self.sessions.peek(key), principal, now).await
    }

    /// Verifies a session that this process may know already: asks the store where the local state may be stale.
    pub(super) async fn verify(
        &self,
        key: Key,
        here: Option<Arc<HttpSession>>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<HttpSession>>, Answer> {
        if !self.stores.broker.is_up() {
            return self.while_away().map(|()| here);
        }
        // Read before the store is asked: what changes meanwhile is asked for again.
        let generation = self.generation.load(Relaxed);
        if here.as_ref().is_some_and(|live| live.verified.load(Relaxed) == generation) {
            return Ok(here);
        }
        if here.is_none() && self.lock_ended().contains_key(&key.name()) {
            return Ok(None);
        }
        let heard = self.heard.load(Relaxed);
        let version = here.as_ref().map(|live| live.session.version()).unwrap_or_default();
        match (self.stores.sessions.find(key.name()).await, here) {
            (Err(Down), here) => self.while_away().map(|()| here),
            (Ok(Found::Session(record, _)), Some(live)) => {
                self.overwrite(&live, &record, version, generation);
                Ok(Some(live))
            }
            (Ok(Found::Session(record, left)), None) => {
                let Some(live) = self.adopt(key, *record, principal, (now, left))? else { return Ok(None) };
                self.recheck(live, heard, generation).await
            }
            (Ok(Found::Ended), Some(live)) => {
                self.sessions.end(&live);
                Ok(None)
            }
            // Begun while the store was away, or the store has lost it: this process knows it still.
            (Ok(Found::Unknown), Some(live)) => match self.save(&live).await {
                Ok(Put::Kept) => Ok(Some(live)),
                Ok(Put::Ended) => Ok(None),
                Err(Down) => self.while_away().map(|()| Some(live)),
            },
            (Ok(Found::Ended | Found::Unknown), None) => Ok(None),
        }
    }

    /// Makes a session of one's own out of the store's record. `None` where it is another principal's, or of a revision that nobody
    /// here speaks.
    fn adopt(
        &self,
        key: Key,
        record: Record,
        principal: Option<&Principal>,
        (now, left): (Instant, Option<Duration>),
    ) -> Result<Option<Arc<HttpSession>>, Answer> {
        if record.owner != owner(key, principal) {
            return Ok(None);
        }
        let place = self.sessions.reserve(principal).ok_or_else(full)?;
        let limit = self.server.limits().watched_resources;
        let Some(session) = Session::from_record(record, principal.cloned(), limit) else { return Ok(None) };
        session.share_with_processes(self.questions());
        let streams = SessionStreams::new(Arc::clone(&self.streams), self.resumable);
        let live = place.adopt(key, Arc::new(session), streams, (now, left));
        if let Some(live) = &live {
            self.remember(live);
        }
        Ok(live)
    }

    /// Asks the store once more if a message about a session arrived between the store's answer and now, when nobody here could
    /// apply it.
    async fn recheck(
        &self,
        live: Arc<HttpSession>,
        heard: u64,
        generation: u64,
    ) -> Result<Option<Arc<HttpSession>>, Answer> {
        if self.heard.load(Relaxed) == heard {
            live.verified.store(generation, Relaxed);
            return Ok(Some(live));
        }
        let version = live.session.version();
        match self.stores.sessions.find(live.key.name()).await {
            Ok(Found::Session(record, _)) => self.overwrite(&live, &record, version, generation),
            Ok(Found::Ended) => {
                self.sessions.end(&live);
                return Ok(None);
            }
            // The next request asks again.
            Ok(Found::Unknown) | Err(Down) => {}
        }
        Ok(Some(live))
    }

    /// Sets what the client set at other processes. Where something was set here meanwhile, the next request asks again.
    fn overwrite(&self, live: &HttpSession, record: &Record, version: u64, generation: u64) {
        if live.session.replace(&record.changes, version, self.server.limits().watched_resources) {
            live.verified.store(generation, Relaxed);
        }
    }

    /// An answer that begins a session goes out once the store has it.
    pub(in super::super) async fn persist_session(&self, answer: Answer) -> Answer {
        let live = answer.session().and_then(Key::parse).and_then(|key| self.sessions.peek(key));
        let Some(live) = live else { return answer };
        self.remember(&live);
        match self.save(&live).await {
            Ok(_) => answer,
            Err(Down) => match self.while_away() {
                Ok(()) => answer,
                Err(refusal) => {
                    self.sessions.end(&live);
                    refusal
                }
            },
        }
    }

    /// Ends a session for all.
    pub(in super::super) async fn end(&self, live: &HttpSession) -> Result<(), Answer> {
        let name = live.key.name();
        if self.end_for_all(name).await.is_err() {
            self.while_away()?;
            self.note_ended(name);
        }
        self.sessions.end(live);
        Ok(())
    }

    async fn end_for_all(&self, name: Name) -> Result<(), Down> {
        self.stores.sessions.end(name, self.life).await?;
        self.stores.broker.post(To::Others, &Post::Ended(name.to_string())).await.map(|_| ())
    }

    /// Ended while nobody could be told.
    fn note_ended(&self, name: Name) {
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
        let names: Vec<Name> = self.lock_ended().keys().copied().collect();
        for name in names {
            if self.end_for_all(name).await.is_err() {
                return;
            }
            self.lock_ended().remove(&name);
        }
    }

    fn lock_ended(&self) -> MutexGuard<'_, HashMap<Name, Instant>> {
        lock(&self.ended)
    }

    async fn save(&self, live: &Arc<HttpSession>) -> Result<Put, Down> {
        let generation = self.generation.load(Relaxed);
        let (name, session) = (live.key.name(), &live.session);
        // A life that began before goes on.
        let life = Life { whole: self.sessions.left(live, Instant::now()), ..self.life };
        let put =
            self.stores.sessions.put(name, &session.to_record(owner(live.key, session.principal())), life).await?;
        match put {
            Put::Kept => {
                let changes = session.changes();
                if !changes.is_empty() {
                    self.stores.sessions.change(name, &changes).await?;
                }
                live.verified.store(generation, Relaxed);
            }
            Put::Ended => self.sessions.end(live),
        }
        Ok(put)
    }

    fn remember(&self, live: &Arc<HttpSession>) {
        self.known().insert(live.key.name(), Arc::downgrade(live));
    }

    /// Whether to go on without the store.
    pub(in super::super) fn while_away(&self) -> Result<(), Answer> {
        match self.stores.on_down {
            OnDown::Memory => Ok(()),
            OnDown::Refuse => Err(Answer::overloaded(StatusCode::SERVICE_UNAVAILABLE, &Down.to_string())),
        }
    }
}

fn full() -> Answer {
    Answer::overloaded(StatusCode::SERVICE_UNAVAILABLE, "as many sessions as may be are open")
}

/// Hash of a session's owner, as the store keeps it. The hash includes the session's id, so a reader of the store can't try
/// names.
fn owner(key: Key, principal: Option<&Principal>) -> Option<String> {
    principal.map(|principal| Name::of(&format!("{key} {}", principal.subject)).to_string())
}
