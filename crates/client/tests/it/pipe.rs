//! Lines over streams: what a server on the other end may do wrong, and how little that harms.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_client::{Callbacks, Client, ClientError, Limits, Mode, Options, Socket, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{callbacks, limited, text};

/// A stand-in for a server that answers a line with lines; an empty answer ends it.
fn scripted(script: impl Fn(&Value) -> Option<String> + Send + Sync + Clone + 'static) -> Target {
    Target::pipe(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let script = script.clone();
        tokio::spawn(async move {
            let (input, mut output) = tokio::io::split(theirs);
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match script(&serde_json::from_str(&line).unwrap()) {
                    Some(answer) => drop(output.write_all(answer.as_bytes()).await),
                    None => return,
                }
            }
        });
        async { Ok(Box::new(ours) as Box<dyn Socket>) }
    })
}

fn answer(request: &Value, result: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

fn legacy(request: &Value) -> String {
    match request["method"].as_str() {
        Some("initialize") => answer(
            request,
            &json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
            }),
        ),
        Some("tools/call") => answer(request, &json!({"content": [{"type": "text", "text": "ok"}]})),
        Some("server/discover") => {
            format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}))
        }
        _ => String::new(),
    }
}

async fn echo(client: &Client) -> Result<String, ClientError> {
    let result = limited(client.call_tool("echo", &json!({}))).await?;
    Ok(text(&result.content).to_owned())
}

#[tokio::test]
async fn rubbish_between_the_lines_is_passed_over_and_answers_come_in_any_order() {
    let target = scripted(|request| {
        let noise = "hello from a print()\n{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n[]\n";
        Some(format!("{noise}{}", legacy(request)))
    });
    let client = Client::connect(target, Options::default()).await.unwrap();
    let (first, second, third) = limited(async { tokio::join!(echo(&client), echo(&client), echo(&client)) }).await;
    assert_eq!([first.unwrap(), second.unwrap(), third.unwrap()], ["ok"; 3]);
}

#[tokio::test]
async fn questions_are_bounded_refused_where_nobody_answers_and_cancelled_when_the_server_says_so() {
    let answers = Arc::new(Mutex::new(Vec::<Value>::new()));
    let noted = Arc::clone(&answers);
    let target = scripted(move |message| {
        let ask = |id: i64, method: &str| {
            format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"message": "?"}}))
        };
        if message.get("method").is_none() {
            noted.lock().unwrap().push(message.clone());
            return Some(String::new());
        }
        if message["method"] == "notifications/initialized" {
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
            return Some(format!(
                "{}{}{}{}{cancel}\n",
                ask(1, "ping"),
                ask(2, "elicitation/create"),
                ask(3, "elicitation/create"),
                ask(4, "roots/list"),
            ));
        }
        Some(legacy(message))
    });
    let answering = Callbacks::default().elicitation(Default::default(), |_| std::future::pending());
    let limits = Limits { asked: 1, ..Limits::default() };
    let options = Options { callbacks: answering, limits, ..Options::default() };
    let client = Client::connect(target, options).await.unwrap();
    let heard = async {
        while answers.lock().unwrap().len() < 3 {
            echo(&client).await.unwrap();
        }
    };
    limited(heard).await;
    let answers = answers.lock().unwrap().clone();
    let of = |id: i64| answers.iter().find(|answer| answer["id"] == id);
    assert_eq!(of(1).unwrap()["result"], json!({}));
    assert_eq!(of(3).unwrap()["error"]["code"], -32603);
    assert_eq!(of(4).unwrap()["error"]["code"], -32603);
    assert!(of(2).is_none());
}

#[tokio::test]
async fn a_server_without_discover_that_is_silent_counts_as_legacy() {
    let target =
        scripted(|request| Some(if request["method"] == "server/discover" { String::new() } else { legacy(request) }));
    let limits = Limits { probe_time: Duration::from_millis(20), ..Limits::default() };
    let client = limited(Client::connect(target, Options { limits, ..Options::default() })).await.unwrap();
    assert_eq!(client.server().unwrap().revision.as_str(), "2025-06-18");
}

#[tokio::test]
async fn the_streams_end_and_too_long_a_line_fail_those_who_wait_in_words() {
    let ends = scripted(|request| (request["method"] != "tools/call").then(|| legacy(request)));
    let client = Client::connect(ends, Options::default()).await.unwrap();
    let failed = echo(&client).await.unwrap_err();
    assert_eq!(failed.code(), "broke-off", "{failed}");

    let long = scripted(|request| {
        let padding = if request["method"] == "tools/call" { "x".repeat(5000) } else { String::new() };
        Some(padding + &legacy(request))
    });
    let limits = Limits { message: 1000, ..Limits::default() };
    let client = Client::connect(long, Options { limits, ..Options::default() }).await.unwrap();
    assert_eq!(echo(&client).await.unwrap_err().code(), "too-large");
}

#[tokio::test]
async fn a_server_that_does_not_read_is_given_up_before_it_fills_the_memory() {
    let target = scripted(|request| Some(legacy(request)));
    let limits = Limits { unread: 1000, ..Limits::default() };
    let client = Client::connect(target, Options { limits, mode: Mode::Legacy, ..Options::default() }).await.unwrap();
    let failed = limited(client.call_tool("echo", &json!({"text": "x".repeat(2000)}))).await.unwrap_err();
    assert!(failed.to_string().contains("not read"), "{failed}");
    assert_eq!(echo(&client).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_and_its_late_answer_harms_nobody() {
    let seen = Arc::new(Mutex::new(Vec::<Value>::new()));
    let noted = Arc::clone(&seen);
    let target = scripted(move |message| {
        noted.lock().unwrap().push(message.clone());
        let slow = message["params"]["arguments"]["slow"] == true;
        Some(if slow { String::new() } else { legacy(message) })
    });
    let client = Client::connect(target, Options { callbacks: callbacks().0, ..Options::default() }).await.unwrap();
    {
        let arguments = json!({"slow": true});
        let slow = client.call_tool("echo", &arguments);
        let mut slow = std::pin::pin!(slow);
        tokio::select! {
            biased;
            _ = &mut slow => panic!("it has no answer"),
            other = echo(&client) => assert_eq!(other.unwrap(), "ok"),
        }
    }
    let cancelled = async {
        while !seen.lock().unwrap().iter().any(|message| message["method"] == "notifications/cancelled") {
            tokio::task::yield_now().await;
        }
    };
    limited(cancelled).await;
    let seen = seen.lock().unwrap();
    let call = seen.iter().find(|message| message["params"]["arguments"]["slow"] == true).unwrap();
    assert_eq!(seen.last().unwrap()["params"]["requestId"], call["id"]);
}
