//! The access log: what is told of requests, whichever way they take.

use std::sync::{Arc, Mutex};

use mcpace_serve::http::{AccessLog, ServerHandle};
use serde_json::json;

use crate::http_harness::{Request, ask, echo, start};

type Lines = Arc<Mutex<Vec<String>>>;

fn logged() -> (ServerHandle, Lines) {
    let lines = Lines::default();
    let its = Arc::clone(&lines);
    let log = AccessLog::new(move |access| {
        let words = [Some(access.method), Some(access.path), access.call, access.target];
        let words: Vec<_> = words.into_iter().flatten().collect();
        its.lock().unwrap().push(format!("{} {}", access.status, words.join(" ")));
    });
    (start(|options| options.access_log = Some(log)), lines)
}

#[tokio::test]
async fn each_request_is_told_of_once() {
    let (running, lines) = logged();
    let address = running.address();
    let plain = Request::post(&echo(1, "hi"));
    // No session: refused, and told of all the same.
    ask(address, &plain).await;
    ask(address, &plain.clone().with("Host", "evil.example")).await;
    ask(address, &Request::post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))).await;
    ask(address, &plain.clone().text("no JSON")).await;
    // These are not the plain way.
    ask(address, &plain.clone().path("/mcp?token=secret").with("Mcp-Method", "tools/call").with("Mcp-Name", "echo"))
        .await;
    let read =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "db://a/b?key=secret#x"}});
    ask(address, &Request::post(&read)).await;
    let named = Request::post(&read).with("Mcp-Method", "resources/read").with("Mcp-Name", "db://a/b?key=secret");
    ask(address, &named.with("Connection", "close")).await;
    ask(address, &Request::bare("GET")).await;
    ask(address, &Request::bare("PUT").path("/elsewhere")).await;
    let expected = [
        "400 POST /mcp tools/call echo",
        "403 POST /mcp tools/call echo",
        "400 POST /mcp ping",
        "400 POST /mcp",
        "400 POST /mcp tools/call echo",
        "400 POST /mcp resources/read db://a/b",
        "400 POST /mcp resources/read db://a/b",
        "400 GET /mcp",
        "404 PUT /elsewhere",
    ];
    assert_eq!(*lines.lock().unwrap(), expected);
}
