//! Histograms of times: recorded in nanoseconds, merged without loss, asked for quantiles and for modes.
//!
//! Constraint: pure. No I/O, no clock: whoever measures hands over numbers.
//!
//! Deliberately absent: comparisons of runs and confidence intervals, which the lab makes with scipy.

mod histogram;
mod modes;
mod summary;

pub use histogram::Histogram;
pub use modes::{Window, excess_share};
pub use summary::HistogramSummary;
