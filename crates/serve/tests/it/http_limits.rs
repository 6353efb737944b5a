//! Limits on what clients take, over real sockets: streams, replies that they don't read.

use std::time::Duration;

use mcpace_serve::http::ResponseMode;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::http_harness::{Request, ask, call, echo, event, head, open, receive, session, start, text_of};
use crate::peer::{Peer, limited};

const REVISION: &str = "2025-11-25";

#[tokio::test]
async fn a_session_writes_so_many_streams_at_a_time() {
    let running = start(|options| {
        options.response = ResponseMode::Sse;
        options.limits.session_streams = 2;
    });
    let address = running.address();
    let (id, other) = (session(address, REVISION).await, session(address, REVISION).await);
    let wait = |number| Request::post(&call(number, "wait", &json!({})));
    let mut streams = Vec::new();
    for number in [1, 2] {
        let mut stream = open(address, &wait(number).within(&id, REVISION)).await;
        assert_eq!(head(&mut stream).await.status, 200);
        streams.push(stream);
    }
    let refused = ask(address, &wait(3).within(&id, REVISION)).await;
    assert_eq!(refused.status_and_code(), (429, -32603));
    assert!(refused.head.header("retry-after").is_some());
    // A request that is answered at once needs no stream; another session has its own.
    assert_eq!(ask(address, &Request::post(&echo(4, "hi")).within(&id, REVISION)).await.head.status, 200);
    let mut elsewhere = open(address, &wait(5).within(&other, REVISION)).await;
    assert_eq!(head(&mut elsewhere).await.status, 200);

    // One that its client lost still counts: it can be taken up again.
    drop(streams.remove(0));
    assert_eq!(ask(address, &wait(6).within(&id, REVISION)).await.head.status, 429);
    let opened = Request::post(&call(7, "open", &json!({}))).within(&other, REVISION);
    assert_eq!(text_of(ask(address, &opened).await.events().last().unwrap()), "opened");
    assert_eq!(text_of(&event(&mut streams[0]).await.unwrap()), "waited");
    assert_eq!(event(&mut streams[0]).await, None);
    let again = ask(address, &wait(8).within(&id, REVISION)).await;
    assert_eq!(text_of(again.events().last().unwrap()), "waited");
}

/// More than the sockets of both sides hold.
const LARGE: usize = 8 << 20;

/// A client with little room, which has asked for a large reply.
async fn ask_for_much(address: std::net::SocketAddr, request: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream
}

/// The plain request, and one that goes hyper's way.
fn large_requests() -> [Vec<u8>; 2] {
    let plain = Request::post(&call(1, "big", &json!({"bytes": LARGE})));
    [plain.bytes(), plain.and("Connection", "keep-alive, x-own-way").bytes()]
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    for request in large_requests() {
        let running = start(|options| {
            options.stateless = true;
            options.limits.connections = 1;
            options.limits.write_stall = Duration::from_millis(50);
        });
        let stalled = ask_for_much(running.address(), &request).await;
        // There is room for one connection: another is served once this one has lost it.
        let another_is_served = async {
            loop {
                let mut peer = Peer::connect(running.address()).await.unwrap();
                if peer.send(&Request::post(&echo(1, "hi")).bytes()).await && matches!(peer.head().await, Ok(Some(_))) {
                    return;
                }
            }
        };
        limited("the end of the one that does not read", another_is_served).await.unwrap();
        drop(stalled);
    }
}

#[tokio::test]
async fn a_client_that_reads_gets_all() {
    let running = start(|options| options.stateless = true);
    for request in large_requests() {
        let mut reading = Peer::connect(running.address()).await.unwrap();
        assert!(reading.send(&request).await);
        let answer = receive(&mut reading).await;
        assert!(answer.body.len() > LARGE && answer.body.ends_with('}'), "{} bytes came", answer.body.len());
    }
}
