//! Timing of a target's own layers, as the target reports it.

use mcpace_target::{Options, Profile};
use serde_json::json;

use crate::client::{Ask, Connection, faulty, response, start};

#[tokio::test]
async fn nobody_is_told_who_has_not_asked() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let (head, body) = connection.exchange(&Ask::greet()).await;
    assert_eq!(head.header("server-timing"), None);
    assert!(!body.contains("_meta"));
}

#[tokio::test]
async fn the_header_and_meta_tell_the_same() {
    let options = Options { server_timing: true, ..Options::new(Profile::Simple) };
    let target = start(options).await;
    let mut connection = Connection::open(&target).await;
    for ask in [Ask::greet(), Ask::request("tools/list", json!({})), Ask::initialize("2025-06-18")] {
        let (head, body) = connection.exchange(&ask).await;
        let meta = &response(&body)["result"]["_meta"]["dev.mcpace/timing"];
        let nanos = |layer: &str| meta[layer].as_u64().unwrap() as f64 / 1e6;
        let expected = format!(
            "transport;dur={:.6}, dispatch;dur={:.6}, service;dur={:.6}",
            nanos("transport_ns"),
            nanos("dispatch_ns"),
            nanos("service_ns")
        );
        assert_eq!(head.header("server-timing"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn the_wait_of_a_tool_is_service_time() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let params = json!({"name": "wait", "arguments": {"ms": 20}, "_meta": {"dev.mcpace/timing": {}}});
    let (_, body) = connection.exchange(&Ask::request("tools/call", params)).await;
    let timing = &response(&body)["result"]["_meta"]["dev.mcpace/timing"];
    assert!(timing["service_ns"].as_u64().unwrap() >= 20_000_000);
}
