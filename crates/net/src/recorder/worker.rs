//! The recorder's threads: each has its own single-threaded runtime and serves the connections that it accepted.
//!
//! A thread a core rather than one shared pool: an exchange is then handled where its socket is polled, without moving
//! between cores, and the recorder needs no runtime of its caller.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;

use super::RecorderOptions;
use super::known::Known;
use super::{lateness, link};
use crate::{Dialer, NetError, Origin, Sink};

/// Pause after `accept` failed: it does while the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time for work that still runs after the runtime was told to end (a name look-up).
const LEFTOVERS: Duration = Duration::from_millis(200);

/// State that all connections of a recorder share.
pub(super) struct Shared {
    pub(super) options: RecorderOptions,
    pub(super) upstream: Origin,
    pub(super) port: u16,
    pub(super) sink: Arc<Sink>,
    pub(super) dialer: Dialer,
    pub(super) known: Known,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) connections: AtomicUsize,
    /// Why the latest connection to the upstream could not be made; none where it could.
    pub(super) unreachable: Arc<Mutex<Option<String>>>,
}

/// Starts one thread. It ends when `stop` changes, and tells so by dropping `ended`.
pub(super) fn start(
    listener: TcpListener,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
    ended: mpsc::Sender<()>,
) -> Result<(), NetError> {
    let io = |what| move |reason| NetError::Io { what, reason };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("could not start the recorder's runtime"))?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(io("could not poll the recorder's port"))?
    };
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                () = accept(listener, Arc::clone(&shared), stop) => {}
                () = lateness::watch(&shared) => {}
            }
        });
        // Dropping the runtime drops every connection, whose taps and bodies note how they ended.
        runtime.shutdown_timeout(LEFTOVERS);
        drop((shared, ended));
    };
    let thread = std::thread::Builder::new().name("mcpace-recorder".to_owned()).spawn(run);
    thread.map(drop).map_err(io("could not start the recorder's thread"))
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            // Also where the sender is gone: nobody could stop us any more.
            _ = stop.changed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => welcome(stream, address, &shared),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Past the limit a connection is closed at once rather than left waiting.
fn welcome(stream: TcpStream, address: SocketAddr, shared: &Arc<Shared>) {
    let counted = Counted::new(Arc::clone(shared));
    if shared.connections.load(Ordering::Relaxed) > shared.options.max_connections {
        return;
    }
    tokio::spawn(async move {
        link::serve(stream, address, Arc::clone(&counted.0)).await;
    });
}

struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
