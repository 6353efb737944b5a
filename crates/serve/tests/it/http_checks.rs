//! The requests that the HTTP transport refuses, with which status and code, and in which order.

use mcpace_serve::http::Options;
use serde_json::json;

use crate::http_harness::{Request, ask, call, echo, initialize, send, session, start};

const INVALID_REQUEST: i64 = -32600;

fn stateless(options: &mut Options) {
    options.stateless = true;
    options.limits.body = 2_000;
    options.limits.batch = 3;
    options.limits.nesting = 20;
    options.limits.head = 8_192;
}

#[tokio::test]
async fn a_body_whose_end_could_be_read_in_two_ways_is_refused() {
    let running = start(stateless);
    let body = echo(1, "hi").to_string();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let ask = async |codings: &[&str]| {
        let head = Request::post(&json!(null)).text("");
        let head = codings.iter().fold(head, |head, coding| head.and("Transfer-Encoding", *coding));
        send(running.address(), &[head.bytes(), chunked.clone().into_bytes()].concat()).await
    };
    for plain in ["chunked", "Chunked"] {
        assert_eq!(ask(&[plain]).await.head.status, 200, "{plain}");
    }
    for doubtful in [&["chunked", "chunked"][..], &["chunked, chunked"], &["gzip, chunked"], &["gzip", "chunked"]] {
        let refused = ask(doubtful).await;
        assert_eq!(refused.status_and_code(), (400, INVALID_REQUEST), "{doubtful:?}");
        assert_eq!(refused.head.header("connection"), Some("close"), "{doubtful:?}");
    }
}

#[tokio::test]
async fn each_check_has_its_status_and_code() {
    let running = start(stateless);
    let good = Request::post(&echo(1, "hi"));
    let batch = |length| json!(vec![echo(1, "hi"); length]);
    let deep =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}{}}}", "[".repeat(30), "]".repeat(30));
    let cases = [
        ("no host", good.clone().without("Host"), (400, INVALID_REQUEST)),
        ("two hosts", good.clone().and("Host", "localhost"), (400, INVALID_REQUEST)),
        ("a foreign host", good.clone().with("Host", "evil.example"), (403, INVALID_REQUEST)),
        ("a host whose port is none", good.clone().with("Host", "localhost:80@evil.example"), (403, INVALID_REQUEST)),
        ("a foreign origin", good.clone().with("Origin", "http://evil.example"), (403, INVALID_REQUEST)),
        (
            "two origins",
            good.clone().and("Origin", "http://localhost").and("Origin", "http://localhost"),
            (403, INVALID_REQUEST),
        ),
        ("a target of another scheme", good.clone().path("ftp://localhost/mcp"), (400, INVALID_REQUEST)),
        ("another path", good.clone().path("/mcp/"), (404, INVALID_REQUEST)),
        ("another method", good.clone().method("PUT"), (405, INVALID_REQUEST)),
        ("no content type", good.clone().without("Content-Type"), (415, INVALID_REQUEST)),
        ("another content type", good.clone().with("Content-Type", "text/plain"), (415, INVALID_REQUEST)),
        ("nothing that we send is read", good.clone().with("Accept", "text/html"), (406, INVALID_REQUEST)),
        ("a long body", good.clone().text("x".repeat(2_001)), (413, INVALID_REQUEST)),
        ("no JSON", good.clone().text("{"), (400, -32700)),
        ("no message", good.clone().text("{}"), (400, INVALID_REQUEST)),
        ("too deep", good.clone().text(deep), (400, INVALID_REQUEST)),
        ("a long batch", Request::post(&batch(4)), (400, INVALID_REQUEST)),
        (
            "a batch in 2025-06-18",
            Request::post(&batch(2)).with("MCP-Protocol-Version", "2025-06-18"),
            (400, INVALID_REQUEST),
        ),
        (
            "a batch in 2026-07-28",
            Request::post(&batch(2)).with("MCP-Protocol-Version", "2026-07-28"),
            (400, INVALID_REQUEST),
        ),
        ("initialize in a batch", Request::post(&json!([initialize("2025-03-26")])), (400, INVALID_REQUEST)),
        ("an unknown version", good.clone().with("MCP-Protocol-Version", "2020-01-01"), (400, INVALID_REQUEST)),
        ("a version without its metadata", good.clone().with("MCP-Protocol-Version", "2026-07-28"), (400, -32602)),
        ("GET without sessions", Request::bare("GET"), (405, INVALID_REQUEST)),
        ("DELETE without sessions", Request::bare("DELETE"), (405, INVALID_REQUEST)),
    ];
    for (name, request, expected) in cases {
        let answer = ask(running.address(), &request).await;
        assert_eq!(answer.status_and_code(), expected, "{name}: {}", answer.body);
        assert_eq!(answer.head.header("allow"), (expected.0 == 405).then_some("POST"), "{name}");
    }
    assert_eq!(ask(running.address(), &good).await.head.status, 200);
}

