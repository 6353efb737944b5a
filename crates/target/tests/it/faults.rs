//! Each fault's effect, seen on the socket. A delay of [`NEVER`]'s size shows where a reply stops: what
//! comes before it arrives, what comes after does not until the target stops and ends every wait.

use mcpace_target::{Faults, Options, Profile, ResponseMode};
use serde_json::json;

use crate::client::{Ask, Connection, faulty, limited, response, start, text};

/// The reply to greet, cut into what came before the long wait and what came after it.
async fn around_the_wait(fault: &str, mode: ResponseMode) -> (String, String) {
    let faults = Faults::parse([fault]).unwrap();
    let target = start(Options { faults, response: Some(mode), ..Options::new(Profile::Simple) }).await;
    let mut connection = Connection::open(&target).await;
    connection.send(&Ask::greet().encoded()).await;
    let before = connection.one_read().await;
    limited(target.stop()).await;
    (before, connection.until_closed().await)
}

#[tokio::test]
async fn first_byte_waits_between_head_and_body() {
    for mode in [ResponseMode::Sse, ResponseMode::Json] {
        let (before, after) = around_the_wait("first-byte=500s", mode).await;
        assert!(before.starts_with("HTTP/1.1 200") && before.ends_with("\r\n\r\n"), "{before}");
        assert!(after.contains("Hello, World!"), "{after}");
    }
}

#[tokio::test]
async fn mid_result_waits_between_two_halves() {
    for mode in [ResponseMode::Sse, ResponseMode::Json] {
        let (before, after) = around_the_wait("mid-result=500s", mode).await;
        assert!(before.contains("\"jsonrpc\"") && !before.contains("isError"), "{before}");
        assert!(!after.contains("\"jsonrpc\"") && after.contains("isError"), "{after}");
    }
}

#[tokio::test]
async fn stream_end_waits_after_the_whole_result() {
    for mode in [ResponseMode::Sse, ResponseMode::Json] {
        let (before, after) = around_the_wait("stream-end=500s", mode).await;
        assert!(before.contains("Hello, World!"), "{before}");
        assert_eq!(after, "0\r\n\r\n");
    }
}

#[tokio::test]
async fn between_events_waits_after_an_opening_that_every_client_understands() {
    let (before, after) = around_the_wait("between-events=500s", ResponseMode::Sse).await;
    assert!(before.contains("\r\n: open\n"), "{before}");
    assert!(after.contains("Hello, World!"), "{after}");
    let target = faulty(&["between-events=1ms"]).await;
    let mut connection = Connection::open(&target).await;
    let ask = Ask::greet().with("MCP-Protocol-Version", "2025-11-25");
    let (_, body) = connection.exchange(&ask).await;
    assert!(body.starts_with("id: ") && body.contains("\ndata: \n\nevent: message\n"), "{body}");
}

#[tokio::test]
async fn a_fault_for_one_method_spares_the_others() {
    let target = faulty(&["stream-end@tools/call=500s"]).await;
    let mut connection = Connection::open(&target).await;
    let (_, body) = connection.exchange(&Ask::request("tools/list", json!({}))).await;
    assert!(body.contains("greet"));
}

/// How long each layer took in its own words, in milliseconds: transport, dispatch, service.
async fn layers(fault: &str) -> [f64; 3] {
    let target = faulty(&[fault]).await;
    let mut connection = Connection::open(&target).await;
    let params = json!({"name": "greet", "arguments": {"name": "W"}, "_meta": {"dev.mcpace/timing": true}});
    let (_, body) = connection.exchange(&Ask::request("tools/call", params)).await;
    let timing = &response(&body)["result"]["_meta"]["dev.mcpace/timing"];
    ["transport_ns", "dispatch_ns", "service_ns"].map(|layer| timing[layer].as_f64().unwrap() / 1e6)
}

#[tokio::test]
async fn each_layer_reports_its_own_delay() {
    for (layer, fault) in ["headers=30ms", "dispatch=30ms", "tool=30ms"].into_iter().enumerate() {
        let layers = layers(fault).await;
        assert!(layers[layer] >= 30.0, "{fault}: {layers:?}");
        let largest = layers.into_iter().fold(0.0, f64::max);
        assert_eq!(layers[layer], largest, "{fault}: {layers:?}");
    }
}

#[tokio::test]
async fn get_headers_delays_the_get_and_nothing_else() {
    let target = faulty(&["get-headers=500s"]).await;
    let mut get = Connection::open(&target).await;
    get.send(&Ask::new("GET", "/mcp").encoded()).await;
    let mut post = Connection::open(&target).await;
    let (_, body) = post.exchange(&Ask::greet()).await;
    assert_eq!(text(&body), "Hello, World!");
    let statuses = target.counters().statuses;
    assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [(200, 1)], "the GET is not answered yet");
}

