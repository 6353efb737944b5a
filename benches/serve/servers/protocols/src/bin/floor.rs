//! Bare hyper over HTTP/1.1 and HTTP/2, with and without TLS: the floor of these protocols and of larger replies.
//!
//! ```text
//! floor ADDRESS echo|FILE [CERTIFICATE KEY]
//! ```
//!
//! It answers each request with the bytes of the file, or reads the whole request and answers with its body.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: floor ADDRESS echo|FILE [CERTIFICATE KEY]";

/// Spawns on the thread that asks.
#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

fn main() -> Result<(), Failure> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (address, reply, tls) = match given.as_slice() {
        [address, reply] => (address, reply, None),
        [address, reply, certificate, key] => (address, reply, Some(acceptor(certificate, key)?)),
        _ => return Err(USAGE.into()),
    };
    let address: SocketAddr = address.parse()?;
    let reply = if reply == "echo" { None } else { Some(Bytes::from(std::fs::read(reply)?)) };
    let cores = thread::available_parallelism()?.get();
    let workers: Vec<_> = (0..cores)
        .map(|_| (reply.clone(), tls.clone()))
        .map(|(reply, tls)| thread::spawn(move || work(address, reply, tls)))
        .collect();
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}

fn acceptor(certificate: &str, key: &str) -> Result<TlsAcceptor, Failure> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn work(address: SocketAddr, reply: Option<Bytes>, tls: Option<TlsAcceptor>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = listen(address)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (reply, tls) = (reply.clone(), tls.clone());
            // A connection that fails is its client's end, and no business of the others.
            spawn_local(async move {
                match tls {
                    None => serve(TokioIo::new(stream), reply).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(TokioIo::new(stream), reply).await;
                        }
                    }
                }
            });
        }
    })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

async fn serve(stream: impl Read + Write + Unpin + 'static, reply: Option<Bytes>) {
    let service = service_fn(move |request| answer(request, reply.clone()));
    auto::Builder::new(LocalExecutor).serve_connection(stream, service).await.ok();
}

async fn answer(request: Request<Incoming>, reply: Option<Bytes>) -> Result<Response<Full<Bytes>>, Infallible> {
    let bytes = match reply {
        Some(bytes) => bytes,
        // A request that breaks off is not answered: hyper closes its connection.
        None => request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
    };
    let mut response = Response::new(Full::new(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
