//! The context of a handler: progress, logs, and cancellation.

use std::sync::Arc;

use mcpace_serve::{Handled, Limits};
use mcpace_wire::Revision;
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN, finish, legacy};
use crate::core_server::{Probe, builder, server};

fn messages(client: &Client, method: &str) -> Vec<Value> {
    client
        .outbox
        .take()
        .into_iter()
        .filter(|message| message["method"] == method)
        .map(|m| m["params"].clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn progress_rises_and_only_where_asked() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for token in [json!("t"), json!(7)] {
            let params = json!({"name": "talk", "_meta": {"progressToken": token}});
            client.ask(2, "tools/call", params).await;
            let told = messages(&client, "notifications/progress");
            let values: Vec<_> = told.iter().map(|params| params["progress"].as_f64().unwrap()).collect();
            assert_eq!(values, [0.5, 1.0]);
            assert_eq!(told[0]["progressToken"], token);
            assert_eq!(told[0]["message"].is_null(), revision == Revision::V2024_11_05);
        }
        client.call(3, "talk", json!({})).await;
        assert!(messages(&client, "notifications/progress").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn logs_keep_to_the_sessions_level() {
    let server = server();
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        client.call(2, "talk", json!({})).await;
        assert_eq!(messages(&client, "notifications/message").len(), 2);
        assert_eq!(*client.now(3, "logging/setLevel", json!({"level": "warning"})).result(), json!({}));
        client.call(4, "talk", json!({})).await;
        let told = messages(&client, "notifications/message");
        assert_eq!(told, [json!({"level": "error", "logger": "talk", "data": "loud"})]);
        client.now(3, "logging/setLevel", json!({"level": "emergency"}));
        client.call(4, "talk", json!({})).await;
        assert!(messages(&client, "notifications/message").is_empty());
        for params in [json!({}), json!({"level": "loud"}), json!({"level": 3})] {
            assert_eq!(client.now(5, "logging/setLevel", params).error().0, -32602);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn logs_keep_to_the_requests_level() {
    let client = Client::connect(&server(), MODERN);
    for (level, count) in [(None, 0), (Some("debug"), 2), (Some("error"), 1), (Some("alert"), 0)] {
        let mut params = json!({"name": "talk", "_meta": {}});
        if let Some(level) = level {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
        }
        client.ask(2, "tools/call", params).await;
        assert_eq!(messages(&client, "notifications/message").len(), count, "{level:?}");
    }
    let params = json!({"name": "talk", "_meta": {"io.modelcontextprotocol/logLevel": "loud"}});
    assert_eq!(client.now(2, "tools/call", params).error().0, -32602);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_stops_nobody() {
    for revision in Revision::ALL {
        let client = Client::connect(&server(), revision);
        client.outbox.close();
        let params = json!({"name": "talk", "_meta": {"progressToken": 1}});
        assert_eq!(client.ask(2, "tools/call", params).await.text(), "talked");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_by_notification() {
    for revision in legacy() {
        let probe = Arc::<Probe>::default();
        let server = builder(&probe).build().unwrap();
        let client = Client::connect(&server, revision);
        let call = tokio::spawn(finish(client.send("x", "tools/call", json!({"name": "hold"}))));
        probe.started.notified().await;
        assert_eq!(client.session().in_flight(), 1);
        client.notify("notifications/cancelled", json!({"requestId": "y"}));
        client.notify("notifications/cancelled", json!({"requestId": "x", "reason": "changed my mind"}));
        let answer = call.await.unwrap();
        assert!(answer.cancelled);
        assert_eq!(answer.error().0, -32603);
        probe.dropped.notified().await;
        assert_eq!(client.session().in_flight(), 0);
        // One session can't cancel another's request of the same id.
        let other = Client::connect(&server, revision);
        let call = tokio::spawn(finish(client.send("x", "tools/call", json!({"name": "hold"}))));
        probe.started.notified().await;
        other.notify("notifications/cancelled", json!({"requestId": "x"}));
        probe.release.notify_one();
        assert_eq!(call.await.unwrap().text(), "released");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_by_dropping() {
    for revision in Revision::ALL {
        let probe = Arc::<Probe>::default();
        let client = Client::connect(&builder(&probe).build().unwrap(), revision);
        let call = tokio::spawn(finish(client.send("x", "tools/call", json!({"name": "hold"}))));
        probe.started.notified().await;
        call.abort();
        probe.dropped.notified().await;
        if revision.is_legacy() {
            assert_eq!(client.session().in_flight(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_cancels_what_is_under_way() {
    let probe = Arc::<Probe>::default();
    let client = Client::connect(&builder(&probe).build().unwrap(), Revision::V2025_06_18);
    let call = tokio::spawn(finish(client.send("x", "tools/call", json!({"name": "hold"}))));
    probe.started.notified().await;
    client.session().cancel_all();
    assert!(call.await.unwrap().cancelled);
}

#[tokio::test(start_paused = true)]
async fn requests_under_way_are_limited_and_unique() {
    let probe = Arc::<Probe>::default();
    let limits = Limits { in_flight: 2, ..Limits::default() };
    let client = Client::connect(&builder(&probe).limits(limits).build().unwrap(), Revision::V2025_06_18);
    let hold = |id: u32| client.send(id, "tools/call", json!({"name": "hold"}));
    let first = hold(1);
    let Handled::Now(twin) = hold(1) else { panic!("taken twice") };
    assert_eq!(crate::core_harness::Answer::from(twin).error().0, -32600);
    let second = hold(2);
    let Handled::Now(third) = hold(3) else { panic!("over the limit") };
    assert_eq!(crate::core_harness::Answer::from(third).error().0, -32603);
    drop((first, second));
    assert!(matches!(hold(3), Handled::Later(_)));
}
