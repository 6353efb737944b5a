//! Requests in several rounds (2026-07-28), and what becomes of a state that was tampered with.

use std::time::Duration;

use mcpace_serve::{Limits, ReplyStatus, Server};
use serde_json::{Value, json};

use crate::core_harness::{Answer, Client, MODERN, finish};
use crate::core_server::{builder, server};

const REFUSED: (i64, ReplyStatus) = (-32602, ReplyStatus::Ok);

async fn call(client: &Client, params: Value) -> Answer {
    client.ask(1, "tools/call", params).await
}

fn state(answer: &Answer) -> String {
    assert_eq!(answer.result()["resultType"], "input_required", "{}", answer.text);
    answer.result()["requestState"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn questions_come_one_after_another() {
    let client = Client::connect(&server(), MODERN);
    let arguments = json!({"b": 1, "a": [2]});
    let first = call(&client, json!({"name": "ask-twice", "arguments": arguments})).await;
    assert_eq!(first.result()["inputRequests"], json!({"roots-list-0": {"method": "roots/list"}}));
    assert_eq!(first.result()["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test-server");
    let second = call(
        &client,
        json!({"name": "ask-twice", "arguments": arguments, "requestState": state(&first),
            "inputResponses": {"roots-list-0": {"roots": []}, "unknown": 1}}),
    )
    .await;
    let asked = &second.result()["inputRequests"]["elicitation-create-1"];
    assert_eq!(asked["method"], "elicitation/create");
    // Written anew, in another order: still the same request.
    let last = call(
        &client,
        json!({"arguments": {"a": [2], "b": 1}, "name": "ask-twice", "requestState": state(&second),
            "inputResponses": {"elicitation-create-1": {"action": "accept", "content": {"name": "Ada"}}}}),
    )
    .await;
    assert_eq!(last.text(), "Ada in 0 roots");
    assert_eq!(last.result()["resultType"], "complete");
    // A round without the answer asks again.
    let again =
        call(&client, json!({"name": "ask-twice", "arguments": arguments, "requestState": state(&second)})).await;
    assert!(again.result()["inputRequests"]["elicitation-create-1"].is_object());
}

#[tokio::test(start_paused = true)]
async fn handlers_keep_a_state_of_their_own() {
    let client = Client::connect(&server(), MODERN);
    let first = call(&client, json!({"name": "steps"})).await;
    let second = call(&client, json!({"name": "steps", "requestState": state(&first)})).await;
    let answers = json!({"mine": {"roots": [{"uri": "file:///"}]}});
    let third =
        call(&client, json!({"name": "steps", "requestState": state(&second), "inputResponses": answers})).await;
    assert_eq!(third.text(), "done with Some(1)");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_ours_is_refused() {
    let server = server();
    let client = Client::connect(&server, MODERN);
    let good = state(&call(&client, json!({"name": "steps"})).await);
    let (payload, tag) = good.split_once('.').unwrap();
    let flipped = |text: &str, at: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let mut bad = vec![
        String::new(),
        ".".to_owned(),
        payload.to_owned(),
        format!("{payload}."),
        format!(".{tag}"),
        format!("{good}A"),
        "A".repeat(100_000),
    ];
    bad.extend((0..payload.len()).map(|at| format!("{}.{tag}", flipped(payload, at))));
    bad.extend((0..tag.len() - 1).map(|at| format!("{payload}.{}", flipped(tag, at))));
    for state in bad {
        let answer = call(&client, json!({"name": "steps", "requestState": state})).await;
        assert_eq!(answer.error(), REFUSED, "{state}");
    }
    // For another tool, other arguments, another method or another principal.
    for params in [
        json!({"name": "ask-twice", "requestState": good}),
        json!({"name": "echo", "arguments": {"text": "x"}, "requestState": good}),
        json!({"name": "steps", "arguments": {}, "requestState": good}),
        json!({"name": "steps", "arguments": {"x": 1}, "requestState": good}),
        json!({"name": "steps", "requestState": 1}),
    ] {
        assert_eq!(call(&client, params.clone()).await.error(), REFUSED, "{params}");
    }
    let params = json!({"name": "steps", "requestState": good});
    assert_eq!(call(&client.clone().of("eve"), params.clone()).await.error(), REFUSED);
    let alice = client.clone().of("alice");
    let hers = call(&alice, json!({"name": "steps"})).await.result()["requestState"].clone();
    let hers = json!({"name": "steps", "requestState": hers});
    assert_eq!(call(&client.clone().of("eve"), hers.clone()).await.error(), REFUSED);
    assert_eq!(call(&client, hers.clone()).await.error(), REFUSED);
    call(&alice, hers).await.result();
    let read = json!({"uri": "note://one", "requestState": good});
    assert_eq!(client.ask(1, "resources/read", read).await.error(), REFUSED);
    // Another server has another key, unless it was given the same.
    assert_eq!(call(&Client::connect(&crate::core_server::server(), MODERN), params.clone()).await.error(), REFUSED);
    // Arguments that are nested too deep to compare are bound by their exact text.
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(200), "]".repeat(200));
    let raw = |arguments: &str, state: &str| {
        let meta = client.params(json!({}))["_meta"].clone();
        let params = format!(r#"{{"name":"steps","arguments":{{"x":{arguments}}},"_meta":{meta}{state}}}"#);
        finish(client.raw(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)))
    };
    let other = state(&raw(&deep("1"), "").await);
    let answer = raw(&deep("2"), &format!(r#","requestState":"{other}""#)).await;
    assert_eq!(answer.error(), REFUSED);
    // And the good one is still good.
    state(&call(&client, params).await);
}

#[tokio::test(start_paused = true)]
async fn servers_of_one_key_take_each_others_states() {
    let server = || builder(&<_>::default()).key([7; 32]).build().unwrap();
    let first = call(&Client::connect(&server(), MODERN), json!({"name": "steps"})).await;
    let second =
        call(&Client::connect(&server(), MODERN), json!({"name": "steps", "requestState": state(&first)})).await;
    state(&second);
}

#[tokio::test(start_paused = true)]
async fn states_expire_and_rounds_end() {
    let limited = |limits| Client::connect(&builder(&<_>::default()).limits(limits).build().unwrap(), MODERN);
    let client = limited(Limits { request_state_time: Duration::ZERO, ..Limits::default() });
    let first = call(&client, json!({"name": "steps"})).await;
    let answer = call(&client, json!({"name": "steps", "requestState": state(&first)})).await;
    assert_eq!((answer.error(), answer.message()), (REFUSED, "requestState: expired"));
    let client = limited(Limits { rounds: 1, ..Limits::default() });
    let first = call(&client, json!({"name": "ask-name"})).await;
    let answer = call(&client, json!({"name": "ask-name", "requestState": state(&first)})).await;
    assert_eq!(answer.error().0, -32603);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_not_declared_is_told_what_to_declare() {
    let client = Client::connect(&server(), MODERN);
    let ask = |tool: &'static str, capabilities: Value| {
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        call(&client, json!({"name": tool, "_meta": meta}))
    };
    let answer = ask("ask-name", json!({})).await;
    assert_eq!(answer.error(), (-32021, ReplyStatus::BadRequest));
    assert_eq!(answer.body["error"]["data"], json!({"requiredCapabilities": {"elicitation": {"form": {}}}}));
    assert_eq!(ask("ask-url", json!({"elicitation": {}})).await.error().0, -32021);
    assert_eq!(ask("ask-model", json!({"elicitation": {}})).await.error().0, -32021);
    assert_eq!(ask("ask-twice", json!({"elicitation": {}})).await.error().0, -32021);
    state(&ask("ask-name", json!({"elicitation": {}})).await);
}

#[tokio::test(start_paused = true)]
async fn plain_handlers_have_no_rounds() {
    let server = Server::builder("x", "1")
        .tool(mcpace_serve::Tool::new("t").handler(|_: mcpace_serve::NoArguments| {
            Err::<(), _>(mcpace_serve::InputRequired::new().list_roots("r").into())
        }))
        .build()
        .unwrap();
    assert_eq!(call(&Client::connect(&server, MODERN), json!({"name": "t"})).await.error().0, -32603);
    let legacy = Client::connect(&server, mcpace_wire::Revision::V2025_11_25);
    assert_eq!(call(&legacy, json!({"name": "t"})).await.error().0, -32603);
}
