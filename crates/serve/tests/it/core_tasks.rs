//! The tasks extension (2026-07-28).

use std::time::Duration;

use mcpace_serve::{
    Context, HandlerError, InputRequired, Limits, NoArguments, RawAnswer, RawCall, ReplyStatus, Server, Tool,
};
use mcpace_wire::Revision;
use serde_json::{Value, json};

use crate::core_harness::{Answer, Client, MODERN, finish};
use crate::core_server::{builder, server};

async fn begin(client: &Client, what: &str) -> String {
    let answer = client.call(1, "work", json!({"text": what})).await;
    let task = answer.result();
    assert_eq!(task["resultType"], "task", "{task}");
    assert_eq!(task["status"], "working");
    assert!(task["createdAt"].as_str().unwrap().ends_with('Z'));
    assert!(task["ttlMs"].is_u64() && task["pollIntervalMs"].is_u64() && task["lastUpdatedAt"].is_string());
    task["taskId"].as_str().unwrap().to_owned()
}

fn status(client: &Client, id: &str) -> Answer {
    client.now(2, "tasks/get", json!({"taskId": id}))
}

/// The task once it has changed.
async fn until(client: &Client, id: &str, wanted: &str) -> Value {
    let poll = async {
        loop {
            let answer = status(client, id);
            if answer.result()["status"] == wanted {
                return answer.result().clone();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), poll).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn results_and_errors_are_fetched() {
    let client = Client::connect(&server(), MODERN);
    let id = begin(&client, "hi").await;
    let task = until(&client, &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "hi");
    assert_eq!(task["resultType"], "complete");
    let id = begin(&client, "fail").await;
    assert_eq!(until(&client, &id, "completed").await["result"]["isError"], true);
    let id = begin(&client, "refuse").await;
    assert_eq!(until(&client, &id, "failed").await["error"], json!({"code": -31_999, "message": "refused"}));
    // Wrong arguments need no task.
    let answer = client.call(1, "work", json!({})).await;
    assert_eq!(answer.text(), "arguments: missing field `text`");
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_through_the_task() {
    let client = Client::connect(&server(), MODERN);
    let id = begin(&client, "ask").await;
    let stream = tokio::spawn(finish(client.send(
        9,
        "subscriptions/listen",
        json!({"notifications": {"taskIds": [id, "unknown"]}}),
    )));
    let acknowledged = client.outbox.next().await;
    assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [id]}));
    let task = until(&client, &id, "input_required").await;
    let (key, question) = task["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answers = json!({"taskId": id, "inputResponses": {
        "unknown": {}, key: {"action": "accept", "content": {"name": "Ada"}}}});
    assert_eq!(client.now(3, "tasks/update", answers).result()["resultType"], "complete");
    assert_eq!(until(&client, &id, "completed").await["result"]["content"][0]["text"], "Ada");
    let last = client.outbox.take().pop().unwrap();
    assert_eq!((&last["method"], &last["params"]["status"]), (&json!("notifications/tasks"), &json!("completed")));
    stream.abort();
}

#[tokio::test(start_paused = true)]
async fn tasks_are_cancelled_and_expire() {
    let limits = Limits { tasks: 1, task_time: Duration::from_secs(30), ..Limits::default() };
    let client = Client::connect(&builder(&<_>::default()).limits(limits).build().unwrap(), MODERN);
    let id = begin(&client, "forever").await;
    assert_eq!(client.call(1, "work", json!({"text": "x"})).await.error().0, -32603);
    assert_eq!(client.now(3, "tasks/cancel", json!({"taskId": id})).result()["resultType"], "complete");
    assert_eq!(status(&client, &id).result()["status"], "cancelled");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(status(&client, &id).error(), (-32602, ReplyStatus::Ok));
    let id = begin(&client, "forever").await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(status(&client, &id).error(), (-32602, ReplyStatus::Ok));
}

