//! A transport connection, and a server process.

use mcpace_record::{Closer, ConnectionId, ExchangeId, Nanos, Side, TcpInfo};

use super::Stamp;

/// One transport connection of one side, or a try that failed.
#[derive(Debug)]
pub struct Connection<'a> {
    /// Its id.
    pub id: ConnectionId,
    /// Whom the other end of it is: the client (front) or the server (back).
    pub side: Side,
    /// The peer's socket address.
    pub address: &'a str,
    /// The start of connecting (back side).
    pub connecting: Option<Stamp>,
    /// Accepted or TCP established.
    pub opened: Option<Stamp>,
    /// TLS handshake done.
    pub secured: Option<Stamp>,
    /// Connecting failed.
    pub failed: Option<Stamp>,
    /// Its end.
    pub closed: Option<Stamp>,
    /// Side that closed the connection.
    pub closed_by: Option<Closer>,
    /// Whether its peer ended it by a reset: with bytes unread, for all that anybody knows.
    pub reset: bool,
    /// In the recorder, on the back side: the client's connection that it is for.
    pub serves: Option<ConnectionId>,
    /// The start of the failed tries just before this one, where there were any; else its own start.
    pub tried_from: Nanos,
    /// The first exchange that travelled on it.
    pub first_exchange: Option<ExchangeId>,
    /// The last one.
    pub last_exchange: Option<ExchangeId>,
    /// The kernel's statistics of it, earliest first; empty where they were not recorded.
    pub samples: Vec<TcpSample>,
}

/// The kernel's statistics of a connection at one moment.
#[derive(Clone, Copy, Debug)]
pub struct TcpSample {
    /// When.
    pub at: Stamp,
    /// The statistics.
    pub info: TcpInfo,
}

impl<'a> Connection<'a> {
    pub(super) fn new(id: ConnectionId, side: Side, address: &'a str, first: Stamp) -> Self {
        Self {
            id,
            side,
            address,
            connecting: None,
            opened: None,
            secured: None,
            failed: None,
            closed: None,
            closed_by: None,
            reset: false,
            serves: None,
            tried_from: first.at,
            first_exchange: None,
            last_exchange: None,
            samples: Vec::new(),
        }
    }

    /// When the instrument began with it.
    #[must_use]
    pub fn begun(&self) -> Option<Stamp> {
        self.connecting.or(self.opened)
    }

    /// When it could carry a request: after TLS where TLS is spoken.
    #[must_use]
    pub fn ready(&self) -> Option<Stamp> {
        self.secured.or(self.opened)
    }
}

/// A server process that the instrument spawned.
#[derive(Debug)]
pub struct Process<'a> {
    /// Its process id.
    pub pid: u32,
    /// The program's name.
    pub program: &'a str,
    /// Spawned.
    pub started: Stamp,
    /// Ended.
    pub exited: Option<Stamp>,
    /// Its exit code, where it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    pub exit_signal: Option<i32>,
    /// Its first line on stdout.
    pub first_output: Option<Stamp>,
    /// Its first line on stderr.
    pub first_stderr: Option<Stamp>,
    /// The exchanges over its stdio, in order.
    pub exchanges: Vec<ExchangeId>,
}
