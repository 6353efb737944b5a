//! Calls that become tasks when their handler wants them to (2026-07-28).

use std::time::Duration;

use mcpace_serve::{Context, Elicited, HandlerError, Limits, NoArguments, ReplyStatus, Server, Tool};
use serde_json::json;

use crate::core_harness::{Client, MODERN};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

fn server(limits: Limits) -> Server {
    let tool = Tool::new("work").task_on_demand().handler_async(|_: NoArguments, context: Context| async move {
        let Elicited::Accepted(Named { name }) = context.elicit_form("Who?").await? else {
            return Ok("nobody".to_owned());
        };
        context.begin_task().await?;
        // A second wish changes nothing.
        context.begin_task().await?;
        let Elicited::Accepted(Named { name: other }) = context.elicit_form("And who?").await? else {
            return Err(HandlerError::new("alone"));
        };
        Ok(format!("{name} and {other}"))
    });
    Server::builder("test", "1").tool(tool).limits(limits).build().unwrap()
}

/// The first round's question, answered with a name.
async fn answered(client: &Client) -> serde_json::Value {
    let asked = client.call(1, "work", json!({})).await;
    let asked = asked.result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(asked.get("taskId").is_none());
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let mut params = json!({"name": "work", "arguments": {}, "inputResponses": {
        key: {"action": "accept", "content": {"name": "Ada"}}}});
    if let Some(state) = asked.get("requestState") {
        params["requestState"] = state.clone();
    }
    params
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_before_is_asked_by_the_call_and_after_by_the_task() {
    let client = Client::connect(&server(Limits::default()), MODERN);
    let again = answered(&client).await;
    let begun = client.ask(2, "tools/call", again).await;
    let begun = begun.result();
    assert_eq!(begun["resultType"], "task", "{begun}");
    assert!(begun.get("requestState").is_none() && begun.get("inputRequests").is_none());
    let id = begun["taskId"].clone();
    let get = |request| client.now(request, "tasks/get", json!({"taskId": id}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let task = get(3).result().clone();
    assert_eq!(task["status"], "input_required", "{task}");
    let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let answers = json!({"taskId": id, "inputResponses": {key: {"action": "accept", "content": {"name": "Bo"}}}});
    client.now(4, "tasks/update", answers).result();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(get(5).result()["result"]["content"][0]["text"], "Ada and Bo");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_tasks_is_told_that_it_has_to() {
    let client = Client::connect(&server(Limits::default()), MODERN);
    let mut again = answered(&client).await;
    again["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let refused = client.ask(2, "tools/call", again).await;
    assert_eq!(refused.error(), (-32021, ReplyStatus::BadRequest));
    let required = &refused.body["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
}

#[tokio::test(start_paused = true)]
async fn where_there_are_tasks_enough_the_call_is_refused() {
    let client = Client::connect(&server(Limits { tasks: 0, ..Limits::default() }), MODERN);
    let again = answered(&client).await;
    assert_eq!(client.ask(2, "tools/call", again).await.error().0, -32603);
}