#[tokio::test(start_paused = true)]
async fn tasks_belong_to_who_began_them_and_to_clients_that_take_them() {
    let server = server();
    let anna = Client::connect(&server, MODERN).of("anna");
    let id = begin(&anna, "forever").await;
    for method in ["tasks/get", "tasks/cancel"] {
        for other in [Client::connect(&server, MODERN), Client::connect(&server, MODERN).of("bert")] {
            assert_eq!(other.now(1, method, json!({"taskId": id})).error(), (-32602, ReplyStatus::Ok));
        }
        let params = json!({"taskId": id, "_meta": {"io.modelcontextprotocol/clientCapabilities": {}}});
        let answer = anna.now(1, method, params);
        assert_eq!(answer.error(), (-32021, ReplyStatus::BadRequest));
        let required = &answer.body["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*required, json!({"io.modelcontextprotocol/tasks": {}}));
        assert_eq!(anna.now(1, method, json!({})).error().0, -32602);
    }
    assert_eq!(status(&anna, &id).result()["status"], "working");
    // A client without support for tasks gets the result itself.
    let params = json!({"name": "work", "arguments": {"text": "x"}, "_meta": {"io.modelcontextprotocol/clientCapabilities": {}}});
    assert_eq!(anna.ask(1, "tools/call", params).await.text(), "x");
    for revision in crate::core_harness::legacy() {
        assert_eq!(Client::connect(&server, revision).call(1, "work", json!({"text": "x"})).await.text(), "x");
    }
    let told = Client::connect(&server, MODERN).now(1, "server/discover", json!({}));
    assert_eq!(told.result()["capabilities"]["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
    let told = Client::connect(&server, Revision::V2025_11_25).now(1, "tasks/get", json!({}));
    assert_eq!(told.error().0, -32601);
}

/// A raw tool that asks for a name in rounds, and reports progress meanwhile.
fn rounds() -> Server {
    let listed = serde_json::from_str(r#"{"name":"rounds","inputSchema":{"type":"object"}}"#).unwrap();
    let handler = |call: RawCall<'_>| {
        assert_eq!(call.arguments(), r#"{"greeting":"Hello"}"#);
        let (context, is_task) = (call.context().unwrap(), call.is_task());
        let mut reply = call.reply();
        RawAnswer::Later(Box::pin(async move {
            context.progress(1.0, None, Some("asking"));
            let answer: Option<mcpace_wire::mcp::ElicitResult> = context.input_response("who");
            let Some(name) = answer.and_then(|answer| answer.content) else {
                let state = context.request_state::<u32>().unwrap_or_default();
                let question = serde_json::from_value(json!({"message": "Who?", "requestedSchema": {}})).unwrap();
                let asked = InputRequired::new().state(&(state + 1)).and_then(|asked| asked.elicit("who", &question));
                return reply.done(Err(asked.unwrap().into()));
            };
            let text = format!("{is_task} {} {}", name.get(), context.request_state::<u32>().unwrap());
            let written = reply.write(|writer| writer.text(&text));
            reply.done(written.map_err(HandlerError::internal))
        }))
    };
    Server::builder("raw", "1")
        .tool(Tool::raw(listed, handler).task().task_ttl(Duration::from_secs(7)))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_round_that_ends_with_questions_asks_them_through_the_task() {
    let client = Client::connect(&rounds(), MODERN);
    let begun = client.call(1, "rounds", json!({"greeting": "Hello"})).await;
    let begun = begun.result();
    assert_eq!((&begun["resultType"], &begun["ttlMs"]), (&json!("task"), &json!(7_000)), "{begun}");
    let id = begun["taskId"].as_str().unwrap();
    let mut keys = Vec::new();
    // An answer without content is no name: the handler asks again, under another key.
    for content in [json!({"action": "decline"}), json!({"action": "accept", "content": {"name": "Ada"}})] {
        let task = until(&client, id, "input_required").await;
        assert_eq!(task["statusMessage"], "asking");
        let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        client.now(3, "tasks/update", json!({"taskId": id, "inputResponses": {key.clone(): content}})).result();
        keys.push(key);
    }
    assert_ne!(keys[0], keys[1]);
    let task = until(&client, id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], r#"true {"name":"Ada"} 2"#);
    assert!(task.get("statusMessage").is_none());
    // A client that takes no tasks has the rounds of the call.
    let params = json!({"name": "rounds", "arguments": {"greeting": "Hello"},
        "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    assert_eq!(client.ask(4, "tools/call", params).await.result()["resultType"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn a_raw_handler_that_answers_at_once_needs_no_task() {
    let listed = serde_json::from_str(r#"{"name":"quick","inputSchema":{"type":"object"}}"#).unwrap();
    let handler = |call: RawCall<'_>| {
        let mut reply = call.reply();
        let written = reply.write(|writer| writer.text("at once"));
        RawAnswer::Now(reply.done(written.map_err(HandlerError::internal)))
    };
    let limits = Limits { tasks: 1, ..Limits::default() };
    let server = Server::builder("raw", "1").limits(limits).tool(Tool::raw(listed, handler).task()).build().unwrap();
    let client = Client::connect(&server, MODERN);
    for id in 1..4 {
        assert_eq!(client.call(id, "quick", json!({})).await.text(), "at once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_needs_tasks_refuses_clients_without() {
    let tool = Tool::new("work").task_required().handler_async(|_: NoArguments, context: Context| async move {
        Ok::<_, HandlerError>(context.task_id().is_some().to_string())
    });
    let server = Server::builder("test", "1").tool(tool).build().unwrap();
    let client = Client::connect(&server, MODERN);
    let begun = client.call(1, "work", json!({})).await;
    let id = begun.result()["taskId"].as_str().unwrap().to_owned();
    assert_eq!(until(&client, &id, "completed").await["result"]["content"][0]["text"], "true");
    let without = Client::connect_able(&server, MODERN, json!({}));
    let refused = without.call(1, "work", json!({})).await;
    assert_eq!(refused.error(), (-32021, ReplyStatus::BadRequest));
    let legacy = Client::connect(&server, Revision::V2025_11_25).call(1, "work", json!({})).await;
    assert_eq!(legacy.result()["isError"], true);
}
