//! A guard, checked and ready to ask.

use std::sync::Arc;
use std::time::Duration;

use super::{AccessRequest, Algorithm, BoxFuture, Denial, Guard, Permission, RateLimit, Verdict};
use crate::build_error::BuildError;

/// A guard, checked and prepared at registration.
pub(crate) struct Compiled {
    scopes: Box<[Arc<str>]>,
    /// Refusal of a caller that lacks one of the scopes.
    lacking: Denial,
    permissions: Box<[Arc<dyn Permission>]>,
    pub(crate) limits: Box<[RateLimit]>,
    pub(crate) max_result_bytes: Option<usize>,
    pub(crate) timeout: Option<Duration>,
}

/// Whether somebody may.
pub(crate) enum Permitted {
    Yes,
    No(Denial),
    /// If all of these agree, one after the other.
    Later(Vec<BoxFuture<Result<(), Denial>>>),
}

impl Compiled {
    /// `None` of a guard that guards nothing.
    pub(crate) fn compile_guard(
        kind: &'static str,
        name: &str,
        guard: Option<Guard>,
    ) -> Result<Option<Arc<Self>>, BuildError> {
        let Some(Guard { mut scopes, permissions, mut limits, max_result_bytes, timeout }) = guard else {
            return Ok(None);
        };
        let is_empty = scopes.is_empty() && permissions.is_empty() && limits.is_empty();
        if is_empty && max_result_bytes.is_none() && timeout.is_none() {
            return Ok(None);
        }
        let mistake = scopes.iter().find_map(|scope| (!is_scope(scope)).then_some("a scope is a word without quotes"));
        let mistake = mistake.or_else(|| limits.iter().find_map(mistake_in));
        let mistake =
            mistake.or_else(|| (timeout == Some(Duration::ZERO)).then_some("a time limit is longer than nothing"));
        if let Some(reason) = mistake {
            return Err(BuildError::Guard { kind, name: name.to_owned(), reason });
        }
        scopes.dedup();
        // Short limits come first, so that a use that a short limit refuses does not count for a long one.
        limits.sort_by_key(|limit| limit.per);
        let words = match &*scopes {
            [one] => format!("the scope {one} is needed"),
            all => format!("the scopes {} are needed", all.join(", ")),
        };
        Ok(Some(Arc::new(Self {
            lacking: Denial::new(words).scopes(scopes.iter().cloned()),
            scopes: scopes.into(),
            permissions: permissions.into(),
            limits: limits.into(),
            max_result_bytes,
            timeout,
        })))
    }

    /// Whether there is anybody who may not.
    pub(crate) fn is_selective(&self) -> bool {
        !self.scopes.is_empty() || !self.permissions.is_empty()
    }

    /// Asks for scopes, then permissions.
    pub(crate) fn check_access(&self, asked: &AccessRequest<'_>) -> Permitted {
        if !self.scopes.is_empty() {
            let granted = asked.principal.map_or(&[][..], |principal| &principal.scopes);
            if !self.scopes.iter().all(|scope| granted.iter().any(|granted| granted == &**scope)) {
                return Permitted::No(self.lacking.clone());
            }
        }
        let mut later = Vec::new();
        for permission in &self.permissions {
            match permission.check(asked) {
                Verdict::Allowed => {}
                Verdict::Denied(denial) => return Permitted::No(denial),
                Verdict::Later(verdict) => later.push(verdict),
            }
        }
        if later.is_empty() { Permitted::Yes } else { Permitted::Later(later) }
    }
}

/// RFC 6749 §3.3: printable ASCII without space, quote and backslash.
fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

fn mistake_in(limit: &RateLimit) -> Option<&'static str> {
    if limit.calls == 0 {
        return Some("a rate limit allows at least one call");
    }
    if limit.per.is_zero() {
        return Some("a rate limit's time is longer than nothing");
    }
    if limit.algorithm == (Algorithm::TokenBucket { burst: 0 }) {
        return Some("a bucket holds at least one call");
    }
    None
}
