//! Sessions that any of several processes finds.

use std::time::Duration;

use mcpace_wire::mcp::{ClientCapabilities, Implementation, LoggingLevel};
use serde::{Deserialize, Serialize};

use super::{Later, SessionName};

/// Keeps sessions for as long as they live. Implementations bound each by [`Life`] on their own clock.
pub trait SessionStore: Send + Sync {
    /// Puts a session there. One that is there already stays as it is; one that has ended does not come back.
    fn put<'a>(&'a self, name: SessionName, record: &'a Record, life: Life) -> Later<'a, Put>;

    /// Looks one up.
    fn find(&self, name: SessionName) -> Later<'_, FoundSession>;

    /// These were used: their idle time begins anew.
    fn touch<'a>(&'a self, names: &'a [SessionName], life: Life) -> Later<'a, ()>;

    /// Something of a session changed. Changes of several processes add up; of one thing the last counts.
    fn change<'a>(&'a self, name: SessionName, changes: &'a [SettingChange]) -> Later<'a, ()>;

    /// Ends one for all; it is remembered as ended for as long as anybody might ask.
    fn end(&self, name: SessionName, life: Life) -> Later<'_, ()>;
}

/// How long sessions live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// While nobody uses them.
    pub idle: Duration,
    /// At most, from now on.
    pub whole: Option<Duration>,
}

/// How a session was put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is there.
    Kept,
    /// It had ended before.
    Ended,
}

/// Result of looking up a session.
#[derive(Clone, Debug)]
pub enum FoundSession {
    /// It lives, and has so much left of its whole life where that has an end.
    Session(Box<Record>, Option<Duration>),
    /// It was ended.
    Ended,
    /// Nobody put it there, it was idle for too long, or the store has lost it.
    Unknown,
}

/// A session as any process can take it up: what `initialize` told, and what the client set since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The revision that `initialize` agreed on.
    pub revision: String,
    /// A hash of the session's id and the subject that opened it; nobody else may use it. Without the id, which is no part of any
    /// store, nobody can try names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Name and version that the client declared.
    pub info: Implementation,
    /// Capabilities that the client declared.
    pub capabilities: ClientCapabilities,
    /// Settings of the client since, in order. Stores keep them separately, so that processes can add to them.
    #[serde(skip)]
    pub changes: Vec<SettingChange>,
}

/// Setting of a client in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingChange {
    /// The least level of log messages that it wants.
    LogLevel(LoggingLevel),
    /// It watches a resource.
    Watch(String),
    /// It no longer does.
    Unwatch(String),
}
