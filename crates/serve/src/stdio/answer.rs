//! The place where a request's answer goes, so that each request is answered at most once and none is forgotten: on its own
//! line, or into its batch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcpace_wire::jsonrpc::{Id, code, write_error};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::client::StdioClient;
use super::outbox::Outbox;
use crate::{Gone, Outlet, Reply};

/// The requests in flight, by id.
#[derive(Default)]
pub(super) struct Calls {
    table: Mutex<HashMap<Id<'static>, InFlightCall>>,
    /// Whether one of them is an `initialize`.
    begins_session: AtomicBool,
    ended: Notify,
}

/// A request in flight.
pub(super) struct InFlightCall {
    /// `None` only until its task is spawned.
    pub(super) task: Option<AbortHandle>,
    /// Outlet of the handler, if the handler asked for one.
    pub(super) outlet: Option<Arc<CallOutlet>>,
    /// Whether it lasts until somebody ends it.
    pub(super) is_subscription: bool,
    /// Whether it is an `initialize`: all that comes after it belongs to the session that it begins.
    pub(super) begins_session: bool,
}

impl Calls {
    pub(super) fn lock_calls(&self) -> MutexGuard<'_, HashMap<Id<'static>, InFlightCall>> {
        // Nothing in a critical section panics half-way through a change.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, id: Id<'static>, call: InFlightCall) {
        if call.begins_session {
            self.begins_session.store(true, Ordering::Release);
        }
        self.lock_calls().insert(id, call);
    }

    /// Whether an `initialize` is in flight. At most one is: a second one waits for it.
    pub(super) fn begins_session(&self) -> bool {
        self.begins_session.load(Ordering::Acquire)
    }

    /// Whether another request may begin: fewer than `limit` are in flight, and none that later ones depend on.
    pub(super) fn has_turn(&self, limit: usize) -> bool {
        !self.begins_session() && self.lock_calls().len() < limit
    }

    /// Waits until another request may begin. For one caller at a time.
    pub(super) async fn wait_for_slot(&self, limit: usize) {
        while !self.has_turn(limit) {
            self.ended.notified().await;
        }
    }

    /// Ends a request: no more is said for it.
    pub(super) fn cancel_request(&self, id: &Id<'static>) {
        if let Some(call) = self.lock_calls().get(id) {
            call.cancel_call();
        }
    }

    /// Ends all subscriptions.
    pub(super) fn cancel_subscriptions(&self) {
        self.lock_calls().values().filter(|call| call.is_subscription).for_each(InFlightCall::cancel_call);
    }

    fn remove(&self, id: &Id<'static>) {
        let removed = self.lock_calls().remove(id);
        if removed.is_some_and(|call| call.begins_session) {
            self.begins_session.store(false, Ordering::Release);
        }
        self.ended.notify_one();
    }
}

impl InFlightCall {
    fn cancel_call(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.close_outlet();
        }
        // Dropping the future is what cancels the handler.
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Where a handler speaks ahead of its reply; closed by the reply and by cancellation.
pub(super) struct CallOutlet {
    outbox: Outbox,
    closed: AtomicBool,
}

impl CallOutlet {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self { outbox, closed: AtomicBool::new(false) }
    }

    pub(super) fn close_outlet(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

impl Outlet for CallOutlet {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        if self.closed.load(Ordering::Acquire) { Err(Gone) } else { self.outbox.send(message) }
    }
}

/// Where answers go.
#[derive(Clone)]
pub(super) enum Destination {
    /// On a line of its own.
    Line(Outbox),
    /// Into the array that answers a batch.
    Batch(Arc<BatchReply>),
}

impl Destination {
    pub(super) fn send_message(&self, message: Bytes) {
        match self {
            Destination::Line(outbox) => outbox.add_reply(message),
            Destination::Batch(batch) => batch.lock_replies().push(message),
        }
    }
}

/// The answers to a batch; written, as one array, when the last holder lets go.
pub(super) struct BatchReply {
    outbox: Outbox,
    replies: Mutex<Vec<Bytes>>,
}

impl BatchReply {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self { outbox, replies: Mutex::default() }
    }

    fn lock_replies(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BatchReply {
    fn drop(&mut self) {
        let replies = std::mem::take(&mut *self.lock_replies());
        // JSON-RPC 2.0, "Batch": no empty array, nothing at all.
        if replies.is_empty() {
            return;
        }
        let mut array = Vec::with_capacity(replies.iter().map(|reply| reply.len() + 1).sum::<usize>() + 1);
        for (index, reply) in replies.iter().enumerate() {
            array.push(if index == 0 { b'[' } else { b',' });
            array.extend_from_slice(reply);
        }
        array.push(b']');
        self.outbox.add_reply(Bytes::from(array));
    }
}

/// The one answer that a request gets. Dropped without one, the request was cancelled and gets none; unless its handler
/// panicked, which is the server's fault and told so.
pub(super) struct ReplySlot {
    pub(super) id: Id<'static>,
    pub(super) destination: Destination,
    pub(super) client: Arc<StdioClient>,
    pub(super) outlet: Option<Arc<CallOutlet>>,
    pub(super) given: bool,
}

impl ReplySlot {
    pub(super) fn deliver_reply(mut self, reply: Reply) {
        self.given = true;
        self.client.deliver_reply(reply, self.outlet.as_deref(), &self.destination);
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        if let Some(outlet) = &self.outlet {
            outlet.close_outlet();
        }
        if !self.given && std::thread::panicking() {
            let mut message = Vec::new();
            // Nothing in it can fail to be written: it has no data.
            let _ = write_error(&mut message, Some(&self.id), code::INTERNAL_ERROR, "internal error", None::<&()>);
            self.destination.send_message(Bytes::from(message));
        }
        self.client.calls.remove(&self.id);
    }
}
