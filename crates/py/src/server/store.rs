//! Store of the sessions and rate limits that processes share, made from a URL.
//!
//! Constraint: that a store goes and comes back is said by Python's logger `mcpace.server`, once each, from the connection's own
//! thread.

use std::sync::Arc;

use mcpace_redis::{ConnectionEvent, OpenError, Options, Redis, RedisLimiter};
use mcpace_serve::store::OnDown;
use pyo3::prelude::*;

use crate::attaching::with_interpreter;
use crate::log_line::{Level, log_line};
use crate::problem::{EnvironmentProblem, UsageProblem};
use crate::server::auth::rate_limiter::Limiter;

/// Which store, and how to use it.
#[derive(Clone)]
pub(crate) struct Store {
    url: String,
    prefix: String,
    on_down: OnDown,
}

impl Store {
    pub(crate) fn new(url: String, on_down: &str, prefix: String) -> PyResult<Self> {
        let on_down = match on_down {
            "refuse" => OnDown::Refuse,
            "memory" => OnDown::Memory,
            other => return Err(UsageProblem::new_err(format!("on_store_down takes refuse or memory, not {other:?}"))),
        };
        Ok(Self { url, prefix, on_down })
    }

    /// Connects. `refused` and `alone`: what that it is away means, in words.
    pub(crate) fn open_redis(&self, py: Python<'_>, refused: &'static str, alone: &'static str) -> PyResult<Redis> {
        self.connect_redis(py, refused, alone, Redis::open)
    }

    fn connect_redis<T: Send>(
        &self,
        py: Python<'_>,
        refused: &'static str,
        alone: &'static str,
        open: fn(&str, Options) -> Result<T, OpenError>,
    ) -> PyResult<T> {
        let means = match self.on_down {
            OnDown::Refuse => refused,
            OnDown::Memory => alone,
        };
        let options = Options {
            prefix: self.prefix.clone(),
            on_down: self.on_down,
            tell: Arc::new(move |event| log_event(event, means)),
            ..Options::default()
        };
        // The connection's thread may want the interpreter to say what went wrong.
        py.detach(|| open(&self.url, options)).map_err(|error| match error {
            OpenError::Url(_) => UsageProblem::new_err(error.to_string()),
            OpenError::Unreachable { .. } | OpenError::Unusable { .. } | OpenError::Thread(_) => {
                EnvironmentProblem::new_err(error.to_string())
            }
        })
    }
}

/// A limiter that counts over all processes which share a Redis.
#[pyfunction]
#[pyo3(signature = (url, *, on_store_down="refuse", prefix="mcpace:".to_owned()))]
pub(crate) fn redis_limiter(py: Python<'_>, url: String, on_store_down: &str, prefix: String) -> PyResult<Limiter> {
    let store = Store::new(url, on_store_down, prefix)?;
    let limiter = store.connect_redis(
        py,
        "what has a rate limit is refused until it is back",
        "each process counts by itself until it is back",
        RedisLimiter::open,
    )?;
    Ok(Limiter::from_limiter(Arc::new(limiter)))
}

fn log_event(event: &ConnectionEvent, means: &str) {
    let (level, text) = match event {
        ConnectionEvent::Gone { address, answers, reason } => {
            let what = if *answers { "refuses to serve" } else { "can't be reached" };
            (Level::Warning, format!("Redis at {address} {what} ({reason}): {means}"))
        }
        ConnectionEvent::Back { address } => (Level::Warning, format!("Redis at {address} is back")),
        ConnectionEvent::Emptied { address } => (
            Level::Warning,
            format!(
                "Redis at {address} has lost what it knew: what waited there for clients is gone, and rate limits begin anew"
            ),
        ),
        ConnectionEvent::Refused { address, reason } => {
            (Level::Error, format!("Redis at {address} answers with an error: {reason}"))
        }
    };
    // Where the interpreter is ending nobody reads it.
    let _ = with_interpreter(|py| log_line(py, "mcpace.server", level, &text));
}
