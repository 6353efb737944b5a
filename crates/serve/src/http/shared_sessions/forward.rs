//! Forwards a client's messages to the processes they concern: answers and cancellations of calls that run there, and
//! changes of the client's settings.
//!
//! Constraints: forwards the parsed message, never the received bytes, so its size is bounded. Rate-limited per client. A
//! message is forwarded before its request is acknowledged to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use mcpace_wire::jsonrpc::{Id, Message, Outcome, Response, code, write_error, write_notification, write_result};
use mcpace_wire::mcp::{CancelledParams, Extra, Method};
use serde_json::value::RawValue;

use super::super::http_response::HttpResponse;
use super::super::http_session::{HttpSession, Passing};
use super::SharedSessions;
use crate::exchange::{Reply, ReplyStatus};
use crate::session::{QUESTION_BITS, Tell};
use crate::store::{Down, Post, To};

/// A call under way.
type ForwardedCall = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The messages that other processes must receive before a request is answered.
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

impl SharedSessions {
    /// For whom else a message may be: an answer for the process that asked, a cancellation for the one that runs the call. Answers
    /// that are too many at once are refused, so that their client knows; cancellations change little, and are passed over.
    pub(in super::super) fn posts_elsewhere(
        &self,
        http_session: &HttpSession,
        message: &Message<'_>,
    ) -> Result<Option<(To, Post)>, HttpResponse> {
        let second = self.begun.elapsed().as_secs();
        let passed_on = match message {
            Message::Response(response) => self.answer_elsewhere(response),
            Message::Notification(notification) if Method::parse(&notification.method) == Some(Method::Cancelled) => {
                let params = notification.params.map_or("{}", RawValue::get);
                cancelled_elsewhere(http_session, params).map(|text| (To::Others, text))
            }
            _ => None,
        };
        let Some((to, text)) = passed_on else { return Ok(None) };
        let is_answer = matches!(to, To::Process(_));
        let what = if is_answer { Passing::Answer(text.len()) } else { Passing::Cancellation };
        if http_session.count_passing(what, second) {
            return Ok(Some((to, Post::Inbound(http_session.key.store_name().to_string(), text))));
        }
        if self.may_complain(second) {
            tracing::warn!(session = %http_session.key.store_name(), is_answer, "a client sends other processes too much in a second");
        }
        if is_answer {
            let reason = "too many answers in a second for calls of other processes";
            return Err(HttpResponse::overloaded(StatusCode::TOO_MANY_REQUESTS, reason));
        }
        Ok(None)
    }

    fn answer_elsewhere(&self, response: &Response<'_>) -> Option<(To, String)> {
        let Some(Id::Integer(id)) = &response.id else { return None };
        let process = u32::try_from(id >> QUESTION_BITS).ok().filter(|&process| process != 0)?;
        (process != self.own).then_some((To::Process(process), answer_message(response)?))
    }

    /// Whether it is time to say again that clients send too much: they would write the log.
    fn may_complain(&self, second: u64) -> bool {
        let due = self.complains.load(Relaxed);
        second >= due && self.complains.compare_exchange(due, second + COMPLAINT, Relaxed, Relaxed).is_ok()
    }

    /// Forwards a request's messages to the other processes, before the request is answered.
    pub(in super::super) async fn forward_messages(
        &self,
        http_session: Option<&Arc<HttpSession>>,
        elsewhere: Elsewhere,
    ) -> Result<(), HttpResponse> {
        for (to, post) in elsewhere.posts {
            match self.stores.broker.post(to, &post).await {
                Ok(true) => {}
                Ok(false) => {
                    let session = http_session.map(|http_session| http_session.key.store_name().to_string());
                    tracing::warn!(session, "a client's answer is lost: the process that asked has ended");
                }
                Err(Down) => self.while_away()?,
            }
        }
        match http_session {
            Some(http_session) => self.tell_changes(http_session, elsewhere.changes).await,
            None => Ok(()),
        }
    }

