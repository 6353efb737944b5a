//! Permissions, and the access requests that they decide about.

use std::borrow::Cow;
use std::sync::Arc;

use super::BoxFuture;
use crate::exchange::{Channel, TransportKind};
use crate::headers::Headers;
use crate::principal::Principal;

/// Decides whether a caller may use a component. A permission never sees the arguments.
///
/// A permission is also checked for each list that would show the component. One that has to query a database answers
/// [`Verdict::Later`].
pub trait Permission: Send + Sync {
    /// Decides about one request.
    fn check(&self, asked: &AccessRequest<'_>) -> Verdict;
}

impl<F: Fn(&AccessRequest<'_>) -> Verdict + Send + Sync> Permission for F {
    fn check(&self, asked: &AccessRequest<'_>) -> Verdict {
        self(asked)
    }
}

/// A caller and the component that it wants to use. The members are borrowed, so a check allocates nothing.
#[derive(Clone, Copy)]
pub struct AccessRequest<'a> {
    /// Kind of the component.
    pub kind: ComponentKind,
    /// Name of a tool or prompt, URI of a resource, or a template.
    pub name: &'a str,
    /// URI of the resource that is read through a template, else `None`.
    pub uri: Option<&'a str>,
    /// Authenticated caller, if any.
    pub principal: Option<&'a Principal>,
    /// The session's id, where there is a session that has one.
    pub session: Option<&'a str>,
    /// Whether the component is only listed, not used.
    pub listing: bool,
    /// Source of the headers.
    pub(crate) channel: Option<&'a dyn Channel>,
}

impl<'a> AccessRequest<'a> {
    /// Makes a request of an unknown caller.
    #[must_use]
    pub fn new(kind: ComponentKind, name: &'a str) -> Self {
        Self { kind, name, uri: None, principal: None, session: None, listing: false, channel: None }
    }

    /// The headers that the request came with, where it came with any: a copy, made now. Client-supplied: never a proof of
    /// who calls.
    #[must_use]
    pub fn headers(&self) -> Option<Headers> {
        self.channel.and_then(Channel::headers)
    }

    /// Transport of the request.
    #[must_use]
    pub fn transport(&self) -> TransportKind {
        self.channel.map_or(TransportKind::Process, Channel::transport)
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

/// Kind of a component that can have a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A family of resources.
    Template,
    /// A prompt.
    Prompt,
}

impl ComponentKind {
    /// `tool`, `resource`, `template`, `prompt`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ComponentKind::Tool => "tool",
            ComponentKind::Resource => "resource",
            ComponentKind::Template => "template",
            ComponentKind::Prompt => "prompt",
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
