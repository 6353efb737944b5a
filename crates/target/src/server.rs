//! Sockets: accept, TLS, hyper, and an end that is bounded.
//!
//! HTTP/1.1 only. Limits: [`MOST_CONNECTIONS`] open connections, heads of 64 KiB and 100 headers, a
//! time limit for each head, which also ends idle connections, and for each TLS handshake.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::site::Site;
use crate::timer::Timer;

/// More connections than this are closed as soon as they are accepted.
const MOST_CONNECTIONS: usize = 20_000;
const LARGEST_HEAD: usize = 64 * 1024;
const LONGEST_HEAD: Duration = Duration::from_secs(75);
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(20);
/// How long replies may take to end once the target is to stop.
const GRACE: Duration = Duration::from_secs(1);

/// An open port and how its connections are treated.
pub(crate) struct OpenListener {
    pub(crate) listener: TcpListener,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) nodelay: bool,
    pub(crate) handshake_delay: Duration,
    pub(crate) timer: Timer,
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Serves until told to stop, then closes within [`GRACE`].
pub(crate) async fn run_server(listening: OpenListener, site: Arc<Site>) {
    let OpenListener { listener, acceptor, nodelay, handshake_delay, timer, mut stopping } = listening;
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = accept_connection(&listener) => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => break,
            // Ended connections are collected as they end, so that the set stays small.
            Some(_) = connections.join_next() => continue,
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            site.tally.change_counts(|counters| counters.refused_connections += 1);
            continue;
        };
        site.tally.change_counts(|counters| {
            counters.connections += 1;
            counters.open_connections += 1;
        });
        // Timing-sensitive: without TCP_NODELAY a small second write waits for the peer's ACK.
        // A socket that can't be set is one that the peer has closed already.
        let _ = stream.set_nodelay(nodelay);
        let (site, acceptor, timer) = (Arc::clone(&site), acceptor.clone(), timer.clone());
        let stopping = stopping.clone();
        connections.spawn(async move {
            match acceptor {
                None => serve_connection(stream, &site, stopping).await,
                Some(acceptor) => {
                    timer.sleep(handshake_delay).await;
                    match timeout(LONGEST_HANDSHAKE, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => serve_connection(stream, &site, stopping).await,
                        _ => site.tally.change_counts(|counters| counters.failed_handshakes += 1),
                    }
                }
            }
            site.tally.change_counts(|counters| counters.open_connections -= 1);
            drop(place);
        });
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(GRACE, all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

/// The next connection. Where the process has run out of descriptors, accepting fails at once and
/// again, so a short rest keeps that from taking a core.
async fn accept_connection(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one connection. How it ends is the peer's or a fault's business and no error of ours.
async fn serve_connection<S>(stream: S, site: &Arc<Site>, mut stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let site = Arc::clone(site);
        async move { Ok::<_, Infallible>(site.answer_request(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(LONGEST_HEAD)
        .max_header_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
