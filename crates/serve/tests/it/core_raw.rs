//! Handlers of bytes, descriptions taken as they are, and the completer.

use mcpace_serve::{
    Context, HandlerError, Prompt, RawAnswer, RawCall, RawDone, RawHandler, Resource, ResourceRequest,
    ResourceTemplate, Server, Tool,
};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{self, Completion, CompletionRef, GetPromptResult, Json};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::core_harness::{Client, LIMIT, MODERN, finish, legacy};

/// A tool whose schemas are spelled in a way of their own.
fn listed(name: &str) -> mcp::Tool {
    let text = format!(
        r#"{{"name":{name:?},"inputSchema":{{"type" : "object","z":1,"a":2}},"outputSchema":{{"type":"object","z":1}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn served(handler: impl RawHandler) -> Server {
    Server::builder("raw", "1").tool(Tool::raw(listed("raw"), handler)).build().unwrap()
}

/// Answers at once, with a result as JSON.
fn whole(json: &'static str) -> Server {
    served(move |call: RawCall<'_>| {
        let mut reply = call.reply();
        let written = reply.write(|writer| writer.result_json(json));
        RawAnswer::Now(reply.done(written.map_err(HandlerError::internal)))
    })
}

#[test]
fn its_description_is_told_as_it_came() {
    let server = whole("{}");
    let client = Client::connect(&server, Revision::V2025_11_25);
    let text = client.now(2, "tools/list", json!({})).text;
    assert!(text.contains(r#""inputSchema":{"type" : "object","z":1,"a":2}"#), "{text}");
}

#[test]
fn a_schema_of_something_else_is_refused() {
    let mut other = listed("raw");
    other.input_schema = Json::from_text(r#"{"type":"string"}"#.to_owned()).unwrap();
    let tool = Tool::raw(other, |call: RawCall<'_>| RawAnswer::Now(call.reply().done(Ok(()))));
    assert!(Server::builder("raw", "1").tool(tool).build().is_err());
}

#[tokio::test(start_paused = true)]
async fn arguments_come_as_bytes_and_may_be_kept() {
    let server = served(|call: RawCall<'_>| {
        let (seen, kept) = (call.arguments().to_owned(), call.keep_arguments());
        assert_eq!(seen.as_bytes(), &*kept);
        let mut reply = call.reply();
        RawAnswer::Later(Box::pin(async move {
            let written = reply.write(|writer| writer.text(std::str::from_utf8(&kept).unwrap()));
            reply.done(written.map_err(HandlerError::internal))
        }))
    });
    let client = Client::connect(&server, MODERN);
    assert_eq!(client.call(2, "raw", json!({"x": [1, 2]})).await.text(), r#"{"x":[1,2]}"#);
    let without = client.ask(3, "tools/call", json!({"name": "raw"})).await;
    assert_eq!(without.text(), "{}");
}

#[test]
fn a_whole_result_is_fitted_to_the_revision() {
    let server = whole(
        r#"{"_meta":{"m":1},"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1.0},"isError":true,
            "resultType":"complete","other":[1]}"#,
    );
    for revision in legacy().chain([MODERN]) {
        let client = Client::connect(&server, revision);
        let answer = client.now(2, "tools/call", json!({"name": "raw"}));
        let result = answer.result();
        assert_eq!(result["content"], json!([{"type": "text", "text": "a"}]));
        assert_eq!((&result["isError"], &result["other"]), (&json!(true), &json!([1])));
        assert_eq!(result["_meta"]["m"], 1);
        assert_eq!(answer.text.contains(r#""structuredContent":{"b":1.0}"#), revision >= Revision::V2025_06_18);
        assert_eq!(answer.text.matches("resultType").count(), usize::from(revision.is_modern()));
    }
}

#[test]
fn a_result_without_content_has_an_empty_one() {
    let server = whole("{}");
    let client = Client::connect(&server, Revision::V2025_11_25);
    assert_eq!(client.now(2, "tools/call", json!({"name": "raw"})).result(), &json!({"content": []}));
}

#[test]
fn what_is_no_result_is_an_internal_error_without_a_trace_of_it() {
    for json in ["[]", "{", r#"{"isError":"yes"}"#, r#"{"_meta":3}"#] {
        let server = whole(json);
        let client = Client::connect(&server, Revision::V2025_11_25);
        let answer = client.now(2, "tools/call", json!({"name": "raw"}));
        assert_eq!(answer.text(), "internal error", "{json}");
        assert_eq!(answer.result()["isError"], true);
    }
}

#[test]
fn text_is_escaped_alike_in_both_places() {
    let server = served(|call: RawCall<'_>| {
        let mut reply = call.reply();
        let written = reply.write(|writer| writer.wrapped_text("a \"b\"\n\u{1f}é"));
        RawAnswer::Now(reply.done(written.map_err(HandlerError::internal)))
    });
    for revision in legacy().chain([MODERN]) {
        let client = Client::connect(&server, revision);
        let answer = client.now(2, "tools/call", json!({"name": "raw"}));
        assert_eq!(answer.text(), "a \"b\"\n\u{1f}é");
        let structured = &answer.result()["structuredContent"]["result"];
        let expected = if revision.has_structured_output() { json!("a \"b\"\n\u{1f}é") } else { Value::Null };
        assert_eq!(structured, &expected);
    }
}

#[test]
fn structured_json_is_shown_to_those_who_can_take_it() {
    let server = served(|call: RawCall<'_>| {
        let mut reply = call.reply();
        let written = reply.write(|writer| writer.structured_json("three", "[1, 2]"));
        RawAnswer::Now(reply.done(written.map_err(HandlerError::internal)))
    });
    for revision in legacy().chain([MODERN]) {
        let client = Client::connect(&server, revision);
        let answer = client.now(2, "tools/call", json!({"name": "raw"}));
        assert_eq!(answer.text(), "three");
        // Before 2026-07-28 it is an object or nothing.
        assert_eq!(answer.text.contains(r#""structuredContent":[1, 2]"#), revision.is_modern());
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_is_made_for_a_call_that_asks_and_is_the_same_each_time() {
    let server = served(|call: RawCall<'_>| {
        let (first, second) = (call.context(), call.context());
        let (first, second) = (first.unwrap(), second.unwrap());
        first.progress(1.0, None, None);
        // Not told: progress rises.
        second.progress(1.0, None, None);
        RawAnswer::Now(call.reply().done(Err(HandlerError::new("over"))))
    });
    let client = Client::connect(&server, Revision::V2025_11_25);
    let params = json!({"name": "raw", "_meta": {"progressToken": "p"}});
    let answer = client.now(2, "tools/call", params);
    assert_eq!((answer.text(), &answer.result()["isError"]), ("over", &json!(true)));
    assert_eq!(client.outbox.take().len(), 1);
    assert_eq!(client.session().in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_later_call_without_a_context_can_be_cancelled_too() {
    let (held, mut dropped) = oneshot::channel::<()>();
    let held = std::sync::Mutex::new(Some(held));
    let server = served(move |_: RawCall<'_>| {
        let held = held.lock().unwrap().take();
        RawAnswer::Later(Box::pin(async move {
            let _held = held;
            std::future::pending::<RawDone>().await
        }))
    });
    let client = Client::connect(&server, Revision::V2025_11_25);
    let waiting = tokio::spawn(finish(client.send(7, "tools/call", json!({"name": "raw"}))));
    tokio::task::yield_now().await;
    assert_eq!(client.session().in_flight(), 1);
    client.notify("notifications/cancelled", json!({"requestId": 7}));
    let answer = tokio::time::timeout(LIMIT, waiting).await.unwrap().unwrap();
    assert!(answer.cancelled);
    assert!(dropped.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
    assert_eq!(client.session().in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_reply_was_lost_is_answered_all_the_same() {
    for is_later in [false, true] {
        let server = served(move |_: RawCall<'_>| {
            let failed = || RawDone::failed(HandlerError::new("lost"));
            if is_later { RawAnswer::Later(Box::pin(async move { failed() })) } else { RawAnswer::Now(failed()) }
        });
        let client = Client::connect(&server, MODERN);
        let answer = client.call("an id", "raw", json!({})).await;
        assert_eq!((answer.text(), &answer.body["id"]), ("lost", &json!("an id")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_call_alone() {
    for is_later in [false, true] {
        let server = served(move |_: RawCall<'_>| {
            assert!(is_later, "on purpose");
            RawAnswer::Later(Box::pin(async { panic!("on purpose") }))
        });
        let client = Client::connect(&server, MODERN);
        assert_eq!(client.call(1, "raw", json!({})).await.text(), "internal error");
    }
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_keep_their_description() {
    let resource = mcp::Resource { uri: "a://b".into(), name: "b".into(), size: Some(7), ..<_>::default() };
    let family = mcp::ResourceTemplate { uri_template: "a://c/{d}".into(), name: "c".into(), ..<_>::default() };
    let prompt = mcp::Prompt { name: "p".into(), description: Some("what".into()), ..<_>::default() };
    let read = |request: ResourceRequest| Ok::<_, HandlerError>(request.uri);
    let filled = |arguments: Option<Json>, _: Context| async move {
        Ok::<_, HandlerError>(GetPromptResult {
            description: Some(arguments.map_or_else(|| "none".to_owned(), |json| json.get().to_owned())),
            ..GetPromptResult::default()
        })
    };
    let server = Server::builder("raw", "1")
        .resource(Resource::listed(resource).handler(read))
        .resource_template(ResourceTemplate::listed(family).handler(read))
        .prompt(Prompt::raw(prompt, filled))
        .build()
        .unwrap();
    let client = Client::connect(&server, Revision::V2025_11_25);
    assert_eq!(client.now(2, "resources/list", json!({})).result()["resources"][0]["size"], 7);
    for uri in ["a://b", "a://c/x"] {
        let answer = client.ask(3, "resources/read", json!({"uri": uri})).await;
        assert_eq!(answer.result()["contents"][0]["text"], uri);
    }
    assert_eq!(client.now(4, "prompts/list", json!({})).result()["prompts"][0]["description"], "what");
    let answer = client.ask(5, "prompts/get", json!({"name": "p", "arguments": {"a": "b"}})).await;
    assert_eq!(answer.result()["description"], r#"{"a":"b"}"#);
    let answer = client.ask(6, "prompts/get", json!({"name": "p"})).await;
    assert_eq!(answer.result()["description"], "none");
}

#[tokio::test(start_paused = true)]
async fn a_completer_is_asked_for_everything_and_told_as_it_answers() {
    let server = Server::builder("raw", "1").build().unwrap();
    let complete = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}});
    let client = Client::connect(&server, Revision::V2025_11_25);
    assert_eq!(client.ask(2, "completion/complete", complete.clone()).await.error().0, code::METHOD_NOT_FOUND);
    server
        .update(|changes| {
            changes.completer(|request, _| async move {
                let Some(CompletionRef::Prompt { name, .. }) = request.of else { return Err(HandlerError::new("no")) };
                let values = vec![name, request.argument, request.value];
                Ok(Completion { values, total: Some(9), ..Completion::default() })
            });
        })
        .unwrap();
    let client = Client::connect(&server, Revision::V2025_11_25);
    let answer = client.ask(2, "completion/complete", complete).await;
    assert_eq!(answer.result()["completion"], json!({"values": ["p", "a", "v"], "total": 9}));
}
