//! Kept connections. The one that was used last is used first, so that those too many grow old.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use mcpace_oauth::reason_of;

use super::connection::{HttpConnection, OpenReply, SendError};
use super::dial::{Dialer, Origin};
use crate::ClientError;
use crate::lock::lock_mutex;

/// How long a connection is kept idle: less than servers usually keep theirs.
const MOST_IDLE: Duration = Duration::from_secs(50);

pub(super) struct Pool {
    dialer: Dialer,
    limit: usize,
    idle: Mutex<Vec<HttpConnection>>,
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum NoReply {
    /// No connection.
    Dial(ClientError),
    /// The connection stood, but no HTTP reply came.
    Send(SendError),
}

impl Pool {
    pub(super) fn new(dialer: Dialer, limit: usize) -> Self {
        Self { dialer, limit, idle: Mutex::default() }
    }

    /// Sends on a kept connection, where there is one, else on a new one. A kept connection may have died unseen (RFC 9112
    /// §9.3.1): then the request goes out again if it never left, or if it is `repeatable`.
    pub(super) async fn send_request(
        &self,
        origin: &Origin,
        mut request: Request<Full<Bytes>>,
        repeatable: bool,
    ) -> Result<OpenReply, NoReply> {
        while let Some(kept) = self.take_idle(origin) {
            let again = repeatable.then(|| request.clone());
            match kept.send_request(request).await {
                Ok(reply) => return Ok(reply),
                Err(SendError { unsent: Some(unsent), .. }) => request = unsent,
                Err(error) => request = again.ok_or(NoReply::Send(error))?,
            }
        }
        let socket = self.dialer.dial_origin(origin).await.map_err(NoReply::Dial)?;
        let fresh = HttpConnection::handshake_over(socket, origin.clone()).await.map_err(|error| {
            NoReply::Dial(ClientError::Connect { address: origin.authority(), reason: reason_of(&error) })
        })?;
        fresh.send_request(request).await.map_err(NoReply::Send)
    }

    /// Keeps the connection of a reply that was read to its end.
    pub(super) fn keep_connection(&self, reply: OpenReply) {
        let Some(connection) = reply.into_connection() else { return };
        let mut idle = lock_mutex(&self.idle);
        if idle.len() < self.limit {
            idle.push(connection);
        }
    }

    /// Ends all kept connections.
    pub(super) fn close_idle(&self) {
        lock_mutex(&self.idle).clear();
    }

    fn take_idle(&self, origin: &Origin) -> Option<HttpConnection> {
        let mut idle = lock_mutex(&self.idle);
        let at = idle.iter().rposition(|connection| connection.leads_to(origin))?;
        let kept = idle.remove(at);
        if kept.idle_since.elapsed() < MOST_IDLE {
            return Some(kept);
        }
        // All before it are older still.
        let now = Instant::now();
        idle.retain(|connection| now.duration_since(connection.idle_since) < MOST_IDLE);
        None
    }
}
