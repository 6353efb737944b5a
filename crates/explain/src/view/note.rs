//! The outline of a JSON-RPC message, as far as rules ask for it.

use mcpace_record::{Digest, MessageKind, ServerTiming};

/// One JSON-RPC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    pub(super) outline: &'a NoteOutline<'a>,
    /// The id as its JSON token (`7`, `"a"`), where there is one: of `notifications/cancelled` the id of the request that it
    /// names, of `notifications/progress` the progress token.
    pub id: Option<&'a str>,
    /// Identity of `params` (requests) or `result` (results).
    pub content: Option<Digest>,
    /// Identity of a tool call's `arguments`.
    pub arguments: Option<Digest>,
    /// The server's own timing of this call, where it reported one.
    pub timing: Option<&'a ServerTiming>,
}

/// Fields that many messages have in common, kept once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NoteOutline<'a> {
    pub(super) kind: MessageKind,
    pub(super) method: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) tools: Option<u32>,
    pub(super) code: Option<i64>,
    pub(super) is_error: bool,
}

impl<'a> Note<'a> {
    /// Which kind.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.outline.kind
    }

    /// The method of a request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&'a str> {
        self.outline.method
    }

    /// The tool, prompt or resource that is asked for.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.outline.name
    }

    /// How many tools a `tools/list` result names.
    #[must_use]
    pub fn tools(&self) -> Option<u32> {
        self.outline.tools
    }

    /// The JSON-RPC error code.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.outline.code
    }

    /// Whether a tool's result has `isError: true`.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.outline.is_error
    }

    /// Whether this is a request for `method`.
    #[must_use]
    pub fn requests(&self, method: &str) -> bool {
        self.kind() == MessageKind::Request && self.method() == Some(method)
    }

    /// Whether this is the notification `method`.
    #[must_use]
    pub fn notifies(&self, method: &str) -> bool {
        self.kind() == MessageKind::Notification && self.method() == Some(method)
    }

    /// Whether this answers a request: a result or an error with an id.
    #[must_use]
    pub fn answers(&self) -> bool {
        matches!(self.kind(), MessageKind::Result | MessageKind::Error) && self.id.is_some()
    }
}
