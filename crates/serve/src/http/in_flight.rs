//! The requests of one POST that are still being handled: one, or a batch. Dropping them cancels them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::held_results::{Accounts, Finished};
use crate::exchange::Reply;

/// A handler at work.
pub(super) type CallFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The unfinished requests of one POST. All are polled together: there are at most [`super::Limits::batch`].
pub(super) struct Calls {
    slots: Vec<Slot>,
    accounts: Accounts,
}

enum Slot {
    Waiting(CallFuture),
    Done(Finished),
    Taken,
}

impl Calls {
    /// Whose replies are counted there.
    pub(super) fn new(accounts: Accounts) -> Self {
        Self { slots: Vec::new(), accounts }
    }

    pub(super) fn push_call(&mut self, call: CallFuture) {
        self.slots.push(Slot::Waiting(call));
    }

    pub(super) fn push_done(&mut self, reply: Reply) {
        self.slots.push(Slot::Done(self.accounts.finish_reply(reply)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Ready once all have ended. Their replies stay inside.
    pub(super) fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        for slot in &mut self.slots {
            if let Slot::Waiting(call) = slot {
                match call.as_mut().poll(cx) {
                    Poll::Ready(reply) => *slot = Slot::Done(self.accounts.finish_reply(reply)),
                    Poll::Pending => all = Poll::Pending,
                }
            }
        }
        all
    }

    /// The replies there are, in the order of their requests; each is given once.
    pub(super) fn take_done(&mut self) -> impl Iterator<Item = Finished> {
        self.slots.iter_mut().filter_map(|slot| match std::mem::replace(slot, Slot::Taken) {
            Slot::Done(finished) => Some(finished),
            other => {
                *slot = other;
                None
            }
        })
    }
}
