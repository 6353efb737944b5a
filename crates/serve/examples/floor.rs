//! The floor that the runtime is measured against: bare hyper that answers every request with the same bytes.
//!
//! ```text
//! floor 127.0.0.1:PORT
//! ```
//!
//! In hyper's best threading: one current-thread runtime a core, each with a listening socket of its own. It looks at
//! nothing and reads no body (hyper discards it), so nothing that does MCP over hyper can be cheaper.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::thread;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime;
use tokio::task::LocalSet;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What mcpace's echo answers to the benchmark's request.
const REPLY: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}"#;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let address: SocketAddr = std::env::args().nth(1).ok_or("usage: floor ADDRESS")?.parse()?;
    let cores = thread::available_parallelism()?.get();
    let workers: Vec<_> = (0..cores).map(|_| thread::spawn(move || work(address))).collect();
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}

fn work(address: SocketAddr) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = listen(address)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            // A connection that fails is its client's end, and no business of the others.
            tokio::task::spawn_local(async { connection.await.ok() });
        }
    })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(REPLY)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
