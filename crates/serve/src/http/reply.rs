//! From what dispatch answers to an HTTP reply: JSON, events in one piece, or a stream that goes on.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use mcpace_wire::sse::encode_message;

use super::event_log::Log;
use super::event_stream::EventStream;
use super::held_results::{Finished, Permit};
use super::http_response::{self, HttpResponse};
use super::http_server::HttpServer;
use super::http_session::HttpSession;
use super::in_flight::Calls;
use super::options::ResponseMode;
use super::post::Admitted;
use super::reply_body::ReplyBody;
use super::session_streams::SessionStreams;
use crate::exchange::{Challenge, Reply, ReplyStatus, Timing};

/// A POST with requests in it.
pub(super) struct PostExchange {
    pub(super) mode: ResponseMode,
    pub(super) admitted: Admitted,
    /// Opened by a handler that may speak before its result.
    pub(super) log: Option<Arc<Log>>,
    pub(super) received: Instant,
    pub(super) is_batch: bool,
}

impl PostExchange {
    /// The session, where a lost stream of it can be taken up again.
    fn resumable_session(&self) -> Option<&Arc<HttpSession>> {
        self.admitted.resumable_session()
    }

    fn has_spoken(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.has_spoken())
    }
}

impl Admitted {
    fn resumable_session(&self) -> Option<&Arc<HttpSession>> {
        self.http_session
            .as_ref()
            .filter(|http_session| http_session.streams.are_resumable() && self.revision.has_http_sessions())
    }
}

/// How long the head of a stream waits for the reply where every reply is a stream: a refusal that comes within this time
/// has its own status and headers.
const HEAD_DELAY: Duration = Duration::from_millis(100);

/// How a wait went.
enum WaitEnd {
    /// All is answered.
    Finished,
    /// The stream has to begin.
    Speaks,
}

impl HttpServer {
    /// A log for the messages and replies of a POST.
    pub(super) fn new_log(&self, admitted: &Admitted) -> Arc<Log> {
        match admitted.resumable_session() {
            Some(http_session) => {
                let log = match self.sharing.as_ref().zip(admitted.asked.as_deref()) {
                    Some((sharing, asked)) => sharing.new_log(http_session, asked, self.stream_bounds.log),
                    None => http_session.streams.new_log(),
                };
                if admitted.revision.has_priming_events() {
                    log.add_prime(self.retry);
                }
                log
            }
            None => Log::new(None, self.stream_bounds.log),
        }
    }

    /// Waits for the result, or for the moment that a stream has to begin. When the client goes away meanwhile, this
    /// future is dropped, and the calls with it.
    pub(super) async fn settle_calls(&self, exchange: PostExchange, mut calls: Calls) -> HttpResponse {
        // The session's id is a header: `initialize` holds the head back whatever the mode.
        let holds = exchange.mode == ResponseMode::Json || exchange.admitted.place.is_some();
        let limit = match exchange.mode {
            ResponseMode::Sse => HEAD_DELAY.min(self.keep_alive),
            _ => self.keep_alive,
        };
        let mut timer = None;
        let turn = poll_fn(|cx| {
            if calls.poll_all(cx).is_ready() {
                return Poll::Ready(WaitEnd::Finished);
            }
            if holds {
                return Poll::Pending;
            }
            let speaks = exchange.log.as_ref().is_some_and(|log| log.poll_spoken(cx).is_ready());
            if speaks {
                return Poll::Ready(WaitEnd::Speaks);
            }
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            timer.as_mut().poll(cx).map(|()| WaitEnd::Speaks)
        });
        match turn.await {
            WaitEnd::Speaks => {
                let answer = self.stream_reply(exchange, calls);
                if let Some(sharing) = &self.sharing {
                    // The client may come back with what it gets here to any process.
                    sharing.caught_up().await;
                }
                answer
            }
            WaitEnd::Finished if exchange.is_batch => self.finish_batch(exchange, calls),
            WaitEnd::Finished => match calls.take_done().next() {
                Some(finished) => self.whole_reply(exchange, finished),
                // A single message makes one call, and that has ended.
                None => HttpResponse::empty_response(StatusCode::ACCEPTED),
            },
        }
    }

