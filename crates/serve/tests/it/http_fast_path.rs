//! Two ways of reading HTTP/1.1, the plain one and hyper's, that nobody can tell apart from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use mcpace_serve::http::{Options, ResponseMode};
use serde_json::{Value, json};

use crate::http_harness::{Answer, Request, ask, call, echo, head, initialize, receive, start, text_of};
use crate::http_sessions::guarded;
use crate::peer::{Peer, limited};

/// Adds a header without effect that plain requests don't have, so that hyper reads the request.
fn for_hyper(request: &Request) -> Request {
    request.clone().with("Connection", "keep-alive, keep-alive")
}

/// The parts of an answer that a client sees, without the date.
fn seen(answer: &Answer) -> (u16, BTreeMap<String, String>, String) {
    let mut headers: BTreeMap<_, _> = answer.head.headers.iter().cloned().collect();
    assert!(headers.remove("date").is_some());
    if let Some(session) = headers.get_mut("mcp-session-id") {
        session.clear();
    }
    (answer.head.status, headers, answer.body.clone())
}

async fn on(peer: &mut Peer, request: &Request) -> Answer {
    assert!(peer.send(&request.bytes()).await);
    receive(peer).await
}

async fn assert_alike(address: SocketAddr, request: &Request) {
    let (mut plain, mut hyper) = (Peer::connect(address).await.unwrap(), Peer::connect(address).await.unwrap());
    // Twice: a connection goes on as it began.
    for _ in 0..2 {
        let (plain, hyper) = (on(&mut plain, request).await, on(&mut hyper, &for_hyper(request)).await);
        assert_eq!(seen(&plain), seen(&hyper));
    }
}

#[tokio::test]
async fn both_ways_answer_alike() {
    let modern = |body: Value| {
        let mut body = body;
        body["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        Request::post(&body).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/call")
    };
    let requests = [
        Request::post(&echo(1, "hi")),
        Request::post(&echo(1, "\u{e9}\n\"")).with("Accept", "application/json"),
        Request::post(&echo(1, "hi")).with("Accept", "text/event-stream"),
        Request::post(&echo(1, "hi")).with("Accept", "text/html"),
        Request::post(&echo(1, "hi")).with("Content-Type", "text/plain"),
        Request::post(&echo(1, "hi")).with("Origin", "http://evil.example"),
        Request::post(&echo(1, "hi")).with("Host", "evil.example"),
        Request::post(&echo(1, "hi")).and("Host", "localhost"),
        Request::post(&echo(1, "hi")).without("Host"),
        Request::post(&echo(1, "hi")).with("MCP-Protocol-Version", "1999-01-01"),
        Request::post(&call(1, "big", &json!({"bytes": 200_000}))),
        Request::post(&call(1, "turn", &json!({}))),
        Request::post(&call(1, "nobody", &json!({}))),
        Request::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        Request::post(&json!([echo(1, "a"), echo(2, "b")])).with("MCP-Protocol-Version", "2025-03-26"),
        Request::post(&initialize("2025-11-25")),
        Request::post(&json!({})).text("{"),
        Request::post(&json!({})).text("[".repeat(500)),
        modern(echo(1, "hi")).with("Mcp-Name", "echo"),
        modern(echo(1, "hi")).with("Mcp-Name", "other"),
        modern(call(1, "talk", &json!({}))).with("Mcp-Name", "talk"),
    ];
    for response in [ResponseMode::Json, ResponseMode::Sse, ResponseMode::Auto] {
        for stateless in [true, false] {
            let change = |options: &mut Options| (options.response, options.stateless) = (response, stateless);
            let running = start(change);
            for request in &requests {
                assert_alike(running.address(), request).await;
            }
        }
    }
}

#[tokio::test]
async fn a_request_may_come_in_any_two_pieces() {
    let running = start(|options| options.stateless = true);
    let request = Request::post(&echo(1, "in pieces")).bytes();
    let mut peer = Peer::connect(running.address()).await.unwrap();
    for at in 1..request.len() {
        assert!(peer.send(&request[..at]).await);
        tokio::task::yield_now().await;
        assert!(peer.send(&request[at..]).await);
        assert_eq!(text_of(&receive(&mut peer).await.json()), "in pieces", "{at}");
    }
}

#[tokio::test]
async fn a_body_longer_than_any_buffer_comes_whole() {
    let running = start(|options| options.stateless = true);
    let text = "long ".repeat(100_000);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(text_of(&on(&mut peer, &Request::post(&echo(1, &text))).await.json()), text);
    }
    assert_eq!(text_of(&on(&mut peer, &Request::post(&echo(1, "short"))).await.json()), "short");
}

