//! A shop's product API: what the shop workload's tools ask over HTTP.
//!
//! `GET /products?q=PART&limit=N` searches 100,000 products, `POST /price` adds up what items cost. All is in memory.
//!
//! Design constraint: fast enough never to be what is measured, and on one thread of its own, so that it takes at most one
//! core and shares no runtime with whatever drives the load. TCP_NODELAY, HTTP/1.1, loopback.

mod api;
mod catalogue;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use self::api::Api;
pub use self::catalogue::PRODUCTS;
use crate::error::TargetError;

const MOST_CONNECTIONS: usize = 4_096;
const LARGEST_HEAD: usize = 16 * 1024;
/// Ends idle connections too.
const LONGEST_HEAD: Duration = Duration::from_secs(75);

/// A running shop. Dropping it closes everything.
#[derive(Debug)]
pub struct RunningShop {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl RunningShop {
    /// Opens a loopback port (0: any free one) and serves `products` products from then on.
    ///
    /// # Errors
    ///
    /// A port that can't be had, or a machine that refuses a thread.
    pub fn start(port: u16, products: u32) -> Result<Self, TargetError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => TargetError::PortInUse { address },
            _ => TargetError::Listen { address, source },
        };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let requests = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = oneshot::channel();
        let counted = Arc::clone(&requests);
        let serve = move || {
            // Products are made here: who connects meanwhile is answered a moment later.
            let api = Rc::new(Api::new(products));
            runtime.block_on(LocalSet::new().run_until(async move {
                tokio::select! {
                    () = accept_connections(listener, &api, &counted) => {}
                    _ = stopped => {}
                }
            }));
        };
        let thread = std::thread::Builder::new().name("mcpace-shop".to_owned()).spawn(serve).map_err(failed)?;
        Ok(Self { address, requests, stop: Some(stop), thread: Some(thread) })
    }

    /// The base of its URLs, for example `http://127.0.0.1:4711`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests it has answered.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for RunningShop {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of it has been reported already.
            let _ = thread.join();
        }
    }
}

async fn accept_connections(listener: std::net::TcpListener, api: &Rc<Api>, requests: &Arc<AtomicU64>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    // Every connection holds one of these until it ends.
    let open = Rc::new(());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: accepting would fail again at once.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if Rc::strong_count(&open) <= MOST_CONNECTIONS {
            let (api, requests, place) = (Rc::clone(api), Arc::clone(requests), Rc::clone(&open));
            tokio::task::spawn_local(async move {
                serve_connection(stream, &api, &requests).await;
                drop(place);
            });
        }
    }
}

async fn serve_connection(stream: TcpStream, api: &Rc<Api>, requests: &AtomicU64) {
    // Timing-sensitive. A socket that can't be set is one that the peer has closed already.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        requests.fetch_add(1, Ordering::Relaxed);
        answer_request(Rc::clone(api), request)
    });
    // How a connection ends is its client's business.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(LONGEST_HEAD)
        .max_header_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer_request(api: Rc<Api>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let (status, text) = match Limited::new(body, api::LARGEST_BODY).collect().await {
        Ok(body) => api.answer_request(&head.method, head.uri.path(), head.uri.query().unwrap_or(""), &body.to_bytes()),
        Err(_) => api::refused_answer(StatusCode::PAYLOAD_TOO_LARGE, "a body has at most 64 KiB"),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