#[tokio::test]
async fn connection_close_is_said_and_done() {
    let target = faulty(&["connection-close"]).await;
    let mut connection = Connection::open(&target).await;
    let (head, body) = connection.exchange(&Ask::greet()).await;
    assert_eq!((head.header("connection"), text(&body).as_str()), (Some("close"), "Hello, World!"));
    assert_eq!(connection.until_closed().await, "");
}

#[tokio::test]
async fn close_mid_reply_gives_half_a_result_and_no_end() {
    for mode in [ResponseMode::Sse, ResponseMode::Json] {
        let faults = Faults::parse(["close-mid-reply"]).unwrap();
        let target = start(Options { faults, response: Some(mode), ..Options::new(Profile::Simple) }).await;
        let mut connection = Connection::open(&target).await;
        connection.send(&Ask::greet().encoded()).await;
        let reply = connection.until_closed().await;
        assert!(reply.contains("\"jsonrpc\"") && !reply.contains("isError"), "{reply}");
        assert!(!reply.ends_with("0\r\n\r\n"));
        assert_eq!(target.counters().tools["greet"], 1);
    }
}

#[tokio::test]
async fn no_result_ends_the_stream_properly_and_empty() {
    let target = faulty(&["no-result"]).await;
    let mut connection = Connection::open(&target).await;
    let (head, body) = connection.exchange(&Ask::greet()).await;
    assert_eq!((head.header("content-type"), body.as_str()), (Some("text/event-stream"), ""));
}

#[tokio::test]
async fn retry_after_puts_off_every_other_request() {
    let target = faulty(&["retry-after=1500ms"]).await;
    let mut connection = Connection::open(&target).await;
    for expected in [429, 200, 429, 200] {
        let (head, _) = connection.exchange(&Ask::greet()).await;
        assert_eq!(head.status(), expected);
        assert_eq!(head.header("retry-after"), (expected == 429).then_some("2"));
    }
    assert_eq!(target.counters().tools["greet"], 2);
}

#[tokio::test]
async fn redirect_points_to_the_path_that_serves() {
    let target = faulty(&["redirect"]).await;
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::greet()).await;
    assert_eq!(head.status(), 307);
    assert_eq!(head.header("location").unwrap(), format!("{}/", target.url()));
    let (_, body) = connection.exchange(&Ask::greet().at("/mcp/")).await;
    assert_eq!(text(&body), "Hello, World!");
}

#[tokio::test]
async fn two_writes_are_an_opening_and_the_result() {
    let target = faulty(&["two-writes"]).await;
    let mut connection = Connection::open(&target).await;
    connection.ask(&Ask::greet()).await;
    assert_eq!(connection.chunk().await.unwrap(), b": open\n\n");
    let result = String::from_utf8(connection.chunk().await.unwrap()).unwrap();
    assert_eq!(text(&result), "Hello, World!");
    assert_eq!(connection.chunk().await, None);
}

#[tokio::test]
async fn without_two_writes_the_whole_reply_is_one_write() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    connection.send(&Ask::greet().encoded()).await;
    let reply = connection.one_read().await;
    assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("0\r\n\r\n"), "{reply}");
}

#[tokio::test]
async fn session_lost_forgets_after_so_many_requests() {
    let faults = Faults::parse(["session-lost=2"]).unwrap();
    let options = Options { faults, sessions: true, ..Options::new(Profile::Simple) };
    let target = start(options).await;
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::initialize("2025-06-18")).await;
    let ask = Ask::greet().with("Mcp-Session-Id", head.header("mcp-session-id").unwrap());
    for expected in [200, 200, 404, 404] {
        assert_eq!(connection.exchange(&ask).await.0.status(), expected);
    }
}

#[tokio::test]
async fn wrong_id_answers_under_another_id() {
    let target = faulty(&["wrong-id@tools/call"]).await;
    let mut connection = Connection::open(&target).await;
    assert_eq!(response(&connection.exchange(&Ask::greet()).await.1)["id"], 1_000_007);
    let ping = Ask::request("ping", json!({}));
    assert_eq!(response(&connection.exchange(&ping).await.1)["id"], 7);
}

#[tokio::test]
async fn oversized_reply_is_larger_by_as_much_as_said() {
    let target = faulty(&["oversized-reply=1MiB"]).await;
    let mut connection = Connection::open(&target).await;
    let (_, body) = connection.exchange(&Ask::greet()).await;
    assert_eq!(text(&body), "Hello, World!");
    assert!((1 << 20..(1 << 20) + 1024).contains(&body.len()), "{}", body.len());
}
