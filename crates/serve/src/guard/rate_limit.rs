//! Rate limits: what is counted, by whom, and who counts.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::{AccessRequest, BoxFuture, Denial};

/// How often something may be used. Several things that have a limit of the same name and figures share it.
#[derive(Clone)]
pub struct RateLimit {
    /// Name that uses are counted under. Not shown to callers.
    pub name: Arc<str>,
    /// How it is counted.
    pub algorithm: Algorithm,
    /// Number of uses allowed per period.
    pub calls: u32,
    /// Length of the period.
    pub per: Duration,
    /// Whose uses are counted together.
    pub by: By,
}

impl RateLimit {
    /// Allows `calls` uses per principal in a sliding window of length `per`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, calls: u32, per: Duration) -> Self {
        Self { name: name.into(), algorithm: Algorithm::SlidingWindow, calls, per, by: By::Principal }
    }

    /// Counts otherwise.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Counts for others together.
    #[must_use]
    pub fn by(mut self, by: By) -> Self {
        self.by = by;
        self
    }
}

impl std::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimit")
            .field("name", &self.name)
            .field("algorithm", &self.algorithm)
            .field("calls", &self.calls)
            .field("per", &self.per)
            .finish_non_exhaustive()
    }
}

/// How uses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// At most `calls` from a first use until `per` is over; then the next use begins a new window. Cheapest; around the
    /// border of two windows twice as many may come within `per`.
    FixedWindow,
    /// At most `calls` in any time of length `per`. Kept in 16ths of `per`, rounded to the side of refusing: a use is
    /// forgotten at most a 16th of `per` late.
    SlidingWindow,
    /// A bucket of `burst` uses, which fills again by `calls` in each `per`.
    TokenBucket {
        /// Capacity of the bucket.
        burst: u32,
    },
}

/// Whose uses are counted together.
#[derive(Clone)]
pub enum By {
    /// Each principal's. All who are unknown count as one.
    Principal,
    /// Each session's. Where there are none (2026-07-28, stateless servers, stdio): as [`By::Principal`].
    Session,
    /// All.
    Everyone,
    /// Those of the same key.
    Key(Arc<dyn KeyOf>),
}

/// Tells whose uses are counted together.
pub trait KeyOf: Send + Sync {
    /// The key of a request.
    fn key<'a>(&self, asked: &AccessRequest<'a>) -> Keyed<'a>;
}

/// A key, now or later.
pub enum Keyed<'a> {
    /// This.
    Now(Cow<'a, str>),
    /// None: the use is refused.
    Denied(Denial),
    /// It takes asking somebody.
    Later(BoxFuture<Result<String, Denial>>),
}

/// Counts uses.
pub trait Limiter: Send + Sync {
    /// Counts one use under `key` if there is room for it, and says so; one atomic step. The clock is the limiter's own.
    fn take(&self, rule: &RateLimit, key: &str) -> Taking;
}

/// Outcome of counting a use.
pub enum Taking {
    /// It is known already.
    Now(Result<(), Exceeded>),
    /// It will be.
    Later(BoxFuture<Result<Result<(), Exceeded>, LimiterDown>>),
}

/// There is no room for another use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// After so long there is, where nobody else comes first.
    pub retry_after: Duration,
}

/// The limiter can't count at present. The limiter has logged the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rate limits can't be checked at the moment")]
pub struct LimiterDown;

/// Decision for requests while the limiter can't count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLimiterDown {
    /// Refuses: 503 in HTTP.
    #[default]
    Refuse,
    /// Lets all pass.
    Allow,
}
