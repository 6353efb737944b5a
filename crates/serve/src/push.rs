//! Telling clients something unasked: one session's, or all of them, in whichever process they are.
//!
//! Dispatch has no session ids; transports do. Each that has sessions is a [`Station`] here for as long as it serves.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcpace_wire::http::SessionId;
use mcpace_wire::jsonrpc::write_notification;
use serde_json::value::RawValue;

use crate::listeners::Change;
use crate::server::Server;
use crate::store::Told;

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

/// What a transport does, within its own time limits.
pub(crate) type Telling<'a> = Pin<Box<dyn Future<Output = Result<(), NotifyError>> + Send + 'a>>;

/// A transport with sessions.
pub(crate) trait Station: Send + Sync {
    /// Tells the client of a session.
    fn notify<'a>(&'a self, session: &'a SessionId, message: Bytes) -> Telling<'a>;

    /// Has the processes that share this one's sessions tell their clients.
    fn tell_others(&self, told: Told) -> Telling<'_>;

    /// The same, for who doesn't wait for it.
    fn tell_others_soon(&self, told: Told);
}

/// Those that serve.
#[derive(Default)]
pub(crate) struct Stations(Mutex<Vec<Weak<dyn Station>>>);

impl Stations {
    fn all(&self) -> Vec<Arc<dyn Station>> {
        self.known().iter().filter_map(Weak::upgrade).collect()
    }

    fn add(&self, station: Weak<dyn Station>) {
        let mut known = self.known();
        known.retain(|station| station.strong_count() > 0);
        known.push(station);
    }

    fn known(&self) -> MutexGuard<'_, Vec<Weak<dyn Station>>> {
        // Nothing under the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Tells the client of one legacy session something that belongs to no request. With a store ([`crate::http::Options`])
    /// any process can, whichever has the client's stream: what it was told is in the store when this returns, and waits there
    /// for a client that reads nothing at the moment. Without one, the session has to be this process's and be read.
    ///
    /// # Errors
    /// [`NotifyError`].
    pub async fn notify(&self, session: &str, method: &str, params: Option<&RawValue>) -> Result<(), NotifyError> {
        let session: SessionId = session.parse().map_err(|_| NotifyError::Unknown)?;
        let message = message(method, params)?;
        let mut last = NotifyError::Unknown;
        for station in self.inner.stations.all() {
            match station.notify(&session, message.clone()).await {
                Err(NotifyError::Unknown) => {}
                Err(error) => last = error,
                Ok(()) => return Ok(()),
            }
        }
        Err(last)
    }

    /// Tells the clients of all legacy sessions that read a stream, in all processes that share a store. Since 2026-07-28 a
    /// server says nothing unasked but what clients subscribe to.
    ///
    /// # Errors
    /// [`NotifyError`]; this process's own clients have been told then.
    pub async fn notify_all(&self, method: &str, params: Option<&RawValue>) -> Result<(), NotifyError> {
        let message = message(method, params)?;
        self.inner.tell_sessions(&message);
        let Ok(text) = String::from_utf8(message.to_vec()) else { return Ok(()) };
        for station in self.inner.stations.all() {
            station.tell_others(Told::Message(text.clone())).await?;
        }
        Ok(())
    }

    /// Tells this process's clients what another has learned: [`Server::tools_changed`] and the like tell those of all
    /// processes that share a store.
    pub fn hear(&self, told: Told) {
        match told {
            Told::Tools => self.inner.tell(Change::Tools),
            Told::Prompts => self.inner.tell(Change::Prompts),
            Told::Resources => self.inner.tell(Change::Resources),
            Told::Resource(uri) => self.inner.tell(Change::Resource(&uri)),
            Told::Message(message) => self.inner.tell_sessions(&message.into()),
        }
    }

    /// Tells all clients, whichever process has them.
    pub(crate) fn tell(&self, told: &Told) {
        self.hear(told.clone());
        for station in self.inner.stations.all() {
            station.tell_others_soon(told.clone());
        }
    }

    /// A transport with sessions serves.
    pub(crate) fn add_station(&self, station: Weak<dyn Station>) {
        self.inner.stations.add(station);
    }
}

fn message(method: &str, params: Option<&RawValue>) -> Result<Bytes, NotifyError> {
    let mut message = Vec::with_capacity(128);
    write_notification(&mut message, method, params.as_ref())?;
    Ok(message.into())
}
