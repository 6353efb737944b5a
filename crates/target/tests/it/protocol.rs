//! Answers that every profile gives, in every revision.

use mcpace_target::{Options, Profile, ResponseMode, Secret};
use serde_json::json;

use crate::client::{Ask, Connection, faulty, response, start, text};

#[tokio::test]
async fn initialize_gives_the_version_that_was_asked_or_the_latest_with_initialize() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let (head, body) = connection.exchange(&Ask::initialize(asked)).await;
        assert_eq!((head.status(), head.header("mcp-session-id")), (200, None));
        assert_eq!(response(&body)["result"]["protocolVersion"], given);
    }
    assert_eq!(target.counters().connections, 1, "the connection is kept");
}

#[tokio::test]
async fn a_result_comes_as_sse_or_as_json_with_its_length() {
    for (mode, media) in [(ResponseMode::Sse, "text/event-stream"), (ResponseMode::Json, "application/json")] {
        let target = start(Options { response: Some(mode), ..Options::new(Profile::Simple) }).await;
        let mut connection = Connection::open(&target).await;
        let (head, body) = connection.exchange(&Ask::greet()).await;
        assert_eq!(head.header("content-type"), Some(media));
        assert_eq!(head.header("content-length").is_some(), mode == ResponseMode::Json);
        assert_eq!(text(&body), "Hello, World!");
        assert_eq!(response(&body)["id"], 7);
    }
}

#[tokio::test]
async fn a_client_that_takes_only_one_kind_gets_it_and_one_that_takes_neither_406() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::greet().with("Accept", "application/json")).await;
    assert_eq!(head.header("content-type"), Some("application/json"));
    let (head, _) = connection.exchange(&Ask::greet().with("Accept", "text/html")).await;
    assert_eq!(head.status(), 406);
}

#[tokio::test]
async fn requests_that_cannot_be_served_say_why() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    for (ask, status, code) in [
        (Ask::greet().body("{"), 400, -32700),
        (Ask::greet().body("{}"), 400, -32600),
        (Ask::request("prompts/list", json!({})), 200, -32601),
        (Ask::call("nothing", json!({})), 200, -32602),
        (Ask::request("tools/call", json!([])), 200, -32602),
        (Ask::greet().with("MCP-Protocol-Version", "2025-01-01"), 400, -32600),
    ] {
        let (head, body) = connection.exchange(&ask).await;
        assert_eq!((head.status(), &response(&body)["error"]["code"]), (status, &json!(code)), "{body}");
    }
    for (ask, status) in [
        (Ask::greet().with("Content-Type", "text/plain"), 415),
        (Ask::greet().with("Origin", "https://evil.example"), 403),
        (Ask::new("GET", "/mcp"), 405),
        (Ask::new("DELETE", "/mcp"), 405),
        (Ask::new("PUT", "/mcp"), 405),
        (Ask::new("GET", "/other"), 404),
        (Ask::new("GET", "/.well-known/oauth-protected-resource"), 404),
        (Ask::greet().at("/mcp/"), 404),
    ] {
        assert_eq!(connection.exchange(&ask).await.0.status(), status);
    }
    let (head, body) = connection.exchange(&Ask::greet().with("Origin", "http://localhost:3")).await;
    assert_eq!((head.status(), text(&body).as_str()), (200, "Hello, World!"));
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let head = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4194305\r\n\r\n";
    connection.send(head).await;
    assert_eq!(connection.head().await.status(), 413);
    let mut connection = Connection::open(&target).await;
    let head = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head).await;
    let mut chunk = b"400001\r\n".to_vec();
    chunk.resize(chunk.len() + 0x0040_0001, b' ');
    connection.send(&chunk).await;
    assert_eq!(connection.head().await.status(), 413);
}

#[tokio::test]
async fn bad_arguments_are_an_error_of_the_tool() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let (_, body) = connection.exchange(&Ask::call("greet", json!({"name": 1}))).await;
    assert_eq!(response(&body)["result"]["isError"], true);
    assert!(text(&body).starts_with("invalid arguments"));
}

#[tokio::test]
async fn notifications_are_accepted_and_batches_answered_where_the_revision_has_them() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let (head, body) = connection.exchange(&Ask::message(&notification)).await;
    assert_eq!((head.status(), body.as_str()), (202, ""));
    let ping = |id: i32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let batch = Ask::message(&json!([ping(1), notification, ping(2)]));
    let (_, body) = connection.exchange(&batch).await;
    assert_eq!(body.matches("data: ").count(), 2);
    let json = batch.clone().with("Accept", "application/json");
    let (_, body) = connection.exchange(&json).await;
    assert_eq!(response(&body)[1]["id"], 2);
    let (head, _) = connection.exchange(&batch.with("MCP-Protocol-Version", "2025-06-18")).await;
    assert_eq!(head.status(), 400);
    assert_eq!(target.counters().notifications, 3);
}

