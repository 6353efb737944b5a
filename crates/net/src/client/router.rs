//! Brings answers to those who wait for them, on transports with one stream for everything (stdio, HTTP+SSE).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use mcpace_wire::jsonrpc::Id;
use tokio::sync::oneshot;

use super::message::{Answer, Outgoing, Received};
use crate::lock::lock;

/// Who waits for what.
#[derive(Default)]
pub(crate) struct Router(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: HashMap<Id<'static>, oneshot::Sender<Answer>>,
    /// Set once: nothing comes any more.
    closed: Option<String>,
}

impl Router {
    /// Announces a request, before it is sent. The receiver fails when the stream ends first.
    pub(crate) fn expect(&self, id: &Id<'static>) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        // Those who gave up are not remembered.
        state.waiting.retain(|_, waiting| !waiting.is_closed());
        if state.closed.is_none() {
            state.waiting.insert(id.clone(), sender);
        }
        receiver
    }

    /// Hands a text's answers to those who wait, and returns the client's answers to the server's own requests.
    pub(crate) fn deliver(&self, text: &[u8]) -> Vec<Outgoing> {
        let received = Received::of(text);
        let mut state = self.state();
        for (id, answer) in received.answers {
            let waiting = match id {
                Some(id) => state.waiting.remove(&id),
                // An error that the server could not attribute is about the only request that is under way.
                None if state.waiting.len() == 1 => state.waiting.drain().next().map(|(_, waiting)| waiting),
                None => None,
            };
            if let Some(waiting) = waiting {
                // Who gave up in the meantime doesn't want it.
                drop(waiting.send(answer));
            }
        }
        received.replies
    }

    /// The stream is at its end: nobody will be answered.
    pub(crate) fn close(&self, reason: impl Into<String>) {
        let mut state = self.state();
        state.closed.get_or_insert(reason.into());
        state.waiting.clear();
    }

    /// Why the stream ended.
    pub(crate) fn closed(&self) -> Option<String> {
        self.state().closed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_reach_those_who_wait_in_any_order() {
        let router = Router::default();
        let (mut first, mut second) = (router.expect(&Id::Integer(1)), router.expect(&Id::Integer(2)));
        router.deliver(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        assert!(second.try_recv().is_ok() && first.try_recv().is_err());
        router.deliver(br#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#);
        assert!(first.try_recv().is_ok());
    }

    #[test]
    fn the_end_of_the_stream_fails_who_waits_and_who_comes_later() {
        let router = Router::default();
        let mut before = router.expect(&Id::Integer(1));
        router.close("gone");
        let mut after = router.expect(&Id::Integer(2));
        assert!(matches!(before.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert!(matches!(after.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert_eq!(router.closed().as_deref(), Some("gone"));
    }
}
