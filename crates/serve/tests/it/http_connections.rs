//! Connections: HTTP/2, TLS, pipelining, slow peers, and the end of the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcpace_serve::http::{self, Options, Tls};
use mcpace_serve::{Context, NoArguments, Server, Tool, ToolError};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::http_harness::{Request, ask, call, echo, open, receive, start, text_of};
use crate::peer::{Peer, limited};

fn stateless(options: &mut Options) {
    options.stateless = true;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let running = start(stateless);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    let all = [Request::post(&call(1, "turn", &json!({}))).bytes(), Request::post(&echo(2, "second")).bytes()].concat();
    assert!(peer.send(&all).await);
    for id in [1, 2] {
        assert_eq!(receive(&mut peer).await.json()["id"], id);
    }
}

#[tokio::test]
async fn heads_and_bodies_that_trickle_are_cut_off() {
    let running = start(|options| {
        options.limits.head_time = Duration::from_millis(50);
        options.limits.body_time = Duration::from_millis(50);
    });
    let mut peer = Peer::connect(running.address()).await.unwrap();
    peer.send(b"POST /mcp HTTP/1.1\r\nHost: lo").await;
    assert!(limited("the end", peer.is_closed()).await.unwrap());

    let mut peer = Peer::connect(running.address()).await.unwrap();
    let request = Request::post(&echo(1, "hi")).bytes();
    peer.send(&request[..request.len() - 1]).await;
    let answer = receive(&mut peer).await;
    assert_eq!(answer.head.status, 408);
    assert!(limited("the end", peer.is_closed()).await.unwrap());

    // Refused anyway, and waited for no longer.
    let mut peer = Peer::connect(running.address()).await.unwrap();
    let refused = Request::bare("POST").with("Origin", "http://evil.example").with("Transfer-Encoding", "chunked");
    peer.send(&refused.bytes()).await;
    assert_eq!(receive(&mut peer).await.head.status, 403);
    assert!(peer.closing);
}

#[tokio::test]
async fn a_connection_that_carries_nothing_is_closed() {
    let running = start(|options| {
        stateless(options);
        options.limits.connection_idle = Duration::from_millis(50);
    });
    let mut silent = Peer::connect(running.address()).await.unwrap();
    assert!(limited("the end", silent.is_closed()).await.unwrap());
    let mut used = open(running.address(), &Request::post(&echo(1, "hi"))).await;
    assert_eq!(receive(&mut used).await.head.status, 200);
    assert!(limited("the end", used.is_closed()).await.unwrap());
}

#[tokio::test]
async fn connections_past_the_limit_are_closed() {
    let running = start(|options| {
        stateless(options);
        options.limits.connections = 1;
    });
    let mut first = open(running.address(), &Request::post(&echo(1, "hi"))).await;
    assert_eq!(receive(&mut first).await.head.status, 200);
    let mut second = Peer::connect(running.address()).await.unwrap();
    assert!(limited("the end", second.is_closed()).await.unwrap());
}

/// Sends an echo over HTTP/2.
async fn echo_over_http2<S>(stream: S, uri: &str) -> String
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = limited("a handshake", handshake).await.unwrap().unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::post(uri)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(echo(1, "over two").to_string())))
        .unwrap();
    let response = limited("a reply", sender.send_request(request)).await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
    let body = limited("a body", response.into_body().collect()).await.unwrap().unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn http2_is_spoken_to_whoever_begins_it() {
    let running = start(stateless);
    let stream = TcpStream::connect(running.address()).await.unwrap();
    assert!(echo_over_http2(stream, "http://localhost/mcp").await.contains("over two"));
}

#[tokio::test]
async fn tls_carries_both_protocols() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Tls::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
    let running = start(|options| {
        stateless(options);
        options.tls = Some(tls);
    });
    let connect = async |alpn: &[u8]| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = TcpStream::connect(running.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        limited("TLS", connector.connect(name, stream)).await.unwrap().unwrap()
    };
    assert!(echo_over_http2(connect(b"h2").await, "https://localhost/mcp").await.contains("over two"));

    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(connect(b"http/1.1").await)).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(echo(1, "hi").to_string())))
        .unwrap();
    let response = limited("a reply", sender.send_request(request)).await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_11));
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_not_waited_for() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Tls::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
    let running = start(|options| {
        options.tls = Some(tls);
        options.limits.head_time = Duration::from_millis(50);
    });
    let mut silent = Peer::connect(running.address()).await.unwrap();
    assert!(limited("the end", silent.is_closed()).await.unwrap());
}

#[test]
fn a_certificate_that_is_none_is_refused() {
    assert!(Tls::from_pem(b"nonsense", b"nonsense").is_err());
}

/// A server with one tool, which waits until it is let go and tells when it begins.
fn holding(limit: Duration) -> (http::ServerHandle, watch::Sender<bool>, watch::Receiver<u32>) {
    let (let_go, held) = watch::channel(false);
    let (begun, begins) = watch::channel(0);
    let begun = Arc::new(begun);
    let tool = Tool::new("hold").handler_async(move |_: NoArguments, _: Context| {
        let (mut held, begun) = (held.clone(), Arc::clone(&begun));
        async move {
            begun.send_modify(|count| *count += 1);
            // The sender lives as long as the test.
            let _ = held.wait_for(|go| *go).await;
            Ok::<_, ToolError>("held")
        }
    });
    let server = Server::builder("holding", "1").tool(tool).build().unwrap();
    let mut options = Options { address: ([127, 0, 0, 1], 0).into(), stateless: true, ..Options::default() };
    options.limits.stop = limit;
    (http::serve(server, options).unwrap(), let_go, begins)
}

#[tokio::test]
async fn a_stop_finishes_what_is_in_flight_and_takes_nothing_new() {
    let (running, let_go, mut begins) = holding(Duration::from_secs(60));
    let address = running.address();
    let mut idle = open(address, &Request::post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))).await;
    receive(&mut idle).await;
    let mut held = open(address, &Request::post(&call(1, "hold", &json!({})))).await;
    limited("the call begins", begins.wait_for(|count| *count > 0)).await.unwrap().unwrap();
    let stopped = tokio::task::spawn_blocking(move || running.stop());
    assert!(limited("the idle connection ends", idle.is_closed()).await.unwrap());
    let_go.send_replace(true);
    assert_eq!(text_of(&receive(&mut held).await.json()), "held");
    limited("the stop", stopped).await.unwrap().unwrap();
    assert!(Peer::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stop_has_a_limit() {
    let (running, _let_go, mut begins) = holding(Duration::from_millis(20));
    let mut held = open(running.address(), &Request::post(&call(1, "hold", &json!({})))).await;
    limited("the call begins", begins.wait_for(|count| *count > 0)).await.unwrap().unwrap();
    let stopped = tokio::task::spawn_blocking(move || running.stop());
    limited("the stop", stopped).await.unwrap().unwrap();
    assert!(limited("the end", held.is_closed()).await.unwrap());
}

#[tokio::test]
async fn requests_asked_by_one_connection_do_not_outlive_bad_ones() {
    let running = start(stateless);
    let mut peer = open(running.address(), &Request::post(&echo(1, "hi")).text("{")).await;
    assert_eq!(receive(&mut peer).await.head.status, 400);
    assert!(peer.send(&Request::post(&echo(2, "again")).bytes()).await);
    assert_eq!(text_of(&receive(&mut peer).await.json()), "again");
    assert_eq!(ask(running.address(), &Request::post(&echo(3, "other"))).await.head.status, 200);
}
