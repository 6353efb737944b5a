//! Errors of a target itself.
//!
//! A peer's fault is never an error here: it becomes an HTTP or JSON-RPC reply and a count in
//! [`Counters`](crate::Counters). The errors here are the caller's misuse and the environment's faults.

use std::io;
use std::net::SocketAddr;

use crate::faults::{FaultError, FaultKind};
use crate::profile::{Profile, UnknownProfile};

/// Whose fault a [`TargetError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The options make no sense; trying again changes nothing.
    Caller,
    /// The machine refused: a port, a thread, a certificate.
    Environment,
}

/// Why a target could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No profile has the given name.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),

    /// A fault's text could not be understood.
    #[error(transparent)]
    Fault(#[from] FaultError),

    /// The profile compares a bearer token, and none was given (or an empty one).
    #[error("profile `{profile}` needs the bearer token that it should expect; give one")]
    TokenMissing {
        /// The profile that asked.
        profile: Profile,
    },

    /// On plain TCP the kernel completes the handshake, so no peer could see the delay.
    #[error("fault `{kind}` can only be seen over TLS; switch TLS on for this target")]
    FaultNeedsTls {
        /// The fault that asked.
        kind: FaultKind,
    },

    /// The target keeps no sessions, so there is none to lose.
    #[error("fault `{kind}` needs sessions, and this target keeps none; switch sessions on")]
    FaultNeedsSessions {
        /// The fault that asked.
        kind: FaultKind,
    },

    /// The target has no authorization server.
    #[error("fault `{kind}` needs OAuth; profile `{profile}` does not use it")]
    FaultNeedsOAuth {
        /// The fault that asked.
        kind: FaultKind,
        /// The profile without OAuth.
        profile: Profile,
    },

    /// A recording answers with its own tools, ids and results.
    #[error(
        "fault `{kind}` changes what the tools of a profile do, and a recording has none; change its times instead"
    )]
    FaultOfProfiles {
        /// The fault that asked.
        kind: FaultKind,
    },

    /// Somebody else listens there.
    #[error("{address} is already in use; choose another port, or 0 for any free one")]
    PortInUse {
        /// Where the target should have listened.
        address: SocketAddr,
    },

    /// The socket could not be opened for another reason.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where the target should have listened.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The self-signed certificate or the TLS settings could not be made.
    #[error("cannot set up TLS with a self-signed certificate: {0}")]
    Certificate(String),

    /// Reading from or writing to a client over stdio failed.
    #[error("the connection over stdio failed: {0}")]
    Stdio(#[source] io::Error),

    /// The timer's thread could not be started.
    #[error("cannot start the timer thread: {0}")]
    Timer(#[source] io::Error),
}

impl TargetError {
    /// Whose fault it is, so that a command line can choose its exit code.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            Self::Profile(_)
            | Self::Fault(_)
            | Self::TokenMissing { .. }
            | Self::FaultNeedsTls { .. }
            | Self::FaultNeedsSessions { .. }
            | Self::FaultNeedsOAuth { .. }
            | Self::FaultOfProfiles { .. } => Blame::Caller,
            Self::PortInUse { .. } | Self::Listen { .. } | Self::Certificate(_) | Self::Stdio(_) | Self::Timer(_) => {
                Blame::Environment
            }
        }
    }
}
