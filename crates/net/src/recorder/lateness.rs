//! How late a recorder's thread comes to run: an instrument that is late itself must say so.
//!
//! A timer on each thread is looked at when it fires. That costs forty short wake-ups a second while there are connections.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcpace_record::{EventKind, Nanos};

use super::shared::RecorderShared;
use crate::clock::processor_time;
use crate::monotonic_now;

/// Between two looks while there are connections, and while there are none.
const PERIOD: Duration = Duration::from_millis(25);
const IDLE_PERIOD: Duration = Duration::from_millis(250);

/// Timers have steps of a millisecond, and a machine has other things to do: less is usual.
const LATE: Nanos = Nanos::from_millis(5);

/// Notes how late this thread is, for as long as it runs.
pub(super) async fn watch_lateness(shared: &RecorderShared) {
    loop {
        let idle = shared.connections.load(Ordering::Relaxed) == 0;
        let period = if idle { IDLE_PERIOD } else { PERIOD };
        let (due, used) = (monotonic_now() + Nanos::from(period), processor_time());
        tokio::time::sleep(period).await;
        let by = monotonic_now().since(due);
        if by >= LATE && !idle {
            let busy = processor_time().since(used).min(by);
            shared.sink.note(EventKind::InstrumentLate { by, busy });
        }
    }
}
