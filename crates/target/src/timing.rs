//! The clocks between the layers of one request.
//!
//! They run from the moment that the request's last byte has been read to the moment that the reply's head is handed
//! over, and their sum is exactly that span. Delays of the body after its head (`first-byte`, `between-events`,
//! `mid-result`, `stream-end`, the hold) are therefore in none of them: a peer sees them on the wire.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time spent in dispatch and service for one JSON-RPC request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServiceTime {
    pub(crate) dispatch: Duration,
    pub(crate) service: Duration,
}

/// Time spent in each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layers {
    transport: Duration,
    inner: ServiceTime,
}

impl Layers {
    /// Transport is what is left of the whole exchange: `received` until `replying`, without what
    /// all its requests (one, but for batches) spent further in.
    pub(crate) fn new(received: Instant, replying: Instant, inner: ServiceTime, all: &[ServiceTime]) -> Self {
        let further_in: Duration = all.iter().map(|one| one.dispatch + one.service).sum();
        let whole = replying.saturating_duration_since(received);
        Self { transport: whole.saturating_sub(further_in), inner }
    }

    /// For `_meta` under [`mcpace_wire::mcp::key::TIMING`], in nanoseconds.
    pub(crate) fn meta_value(&self) -> Value {
        json!({
            "transport_ns": whole_nanos(self.transport),
            "dispatch_ns": whole_nanos(self.inner.dispatch),
            "service_ns": whole_nanos(self.inner.service),
        })
    }

    /// For the `Server-Timing` header (W3C Server Timing §3), in milliseconds.
    pub(crate) fn server_timing(&self) -> String {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        format!(
            "transport;dur={:.6}, dispatch;dur={:.6}, service;dur={:.6}",
            millis(self.transport),
            millis(self.inner.dispatch),
            millis(self.inner.service),
        )
    }
}

fn whole_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_add_up_to_the_whole() {
        let received = Instant::now();
        let inner = ServiceTime { dispatch: Duration::from_micros(20), service: Duration::from_millis(3) };
        let layers = Layers::new(received, received + Duration::from_millis(10), inner, &[inner]);
        assert_eq!(
            layers.meta_value(),
            json!({"transport_ns": 6_980_000, "dispatch_ns": 20_000, "service_ns": 3_000_000})
        );
        assert_eq!(layers.server_timing(), "transport;dur=6.980000, dispatch;dur=0.020000, service;dur=3.000000");
    }
}
