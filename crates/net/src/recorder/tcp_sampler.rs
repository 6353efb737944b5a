//! Limits how often the kernel is asked for the statistics of one connection.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use mcpace_record::{Nanos, TcpInfo};
use tokio::net::TcpStream;

use crate::socket_diagnostics::{SocketDiagnostics, SocketQuery};

/// Between two samples of one connection, its last one aside.
const PERIOD: Nanos = Nanos::from_millis(100);

/// Samples of one connection, its last one aside.
const MOST_SAMPLES: u32 = 1000;

/// Takes samples of one connection's statistics, at most one each [`PERIOD`] and at most [`MOST_SAMPLES`] in all.
pub(super) struct TcpSampler {
    diagnostics: Arc<SocketDiagnostics>,
    query: OnceLock<SocketQuery>,
    limit: SampleLimit,
}

impl TcpSampler {
    pub(super) fn new(diagnostics: Arc<SocketDiagnostics>) -> Self {
        Self { diagnostics, query: OnceLock::new(), limit: SampleLimit::default() }
    }

    /// Samples are of this socket. Without it there are none.
    pub(super) fn set_socket(&self, socket: &TcpStream) {
        if let Some(query) = SocketQuery::for_socket(socket) {
            let _ = self.query.set(query);
        }
    }

    /// The statistics, if a sample is due at `at`.
    pub(super) fn take_sample(&self, at: Nanos) -> Option<TcpInfo> {
        if self.limit.admit_sample(at) { self.take_last_sample() } else { None }
    }

    /// The statistics before the socket is closed, whatever the limits are.
    pub(super) fn take_last_sample(&self) -> Option<TcpInfo> {
        self.diagnostics.read_statistics(self.query.get()?)
    }
}

/// Only the thread of the connection changes it.
#[derive(Default)]
struct SampleLimit {
    due: AtomicU64,
    taken: AtomicU32,
}

impl SampleLimit {
    fn admit_sample(&self, at: Nanos) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        if at.0 < self.due.load(Ordering::Relaxed) || taken >= MOST_SAMPLES {
            return false;
        }
        self.due.store((at + PERIOD).0, Ordering::Relaxed);
        self.taken.store(taken + 1, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_a_period_apart() {
        let limit = SampleLimit::default();
        let admitted = [5, 6, 104, 105, 204, 205].map(|at| limit.admit_sample(Nanos::from_millis(at)));
        assert_eq!(admitted, [true, false, false, true, false, true]);
    }

    #[test]
    fn a_connection_has_a_limited_number_of_samples() {
        let limit = SampleLimit::default();
        let admitted = (1..5000_u64).filter(|second| limit.admit_sample(Nanos::from_millis(second * 1000))).count();
        assert_eq!(admitted, MOST_SAMPLES as usize);
    }
}