#[tokio::test]
async fn a_connection_changes_over_in_the_middle_of_a_pipeline() {
    let running = start(|options| options.stateless = true);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    let plain = |id| Request::post(&call(id, "turn", &json!({}))).bytes();
    let other = Request::bare("GET").path("/nowhere").bytes();
    let chunked = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Accept: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = echo(3, "chunked").to_string();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    assert!(peer.send(&[&plain(1), &plain(2), &other, &chunked[..], chunk.as_bytes(), &plain(4)].concat()).await);
    assert_eq!(receive(&mut peer).await.json()["id"], 1);
    assert_eq!(receive(&mut peer).await.json()["id"], 2);
    assert_eq!(receive(&mut peer).await.head.status, 404);
    assert_eq!(text_of(&receive(&mut peer).await.json()), "chunked");
    assert_eq!(receive(&mut peer).await.json()["id"], 4);
}

#[tokio::test]
async fn a_stream_of_events_leaves_its_connection_usable() {
    let running = start(|options| options.response = ResponseMode::Sse);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    let begun = on(&mut peer, &Request::post(&initialize("2025-11-25"))).await;
    let session = begun.head.header("mcp-session-id").unwrap().to_owned();
    let within = |id, tool| Request::post(&call(id, tool, &json!({}))).within(&session, "2025-11-25");
    assert!(peer.send(&within(1, "steps").bytes()).await);
    let head = head(&mut peer).await;
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    ask(running.address(), &within(2, "open")).await;
    let body = limited("a body", peer.rest()).await.unwrap().unwrap();
    let answer = Answer { head, body: String::from_utf8(body).unwrap() };
    assert_eq!(answer.events().last().unwrap()["id"], 1);
    assert_eq!(on(&mut peer, &within(3, "turn")).await.events().last().unwrap()["id"], 3);
}

#[tokio::test]
async fn a_long_body_is_read_of_whoever_is_known() {
    let running = start(|options| {
        guarded(options);
        options.stateless = true;
    });
    let text = "long ".repeat(200_000);
    let long = Request::post(&echo(1, &text));
    for token in [None, Some("Bearer mallory")] {
        let request = token.map_or_else(|| long.clone(), |token| long.clone().with("Authorization", token)).bytes();
        let head = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        // The last byte never comes, and hardly any other.
        for sent in [head, head + 100] {
            let mut peer = Peer::connect(running.address()).await.unwrap();
            assert!(peer.send(&request[..sent]).await);
            assert_eq!(receive(&mut peer).await.head.status, 401, "{token:?} {sent}");
        }
    }
    let mut peer = Peer::connect(running.address()).await.unwrap();
    for request in [long.clone(), Request::post(&echo(2, "short")), long] {
        let answer = on(&mut peer, &request.with("Authorization", "Bearer alice")).await;
        assert_eq!(answer.head.status, 200);
        assert!(text_of(&answer.json()).len() >= 5);
    }
}

/// A request with a body in chunks, up to its last one.
fn in_chunks(request: &Request, chunks: &[&str]) -> Vec<u8> {
    let mut bytes = request.clone().text("").with("Transfer-Encoding", "chunked").bytes();
    for chunk in chunks {
        bytes.extend_from_slice(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes());
    }
    bytes
}

#[tokio::test]
async fn a_refused_body_in_chunks_leaves_its_connection_usable() {
    let running = start(|options| {
        guarded(options);
        options.stateless = true;
    });
    let request = Request::post(&echo(1, "hi"));
    let text = echo(1, "in chunks").to_string();
    let (first, second) = text.split_at(20);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    for path in ["/mcp", "/nowhere", "/mcp"] {
        let begun = in_chunks(&request.clone().path(path), &[first, second]);
        assert!(peer.send(&begun).await);
        tokio::task::yield_now().await;
        assert!(peer.send(b"0\r\n\r\n").await);
        let answer = receive(&mut peer).await;
        assert_eq!(answer.head.status, if path == "/mcp" { 401 } else { 404 });
        assert!(!peer.closing);
    }
    let known = in_chunks(&request.with("Authorization", "Bearer alice"), &[first, second]);
    assert!(peer.send(&[&known[..], b"0\r\n\r\n"].concat()).await);
    assert_eq!(text_of(&receive(&mut peer).await.json()), "in chunks");
}

#[tokio::test]
async fn a_refused_body_is_read_away_only_so_far() {
    let running = start(guarded);
    // The last chunk never comes.
    let chunk = "x".repeat(40_000);
    let long = in_chunks(&Request::post(&echo(1, "hi")), &[&chunk, &chunk]);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    peer.send(&long).await;
    assert_eq!(receive(&mut peer).await.head.status, 401);
    assert!(peer.closing);
    // A client that waits for `100 Continue` gets the refusal and sends no body.
    let waits = in_chunks(&Request::post(&echo(1, "hi")).with("Expect", "100-continue"), &[]);
    let mut peer = Peer::connect(running.address()).await.unwrap();
    assert!(peer.send(&waits).await);
    assert_eq!(receive(&mut peer).await.head.status, 401);
}
