//! 2026-07-28: requests that stand alone, several rounds, subscriptions, tasks.

use mcpace_wire::Revision;
use serde_json::{Value, json};

use crate::client::{Accept, Link, Outcome, Way, call, expect, request, text_of};
use crate::load::{Dice, Target};

const REVISION: Revision = Revision::V2026_07_28;

fn way(accept: Accept) -> Way<'static> {
    Way { revision: REVISION, session: None, accept }
}

/// Adds what each request has to say of its client.
pub(crate) fn told(mut message: Value, takes_tasks: bool) -> Value {
    let mut capabilities = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
    if takes_tasks {
        capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!(REVISION);
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    meta["io.modelcontextprotocol/logLevel"] = json!("info");
    message
}

/// The text of one call on a connection of its own.
pub(crate) async fn alone(target: &Target, tool: &str, arguments: Value) -> Outcome<String> {
    let mut link = Link::open(target.address).await?;
    let answer = link.ask(way(Accept::Json), &told(call(1, tool, arguments), false)).await?;
    text_of(&answer).map(str::to_owned)
}

pub(crate) async fn calls(target: &Target, dice: &mut Dice) -> Outcome {
    let mut link = Link::open(target.address).await?;
    for id in 1..=dice.one_of(20) {
        let echo = told(call(id, "echo", json!({"text": "soaked"})), false);
        let answer = link.ask(way(dice.pick(&Accept::ALL)), &echo).await?;
        expect(text_of(&answer)? == "soaked", || answer.to_string())?;
    }
    let completed = json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": ""}});
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("resources/read", json!({"uri": "test://static-binary"})),
        ("resources/read", json!({"uri": "test://template/7/data"})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("completion/complete", completed),
    ] {
        let answer = link.ask(way(dice.pick(&Accept::ALL)), &told(request(50, method, params), false)).await?;
        expect(answer["error"].is_null(), || format!("{method}: {answer}"))?;
    }
    let tool = dice.pick(&["test_tool_with_progress", "test_tool_with_logging", "test_image_content"]);
    link.ask(way(dice.pick(&Accept::ALL)), &told(call(51, tool, json!({})), false)).await.map(drop)
}

/// The question ends the round; the answer comes with the next.
pub(crate) async fn rounds(target: &Target, dice: &mut Dice) -> Outcome {
    let mut link = Link::open(target.address).await?;
    let first = told(call(1, "test_elicitation", json!({"message": "Who?"})), false);
    let accept = dice.pick(&Accept::ALL);
    let asked = link.ask(way(accept), &first).await?;
    let questions = asked["result"]["inputRequests"].as_object().ok_or_else(|| format!("no question in {asked}"))?;
    let mut second = first;
    second["id"] = json!(2);
    for key in questions.keys() {
        second["params"]["inputResponses"][key] = json!({"action": "decline"});
    }
    second["params"]["requestState"] = asked["result"]["requestState"].clone();
    text_of(&link.ask(way(accept), &second).await?).map(drop)
}

/// The client goes away while its call runs.
pub(crate) async fn left(target: &Target, dice: &mut Dice) -> Outcome {
    let mut link = Link::open(target.address).await?;
    let endless = told(call(1, "slow_compute", json!({"seconds": 60.0})), false);
    let calling = link.ask(way(dice.pick(&Accept::ALL)), &endless);
    // Not hearing in time is what is wanted here.
    let heard = tokio::time::timeout(dice.moment(), calling).await;
    expect(heard.is_err(), || "a call of a minute was answered at once".to_owned())
}

pub(crate) async fn subscriptions(target: &Target, dice: &mut Dice) -> Outcome {
    let mut link = Link::open(target.address).await?;
    let (filter, tool) = dice.pick_of(vec![
        (json!({"toolsListChanged": true}), "test_trigger_tool_change"),
        (json!({"resourceSubscriptions": ["test://watched-resource"]}), "test_trigger_resource_change"),
    ]);
    let listen = told(request(1, "subscriptions/listen", json!({"notifications": filter})), false);
    let mut events = link.send(way(Accept::Both).post(&listen)).await?;
    let acknowledged = events.message().await?;
    let is_it = acknowledged["method"] == "notifications/subscriptions/acknowledged";
    expect(is_it, || format!("{acknowledged} in the place of an acknowledgement"))?;
    let mut other = Link::open(target.address).await?;
    other.ask(way(Accept::Json), &told(call(2, tool, json!({})), false)).await?;
    events.message().await.map(drop)
}

/// Tasks that are waited for, answered, cancelled, forgotten.
pub(crate) async fn tasks(target: &Target, dice: &mut Dice) -> Outcome {
    let mut link = Link::open(target.address).await?;
    let way = way(Accept::Json);
    let (tool, arguments) = dice.pick_of(vec![
        ("slow_compute", json!({"seconds": 0.05})),
        ("slow_compute", json!({"seconds": 60.0})),
        ("confirm_delete", json!({"filename": "a"})),
    ]);
    let begun = link.ask(way, &told(call(1, tool, arguments.clone()), true)).await?;
    let id = begun["result"]["taskId"].as_str().ok_or_else(|| format!("no task in {begun}"))?;
    let about = |number, method, mut params: Value| {
        params["taskId"] = json!(id);
        told(request(number, method, params), true)
    };
    if dice.one_of(4) == 0 {
        return Ok(());
    }
    if arguments["seconds"] == 60.0 {
        link.ask(way, &about(2, "tasks/cancel", json!({}))).await?;
    }
    for number in 3.. {
        let task = link.ask(way, &about(number, "tasks/get", json!({}))).await?;
        let task = &task["result"];
        match task["status"].as_str() {
            Some("working") => tokio::time::sleep(dice.moment()).await,
            Some("input_required") => {
                let questions = task["inputRequests"].as_object().into_iter().flatten();
                let answers: serde_json::Map<_, _> = questions
                    .map(|(key, _)| (key.clone(), json!({"action": "accept", "content": {"confirm": true}})))
                    .collect();
                link.ask(way, &about(1_000_000 + number, "tasks/update", json!({"inputResponses": answers}))).await?;
            }
            Some("completed" | "cancelled") => break,
            _ => return Err(format!("a task is {task}").into()),
        }
    }
    Ok(())
}
