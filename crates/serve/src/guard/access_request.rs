//! Permissions: who asks for what, and what is answered.

use std::borrow::Cow;
use std::sync::Arc;

use super::BoxFuture;
use crate::exchange::{Channel, Headers, Principal, TransportKind};

/// Decides whether a caller may. Sees what is asked, never the arguments.
///
/// Checked again for each list that the thing would be in. One that must know what only a database knows answers
/// [`Verdict::Later`].
pub trait Permission: Send + Sync {
    /// Looks at it.
    fn check(&self, asked: &AccessRequest<'_>) -> Verdict;
}

impl<F: Fn(&AccessRequest<'_>) -> Verdict + Send + Sync> Permission for F {
    fn check(&self, asked: &AccessRequest<'_>) -> Verdict {
        self(asked)
    }
}

/// Who asks for what. Borrowed: nothing is made for a check.
#[derive(Clone, Copy)]
pub struct AccessRequest<'a> {
    /// Of what sort it is.
    pub kind: Kind,
    /// What it is registered by: a tool's or prompt's name, a resource's URI, a template.
    pub name: &'a str,
    /// The resource that is read by a template; else `None`.
    pub uri: Option<&'a str>,
    /// Who is authenticated, where anybody is.
    pub principal: Option<&'a Principal>,
    /// The session's id, where there is a session that has one.
    pub session: Option<&'a str>,
    /// Whether it is only to be listed.
    pub listing: bool,
    /// Where headers are to be had.
    pub(crate) channel: Option<&'a dyn Channel>,
}

impl<'a> AccessRequest<'a> {
    /// Somebody unknown asks for this.
    #[must_use]
    pub fn new(kind: Kind, name: &'a str) -> Self {
        Self { kind, name, uri: None, principal: None, session: None, listing: false, channel: None }
    }

    /// The headers that the request came with, where it came with any: a copy, made now. Client-supplied: never a proof of
    /// who calls.
    #[must_use]
    pub fn headers(&self) -> Option<Headers> {
        self.channel.and_then(Channel::headers)
    }

    /// The road that the request came by.
    #[must_use]
    pub fn road(&self) -> TransportKind {
        self.channel.map_or(TransportKind::Process, Channel::road)
    }
}

impl std::fmt::Debug for AccessRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessRequest")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("uri", &self.uri)
            .field("principal", &self.principal)
            .field("listing", &self.listing)
            .finish_non_exhaustive()
    }
}

/// What can have a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A family of resources.
    Template,
    /// A prompt.
    Prompt,
}

impl Kind {
    /// `tool`, `resource`, `template`, `prompt`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Resource => "resource",
            Kind::Template => "template",
            Kind::Prompt => "prompt",
        }
    }
}

/// A permission's answer.
pub enum Verdict {
    /// Yes.
    Allowed,
    /// No.
    Denied(Denial),
    /// It takes asking somebody. Dropped where nobody wants to know any more. It has no time limit but its own: the request
    /// waits, and keeps its place among those under way.
    Later(BoxFuture<Result<(), Denial>>),
}

impl From<bool> for Verdict {
    fn from(allowed: bool) -> Self {
        if allowed { Verdict::Allowed } else { Verdict::Denied(Denial::default()) }
    }
}

/// Why somebody may not, as the caller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// One sentence.
    pub message: Cow<'static, str>,
    /// The scopes that would suffice, where scopes would: a client can ask for a token that has them.
    pub scopes: Vec<Arc<str>>,
}

impl Denial {
    /// In these words.
    #[must_use]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), scopes: Vec::new() }
    }

    /// With what would suffice.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }
}

impl Default for Denial {
    fn default() -> Self {
        Self::new("not permitted")
    }
}
