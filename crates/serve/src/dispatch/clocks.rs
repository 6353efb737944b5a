//! How long the layers took, where anybody asks: nobody does, and no clock is read.

use std::time::{Duration, Instant};

use mcpace_wire::mcp::MetaOutline;

use crate::exchange::{Incoming, Timing};

/// The clocks of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// When dispatch began: the request was known to ask.
    entered: Instant,
    /// From the message's arrival to then: transport, parsing included.
    transport: Duration,
    /// The handler's time, once known.
    pub(crate) service: Duration,
    /// Whether the client asks for it in `_meta`.
    in_meta: bool,
}

impl Clocks {
    pub(crate) fn start(incoming: &Incoming<'_>, meta: Option<&MetaOutline<'_>>, observed: bool) -> Option<Self> {
        let in_meta = meta.is_some_and(MetaOutline::wants_timing);
        if !in_meta && !incoming.timed && !observed {
            return None;
        }
        let entered = Instant::now();
        let transport = entered.saturating_duration_since(incoming.received);
        Some(Self { entered, transport, service: Duration::ZERO, in_meta })
    }

    /// Time that each layer has taken so far.
    pub(crate) fn layer_times(&self) -> Timing {
        Timing { dispatch: self.entered.elapsed().saturating_sub(self.service), service: self.service }
    }

    /// Appends the member of `_meta`, if the client asks. The transport's share is what is known of it: reading.
    pub(crate) fn write_member(&self, timing: &Timing, out: &mut Vec<u8>) -> bool {
        if !self.in_meta {
            return false;
        }
        let member = format!(
            "\"{}\":{{\"transport_ns\":{},\"dispatch_ns\":{},\"service_ns\":{}}}",
            mcpace_wire::mcp::key::TIMING,
            self.transport.as_nanos(),
            timing.dispatch.as_nanos(),
            timing.service.as_nanos(),
        );
        out.extend_from_slice(member.as_bytes());
        true
    }
}
