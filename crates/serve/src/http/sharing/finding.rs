//! Sessions here and in the store: begun, taken up, changed, ended.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use http::StatusCode;
use mcpace_wire::jsonrpc::{Id, Message, Outcome, Response, code, write_error, write_notification, write_result};
use mcpace_wire::mcp::{CancelledParams, Extra, Method};
use serde_json::value::RawValue;

use super::super::answer::Answer;
use super::super::sessions::{Key, Live, Passing};
use super::super::streams::Streams;
use super::{ENDED_AWAY, Sharing, lock};
use crate::exchange::{Principal, Reply, ReplyStatus};
use crate::session::{QUESTION_BITS, Session};
use crate::store::{Down, Found, Life, Name, OnDown, Post, Put, Record, To};

/// A call under way.
type Call = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What of a request other processes are to know before it is answered.
#[derive(Default)]
pub(in super::super) struct Elsewhere {
    pub(in super::super) posts: Vec<(To, Post)>,
    /// Whether it changes its session.
    pub(in super::super) changes: bool,
}

/// The longest answer of a client that is passed on to the process that asked.
const LONGEST_ANSWER: usize = 1 << 20;
/// The longest cancellation that is: it has the call's id in it, which clients choose.
const LONGEST_CANCELLATION: usize = 512;
/// Seconds from one complaint about clients that send too much to the next.
const COMPLAINT: u64 = 60;

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
        if here.is_none() && self.ended().contains_key(&key.name()) {
            return Ok(None);
        }
        let heard = self.heard.load(Relaxed);
        let version = here.as_ref().map(|live| live.session.version()).unwrap_or_default();
        match (self.stores.sessions.find(key.name()).await, here) {
            (Err(Down), here) => self.while_away().map(|()| here),
            (Ok(Found::Session(record, _)), Some(live)) => {
                self.take_over(&live, &record, version, generation);
                Ok(Some(live))
            }
            (Ok(Found::Session(record, left)), None) => {
                let Some(live) = self.take_up(key, *record, principal, (now, left))? else { return Ok(None) };
                self.take_up_again(live, heard, generation).await
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
    fn take_up(
        &self,
        key: Key,
        record: Record,
        principal: Option<&Principal>,
        (now, left): (Instant, Option<Duration>),
    ) -> Result<Option<Arc<Live>>, Answer> {
        if record.owner != owner(key, principal) {
            return Ok(None);
        }
        let place = self.sessions.reserve(principal).ok_or_else(full)?;
        let limit = self.server.limits().watched_resources;
        let Some(session) = Session::restored(record, principal.cloned(), limit) else { return Ok(None) };
        session.share(self.questions());
        let streams = Streams::new(Arc::clone(&self.streams), self.resumable);
        let live = place.take_up(key, Arc::new(session), streams, (now, left));
        if let Some(live) = &live {
            self.know(live);
        }
        Ok(live)
    }

    /// What was said of it between the store's answer and now reached nobody here: then the store is asked once more.
    async fn take_up_again(&self, live: Arc<Live>, heard: u64, generation: u64) -> Result<Option<Arc<Live>>, Answer> {
        if self.heard.load(Relaxed) == heard {
            live.verified.store(generation, Relaxed);
            return Ok(Some(live));
        }
        let version = live.session.version();
        match self.stores.sessions.find(live.key.name()).await {
            Ok(Found::Session(record, _)) => self.take_over(&live, &record, version, generation),
            Ok(Found::Ended) => {
                self.sessions.end(&live);
                return Ok(None);
            }
            // The next request asks again.
            Ok(Found::Unknown) | Err(Down) => {}
        }
        Ok(Some(live))
    }

    /// Takes over what the client set at other processes. Where something was set here meanwhile, the next request asks again.
    fn take_over(&self, live: &Live, record: &Record, version: u64, generation: u64) {
        if live.session.replace(&record.changes, version, self.server.limits().watched_resources) {
            live.verified.store(generation, Relaxed);
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

    /// What of a request is for other processes is told before it is answered.
    pub(in super::super) async fn told(&self, live: Option<&Arc<Live>>, elsewhere: Elsewhere) -> Result<(), Answer> {
        for (to, post) in elsewhere.posts {
            match self.stores.broker.post(to, &post).await {
                Ok(true) => {}
                Ok(false) => {
                    let session = live.map(|live| live.key.name().to_string());
                    tracing::warn!(session, "a client's answer is lost: the process that asked has ended");
                }
                Err(Down) => self.while_away()?,
            }
        }
        match live {
            Some(live) => self.tell_changes(live, elsewhere.changes).await,
            None => Ok(()),
        }
    }

    /// Tells what the client set and nobody knows yet. `is_asked`: whether the request at hand set it; what an earlier one left is no
    /// failure of this one's.
    async fn tell_changes(&self, live: &Arc<Live>, is_asked: bool) -> Result<(), Answer> {
        let Some(telling) = live.session.tell_changes() else { return Ok(()) };
        if !is_asked && !self.stores.broker.is_up() {
            return Ok(());
        }
        let name = live.key.name();
        let told = async {
            self.stores.sessions.change(name, &telling.changes).await?;
            for change in &telling.changes {
                self.stores.broker.post(To::Others, &Post::Changed(name.to_string(), change.clone())).await?;
            }
            Ok(())
        };
        match told.await {
            Ok(()) => telling.done(),
            Err(Down) if is_asked => {
                drop(telling);
                return self.while_away();
            }
            Err(Down) => {}
        }
        Ok(())
    }

    /// The reply of a call that changes its session, once the others know: what had to wait changes it only as it goes on.
    pub(in super::super) fn answered_once_told(
        self: &Arc<Self>,
        live: &Arc<Live>,
        id: Id<'static>,
        call: Call,
    ) -> Call {
        let (sharing, live) = (Arc::clone(self), Arc::clone(live));
        Box::pin(async move {
            let reply = call.await;
            if sharing.tell_changes(&live, true).await.is_ok() {
                return reply;
            }
            let mut message = Vec::with_capacity(128);
            // Without data there is nothing that could fail to be written.
            let _ = write_error(&mut message, Some(&id), code::INTERNAL_ERROR, &Down.to_string(), None::<&()>);
            Reply { message: message.into(), status: ReplyStatus::Unavailable, session: None, remedy: None, ..reply }
        })
    }

    /// Ends a session for all.
    pub(in super::super) async fn end(&self, live: &Live) -> Result<(), Answer> {
        let name = live.key.name();
        if self.end_for_all(name).await.is_err() {
            self.while_away()?;
            self.has_ended(name);
        }
        self.sessions.end(live);
        Ok(())
    }

    async fn end_for_all(&self, name: Name) -> Result<(), Down> {
        self.stores.sessions.end(name, self.life).await?;
        self.stores.broker.post(To::Others, &Post::Ended(name.to_string())).await.map(|_| ())
    }

    /// Ended while nobody could be told.
    fn has_ended(&self, name: Name) {
        let mut ended = self.ended();
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
        let names: Vec<Name> = self.ended().keys().copied().collect();
        for name in names {
            if self.end_for_all(name).await.is_err() {
                return;
            }
            self.ended().remove(&name);
        }
    }

    fn ended(&self) -> MutexGuard<'_, HashMap<Name, Instant>> {
        lock(&self.ended)
    }

    /// For whom else a message may be: an answer for the process that asked, a cancellation for the one that runs the call. Passed
    /// on is what is meant, never what came: that may be of any length. Answers that are too many at once are refused, so that
    /// their client knows; cancellations change little, and are passed over.
    pub(in super::super) fn elsewhere(&self, live: &Live, message: &Message<'_>) -> Result<Option<(To, Post)>, Answer> {
        let second = self.begun.elapsed().as_secs();
        let passed_on = match message {
            Message::Response(response) => self.answer_elsewhere(response),
            Message::Notification(notification) if Method::parse(&notification.method) == Some(Method::Cancelled) => {
                let params = notification.params.map_or("{}", RawValue::get);
                cancelled_elsewhere(live, params).map(|text| (To::Others, text))
            }
            _ => None,
        };
        let Some((to, text)) = passed_on else { return Ok(None) };
        let is_answer = matches!(to, To::Process(_));
        let what = if is_answer { Passing::Answer(text.len()) } else { Passing::Cancellation };
        if live.passes_on(what, second) {
            return Ok(Some((to, Post::Inbound(live.key.name().to_string(), text))));
        }
        if self.may_complain(second) {
            tracing::warn!(session = %live.key.name(), is_answer, "a client sends other processes too much in a second");
        }
        if is_answer {
            let reason = "too many answers in a second for calls of other processes";
            return Err(Answer::overloaded(StatusCode::TOO_MANY_REQUESTS, reason));
        }
        Ok(None)
    }

    fn answer_elsewhere(&self, response: &Response<'_>) -> Option<(To, String)> {
        let Some(Id::Integer(id)) = &response.id else { return None };
        let process = u32::try_from(id >> QUESTION_BITS).ok().filter(|&process| process != 0)?;
        (process != self.own).then_some((To::Process(process), answer(response)?))
    }

    /// Whether it is time to say again that clients send too much: they would write the log.
    fn may_complain(&self, second: u64) -> bool {
        let due = self.complains.load(Relaxed);
        second >= due && self.complains.compare_exchange(due, second + COMPLAINT, Relaxed, Relaxed).is_ok()
    }

    async fn save(&self, live: &Arc<Live>) -> Result<Put, Down> {
        let generation = self.generation.load(Relaxed);
        let (name, session) = (live.key.name(), &live.session);
        // A life that began before goes on.
        let life = Life { whole: self.sessions.left(live, Instant::now()), ..self.life };
        let put = self.stores.sessions.put(name, &session.record(owner(live.key, session.principal())), life).await?;
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

/// What the store calls whose a session is: nobody who reads it can try names without the session's id.
fn owner(key: Key, principal: Option<&Principal>) -> Option<String> {
    principal.map(|principal| Name::of(&format!("{key} {}", principal.subject)).to_string())
}

/// An answer by itself. One that is too long is passed on as an error, so that nobody waits for it.
fn answer(response: &Response<'_>) -> Option<String> {
    let id = response.id.as_ref()?;
    let mut text = Vec::new();
    match &response.outcome {
        Outcome::Result(result) if result.get().len() <= LONGEST_ANSWER => write_result(&mut text, id, result).ok()?,
        Outcome::Error(error) if error.message.len() <= LONGEST_ANSWER => {
            let data = error.data.filter(|data| data.get().len() <= LONGEST_ANSWER);
            write_error(&mut text, Some(id), error.code, &error.message, data.as_ref()).ok()?;
        }
        _ => {
            let reason = "the client's answer is too long to be passed on to the process that asked";
            write_error(&mut text, Some(id), code::INTERNAL_ERROR, reason, None::<&()>).ok()?;
        }
    }
    String::from_utf8(text).ok()
}

/// What of a cancellation others may want to know: that of a call which isn't under way here.
fn cancelled_elsewhere(live: &Live, params: &str) -> Option<String> {
    let id = serde_json::from_str::<CancelledParams>(params).ok()?.request_id?;
    if live.session.has_under_way(&id) { None } else { cancellation(id) }
}

/// A cancellation by itself; none where the call has a name of a length that no call has.
fn cancellation(id: Id<'static>) -> Option<String> {
    let params = CancelledParams { request_id: Some(id), reason: None, meta: None, extra: Extra::new() };
    let mut text = Vec::new();
    write_notification(&mut text, Method::Cancelled.as_str(), Some(&params)).ok()?;
    String::from_utf8(text).ok().filter(|text| text.len() <= LONGEST_CANCELLATION)
}
