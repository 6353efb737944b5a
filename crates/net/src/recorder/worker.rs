//! The recorder's threads: each has its own single-threaded runtime and serves the connections that it accepted.
//!
//! A thread a core rather than one shared pool: an exchange is then handled where its socket is polled, without moving
//! between cores, and the recorder needs no runtime of its caller.

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcpace_record::{EventKind, Side};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::client_connection::ClientConnection;
use super::meter::Meter;
use super::shared::RecorderShared;
use super::{exchange, lateness};
use crate::tap::Tap;
use crate::{NetError, monotonic_now};

/// Pause after `accept` failed: it does while the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time for work that still runs after the runtime was told to end (a name look-up).
const LEFTOVERS: Duration = Duration::from_millis(200);

/// Starts one thread. It ends when `stop` changes, and tells so by dropping `ended`.
pub(super) fn start_thread(
    listener: TcpListener,
    shared: Arc<RecorderShared>,
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
                () = accept_connections(listener, Arc::clone(&shared), stop) => {}
                () = lateness::watch_lateness(&shared) => {}
            }
        });
        // Dropping the runtime drops every connection, whose taps and bodies note how they ended.
        runtime.shutdown_timeout(LEFTOVERS);
        drop((shared, ended));
    };
    let thread = std::thread::Builder::new().name("mcpace-recorder".to_owned()).spawn(run);
    thread.map(drop).map_err(io("could not start the recorder's thread"))
}

async fn accept_connections(
    listener: tokio::net::TcpListener,
    shared: Arc<RecorderShared>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            // Also where the sender is gone: nobody could stop us any more.
            _ = stop.changed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => admit_connection(stream, address, &shared),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Past the limit a connection is closed at once rather than left waiting.
fn admit_connection(stream: TcpStream, address: SocketAddr, shared: &Arc<RecorderShared>) {
    let counted = CountedConnection::new(Arc::clone(shared));
    if shared.connections.load(Ordering::Relaxed) > shared.options.max_connections {
        return;
    }
    tokio::spawn(async move {
        serve_client(stream, address, Arc::clone(&counted.0)).await;
    });
}

struct CountedConnection(Arc<RecorderShared>);

impl CountedConnection {
    fn new(shared: Arc<RecorderShared>) -> Self {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves one client's connection until either side ends it or a limit runs out.
async fn serve_client(stream: TcpStream, address: SocketAddr, shared: Arc<RecorderShared>) {
    // Small replies must leave at once; failing here would only make a socket slower that is already broken.
    let _ = stream.set_nodelay(true);
    let conn = shared.sink.connection();
    let opened = EventKind::ConnectionOpened { side: Side::Front, conn, address: address.to_string(), serves: None };
    shared.sink.note(opened);
    let meter = Meter::new(&shared, Side::Front, conn, false);
    let tap = Tap::new(stream, Arc::clone(&meter));
    let client = ClientConnection::new(shared, meter);
    let service = {
        let client = Arc::clone(&client);
        // Boxed, so that a long stream doesn't keep the room of the steps before it.
        service_fn(move |request| Box::pin(exchange::pass_request(Arc::clone(&client), request)))
    };
    let mut http = http1::Builder::new();
    http.preserve_header_case(true).auto_date_header(false);
    let mut http = pin!(http.serve_connection(TokioIo::new(tap), service));
    let mut watchdog = pin!(tokio::time::sleep_until(client.next_check(monotonic_now())));
    let mut ending = false;
    loop {
        tokio::select! {
            // How it ended was noted by the tap and by the exchange that was open.
            _ = http.as_mut() => break,
            () = client.ended.notified(), if !ending => {
                ending = true;
                client.front.close_because("the server closed its connection");
                http.as_mut().graceful_shutdown();
            }
            () = watchdog.as_mut() => match client.close_reason(monotonic_now()) {
                Some(reason) => {
                    client.front.close_because(reason);
                    break;
                }
                None => watchdog.as_mut().reset(client.next_check(monotonic_now())),
            },
        }
    }
}
