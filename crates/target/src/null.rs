//! The null server: answers every MCP request at once with as little work as checking clients allow.
//!
//! It is the floor of comparisons between servers: the cost of the machine, the kernel, HTTP and the load engine when
//! the server does nothing. It reads only the id and the method of a request; every `tools/call` has an equal result.
//!
//! Design constraint: hyper in its best threading (one current-thread runtime a core, each with a listening socket of its
//! own), TCP_NODELAY, JSON replies, no sessions. Deliberately absent: whatever could be switched on, and limits on time and on
//! connections, which would be work that a floor must not have. It serves a benchmark's own load for as long as that lasts; a
//! request's size is bounded all the same.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcpace_wire::revision::Revision;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::error::TargetError;

const LARGEST_BODY: usize = 1024 * 1024;
const BACKLOG: u32 = 4_096;
const CALLED: &str = r#"{"content":[{"type":"text","text":"hi"}]}"#;
const LISTED: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;

/// A running null server. Dropping it closes everything.
#[derive(Debug)]
pub struct Null {
    address: SocketAddr,
    workers: usize,
    stop: watch::Sender<bool>,
    threads: Vec<thread::JoinHandle<()>>,
}

#[derive(Deserialize)]
struct NullRequest<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize<'a> {
    protocol_version: &'a str,
}

impl Null {
    /// Opens the port (0: any free one) and serves from `workers` threads from then on; from one thread on systems other than
    /// Linux, which don't spread connections over the sockets of a port.
    ///
    /// # Errors
    ///
    /// A port that can't be had, or a machine that refuses a thread.
    pub fn start(host: IpAddr, port: u16, workers: usize) -> Result<Self, TargetError> {
        let mut address = SocketAddr::new(host, port);
        let (stop, stopping) = watch::channel(false);
        let mut threads = Vec::new();
        let workers = if cfg!(target_os = "linux") { workers.max(1) } else { 1 };
        for _ in 0..workers {
            let failed = |source: io::Error| match source.kind() {
                io::ErrorKind::AddrInUse => TargetError::PortInUse { address },
                _ => TargetError::Listen { address, source },
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
            let (listener, bound) = {
                let _entered = runtime.enter();
                bind_listener(address).map_err(failed)?
            };
            let mut stopping = stopping.clone();
            let work = move || {
                let serving = async {
                    tokio::select! {
                        () = accept_connections(&listener) => {}
                        // Also where the sender has gone.
                        _ = stopping.wait_for(|stopping| *stopping) => {}
                    }
                };
                LocalSet::new().block_on(&runtime, serving);
            };
            threads.push(thread::Builder::new().name("mcpace-null".to_owned()).spawn(work).map_err(failed)?);
            // The others share the port that the first was given.
            address = bound;
        }
        Ok(Self { address, workers, stop, threads })
    }

    /// Its endpoint, for example `http://127.0.0.1:4711/mcp`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// How many threads serve.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        // Fails only where every worker has ended.
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // A panic of it has been reported already.
            let _ = thread.join();
        }
    }
}

fn bind_listener(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // With this option, Windows would let a second program take the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    #[cfg(target_os = "linux")]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

async fn accept_connections(listener: &TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: accepting would fail again at once.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        // Timing-sensitive. A socket that can't be set is one that the peer has closed already.
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer_request));
        // How a connection ends is its client's business.
        tokio::task::spawn_local(async { connection.await.ok() });
    }
}

async fn answer_request(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let method = request.method().clone();
    let (status, text) = match (method, Limited::new(request.into_body(), LARGEST_BODY).collect().await) {
        (_, Err(_)) => (StatusCode::PAYLOAD_TOO_LARGE, String::new()),
        (Method::POST, Ok(body)) => answer_message(&body.to_bytes()),
        (Method::DELETE, Ok(_)) => (StatusCode::OK, String::new()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn answer_message(body: &[u8]) -> (StatusCode, String) {
    let Ok(asked) = serde_json::from_slice::<NullRequest<'_>>(body) else {
        return (StatusCode::BAD_REQUEST, String::new());
    };
    let Some(id) = asked.id else {
        return (StatusCode::ACCEPTED, String::new());
    };
    let id = id.get();
    let result = match asked.method {
        "tools/call" => CALLED,
        "tools/list" => LISTED,
        "ping" => "{}",
        "initialize" => &initialize_result(asked.params),
        _ => {
            let error = r#"{"code":-32601,"message":"the null server has no such method"}"#;
            return (StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
        }
    };
    (StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn initialize_result(params: Option<&RawValue>) -> String {
    let asked = params.and_then(|params| serde_json::from_str::<Initialize<'_>>(params.get()).ok());
    let known = asked.and_then(|asked| asked.protocol_version.parse::<Revision>().ok());
    let revision = known.unwrap_or(Revision::V2025_06_18);
    format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"null","version":"{}"}}}}"#,
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_requests_id_and_a_notification_none() {
        let call = br#"{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"echo"}}"#;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"a\"b","result":{CALLED}}}"#);
        assert_eq!(answer_message(call), (StatusCode::OK, expected));
        assert_eq!(answer_message(br#"{"jsonrpc":"2.0","method":"x"}"#), (StatusCode::ACCEPTED, String::new()));
        assert_eq!(answer_message(b"rubbish").0, StatusCode::BAD_REQUEST);
        assert!(answer_message(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).1.contains("-32601"));
    }

    #[test]
    fn the_asked_revision_is_agreed_to_where_it_is_one() {
        let params = |version: &str| RawValue::from_string(format!(r#"{{"protocolVersion":"{version}"}}"#)).unwrap();
        assert!(initialize_result(Some(&params("2025-11-25"))).contains(r#""protocolVersion":"2025-11-25""#));
        assert!(initialize_result(Some(&params("1999-01-01"))).contains(r#""protocolVersion":"2025-06-18""#));
        assert!(initialize_result(None).contains(r#""protocolVersion":"2025-06-18""#));
    }
}
