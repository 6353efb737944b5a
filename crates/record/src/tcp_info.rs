//! Statistics that the kernel keeps of one TCP connection.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Statistics of one TCP connection, from the kernel of the instrument's machine (`TCP_INFO`). Counters and times
/// without another remark are totals since the connection was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpInfo {
    /// Smoothed round-trip time at this moment; zero where none was measured yet.
    pub rtt: Nanos,
    /// Smallest round-trip time of the last minutes; zero where none was measured yet.
    pub min_rtt: Nanos,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Segments that are sent and not acknowledged at this moment.
    pub unacknowledged: u32,
    /// Time during which data waited because the peer's receive window was full.
    pub rwnd_limited: Nanos,
    /// Time during which data waited because the send buffer was full.
    pub sndbuf_limited: Nanos,
    /// Segments sent.
    pub segments_out: u32,
    /// Segments received.
    pub segments_in: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConnectionId, Event, EventKind, Side};

    #[test]
    fn fields_that_are_absent_are_zero_and_unknown_fields_are_ignored() {
        let text = r#"{"at":7,"event":{"tcp-info":{"side":"back","conn":3,"info":{"rtt":5000,"pacing":1}}}}"#;
        let info = TcpInfo { rtt: Nanos(5000), ..TcpInfo::default() };
        let kind = EventKind::TcpInfo { side: Side::Back, conn: ConnectionId(3), info };
        assert_eq!(serde_json::from_str::<Event>(text).unwrap(), Event { at: Nanos(7), kind });
    }
}
