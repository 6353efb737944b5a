//! One connection from accept to close: TLS, then HTTP/1.1 or HTTP/2, whichever the client begins.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

use super::connection_state::{ConnectionState, ShutdownMode};
use super::fast_path;
use super::http_server::HttpServer;
use super::request_body::Protocol;
use super::tracked_stream::TrackedStream;
use super::transfer::{self, StreamExecutor, Transfer, TransferBody};

/// Serves a connection to its end. Failures are the peer's or the network's, and end only this connection.
pub(super) async fn serve_connection(
    stream: TcpStream,
    http_server: Arc<HttpServer>,
    connection_state: Arc<ConnectionState>,
) {
    // Without it the last small write of a stream waits for the peer's delayed ACK: 40 ms, each time.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Some(acceptor) = &http_server.acceptor else {
        return serve_plain(stream, http_server, connection_state).await;
    };
    let accepted = tokio::time::timeout(http_server.limits.head_time, acceptor.accept(stream));
    let accepted = tokio::select! {
        biased;
        accepted = accepted => accepted,
        () = Ordered(&connection_state) => return,
    };
    let Ok(Ok(stream)) = accepted else {
        tracing::debug!("TLS handshake failed");
        return;
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if is_http2 {
        serve_http2(stream, Bytes::new(), http_server, connection_state).await;
    } else {
        serve_http1(stream, Bytes::new(), http_server, connection_state).await;
    }
}

/// The preface that opens an HTTP/2 connection (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection in clear.
pub(super) async fn serve_plain<S>(mut stream: S, http_server: Arc<HttpServer>, connection_state: Arc<ConnectionState>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let wait = tokio::time::timeout(http_server.limits.connection_idle, first_bytes(&mut stream));
    let first = tokio::select! {
        biased;
        first = wait => first,
        () = Ordered(&connection_state) => return,
    };
    match first {
        Ok(Ok(first)) if first.starts_with(PREFACE) => serve_http2(stream, first, http_server, connection_state).await,
        Ok(Ok(first)) if !first.is_empty() => serve_http1(stream, first, http_server, connection_state).await,
        _ => {}
    }
}

/// Ready once there is any order but to serve.
struct Ordered<'p>(&'p ConnectionState);

impl Future for Ordered<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.on_order(cx.waker());
        if self.0.shutdown_mode() == ShutdownMode::Serve { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Bytes enough to tell the protocol: up to the first that the preface doesn't have.
async fn first_bytes(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    let mut first = Vec::with_capacity(4096);
    loop {
        let read = stream.read_buf(&mut first).await?;
        let is_open = read > 0 && first.len() < PREFACE.len() && PREFACE.starts_with(&first);
        if !is_open {
            return Ok(first.into());
        }
    }
}

async fn serve_http1<S>(
    mut stream: S,
    ahead: Bytes,
    http_server: Arc<HttpServer>,
    connection_state: Arc<ConnectionState>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(ahead) = fast_path::serve_plain(&mut stream, ahead, &http_server, &connection_state).await else { return };
    let io = TokioIo::new(TrackedStream::new(stream, ahead, Arc::clone(&connection_state)));
    let mut builder = http1::Builder::new();
    // Heads that come slowly are the connection state's business: hyper's own limit would cost a timer for each request.
    builder
        .header_read_timeout(None)
        .max_header_size(http_server.limits.head)
        .max_buf_size(http_server.limits.head.max(64 << 10));
    let connection = builder.serve_connection(io, request_responder(http_server, &connection_state, Protocol::Http1));
    drive_connection(pin!(connection), &connection_state, http1::Connection::graceful_shutdown).await;
}

async fn serve_http2<S>(stream: S, ahead: Bytes, http_server: Arc<HttpServer>, connection_state: Arc<ConnectionState>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    connection_state.speaks_http2();
    let io = TokioIo::new(TrackedStream::new(stream, ahead, Arc::clone(&connection_state)));
    let mut builder = http2::Builder::new(StreamExecutor(Arc::clone(&connection_state)));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(http_server.limits.http2_streams)
        .max_header_list_size(u32::try_from(http_server.limits.head).unwrap_or(u32::MAX));
    let connection = builder.serve_connection(io, request_responder(http_server, &connection_state, Protocol::Http2));
    drive_connection(pin!(connection), &connection_state, http2::Connection::graceful_shutdown).await;
}

fn request_responder(
    http_server: Arc<HttpServer>,
    connection_state: &Arc<ConnectionState>,
    protocol: Protocol,
) -> impl hyper::service::HttpService<
    Incoming,
    ResBody = TransferBody,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<TransferBody>, Infallible>> + Send + 'static,
> + Send
+ 'static {
    let connection_state = Arc::clone(connection_state);
    service_fn(move |request: Request<Incoming>| {
        let (http_server, connection_state) = (Arc::clone(&http_server), Arc::clone(&connection_state));
        async move {
            let transfer = transfer::of_stream().unwrap_or_else(|| Transfer::new(&connection_state));
            let response = http_server.respond_hyper(request, &connection_state, protocol).await;
            Ok::<_, Infallible>(response.map(|body| TransferBody::new(body, transfer, protocol == Protocol::Http2)))
        }
    })
}

/// Drives a connection, and carries out what its connection state is ordered.
async fn drive_connection<C>(mut connection: Pin<&mut C>, connection_state: &ConnectionState, finish: fn(Pin<&mut C>))
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut is_known = false;
    let mut is_finishing = false;
    std::future::poll_fn(|cx| {
        if !is_known {
            // The waker of a task stays the same for its life.
            connection_state.on_order(cx.waker());
            is_known = true;
        }
        match connection_state.shutdown_mode() {
            ShutdownMode::Serve => {}
            ShutdownMode::Finish if is_finishing => {}
            ShutdownMode::Finish => {
                is_finishing = true;
                finish(connection.as_mut());
            }
            ShutdownMode::Cut => return Poll::Ready(()),
        }
        let ended = std::task::ready!(connection.as_mut().poll(cx));
        if let Err(error) = ended {
            tracing::debug!(%error, "connection failed");
        }
        Poll::Ready(())
    })
    .await;
}
