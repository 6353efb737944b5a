//! Being told of changes.

use mcpace_serve::{Handled, Limits, ReplyStatus};
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN, finish, legacy};
use crate::core_server::{builder, server};

fn methods(client: &Client) -> Vec<String> {
    client.outbox.take().iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sessions_are_told_of_lists() {
    let server = server();
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        server.tools_changed();
        assert!(client.outbox.take().is_empty(), "told without a way");
        for _ in 0..2 {
            server.attach(client.session(), client.outbox.clone());
        }
        server.tools_changed();
        server.prompts_changed();
        server.resources_changed();
        assert_eq!(
            methods(&client),
            [
                "notifications/tools/list_changed",
                "notifications/prompts/list_changed",
                "notifications/resources/list_changed"
            ]
        );
        client.session().detach();
        server.tools_changed();
        assert!(client.outbox.take().is_empty());
    }
}

#[test]
fn sessions_are_told_of_resources_they_watch() {
    let limits = Limits { watched_resources: 2, ..Limits::default() };
    let server = builder(&<_>::default()).limits(limits).build().unwrap();
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        server.attach(client.session(), client.outbox.clone());
        let subscribe = |uri: &str| client.now(1, "resources/subscribe", json!({"uri": uri}));
        assert_eq!(*subscribe("note://one").result(), json!({}));
        assert_eq!(*subscribe("note://1999/x").result(), json!({}));
        assert_eq!(*subscribe("note://one").result(), json!({}));
        assert_eq!(subscribe("note://bytes").error().0, -32603);
        assert_eq!(subscribe("note://nope").error().0, -32002);
        server.resource_updated("note://one");
        server.resource_updated("note://bytes");
        let told = client.outbox.take();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["params"], json!({"uri": "note://one"}));
        assert_eq!(*client.now(2, "resources/unsubscribe", json!({"uri": "note://one"})).result(), json!({}));
        server.resource_updated("note://one");
        assert!(client.outbox.take().is_empty());
        let stateless = Client::stateless(&server, revision);
        assert_eq!(stateless.now(1, "resources/subscribe", json!({"uri": "note://one"})).error().0, -32600);
    }
}

fn listen(client: &Client, id: Value, filter: Value) -> Handled {
    client.send(id, "subscriptions/listen", json!({"notifications": filter}))
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_notified_of_what_they_asked_for() {
    const ID: &str = "io.modelcontextprotocol/subscriptionId";
    let server = server();
    let client = Client::connect(&server, MODERN);
    let filter =
        json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["note://one"]});
    let stream = tokio::spawn(finish(listen(&client, json!(7), filter.clone())));
    let acknowledged = client.outbox.next().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], filter);
    assert_eq!(acknowledged["params"]["_meta"][ID], 7);
    server.prompts_changed();
    server.resources_changed();
    server.resource_updated("note://bytes");
    server.tools_changed();
    server.resource_updated("note://one");
    let told = client.outbox.take();
    assert_eq!(told.len(), 2);
    assert_eq!(
        told[0],
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {ID: 7}}})
    );
    assert_eq!(told[1]["params"], json!({"uri": "note://one", "_meta": {ID: 7}}));
    server.close();
    let answer = stream.await.unwrap();
    assert_eq!(answer.result()["resultType"], "complete");
    assert_eq!(answer.result()["_meta"][ID], 7);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_client() {
    let limits = Limits { subscriptions: 1, watched_resources: 1, ..Limits::default() };
    let server = builder(&<_>::default()).limits(limits).build().unwrap();
    let client = Client::connect(&server, MODERN);
    let all = json!({"toolsListChanged": true});
    let first = listen(&client, json!("a"), all.clone());
    assert_eq!(finish(listen(&client, json!("b"), all.clone())).await.error(), (-32603, ReplyStatus::Ok));
    drop(first);
    client.outbox.take();
    server.tools_changed();
    assert!(client.outbox.take().is_empty());
    // One whose outlet is closed ends by itself.
    let second = tokio::spawn(finish(listen(&client, json!("c"), all.clone())));
    client.outbox.next().await;
    client.outbox.close();
    server.tools_changed();
    assert_eq!(second.await.unwrap().body["id"], "c");
    let many = json!({"resourceSubscriptions": ["a:", "b:"]});
    assert_eq!(finish(listen(&client, json!("d"), many)).await.error().0, -32602);
    for params in [json!({}), json!({"notifications": 1})] {
        assert_eq!(client.now(1, "subscriptions/listen", params).error().0, -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_watched_is_bounded_in_bytes() {
    let server = server();
    let client = Client::connect(&server, MODERN);
    let (long, many) = (vec!["x".repeat(2_049)], vec!["x".repeat(2_000); 66]);
    for uris in [long, many] {
        let filter = json!({"resourceSubscriptions": uris});
        assert_eq!(finish(listen(&client, json!(1), filter)).await.error().0, -32602);
    }
    assert!(client.outbox.take().is_empty(), "nothing was acknowledged");
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        let long = format!("note://1999/{}", "x".repeat(2_048));
        assert_eq!(client.now(1, "resources/subscribe", json!({"uri": long})).error().0, -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn one_caller_does_not_take_all_subscriptions() {
    let limits = Limits { subscriptions: 10, ..Limits::default() };
    let server = builder(&<_>::default()).limits(limits).build().unwrap();
    let client = |name: &str| Client::connect(&server, MODERN).of(name);
    let (alice, bob) = (client("alice"), client("bob"));
    let all = json!({"toolsListChanged": true});
    let mut open: Vec<Handled> = (0..5).map(|id| listen(&alice, json!(id), all.clone())).collect();
    assert_eq!(finish(listen(&alice, json!(5), all.clone())).await.error().0, -32603);
    open.push(listen(&bob, json!(6), all.clone()));
    assert!(open.iter().all(|handled| matches!(handled, Handled::Later(_))));
}