#[tokio::test]
async fn the_stateless_revision_discovers_lists_and_calls() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let (head, body) = connection.exchange(&Ask::modern("server/discover", json!({}))).await;
    assert_eq!((head.status(), head.header("mcp-session-id")), (200, None));
    let result = &response(&body)["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
    let (_, body) = connection.exchange(&Ask::modern("tools/list", json!({}))).await;
    let result = &response(&body)["result"];
    assert_eq!(result["tools"].as_array().unwrap().len(), 5);
    assert!(result["ttlMs"].is_u64());
    let greet = json!({"name": "greet", "arguments": {"name": "W"}});
    let (_, body) = connection.exchange(&Ask::modern("tools/call", greet)).await;
    assert_eq!(text(&body), "Hello, W!");
}

#[tokio::test]
async fn the_stateless_revision_refuses_what_does_not_agree() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let greet = || Ask::modern("tools/call", json!({"name": "greet", "arguments": {"name": "W"}}));
    let other = json!({"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2031-01-01",
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let other = Ask::message(&other).with("MCP-Protocol-Version", "2031-01-01").with("Mcp-Method", "server/discover");
    for (ask, status, code) in [
        (greet().without("Mcp-Method"), 400, -32020),
        (greet().with("Mcp-Method", "tools/list"), 400, -32020),
        (greet().without("Mcp-Name"), 400, -32020),
        (greet().with("Mcp-Name", "echo"), 400, -32020),
        (greet().without("MCP-Protocol-Version"), 400, -32020),
        (Ask::greet().with("MCP-Protocol-Version", "2026-07-28"), 400, -32602),
        (other, 400, -32022),
        (Ask::modern("initialize", json!({})), 404, -32601),
        (Ask::modern("ping", json!({})), 404, -32601),
        (Ask::modern("tools/call", json!({"name": "none"})), 400, -32602),
    ] {
        let (head, body) = connection.exchange(&ask).await;
        assert_eq!((head.status(), &response(&body)["error"]["code"]), (status, &json!(code)), "{body}");
        assert_eq!(response(&body)["id"], 7);
    }
    let (head, _) = connection.exchange(&greet().with("Mcp-Name", "=?base64?Z3JlZXQ=?=")).await;
    assert_eq!(head.status(), 200);
}

#[tokio::test]
async fn sessions_begin_are_needed_stream_and_end() {
    let target = start(Options { sessions: true, ..Options::new(Profile::Simple) }).await;
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::initialize("2025-06-18")).await;
    let id = head.header("mcp-session-id").unwrap().to_owned();
    assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
    let in_session = |ask: Ask| ask.with("Mcp-Session-Id", &id);
    assert_eq!(connection.exchange(&Ask::greet()).await.0.status(), 400);
    let (head, _) = connection.exchange(&Ask::greet().with("Mcp-Session-Id", "x")).await;
    assert_eq!(head.status(), 404);
    assert_eq!(connection.exchange(&in_session(Ask::greet())).await.0.status(), 200);
    assert_eq!(connection.exchange(&in_session(Ask::new("DELETE", "/mcp"))).await.0.status(), 200);
    assert_eq!(connection.exchange(&in_session(Ask::greet())).await.0.status(), 404);
    let counters = target.counters();
    assert_eq!((counters.sessions_begun, counters.sessions_ended), (1, 1));
}

#[tokio::test]
async fn github_wants_exactly_its_token() {
    let target = start(Options { bearer_token: Some(Secret::new("token-1")), ..Options::new(Profile::Github) }).await;
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::greet()).await;
    assert_eq!(head.status(), 401);
    assert_eq!(head.header("www-authenticate"), Some("Bearer realm=\"mcpace\""));
    for wrong in ["Bearer token-2", "Bearer token-", "Bearer", "Basic token-1", "token-1"] {
        let (head, _) = connection.exchange(&Ask::greet().with("Authorization", wrong)).await;
        assert_eq!(head.status(), 401, "{wrong}");
    }
    let (head, body) = connection.exchange(&Ask::greet().with("Authorization", "bearer token-1")).await;
    assert_eq!((head.status(), text(&body).as_str()), (200, "Hello, World!"));
    let counters = target.counters();
    assert_eq!((counters.unauthorized, counters.tools["greet"]), (6, 1));
}
