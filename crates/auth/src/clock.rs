//! Current time, for the caches and key rings of this crate.
//!
//! Two clocks, since they answer different questions: a token's own times are by the calendar, and how long something is
//! kept must not change when somebody sets that.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970, UTC. Where the calendar is before that, [`Duration::MAX`]: every token that ends has ended.
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
        Moment { wall: calendar_time(SystemTime::now()), steady: self.begun.elapsed() }
    }
}

/// A calendar before 1970 is wrong, and can't tell what has expired.
fn calendar_time(now: SystemTime) -> Duration {
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenRefusal;
    use crate::claims::{Claims, Demands};

    #[test]
    fn a_calendar_that_cant_be_right_takes_no_token_for_one_that_goes_on() {
        assert_eq!(calendar_time(UNIX_EPOCH + Duration::from_secs(9)), Duration::from_secs(9));
        let long_ago = calendar_time(UNIX_EPOCH - Duration::from_secs(1));
        for end in ["1", "4102444800", "1e300"] {
            let claims = Claims::read_claims(&format!(r#"{{"exp":{end}}}"#)).unwrap();
            assert_eq!(Demands::default().check_claims(&claims, long_ago), Err(TokenRefusal::Expired), "{end}");
        }
    }
}
