//! Asking the client in legacy sessions.

use std::time::Duration;

use mcpace_serve::Limits;
use mcpace_wire::Revision;
use serde_json::{Value, json};

use crate::core_harness::{Client, finish, legacy};
use crate::core_server::{builder, server};

fn begin(client: &Client, tool: &str) -> tokio::task::JoinHandle<crate::core_harness::Answer> {
    tokio::spawn(finish(client.send(5, "tools/call", json!({"name": tool}))))
}

#[tokio::test(start_paused = true)]
async fn a_form_goes_out_and_its_answer_comes_in() {
    let server = server();
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        let answers = [
            (json!({"action": "accept", "content": {"name": "Ada"}}), "hello Ada", false),
            (json!({"action": "decline"}), "Declined", false),
            (json!({"action": "cancel"}), "Cancelled", false),
            (json!({"action": "accept"}), "the client's answer can't be read", true),
            (json!({"action": "accept", "content": {}}), "the client's answer can't be read", true),
            (json!({}), "the client's answer can't be read", true),
        ];
        for (answer, told, is_error) in answers {
            let call = begin(&client, "ask-name");
            let request = client.outbox.next().await;
            assert_eq!(request["method"], "elicitation/create");
            assert_eq!(request["params"]["message"], "Who?");
            assert_eq!(request["params"]["requestedSchema"]["properties"]["name"]["type"], "string");
            client.respond(&request["id"], answer);
            let answer = call.await.unwrap();
            assert!(answer.text().starts_with(told), "{}", answer.text);
            assert_eq!(answer.result()["isError"] == true, is_error);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn urls_models_and_roots_are_asked_too() {
    let client = Client::connect(&server(), Revision::V2025_11_25);
    let call = begin(&client, "ask-url");
    let request = client.outbox.next().await;
    assert_eq!(request["params"], json!({"mode": "url", "message": "Go", "url": "https://example.com/"}));
    client.respond(&request["id"], json!({"action": "accept"}));
    assert_eq!(call.await.unwrap().text(), "Accept");
    let call = begin(&client, "ask-model");
    let request = client.outbox.next().await;
    assert_eq!(request["method"], "sampling/createMessage");
    client
        .respond(&request["id"], json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}));
    assert_eq!(call.await.unwrap().text(), "m");
    let call = begin(&client, "ask-twice");
    let request = client.outbox.next().await;
    assert_eq!((&request["method"], &request["params"]), (&json!("roots/list"), &Value::Null));
    client.respond(&request["id"], json!({"roots": [{"uri": "file:///a"}]}));
    let request = client.outbox.next().await;
    client.respond(&request["id"], json!({"action": "accept", "content": {"name": "Ada"}}));
    assert_eq!(call.await.unwrap().text(), "Ada in 1 roots");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_is_not_asked() {
    let server = server();
    let able_of = [json!({}), json!({"elicitation": {"url": {}}}), json!({"sampling": {}})];
    for capabilities in able_of {
        let client = Client::connect_able(&server, Revision::V2025_11_25, capabilities);
        let answer = client.call(1, "ask-name", json!({})).await;
        assert_eq!(answer.text(), "the client has not declared the capability that this needs");
        assert!(client.outbox.take().is_empty());
    }
    let stateless = Client::stateless(&server, Revision::V2025_11_25);
    let answer = stateless.call(1, "ask-name", json!({})).await;
    assert_eq!(answer.text(), "the client can't be asked on this connection");
    let gone = Client::connect(&server, Revision::V2025_11_25);
    gone.outbox.close();
    assert_eq!(gone.call(1, "ask-name", json!({})).await.text(), "the client can't be asked on this connection");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_told() {
    let client = Client::connect(&server(), Revision::V2025_06_18);
    let call = begin(&client, "ask-name");
    let request = client.outbox.next().await;
    client.raw(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -1, "message": "no"}}).to_string());
    assert_eq!(call.await.unwrap().text(), "the client refused: no (-1)");
}

#[tokio::test(start_paused = true)]
async fn answers_are_waited_for_so_long_only() {
    let limits = Limits { answer_time: Duration::from_secs(7), ..Limits::default() };
    let client = Client::connect(&builder(&<_>::default()).limits(limits).build().unwrap(), Revision::V2025_06_18);
    let started = tokio::time::Instant::now();
    let call = begin(&client, "ask-name");
    let request = client.outbox.next().await;
    assert_eq!(call.await.unwrap().text(), "the client did not answer in time");
    assert_eq!(started.elapsed().as_secs(), 7);
    let notification = client.outbox.next().await;
    assert_eq!(notification["method"], "notifications/cancelled");
    assert_eq!(notification["params"]["requestId"], request["id"]);
    // Too late is nothing.
    client.respond(&request["id"], json!({"action": "decline"}));
}

#[tokio::test(start_paused = true)]
async fn questions_are_limited() {
    let limits = Limits { asked: 1, ..Limits::default() };
    let client = Client::connect(&builder(&<_>::default()).limits(limits).build().unwrap(), Revision::V2025_06_18);
    let first = begin(&client, "ask-name");
    let request = client.outbox.next().await;
    let second = client.ask(6, "tools/call", json!({"name": "ask-name"})).await;
    assert_eq!(second.text(), "the client has too many questions to answer");
    // Another session's answer to the same number is none of ours.
    let other = Client::connect(&client.server, Revision::V2025_06_18);
    other.respond(&request["id"], json!({"action": "decline"}));
    client.respond(&request["id"], json!({"action": "cancel"}));
    assert_eq!(first.await.unwrap().text(), "Cancelled");
}
