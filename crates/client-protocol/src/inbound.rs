//! Messages of the server: a text is divided into messages, and each answer finds the request that awaits it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use mcpace_wire::jsonrpc::{Id, Message, Notification, ParseError, Payload, Request, Response, is_deeper_than};

use crate::Answer;

/// Levels of nesting in a message of the server.
const NESTING: usize = 512;

/// One message of the server.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// The answer to a request.
    Answer(Option<Id<'a>>, Answer),
    /// A request of the server.
    Request(Request<'a>),
    /// A notification.
    Notification(Notification<'a>),
}

impl Incoming<'_> {
    /// Whether the message answers the request `id`. An error without an id answers the only request that is in flight.
    #[must_use]
    pub fn is_answer_to(&self, id: i64) -> bool {
        match self {
            Incoming::Answer(Some(Id::Integer(answered)), _) => *answered == id,
            Incoming::Answer(None, Answer::Error(_)) => true,
            _ => false,
        }
    }
}

/// Divides a JSON text into its messages: one, or those of a batch.
///
/// # Errors
/// The text is no JSON-RPC, or it nests too deep.
pub fn read_messages(text: &Bytes) -> Result<impl Iterator<Item = Incoming<'_>>, ParseError> {
    if is_deeper_than(text, NESTING) {
        return Err(ParseError::NotJson { reason: format!("it nests deeper than {NESTING} levels") });
    }
    let messages = match Payload::parse(text)? {
        Payload::Single(message) => vec![message],
        Payload::Batch(messages) => messages,
    };
    Ok(messages.into_iter().map(move |message| match message {
        Message::Response(Response { id, outcome, .. }) => Incoming::Answer(id, Answer::from_outcome(outcome, text)),
        Message::Request(request) => Incoming::Request(request),
        Message::Notification(notification) => Incoming::Notification(notification),
    }))
}

/// Requests that await their answers on a transport with one stream for all messages (stdio, HTTP+SSE).
#[derive(Debug, Default)]
pub struct PendingRequests(Mutex<PendingState>);

#[derive(Debug, Default)]
struct PendingState {
    slots: HashMap<i64, Slot>,
    /// Reason of the stream's end. No answer comes after it.
    closed: Option<String>,
}

#[derive(Debug)]
enum Slot {
    Pending(Waker),
    Answered(Answer),
}

/// Future of one answer; `None` when the stream ended first. A dropped future is forgotten.
#[derive(Debug)]
pub struct PendingAnswer<'a> {
    requests: &'a PendingRequests,
    id: i64,
}