    /// Publishes the settings that the client changed and other processes don't know yet. `is_asked`: this request changed one of
    /// them. A request that changed none never fails for the changes of an earlier one. While another request is publishing,
    /// perhaps this one's change too, a request that made a change waits for it: that publication may fail.
    async fn tell_changes(&self, http_session: &Arc<HttpSession>, is_asked: bool) -> Result<(), HttpResponse> {
        let telling = loop {
            match http_session.session.tell_changes() {
                Tell::Now(telling) => break telling,
                Tell::After(end) if is_asked => end.await,
                Tell::After(_) | Tell::Nothing => return Ok(()),
            }
        };
        if !is_asked && !self.stores.broker.is_up() {
            return Ok(());
        }
        let name = http_session.key.store_name();
        let told = async {
            self.stores.sessions.change(name, &telling.changes).await?;
            for change in &telling.changes {
                self.stores.broker.post(To::Others, &Post::Changed(name.to_string(), change.clone())).await?;
            }
            Ok(())
        };
        match told.await {
            Ok(()) => telling.mark_sent(),
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
        http_session: &Arc<HttpSession>,
        id: Id<'static>,
        call: ForwardedCall,
    ) -> ForwardedCall {
        let (sharing, http_session) = (Arc::clone(self), Arc::clone(http_session));
        Box::pin(async move {
            let reply = call.await;
            if sharing.tell_changes(&http_session, true).await.is_ok() {
                return reply;
            }
            let mut message = Vec::with_capacity(128);
            // Without data there is nothing that could fail to be written.
            let _ = write_error(&mut message, Some(&id), code::INTERNAL_ERROR, &Down.to_string(), None::<&()>);
            Reply { message: message.into(), status: ReplyStatus::Unavailable, session: None, challenge: None, ..reply }
        })
    }
}

/// An answer by itself. One that is too long is passed on as an error, so that nobody waits for it.
fn answer_message(response: &Response<'_>) -> Option<String> {
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

/// The cancellation to forward, if its call isn't in progress in this process.
fn cancelled_elsewhere(http_session: &HttpSession, params: &str) -> Option<String> {
    let id = serde_json::from_str::<CancelledParams>(params).ok()?.request_id?;
    if http_session.session.has_under_way(&id) { None } else { cancellation_message(id) }
}

/// A cancellation by itself; none where the call has a name of a length that no call has.
fn cancellation_message(id: Id<'static>) -> Option<String> {
    let params = CancelledParams { request_id: Some(id), reason: None, meta: None, extra: Extra::new() };
    let mut text = Vec::new();
    write_notification(&mut text, Method::Cancelled.as_str(), Some(&params)).ok()?;
    String::from_utf8(text).ok().filter(|text| text.len() <= LONGEST_CANCELLATION)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::Poll;
    use std::time::{Duration, Instant};

    use mcpace_wire::Revision;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation};
    use tokio::sync::{mpsc, oneshot};

    use super::super::super::options::Limits;
    use super::super::super::session_streams::tests::small_streams;
    use super::super::super::sessions::Sessions;
    use super::*;
    use crate::Server;
    use crate::session::{ClientDescription, Session};
    use crate::store::{
        Added, Bounds, Broker, Cursor, EventStore, FoundSession, Later, Life, LogId, OnDown, Opened, Page, Put,
        Received, Record, SessionName, SessionStore, SettingChange, Stores, StreamEntry,
    };

    type Arrived = (Vec<SettingChange>, oneshot::Sender<Result<(), Down>>);

    /// A store that takes changes as the test answers them, and is asked for nothing else.
    struct Gated {
        arrived: mpsc::UnboundedSender<Arrived>,
        posted: Mutex<Vec<Post>>,
    }

    fn never<'a, T: Send + 'a>() -> Later<'a, T> {
        Box::pin(std::future::pending())
    }