#[tokio::test]
async fn earlier_checks_win() {
    let running = start(stateless);
    // All wrong; then mended one after another.
    let mut request =
        Request::bare("PUT").path("/x").with("Host", "evil.example").with("Origin", "null").text("{".repeat(2_500));
    let mut statuses = Vec::new();
    let mends: [fn(Request) -> Request; 8] = [
        |request| request.with("Host", "localhost"),
        |request| request.without("Origin"),
        |request| request.path("/mcp"),
        |request| request.method("POST").with("Accept", "text/html"),
        |request| request.with("Content-Type", "application/json"),
        |request| request.with("Accept", "application/json"),
        |request| request.text("{"),
        |request| request.text(echo(1, "hi").to_string()),
    ];
    for mend in mends {
        statuses.push(ask(running.address(), &request).await.head.status);
        request = mend(request);
    }
    statuses.push(ask(running.address(), &request).await.head.status);
    assert_eq!(statuses, [403, 403, 404, 405, 415, 406, 413, 400, 200]);
}

#[tokio::test]
async fn long_heads_and_bodies_of_unknown_length_are_bounded() {
    let running = start(stateless);
    let long_head = Request::post(&echo(1, "hi")).and("X-Long", "x".repeat(9_000));
    assert_eq!(ask(running.address(), &long_head).await.head.status, 431);

    let head =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{}\r\n", 900, " ".repeat(900));
    let answer = send(running.address(), format!("{head}{}", chunk.repeat(3)).as_bytes()).await;
    assert_eq!(answer.head.status, 413);

    let message = echo(1, "in pieces").to_string();
    let (first, second) = message.split_at(20);
    let pieces = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let answer = send(running.address(), format!("{head}{pieces}").as_bytes()).await;
    assert!(answer.body.contains("in pieces"), "{}", answer.body);
}

#[tokio::test]
async fn a_session_is_needed_where_there_are_sessions() {
    let running = start(|_| {});
    let address = running.address();
    let request = Request::post(&echo(1, "hi"));
    assert_eq!(ask(address, &request).await.status_and_code(), (400, INVALID_REQUEST));
    for unknown in ["0123456789abcdef0123456789abcdef", "+123456789abcdef0123456789abcdef", "x"] {
        let answer = ask(address, &request.clone().within(unknown, "2025-06-18")).await;
        assert_eq!(answer.status_and_code(), (404, INVALID_REQUEST), "{unknown}");
        // The id of the request that is refused.
        assert_eq!(answer.json()["id"], 1);
    }
    for method in ["GET", "DELETE"] {
        assert_eq!(ask(address, &Request::bare(method)).await.head.status, 400);
        let modern = Request::bare(method).with("MCP-Protocol-Version", "2026-07-28");
        assert_eq!(ask(address, &modern).await.head.status, 405);
    }
    let id = session(address, "2025-06-18").await;
    let not_events = Request::bare("GET").with("Accept", "application/json").within(&id, "2025-06-18");
    assert_eq!(ask(address, &not_events).await.head.status, 406);
}

#[tokio::test]
async fn headers_that_mirror_arguments_are_checked() {
    let running = start(|_| {});
    let mut message = call(1, "region", &json!({"region": "eu"}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = Request::post(&message)
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/call")
        .with("Mcp-Name", "region");
    let code = async |request: Request| ask(running.address(), &request).await.status_and_code();
    assert_eq!(code(request.clone()).await, (400, -32020));
    assert_eq!(code(request.clone().with("Mcp-Param-Region", "us")).await, (400, -32020));
    assert_eq!(code(request.clone().with("Mcp-Param-Region", "eu").with("Mcp-Method", "x")).await, (400, -32020));
    let right = ask(running.address(), &request.with("Mcp-Param-Region", "eu")).await;
    assert_eq!(right.head.status, 200, "{}", right.body);
    assert_eq!(right.head.header("mcp-session-id"), None);
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let mut options = Options { address: ([127, 0, 0, 1], 0).into(), ..Options::default() };
        change(&mut options);
        mcpace_serve::http::serve(crate::fixture::server(""), options).is_err()
    };
    assert!(refused(|options| options.path = "mcp".to_owned()));
    assert!(refused(|options| options.limits.head = 100));
    assert!(!refused(|_| {}));
}

#[test]
fn an_address_in_use_is_said_to_be() {
    let running = start(|_| {});
    let options = Options { address: running.address(), ..Options::default() };
    assert!(mcpace_serve::http::serve(crate::fixture::server(""), options).is_err());
}
