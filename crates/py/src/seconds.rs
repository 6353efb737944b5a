//! Times, as Python gives them: seconds.

use std::time::Duration;

use pyo3::prelude::*;

use crate::problem::UsageProblem;

/// The time that `name` was given as; it can't be negative, endless or no number.
pub(crate) fn parse_seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| UsageProblem::new_err(format!("{name} takes seconds, not {value}")))
}
