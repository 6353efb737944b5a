//! Guards: conditions for the use of a tool, resource or prompt, and limits of its use.
//!
//! Constraint: everything that does not depend on the request is computed at registration. A component without a guard costs
//! one branch. A guard of scopes and limits in memory allocates nothing when it permits a use. Deliberately absent: the source
//! of scopes ([`crate::http::TokenVerifier`]) and counts that processes share (implement [`Limiter`]).

mod access_request;
mod algorithm;
mod compiled;
mod memory_limiter;
mod rate_limit;
mod turns;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use access_request::{AccessRequest, ComponentKind, Denial, Permission, Verdict};
pub(crate) use compiled::{Compiled, Permitted};
pub use memory_limiter::MemoryLimiter;
pub use rate_limit::{Algorithm, By, Exceeded, KeyOf, Keyed, Limiter, LimiterDown, OnLimiterDown, RateLimit, Taking};
pub(crate) use turns::{AuthorizationTurns, MOST_OF_ONE, Share};

/// A future that borrows nothing.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Conditions that are checked before each use of a tool, resource or prompt, in this order: scopes, permissions, limits. A
/// list omits the components that the caller may not use.
///
/// ```
/// use std::time::Duration;
///
/// use mcpace_serve::guard::{By, Denial, Guard, RateLimit, Verdict};
/// use mcpace_serve::{NoArguments, Server, Tool, ToolError};
///
/// let guard = Guard::new()
///     .scope("invoices:write")
///     .permission(|asked: &mcpace_serve::guard::AccessRequest<'_>| match asked.principal {
///         Some(principal) if &*principal.subject != "guest" => Verdict::Allowed,
///         _ => Verdict::Denied(Denial::new("guests send no invoices")),
///     })
///     .limit(RateLimit::new("invoices", 100, Duration::from_secs(60)).by(By::Principal))
///     .timeout(Duration::from_secs(10));
/// let tool = Tool::new("send").guard(guard).handler(|_: NoArguments| Ok::<_, ToolError>("sent"));
/// let server = Server::builder("invoices", "1.0").tool(tool).build()?;
/// # Ok::<(), mcpace_serve::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct Guard {
    /// Scopes that the caller's token must grant, all of them.
    pub scopes: Vec<Arc<str>>,
    /// Further permissions. The first refusal ends the check.
    pub permissions: Vec<Arc<dyn Permission>>,
    /// How often it may be used. All count each use that was permitted, those of the shortest time first.
    pub limits: Vec<RateLimit>,
    /// The longest result, in bytes of JSON as they are sent. A longer result becomes an error that says so; it is
    /// not cut. The limit does not apply to failures, whose text says how to correct the call.
    pub max_result_bytes: Option<usize>,
    /// How long a handler may take. A plain one, which has ended when anybody looks, isn't stopped by it.
    pub timeout: Option<Duration>,
}

impl Guard {
    /// One that lets all pass.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Demands a scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Demands that somebody agrees.
    #[must_use]
    pub fn permission(mut self, permission: impl Permission + 'static) -> Self {
        self.permissions.push(Arc::new(permission));
        self
    }

    /// Bounds how often.
    #[must_use]
    pub fn limit(mut self, limit: RateLimit) -> Self {
        self.limits.push(limit);
        self
    }

    /// Bounds the result.
    #[must_use]
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }

    /// Bounds the handler's time.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("scopes", &self.scopes)
            .field("permissions", &self.permissions.len())
            .field("limits", &self.limits)
            .field("max_result_bytes", &self.max_result_bytes)
            .field("timeout", &self.timeout)
            .finish()
    }
}
