//! Behaviour that no client should show: rubbish, half requests, slowness, requests whose replies nobody reads. And HTTP/2, where many
//! requests share a connection and some are taken back.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::client::{Outcome, call, expect, request};
use crate::load::{Dice, Target};
use crate::modern::told;

const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

/// Each is refused, and its connection ends or goes on.
pub(crate) async fn bad_requests(target: &Target, dice: &mut Dice) -> Outcome {
    let framed = |body: &str| format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}", "[".repeat(5_000));
    let sent = dice.pick_of(vec![
        "nonsense\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned(),
        format!("{HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        format!("{HEAD}Content-Length: 99999999999\r\n\r\n"),
        format!("{HEAD}X-Long: {}\r\n\r\n", "x".repeat(100_000)),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        framed("{"),
        framed("[]"),
        framed(&deep),
        framed(&"[1,".repeat(1_000)),
        framed(&"x".repeat(5 << 20)),
        "DELETE /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish that is no frame".to_owned(),
    ]);
    let mut stream = TcpStream::connect(target.address).await?;
    // A server that refuses before the end may close while this writes.
    let _ = stream.write_all(sent.as_bytes()).await;
    let mut reply = [0; 16];
    let read = stream.read(&mut reply).await.unwrap_or_default();
    let is_good = reply[..read].starts_with(b"HTTP/1.1 2");
    expect(!is_good, || format!("{:.40} was taken", sent.escape_debug()))
}

/// Half a head or half a body; the client waits for what happens, or goes.
pub(crate) async fn slow_senders(target: &Target, dice: &mut Dice) -> Outcome {
    let half = dice.pick_of(vec![
        String::new(),
        "POST /mc".to_owned(),
        HEAD.to_owned(),
        format!("{HEAD}Content-Length: 100\r\n\r\n"),
        format!("{HEAD}Content-Length: 100\r\n\r\n{{\"jsonrpc\""),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nff\r\n{{"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0".to_owned(),
    ]);
    let mut stream = TcpStream::connect(target.address).await?;
    stream.write_all(half.as_bytes()).await?;
    if dice.one_of(2) == 0 {
        let mut reply = Vec::new();
        // Cut off, by a close or a reset.
        let _ = stream.read_to_end(&mut reply).await;
    }
    Ok(())
}

/// More replies than sockets hold, and nobody who reads them.
pub(crate) async fn slow_readers(target: &Target, dice: &mut Dice) -> Outcome {
    let body = told(call(1, "echo", json!({"text": "x".repeat(20_000)})), false).to_string();
    let headers =
        "Accept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";
    let request = format!("{HEAD}{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(target.address).await?;
    let writing = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    let patience = if dice.one_of(4) == 0 { std::time::Duration::from_secs(10) } else { dice.moment() };
    // Either the server cuts it off, or the client goes.
    let _ = tokio::time::timeout(patience, writing).await;
    Ok(())
}

pub(crate) async fn http2(target: &Target, dice: &mut Dice) -> Outcome {
    let stream = TcpStream::connect(target.address).await?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let _driving = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
    let mut calls = JoinSet::new();
    for id in 0..8 {
        let is_slow = id % 4 == 3;
        let message = match (is_slow, id % 2) {
            (true, _) => call(id, "slow_compute", json!({"seconds": 60.0})),
            (false, 0) => call(id, "test_tool_with_progress", json!({})),
            (false, _) => request(id, "server/discover", json!({})),
        };
        let message = told(message, false);
        let name = message["params"]["name"].as_str();
        let mut post = hyper::Request::post("http://localhost/mcp")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", message["method"].as_str().unwrap_or_default());
        if let Some(name) = name {
            post = post.header("mcp-name", name);
        }
        let post = post.body(Full::<Bytes>::from(message.to_string()))?;
        let (mut sender, moment) = (sender.clone(), dice.moment());
        calls.spawn(async move {
            let calling =
                async { Outcome::Ok(sender.send_request(post).await?.into_body().collect().await?.to_bytes()) };
            if is_slow {
                // Taken back: the stream is reset, the connection goes on.
                return expect(tokio::time::timeout(moment, calling).await.is_err(), || "too quick".to_owned());
            }
            let body = calling.await?;
            expect(!body.is_empty(), || "an empty reply".to_owned())
        });
    }
    while let Some(called) = calls.join_next().await {
        called??;
    }
    Ok(())
}
