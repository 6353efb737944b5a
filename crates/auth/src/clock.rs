//! What time it is, for whoever keeps something for a while.
//!
//! Two clocks, since they answer different questions: a token's own times are by the calendar, and how long something is
//! kept must not change when somebody sets that.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970, UTC.
    pub wall: Duration,
    /// Since whenever the clock began; never goes back.
    pub steady: Duration,
}

/// Tells the time. A parameter, so that tests need not wait.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Moment;
}

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    begun: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { begun: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        // A calendar before 1970 makes every token one of the future, which is refused.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { wall, steady: self.begun.elapsed() }
    }
}
