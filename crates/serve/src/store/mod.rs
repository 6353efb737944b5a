//! State that several processes can share: sessions, the events of streams, and
//! messages between processes.
//!
//! Design constraints: these traits are all that the transport knows of a store, so that a store knows nothing of HTTP. None
//! may wait for longer than its own limit: who can't be reached is [`Down`] at once. Without a store a transport keeps all of
//! it in its own memory ([`crate::http::Limits`]), which costs nothing of what is here.
//!
//! Nothing that goes into a store lets its reader act for a client: a session is called by a hash of its id, its owner is a
//! hash of the subject, and tokens never get here.

mod broker;
mod event;
mod name;
mod session;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use broker::{BroadcastChange, Broker, Post, Received, To};
pub use event::{Added, Bounds, Cursor, EntryContent, EventStore, Opened, Page, StreamEntry, WriterState};
pub use name::{LogId, SessionName};
pub use session::{FoundSession, Life, Put, Record, SessionStore, SettingChange};

/// Answer of a store, which keeps to its own time limit.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Down>> + Send + 'a>>;

/// The store can't be reached, or took longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store of sessions can't be reached")]
pub struct Down;

/// Decision for requests while the store is unreachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDown {
    /// Requests of sessions are refused (503, try again soon): nobody is told anything that another process contradicts.
    #[default]
    Refuse,
    /// Each process goes on with the sessions that it knows, and puts them into the store when that is back.
    Memory,
}

/// The three parts of a store. Cheap to clone.
#[derive(Clone)]
pub struct Stores {
    /// Store of the sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Store of the events on the streams of sessions.
    pub events: Arc<dyn EventStore>,
    /// Broker of the messages between processes.
    pub broker: Arc<dyn Broker>,
    /// Decision for requests while the store is unreachable.
    pub on_down: OnDown,
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stores").field("on_down", &self.on_down).finish_non_exhaustive()
    }
}
