//! State that all connections of a recorder share.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use super::RecorderOptions;
use super::known_origins::KnownOrigins;
use crate::socket_diagnostics::SocketDiagnostics;
use crate::{Dialer, Origin, Sink};

/// State that all connections of a recorder share.
pub(super) struct RecorderShared {
    pub(super) options: RecorderOptions,
    pub(super) upstream: Origin,
    pub(super) port: u16,
    pub(super) sink: Arc<Sink>,
    pub(super) dialer: Dialer,
    pub(super) known: KnownOrigins,
    /// None where the system offers no statistics of sockets.
    pub(super) diagnostics: Option<Arc<SocketDiagnostics>>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) connections: AtomicUsize,
    /// Why the latest connection to the upstream could not be made; none where it could.
    pub(super) unreachable: Arc<Mutex<Option<String>>>,
}
