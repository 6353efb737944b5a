//! NotifyFuture clients something unasked: one session's, or all of them, in whichever process they are.
//!
//! Dispatch has no session ids; transports do. Each that has sessions is a [`SessionTransport`] here for as long as it serves.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcpace_wire::http::SessionId;
use mcpace_wire::jsonrpc::write_notification;
use serde_json::value::RawValue;

use crate::store::BroadcastChange;

/// Why a client was not told.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// There is no such session, or it has ended.
    #[error("there is no such session")]
    Unknown,
    /// The session's client reads no stream, and without a store nothing is kept for it.
    #[error("the session's client has no stream open")]
    Unread,
    /// The store that has the sessions is away.
    #[error("the store of sessions can't be reached")]
    StoreDown,
    /// The store is there and doesn't take it; its log, or the server's, says why.
    #[error("the store of sessions refuses the notification")]
    Refused,
    /// The parameters can't be written as JSON.
    #[error("the notification can't be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
}

/// Delivery of a notification, which ends within the time limits of the transport.
pub(crate) type NotifyFuture<'a> = Pin<Box<dyn Future<Output = Result<(), NotifyError>> + Send + 'a>>;

/// A transport with sessions.
pub(crate) trait SessionTransport: Send + Sync {
    /// Tells the client of a session.
    fn notify_session<'a>(&'a self, session: &'a SessionId, message: Bytes) -> NotifyFuture<'a>;

    /// Has the processes that share this one's sessions tell their clients.
    fn tell_others(&self, told: BroadcastChange) -> NotifyFuture<'_>;

    /// Queues a notification for the other processes and returns at once.
    fn tell_others_soon(&self, told: BroadcastChange);
}

/// Those that serve.
#[derive(Default)]
pub(crate) struct SessionTransports(Mutex<Vec<Weak<dyn SessionTransport>>>);

impl SessionTransports {
    pub(crate) fn live_transports(&self) -> Vec<Arc<dyn SessionTransport>> {
        self.lock_known().iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn add_transport(&self, transport: Weak<dyn SessionTransport>) {
        let mut known = self.lock_known();
        known.retain(|transport| transport.strong_count() > 0);
        known.push(transport);
    }

    fn lock_known(&self) -> MutexGuard<'_, Vec<Weak<dyn SessionTransport>>> {
        // Nothing under the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn write_message(method: &str, params: Option<&RawValue>) -> Result<Bytes, NotifyError> {
    let mut message = Vec::with_capacity(128);
    write_notification(&mut message, method, params.as_ref())?;
    Ok(message.into())
}
