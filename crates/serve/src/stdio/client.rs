//! The state of a connection that the replies to its requests change: the legacy session and the requests in flight.
//!
//! Constraint: a reply comes at once or later, from a task. Both ways go through [`StdioClient::deliver_reply`], so that what a reply
//! carries besides its message (a session that begins) is kept on both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::answer::{CallOutlet, Calls, Destination};
use super::outbox::Outbox;
use crate::session::Session;
use crate::{Reply, Server};

/// One client, shared with the tasks of its requests.
pub(super) struct StdioClient {
    pub(super) server: Server,
    pub(super) outbox: Outbox,
    pub(super) calls: Calls,
    legacy: Mutex<Legacy>,
}

/// The client's legacy session, and the limits that the end of the connection sets it.
#[derive(Default)]
struct Legacy {
    /// Begun by `initialize`.
    session: Option<Arc<Session>>,
    /// The input is over: no question to the client will be answered.
    hears_nothing: bool,
    /// The client is gone: a session that begins now has nobody.
    has_ended: bool,
}

impl StdioClient {
    pub(super) fn new(server: Server, outbox: Outbox) -> Self {
        Self { server, outbox, calls: Calls::default(), legacy: Mutex::default() }
    }

    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.lock_legacy().session.clone()
    }

    /// Whether requests may begin whose end only the client could bring about.
    pub(super) fn hears_nothing(&self) -> bool {
        self.lock_legacy().hears_nothing
    }

    /// Delivers a reply. Nothing that its handler says comes after it.
    pub(super) fn deliver_reply(&self, reply: Reply, outlet: Option<&CallOutlet>, to: &Destination) {
        if let Some(outlet) = outlet {
            outlet.close_outlet();
        }
        if let Some(session) = reply.session {
            self.begin_session(session);
        }
        if !reply.cancelled {
            // Last: the client's next message may come as soon as it has this.
            to.send_message(reply.message);
        }
    }

    fn begin_session(&self, session: Arc<Session>) {
        let mut legacy = self.lock_legacy();
        if legacy.has_ended {
            return;
        }
        if legacy.hears_nothing {
            session.expect_no_answers();
        }
        self.server.attach(&session, Arc::new(self.outbox.clone()));
        legacy.session = Some(session);
    }

    /// The input is over: ends what would otherwise last as long as the client.
    pub(super) fn hear_no_more(&self) {
        let mut legacy = self.lock_legacy();
        legacy.hears_nothing = true;
        if let Some(session) = &legacy.session {
            session.expect_no_answers();
        }
        drop(legacy);
        self.calls.cancel_subscriptions();
    }

    /// The client is gone: nothing is done for it any more.
    pub(super) fn end_client(&self) {
        let session = {
            let mut legacy = self.lock_legacy();
            legacy.has_ended = true;
            legacy.session.take()
        };
        if let Some(session) = session {
            session.detach();
            session.cancel_all();
        }
    }

    fn lock_legacy(&self) -> MutexGuard<'_, Legacy> {
        // Nothing in a critical section panics half-way through a change.
        self.legacy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
