//! A request that is being waited for. Given up, by its time limit or by whoever awaits it, it is cancelled: over modern
//! HTTP by the end of the reply's connection, else by a notification.

use mcpace_client_protocol::Outgoing;

use crate::inbound::Inbound;
use crate::session::ConnectedSession;
use crate::transport::Link;

pub(crate) struct Underway<'a> {
    inbound: &'a Inbound,
    session: &'a ConnectedSession,
    id: i64,
    armed: bool,
}

impl<'a> Underway<'a> {
    pub(crate) fn new(inbound: &'a Inbound, session: &'a ConnectedSession, id: i64) -> Self {
        Self { inbound, session, id, armed: true }
    }

    /// It was answered, or can't be any more.
    pub(crate) fn finish_request(mut self) {
        self.armed = false;
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let silent = self.session.info.revision.is_modern() && matches!(self.session.link, Link::Http(_));
        if !self.armed || silent {
            return;
        }
        let Outgoing { body, .. } = Outgoing::cancelled(self.id);
        let (back, limit) = (self.session.link.message_sender(), self.inbound.limits.close_time);
        // A courtesy: a server that doesn't take it has been given up anyway.
        drop(self.inbound.runtime.spawn(async move {
            drop(tokio::time::timeout(limit, back.send_unanswered(body)).await);
        }));
    }
}
