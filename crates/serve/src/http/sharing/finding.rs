//! Sessions here and in the store: begun, taken up, changed, ended.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use mcpace_wire::jsonrpc::{Id, Message};
use mcpace_wire::mcp::{CancelledParams, Method};
use serde_json::value::RawValue;

use super::super::answer::Answer;
use super::super::sessions::{Key, Live};
use super::super::streams::Streams;
use super::{QUESTION_BITS, Sharing};
use crate::exchange::Principal;
use crate::session::Session;
use crate::store::{Down, Found, Name, OnDown, Post, Put, Record, To};

/// What of a request is for other processes.
pub(in super::super) type Elsewhere = Vec<(To, Post)>;

impl Sharing {
    /// The session of this id, taken up from the store where this process doesn't have it. `None` where there is none, or it
    /// is another principal's.
    pub(in super::super) async fn find(
        &self,
        id: Option<&str>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<Live>>, Answer> {
        let Some(key) = id.and_then(Key::parse) else { return Ok(None) };
        self.look_up(key, self.sessions.peek(key), principal, now).await
    }

    /// The same, of one that may be known here.
    pub(super) async fn look_up(
        &self,
        key: Key,
        here: Option<Arc<Live>>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<Live>>, Answer> {
        if !self.stores.broker.is_up() {
            return self.while_away().map(|()| here);
        }
        // Read before the store is asked: what changes meanwhile is asked for again.
        let generation = self.generation.load(Relaxed);
        if here.as_ref().is_some_and(|live| live.verified.load(Relaxed) == generation) {
            return Ok(here);
        }
        match (self.stores.sessions.find(key.name()).await, here) {
            (Err(Down), here) => self.while_away().map(|()| here),
            (Ok(Found::Session(record, _)), Some(live)) => {
                self.apply(&live, &record);
                live.verified.store(generation, Relaxed);
                Ok(Some(live))
            }
            (Ok(Found::Session(record, left)), None) => {
                let owner = principal.map(|principal| Name::of(&principal.subject).to_string());
                if record.owner != owner {
                    return Ok(None);
                }
                let place = self.sessions.reserve().ok_or_else(full)?;
                let limit = self.server.limits().watched_resources;
                let Some(session) = Session::restored(*record, principal.cloned(), limit) else { return Ok(None) };
                session.share(self.first_question());
                let streams = Streams::new(Arc::clone(&self.streams), self.resumable);
                let live = place.take_up(key, Arc::new(session), streams, (now, left));
                if let Some(live) = &live {
                    live.verified.store(generation, Relaxed);
                    self.know(live);
                }
                Ok(live)
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

    /// An answer that begins a session goes out once the store has it.
    pub(in super::super) async fn begun(&self, answer: Answer) -> Answer {
        let live = answer.session().and_then(Key::parse).and_then(|key| self.sessions.peek(key));
        let Some(live) = live else { return answer };
        self.know(&live);
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

    /// What a request changed in its session, and what of it is for other processes, is told before it is answered.
    pub(in super::super) async fn told(&self, live: Option<&Arc<Live>>, elsewhere: Elsewhere) -> Result<(), Answer> {
        for (to, post) in elsewhere {
            match self.stores.broker.post(to, &post).await {
                Ok(_) => {}
                Err(Down) => self.while_away()?,
            }
        }
        let Some(live) = live else { return Ok(()) };
        let changes = live.session.take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        let name = live.key.name();
        let told = async {
            self.stores.sessions.change(name, &changes).await?;
            for change in &changes {
                self.stores.broker.post(To::Others, &Post::Changed(name.to_string(), change.clone())).await?;
            }
            Ok(())
        };
        let told: Result<(), Down> = told.await;
        if told.is_err() {
            live.session.put_changes_back(changes);
            return self.while_away();
        }
        Ok(())
    }

    /// Ends a session for all.
    pub(in super::super) async fn end(&self, live: &Live) -> Result<(), Answer> {
        let name = live.key.name();
        let ended = async {
            self.stores.sessions.end(name, self.life).await?;
            self.stores.broker.post(To::Others, &Post::Ended(name.to_string())).await
        };
        match ended.await {
            Ok(_) => {}
            Err(Down) => self.while_away()?,
        }
        self.sessions.end(live);
        Ok(())
    }

    /// For whom else a message may be: an answer for the process that asked, a cancellation for the one that runs the call.
    pub(in super::super) fn elsewhere(&self, live: &Live, message: &Message<'_>, body: &Bytes) -> Option<(To, Post)> {
        let to = match message {
            Message::Response(response) => {
                let Some(Id::Integer(id)) = &response.id else { return None };
                let process = u32::try_from(id >> QUESTION_BITS).ok()?;
                (process != 0 && process != self.own).then_some(To::Process(process))?
            }
            Message::Notification(notification) if Method::parse(&notification.method) == Some(Method::Cancelled) => {
                let params = notification.params.map_or("{}", RawValue::get);
                let id = serde_json::from_str::<CancelledParams>(params).ok()?.request_id?;
                (!live.session.has_under_way(&id)).then_some(To::Others)?
            }
            _ => return None,
        };
        let text = std::str::from_utf8(body).ok()?;
        Some((to, Post::Inbound(live.key.name().to_string(), text.to_owned())))
    }

    /// What the client set at other processes.
    pub(super) fn apply(&self, live: &Live, record: &Record) {
        let limit = self.server.limits().watched_resources;
        record.changes.iter().for_each(|change| live.session.apply(change, limit));
    }

    async fn save(&self, live: &Arc<Live>) -> Result<Put, Down> {
        let generation = self.generation.load(Relaxed);
        let put = self.stores.sessions.put(live.key.name(), &live.session.record(), self.life).await?;
        match put {
            Put::Kept => live.verified.store(generation, Relaxed),
            Put::Ended => self.sessions.end(live),
        }
        Ok(put)
    }

    fn know(&self, live: &Arc<Live>) {
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
