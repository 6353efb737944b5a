//! Connections that programs make, as the kernel tells of them.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Number of a program's connection in its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SocketId(pub u64);

/// The end that closed a connection first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketCloser {
    /// The program that had made it.
    Program,
    /// The program at the other end.
    Peer,
}

/// Data on a connection up to now. Times are exact to some milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketTraffic {
    /// Bytes that the program sent.
    pub sent: u64,
    /// Bytes that the program received.
    pub received: u64,
    /// When the last byte was sent.
    pub last_sent: Nanos,
    /// When the last byte was received.
    pub last_received: Nanos,
}
