//! The tool `answer` of profile `limits`: what comes before the answer, and when the head does.

use std::time::{Duration, Instant};

use mcpace_target::{Options, Profile, ResponseMode};
use serde_json::{Value, json};

use crate::client::{Ask, Connection, response, start, text};

const AFTER: Duration = Duration::from_millis(350);

fn answer(arguments: &Value) -> Ask {
    let mut arguments = arguments.clone();
    arguments["after_ms"] = json!(350);
    arguments["every_ms"] = json!(100);
    Ask::request("tools/call", json!({"name": "answer", "arguments": arguments, "_meta": {"progressToken": "t"}}))
}

#[tokio::test]
async fn the_head_comes_early_or_with_the_answer() {
    let target = start(Options::new(Profile::Limits)).await;
    for (head, is_late) in [("early", false), ("late", true)] {
        let mut connection = Connection::open(&target).await;
        let begun = Instant::now();
        let read = connection.ask(&answer(&json!({"head": head}))).await;
        let head_came = begun.elapsed();
        // An early head is there before anything of the body is.
        assert!(if is_late { head_came >= AFTER } else { connection.is_drained() }, "{head}: {head_came:?}");
        assert_eq!(text(&connection.body(&read).await), "answered after 350 ms");
        assert!(begun.elapsed() >= AFTER);
    }
}

#[tokio::test]
async fn comments_progress_or_nothing_comes_until_the_answer() {
    let target = start(Options::new(Profile::Limits)).await;
    for (sends, comments, progress) in [("nothing", 0, 0), ("comments", 3, 0), ("progress", 0, 3)] {
        let mut connection = Connection::open(&target).await;
        let (_, body) = connection.exchange(&answer(&json!({"sends": sends}))).await;
        let seen = (body.matches(": open").count(), body.matches("notifications/progress").count());
        assert_eq!(seen, (comments, progress), "{body}");
        assert!(body.trim_end().ends_with('}') && body.contains("answered after 350 ms"), "{body}");
    }
}

#[tokio::test]
async fn a_body_comes_in_parts() {
    for mode in [ResponseMode::Json, ResponseMode::Sse] {
        let target = start(Options { response: Some(mode), ..Options::new(Profile::Limits) }).await;
        let mut connection = Connection::open(&target).await;
        let begun = Instant::now();
        let head = connection.ask(&answer(&json!({"sends": "bytes"}))).await;
        assert!(connection.is_drained(), "the first part comes a period after the head");
        assert_eq!(text(&connection.body(&head).await), "answered after 350 ms");
        assert!(begun.elapsed() >= AFTER);
    }
}

#[tokio::test]
async fn other_profiles_have_no_such_tool() {
    let target = start(Options::new(Profile::Simple)).await;
    let (_, body) = Connection::open(&target).await.exchange(&answer(&json!({}))).await;
    assert_eq!(response(&body)["error"]["code"], -32602);
    let (_, body) = Connection::open(&target).await.exchange(&Ask::request("tools/list", json!({}))).await;
    assert!(!body.contains("answer"), "{body}");
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_an_error_of_the_tool() {
    let target = start(Options::new(Profile::Limits)).await;
    let (_, body) = Connection::open(&target).await.exchange(&answer(&json!({"head": "late", "sends": "bytes"}))).await;
    assert_eq!(response(&body)["result"]["isError"], true, "{body}");
}
