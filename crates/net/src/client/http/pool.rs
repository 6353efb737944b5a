//! Kept connections, by origin: one is enough for one call after another; a second is opened while the first is still
//! busy with a stream that the server holds open.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::Request;
use mcpace_record::Closer;

use super::connection::{HttpConnection, OpenReply, SendError};
use crate::lock::lock_mutex;
use crate::{Dialer, NetError, Origin, Sink};

/// Connections that are kept idle at most.
const MOST_IDLE: usize = 4;

/// Opens, keeps and hands out connections.
pub(super) struct Pool {
    dialer: Dialer,
    sink: Arc<Sink>,
    idle: Mutex<Vec<HttpConnection>>,
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum NoReply {
    /// No connection.
    Net(NetError),
    /// The connection stood, but no HTTP reply came.
    Send(SendError),
}

impl Pool {
    pub(super) fn new(dialer: Dialer, sink: Arc<Sink>) -> Self {
        Self { dialer, sink, idle: Mutex::new(Vec::new()) }
    }

    /// Sends on a kept connection, where one is usable, else on a new one. A kept connection may have died unseen
    /// (RFC 9112 §9.3.1): then the request goes out again if it never left, or if it `may_be_repeated`.
    pub(super) async fn send_request(
        &self,
        origin: &Origin,
        mut request: Request<Bytes>,
        may_be_repeated: bool,
    ) -> Result<OpenReply, NoReply> {
        while let Some(mut kept) = self.take_idle(origin) {
            if !kept.is_usable().await {
                kept.close_connection(Closer::Client).await;
                continue;
            }
            match kept.send_request(request).await {
                Ok(reply) => return Ok(reply),
                Err((error, again)) if error.unsent || may_be_repeated => request = again,
                Err((error, _)) => return Err(NoReply::Send(error)),
            }
        }
        let fresh = HttpConnection::open_connection(&self.dialer, &self.sink, origin).await.map_err(NoReply::Net)?;
        fresh.send_request(request).await.map_err(|(error, _)| NoReply::Send(error))
    }

    /// Keeps the connection of a reply that was read to its end.
    pub(super) fn keep_connection(&self, reply: OpenReply) {
        let Some(connection) = reply.into_connection() else { return };
        let mut idle = self.lock_idle();
        if idle.len() < MOST_IDLE {
            idle.push(connection);
        }
    }

    /// Ends all kept connections and waits until that is noted.
    pub(super) async fn close_idle(&self) {
        let idle = std::mem::take(&mut *self.lock_idle());
        for connection in idle {
            connection.close_connection(Closer::Client).await;
        }
    }

    fn take_idle(&self, origin: &Origin) -> Option<HttpConnection> {
        let mut idle = self.lock_idle();
        let at = idle.iter().rposition(|connection| connection.leads_to(origin))?;
        Some(idle.swap_remove(at))
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<HttpConnection>> {
        lock_mutex(&self.idle)
    }
}
