//! The floor that the runtime is measured against: bare hyper that answers every request with the same bytes.
//!
//! ```text
//! floor 127.0.0.1:PORT [json|sse]
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

/// Answer of mcpace's echo to the benchmark's request.
const REPLY: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}"#;

/// The answer as an event.
const EVENT: &[u8] = b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n\n";

#[derive(Clone, Copy)]
enum Mode {
    Json,
    Sse,
}

const USAGE: &str = "usage: floor ADDRESS [json|sse]";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let address: SocketAddr = std::env::args().nth(1).ok_or(USAGE)?.parse()?;
    let mode = match std::env::args().nth(2).as_deref() {
        None | Some("json") => Mode::Json,
        Some("sse") => Mode::Sse,
        Some(_) => return Err(USAGE.into()),
    };
    let cores = thread::available_parallelism()?.get();
    let workers: Vec<_> = (0..cores).map(|_| thread::spawn(move || work(address, mode))).collect();
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}

fn work(address: SocketAddr, mode: Mode) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = listen(address)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service_fn(move |request| answer(request, mode));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A connection that fails is its client's end, and no business of the others.
            tokio::task::spawn_local(async { connection.await.ok() });
        }
    })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // With this option, Windows would let a second program take the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

async fn answer(_: Request<Incoming>, mode: Mode) -> Result<Response<Full<Bytes>>, Infallible> {
    let (bytes, kind) = match mode {
        Mode::Json => (REPLY, "application/json"),
        Mode::Sse => (EVENT, "text/event-stream"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(bytes)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