    impl SessionStore for Gated {
        fn put<'a>(&'a self, _: SessionName, _: &'a Record, _: Life) -> Later<'a, Put> {
            never()
        }
        fn find(&self, _: SessionName) -> Later<'_, FoundSession> {
            never()
        }
        fn touch<'a>(&'a self, _: &'a [SessionName], _: Life) -> Later<'a, ()> {
            never()
        }
        fn change<'a>(&'a self, _: SessionName, changes: &'a [SettingChange]) -> Later<'a, ()> {
            let (answer, answered) = oneshot::channel();
            self.arrived.send((changes.to_vec(), answer)).unwrap();
            Box::pin(async move { answered.await.unwrap() })
        }
        fn end(&self, _: SessionName, _: Life) -> Later<'_, ()> {
            never()
        }
    }

    impl EventStore for Gated {
        fn add<'a>(&'a self, _: &'a [StreamEntry], _: &'a Bounds) -> Later<'a, Vec<Added>> {
            never()
        }
        fn open<'a>(&'a self, _: LogId, _: &'a str, _: Cursor, _: &'a Bounds) -> Later<'a, Opened> {
            never()
        }
        fn is_read(&self, _: LogId) -> Later<'_, bool> {
            never()
        }
        fn read<'a>(&'a self, _: LogId, _: &'a str, _: Option<u64>, _: &'a Bounds) -> Later<'a, Page> {
            never()
        }
        fn close<'a>(&'a self, _: LogId, _: &'a str) -> Later<'a, ()> {
            never()
        }
    }

    impl Broker for Gated {
        fn number(&self) -> u32 {
            1
        }
        fn is_up(&self) -> bool {
            true
        }
        fn post<'a>(&'a self, _: To, post: &'a Post) -> Later<'a, bool> {
            self.posted.lock().unwrap().push(post.clone());
            Box::pin(async { Ok(true) })
        }
        fn settling(&self) -> Duration {
            Duration::ZERO
        }
        fn receive(&self) -> Pin<Box<dyn Future<Output = Received> + Send + '_>> {
            Box::pin(std::future::pending())
        }
        fn spawn(&self, _: Pin<Box<dyn Future<Output = ()> + Send>>) {}
    }

    fn shared() -> (Arc<SharedSessions>, Arc<HttpSession>, mpsc::UnboundedReceiver<Arrived>) {
        let (arrived, changes) = mpsc::unbounded_channel();
        let gated = Arc::new(Gated { arrived, posted: Mutex::default() });
        let stores = Stores { sessions: gated.clone(), events: gated.clone(), broker: gated, on_down: OnDown::Refuse };
        let now = Instant::now();
        let sessions = Sessions::new(10, (Duration::from_secs(60), None), now, None);
        let client = ClientDescription { info: Implementation::default(), capabilities: ClientCapabilities::default() };
        let session = Arc::new(Session::new(Revision::V2025_11_25, None, client));
        session.share_with_processes(1 << QUESTION_BITS);
        let (streams, bounds) = (small_streams(), Arc::clone(&small_streams().bounds));
        let http_session = sessions.reserve_place(None).unwrap().fill_place(session, streams, now).unwrap();
        let server = Server::builder("t", "1").build().unwrap();
        let sharing = SharedSessions::begin_sharing(stores, server, sessions, bounds, (&Limits::default(), true));
        (sharing, http_session, changes)
    }

    async fn once<T>(work: &mut Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let polled = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = polled { Some(done) } else { None }
    }

    #[tokio::test]
    async fn who_set_something_is_answered_once_all_know_it_whoever_tells_them() {
        let watch = || SettingChange::Watch("test://a".to_owned());
        for is_well in [true, false] {
            let (sharing, http_session, mut changes) = shared();
            assert!(http_session.session.subscribe("test://a", 8));
            // Another request of the session comes first to tell what that one set.
            let mut other = pin!(sharing.forward_messages(Some(&http_session), Elsewhere::default()));
            assert!(once(&mut other).await.is_none());
            let (told, answer) = changes.try_recv().unwrap();
            assert_eq!(told, [watch()]);
            let mut own = pin!(
                sharing.forward_messages(Some(&http_session), Elsewhere { changes: true, ..Elsewhere::default() })
            );
            assert!(once(&mut own).await.is_none(), "nobody else knows it yet");
            assert!(changes.try_recv().is_err(), "it is on its way once");
            answer.send(if is_well { Ok(()) } else { Err(Down) }).unwrap();
            // A change that an earlier request left unpublished fails no other request.
            assert!(matches!(once(&mut other).await, Some(Ok(()))));
            let answered = once(&mut own).await;
            if is_well {
                assert!(matches!(answered, Some(Ok(()))));
                continue;
            }
            assert!(answered.is_none());
            let (told, answer) = changes.try_recv().unwrap();
            assert_eq!(told, [watch()], "told again");
            answer.send(Err(Down)).unwrap();
            assert!(matches!(once(&mut own).await, Some(Err(_))), "nobody knows it");
        }
    }

    #[tokio::test]
    async fn what_was_said_later_arrives_later() {
        let (sharing, http_session, mut changes) = shared();
        let set = || Elsewhere { changes: true, ..Elsewhere::default() };
        assert!(http_session.session.subscribe("test://a", 8));
        let mut first = pin!(sharing.forward_messages(Some(&http_session), set()));
        assert!(once(&mut first).await.is_none());
        http_session.session.unsubscribe("test://a", 8);
        let mut last = pin!(sharing.forward_messages(Some(&http_session), set()));
        assert!(once(&mut last).await.is_none());
        let (_, answer) = changes.try_recv().unwrap();
        assert!(changes.try_recv().is_err(), "one after the other");
        answer.send(Err(Down)).unwrap();
        assert!(matches!(once(&mut first).await, Some(Err(_))));
        assert!(once(&mut last).await.is_none());
        let (told, answer) = changes.try_recv().unwrap();
        assert_eq!(told, [SettingChange::Unwatch("test://a".to_owned())], "the last word alone");
        answer.send(Ok(())).unwrap();
        assert!(matches!(once(&mut last).await, Some(Ok(()))));
        assert!(matches!(http_session.session.tell_changes(), Tell::Nothing));
    }
}
