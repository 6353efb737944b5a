//! State of one server, which dispatch and all clones of [`crate::Server`] share.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio_util::sync::CancellationToken;

use crate::build_error::BuildError;
use crate::catalogue::{Catalogue, Tell};
use crate::guard::{AuthorizationTurns, Limiter, OnLimiterDown};
use crate::limits::Limits;
use crate::open_subscriptions::{ListChange, OpenSubscriptions};
use crate::push::SessionTransports;
use crate::service::Delegate;
use crate::session_registry::SessionRegistry;
use crate::tasks::Tasks;
use crate::telemetry::Observer;

/// State of one server.
pub(crate) struct ServerState {
    pub(crate) catalogue: ArcSwap<Catalogue>,
    pub(crate) tell: Tell,
    /// `"io.modelcontextprotocol/serverInfo":{…}`, for `_meta`.
    pub(crate) server_info_member: Box<str>,
    pub(crate) limits: Limits,
    /// Whether clients see the messages of unexpected failures.
    pub(crate) tell_failures: bool,
    /// Whether handlers see the HTTP headers of their request.
    pub(crate) keep_headers: bool,
    pub(crate) limiter: Arc<dyn Limiter>,
    pub(crate) on_limiter_down: OnLimiterDown,
    /// Turns of the guards that lists and subscriptions ask.
    pub(crate) turns: AuthorizationTurns,
    /// Signs cursors and request states.
    pub(crate) key: hmac::Key,
    pub(crate) closing: CancellationToken,
    pub(crate) subscriptions: OpenSubscriptions,
    pub(crate) tasks: Tasks,
    pub(crate) delegate: OnceLock<Arc<dyn Delegate>>,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    /// Values of the author ([`crate::Builder::state`]), by their type.
    pub(crate) user_values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// Sessions with a standalone outlet, which can be told of changes.
    pub(crate) session_registry: SessionRegistry,
    pub(crate) transports: SessionTransports,
    /// Held while the catalogue is replaced.
    pub(crate) updating: Mutex<()>,
}

impl ServerState {
    /// Tells this process's clients that something has changed: those that listen, and those with a standalone outlet.
    pub(crate) fn publish_change(&self, change: ListChange<'_>) {
        self.subscriptions.notify_subscribers(change);
        let message = Bytes::from(change.notification_message(None));
        for session in self.session_registry.live_sessions() {
            if let ListChange::Resource(uri) = change
                && !session.is_subscribed(uri)
            {
                continue;
            }
            // A client that is gone or too slow lists again when it is back.
            let _ = session.send_standalone(message.clone());
        }
    }

    /// Sends a message to all of this process's sessions that read a stream.
    pub(crate) fn broadcast_message(&self, message: &Bytes) {
        for session in self.session_registry.live_sessions() {
            // A client that reads no stream misses the message.
            let _ = session.send_standalone(message.clone());
        }
    }
}

/// Random bytes for the server's key.
pub(crate) fn random_key() -> Result<[u8; 32], BuildError> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| BuildError::Random)?;
    Ok(key)
}