    /// The whole reply to a single request, in one piece.
    pub(super) fn whole_reply(&self, mut exchange: PostExchange, finished: Finished) -> HttpResponse {
        let Finished { reply: Reply { message, status, session, timing, challenge, cancelled: _ }, permit } = finished;
        let begun = session.zip(exchange.admitted.place.take()).and_then(|(session, place)| {
            let streams = SessionStreams::new(Arc::clone(&self.stream_bounds), self.resumable);
            if let Some(sharing) = &self.sharing {
                session.share_with_processes(sharing.question_prefix());
            }
            place.fill_place(session, streams, exchange.received)
        });
        let as_events = exchange.mode == ResponseMode::Sse || exchange.has_spoken();
        let answer = if status == ReplyStatus::Ok && as_events {
            HttpResponse::event_stream(self.whole_events(&exchange, vec![(message, permit)]))
        } else {
            HttpResponse::json_response(http_response::reply_status(status), permit.attach_to(message))
        };
        let answer = answer.with_timing(timing, exchange.received);
        let answer = match challenge {
            None => answer,
            Some(Challenge::Wait(time)) => answer.with_retry_after(time),
            Some(Challenge::Scopes(_)) if status == ReplyStatus::Ok => answer,
            Some(Challenge::Scopes(scopes)) => answer.with_challenge(&self.scope_challenge(&scopes)),
        };
        match begun {
            Some(http_session) => answer.with_session(&http_session.key.to_string()),
            None => answer,
        }
    }

    fn finish_batch(&self, exchange: PostExchange, mut calls: Calls) -> HttpResponse {
        let mut sum: Option<Timing> = None;
        let messages: Vec<(Bytes, Permit)> = calls
            .take_done()
            .map(|Finished { reply, permit }| {
                if let Some(timing) = reply.timing {
                    let sum = sum.get_or_insert_default();
                    sum.dispatch += timing.dispatch;
                    sum.service += timing.service;
                }
                (reply.message, permit)
            })
            .collect();
        let as_events = exchange.mode == ResponseMode::Sse || exchange.has_spoken();
        let answer = if as_events {
            HttpResponse::event_stream(self.whole_events(&exchange, messages))
        } else {
            HttpResponse::json_of(StatusCode::OK, ReplyBody::of_parts(json_array(messages)))
        };
        answer.with_timing(sum, exchange.received)
    }

    /// All events of a reply that is there at once. Head, events and end go out in one write.
    fn whole_events(&self, exchange: &PostExchange, messages: Vec<(Bytes, Permit)>) -> ReplyBody {
        let resumable = exchange.resumable_session();
        if resumable.is_none() && !exchange.has_spoken() {
            return ReplyBody::of_parts(messages.into_iter().map(|(message, permit)| {
                let mut event = Vec::with_capacity(message.len() + EVENT_FRAME);
                encode_message(&message, None, &mut event);
                permit.attach_to(event.into())
            }));
        }
        let log = exchange.log.clone().unwrap_or_else(|| self.new_log(&exchange.admitted));
        messages.into_iter().for_each(|(message, permit)| log.push_reply(&message, permit));
        log.end_stream();
        let events = ReplyBody::of_parts(log.take_all());
        if let Some(http_session) = resumable {
            http_session.streams.finish_log(&log);
        }
        events
    }

    /// A reply that goes on.
    fn stream_reply(&self, exchange: PostExchange, calls: Calls) -> HttpResponse {
        let log = exchange.log.clone().unwrap_or_else(|| self.new_log(&exchange.admitted));
        let reader = log.open_reader(None);
        let stream = EventStream::new(reader, self.keep_alive);
        let stream = match exchange.resumable_session() {
            Some(http_session) => {
                if http_session.streams.begin_log(&log).is_err() {
                    // Other processes may have the handlers' messages already, so they need the stream's end, too.
                    log.end_stream();
                    let reason = "as many streams as may be are open in this session";
                    return HttpResponse::overloaded(StatusCode::TOO_MANY_REQUESTS, reason);
                }
                log.announce_stream();
                tokio::spawn(drive_unread(calls, log, Arc::clone(http_session)));
                stream
            }
            None => stream.with_calls(calls),
        };
        let stream = match exchange.admitted.http_session {
            Some(http_session) => stream.with_owner(http_session),
            None => stream,
        };
        HttpResponse::event_stream(ReplyBody::Events(Box::new(stream)))
    }
}

/// Sees calls through whether or not anybody reads: their client may come back. Only the session's end stops them.
async fn drive_unread(mut calls: Calls, log: Arc<Log>, http_session: Arc<HttpSession>) {
    let over = http_session.streams.session_ended();
    let all = poll_fn(|cx| {
        let all = calls.poll_all(cx);
        calls.take_done().for_each(|finished| log.push_finished(finished));
        all
    });
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        () = all => {}
    }
    log.end_stream();
    http_session.streams.finish_log(&log);
}

/// `event: message\ndata: …\n\n`.
const EVENT_FRAME: usize = 24;

/// At least one message.
fn json_array(messages: Vec<(Bytes, Permit)>) -> impl Iterator<Item = Bytes> {
    let [open, comma, close] = [&b"["[..], b",", b"]"].map(Bytes::from_static);
    let separators = std::iter::once(open).chain(std::iter::repeat(comma));
    let messages = messages.into_iter().map(|(message, permit)| permit.attach_to(message));
    separators.zip(messages).flat_map(|(separator, message)| [separator, message]).chain([close])
}