impl PendingRequests {
    /// Announces a request, before it is sent.
    #[must_use]
    pub fn expect_answer(&self, id: i64) -> PendingAnswer<'_> {
        let mut state = self.lock_state();
        if state.closed.is_none() {
            state.slots.insert(id, Slot::Pending(Waker::noop().clone()));
        }
        PendingAnswer { requests: self, id }
    }

    /// Hands an answer to the request that awaits it. An error without an id goes to the only request, if there is one.
    pub fn deliver(&self, id: Option<&Id<'_>>, answer: Answer) {
        let mut state = self.lock_state();
        let mut pending = state.slots.iter_mut().filter(|(_, slot)| matches!(slot, Slot::Pending(_)));
        let slot = match (id, &answer) {
            (Some(Id::Integer(id)), _) => state.slots.get_mut(id),
            (None, Answer::Error(_)) => match (pending.next(), pending.next()) {
                (Some((_, slot)), None) => Some(slot),
                _ => None,
            },
            _ => None,
        };
        if let Some(slot @ Slot::Pending(_)) = slot
            && let Slot::Pending(waker) = std::mem::replace(slot, Slot::Answered(answer))
        {
            drop(state);
            waker.wake();
        }
    }

    /// Notes the end of the stream: requests without an answer get none.
    pub fn close(&self, reason: impl Into<String>) {
        let mut state = self.lock_state();
        state.closed.get_or_insert(reason.into());
        let mut wakers = Vec::new();
        state.slots.retain(|_, slot| match slot {
            Slot::Pending(waker) => {
                wakers.push(std::mem::replace(waker, Waker::noop().clone()));
                false
            }
            Slot::Answered(_) => true,
        });
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Reason of the stream's end; `None` while it goes on.
    #[must_use]
    pub fn close_reason(&self) -> Option<String> {
        self.lock_state().closed.clone()
    }

    /// Each holder of the lock makes one whole change, so the state is sound even after a panic.
    fn lock_state(&self) -> MutexGuard<'_, PendingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for PendingAnswer<'_> {
    type Output = Option<Answer>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let mut state = self.requests.lock_state();
        match state.slots.remove(&self.id) {
            Some(Slot::Answered(answer)) => Poll::Ready(Some(answer)),
            Some(Slot::Pending(_)) => {
                state.slots.insert(self.id, Slot::Pending(cx.waker().clone()));
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        self.requests.lock_state().slots.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::{Raw, RpcError};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll(future: Pin<&mut PendingAnswer<'_>>) -> Poll<Option<Answer>> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn result() -> Answer {
        Answer::Result(Raw::new("{}"))
    }

    #[test]
    fn answers_reach_their_requests_in_any_order() {
        let requests = PendingRequests::default();
        let (mut first, mut second) = (pin!(requests.expect_answer(1)), pin!(requests.expect_answer(2)));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        requests.deliver(Some(&Id::Integer(2)), result());
        requests.deliver(Some(&Id::Integer(3)), result());
        requests.deliver(Some(&Id::Integer(1)), result());
        // A second answer to one request changes nothing.
        requests.deliver(Some(&Id::Integer(1)), Answer::Error(RpcError::new(1, "again")));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(matches!(poll(first.as_mut()), Poll::Ready(Some(Answer::Result(_)))));
        assert!(matches!(poll(second.as_mut()), Poll::Ready(Some(Answer::Result(_)))));
    }

    #[test]
    fn an_error_without_an_id_answers_the_only_request() {
        let requests = PendingRequests::default();
        let error = || Answer::Error(RpcError::new(-32700, "no"));
        let mut first = pin!(requests.expect_answer(1));
        {
            let mut second = pin!(requests.expect_answer(2));
            requests.deliver(None, error());
            assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        }
        requests.deliver(None, error());
        assert!(matches!(poll(first.as_mut()), Poll::Ready(Some(Answer::Error(_)))));
    }

    #[test]
    fn the_end_of_the_stream_fails_present_and_later_requests_but_takes_no_answer_back() {
        let requests = PendingRequests::default();
        let (mut answered, mut pending) = (pin!(requests.expect_answer(1)), pin!(requests.expect_answer(2)));
        assert!(poll(pending.as_mut()).is_pending());
        requests.deliver(Some(&Id::Integer(1)), result());
        requests.close("gone");
        requests.close("later");
        assert!(matches!(poll(answered.as_mut()), Poll::Ready(Some(_))));
        assert!(matches!(poll(pending.as_mut()), Poll::Ready(None)));
        assert!(matches!(poll(pin!(requests.expect_answer(3)).as_mut()), Poll::Ready(None)));
        assert_eq!(requests.close_reason().as_deref(), Some("gone"));
    }

    #[test]
    fn a_batch_is_divided_into_its_messages() {
        let text = Bytes::from_static(
            br#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","method":"notifications/x"},
                 {"jsonrpc":"2.0","id":"1","result":{}},{"jsonrpc":"2.0","id":5,"method":"ping"}]"#,
        );
        let messages: Vec<_> = read_messages(&text).unwrap().collect();
        let answers: Vec<bool> = messages.iter().map(|message| message.is_answer_to(1)).collect();
        assert_eq!(answers, [true, false, false, false]);
        assert!(matches!(&messages[0], Incoming::Answer(_, Answer::Result(raw)) if raw.as_bytes() == br#"{"a":1}"#));
        assert!(matches!((&messages[1], &messages[3]), (Incoming::Notification(_), Incoming::Request(_))));
    }

    #[test]
    fn an_error_without_an_id_is_an_answer_but_a_page_or_a_deep_text_is_none() {
        let text = Bytes::from_static(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
        assert!(read_messages(&text).unwrap().next().unwrap().is_answer_to(7));
        assert!(read_messages(&Bytes::from_static(b"<html>")).is_err());
        let deep = Bytes::from("[".repeat(NESTING + 1));
        assert!(read_messages(&deep).err().unwrap().to_string().contains("nests deeper"));
    }
}
