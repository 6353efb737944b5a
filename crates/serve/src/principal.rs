//! An authenticated caller.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An authenticated caller. Two of the same subject and scopes are equal, whatever their details.
#[derive(Clone)]
pub struct Principal {
    /// Stable name, such as [`crate::Identity::subject`] makes of a token's `sub` or client id. Sessions are bound to it.
    pub subject: Arc<str>,
    /// Granted scopes.
    pub scopes: Arc<[String]>,
    /// Further details from the verifier, for handlers that know their type. Never logged.
    pub details: Option<Arc<dyn Any + Send + Sync>>,
    /// Until when the grant is good, where it has an end. Streams that the caller only listens on end then.
    pub expires: Option<SystemTime>,
}

impl Principal {
    /// A caller without details.
    #[must_use]
    pub fn new(subject: impl Into<Arc<str>>, scopes: impl Into<Arc<[String]>>) -> Self {
        Self { subject: subject.into(), scopes: scopes.into(), details: None, expires: None }
    }

    /// How long the grant is still good, where it has an end.
    pub(crate) fn remaining_time(&self) -> Option<Duration> {
        self.expires.map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Whether two callers are one: of the same subject, or both unknown.
    pub(crate) fn are_one(one: Option<&Principal>, other: Option<&Principal>) -> bool {
        one.map(|one| &one.subject) == other.map(|other| &other.subject)
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.subject == other.subject && self.scopes == other.scopes
    }
}

impl Eq for Principal {}

impl std::hash::Hash for Principal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.subject.hash(state);
        self.scopes.hash(state);
    }
}

impl std::fmt::Debug for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Principal")
            .field("subject", &self.subject)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
