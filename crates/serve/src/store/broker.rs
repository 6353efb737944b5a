//! Messages between the processes that share a store.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Later, SettingChange};

/// Carries messages between the processes that share a store. Mailboxes are bounded: the oldest messages go first, and whoever
/// may have missed any learns so by [`Received::renewed`].
pub trait Broker: Send + Sync {
    /// This process's number, below 2³¹ and above 0: no other that lives has it.
    fn number(&self) -> u32;

    /// Whether the store can be reached, as far as is known. Costs nothing.
    fn is_up(&self) -> bool;

    /// Hands a message over. False where no process took it, or it is too long to be passed on.
    fn post<'a>(&'a self, to: To, post: &'a Post) -> Later<'a, bool>;

    /// After the store was away: how long a process that lives may still be missing there, since it didn't come back as quickly.
    fn settling(&self) -> Duration;

    /// Waits for messages to this process. Dropping the future loses none.
    fn receive(&self) -> Pin<Box<dyn Future<Output = Received> + Send + '_>>;

    /// Runs a task for as long as the store.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

/// To whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The process of this number.
    Process(u32),
    /// All others.
    Others,
}

/// A message. Sessions and streams are told by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Post {
    /// A stream that the process reads has something new.
    Wake(String),
    /// A client took its stream up elsewhere, as this reader.
    LetGo(String, String),
    /// A session has ended.
    Ended(String),
    /// A client's response or cancellation in a session, for the process that it concerns.
    Inbound(String, String),
    /// A client changed its session.
    Changed(String, SettingChange),
    /// A notification for clients: a changed list or resource, or a message to all.
    Told(BroadcastChange),
}

/// Notification that a process sends to the clients of the other processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BroadcastChange {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// This resource changed.
    Resource(String),
    /// A notification, whole, for all sessions.
    Message(String),
}

/// Messages that arrived.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Messages in the order of sending.
    pub posts: Vec<Post>,
    /// Whether messages may have been lost, or the store is another one than before.
    pub renewed: bool,
}
