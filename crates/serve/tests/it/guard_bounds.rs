//! Bounds of a handler: its time, its result.

use std::time::Duration;

use mcpace_serve::guard::Guard;
use mcpace_serve::{
    Context, HandlerError, NoArguments, Prompt, RawAnswer, RawCall, ReplyStatus, Resource, Server, Structured, Tool,
    ToolError,
};
use mcpace_wire::Revision;
use mcpace_wire::mcp;
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Big {
    bytes: usize,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

fn raw(later: bool) -> impl Fn(RawCall<'_>) -> RawAnswer + Send + Sync + 'static {
    move |call| {
        let big: Big = serde_json::from_str(call.arguments()).unwrap();
        let mut reply = call.reply();
        reply.write(|writer| writer.text(&"x".repeat(big.bytes))).unwrap();
        match later {
            false => RawAnswer::Now(reply.done(Ok(()))),
            true => RawAnswer::Later(Box::pin(async move { reply.done(Ok(())) })),
        }
    }
}

fn listed(name: &str) -> mcp::Tool {
    let schema = json!({"type": "object", "properties": {"bytes": {"type": "integer"}}});
    serde_json::from_value(json!({"name": name, "inputSchema": schema})).unwrap()
}

#[tokio::test]
async fn a_result_that_is_too_long_becomes_an_error_and_is_not_cut() {
    let guard = || Guard::new().max_result_bytes(400);
    let server = Server::builder("bounded", "1")
        .tool(Tool::new("plain").guard(guard()).handler(|it: Big| Ok::<_, ToolError>("x".repeat(it.bytes))))
        .tool(
            Tool::new("async")
                .guard(guard())
                .handler_async(|it: Big, _: Context| async move { Ok::<_, ToolError>("x".repeat(it.bytes)) }),
        )
        .tool(Tool::raw(listed("raw"), raw(false)).guard(guard()))
        .tool(Tool::raw(listed("raw-later"), raw(true)).guard(guard()))
        .build()
        .unwrap();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for tool in ["plain", "async", "raw", "raw-later"] {
            let around = r#""content":[{"type":"text","text":""}]"#.len();
            let fits = client.call(1, tool, json!({"bytes": 400 - around})).await;
            assert_eq!(fits.text().len(), 400 - around, "{tool}");
            assert!(fits.result()["isError"].is_null());
            let too_long = client.call(1, tool, json!({"bytes": 401 - around})).await;
            assert_eq!(
                too_long.text(),
                "the result is too long: 401 bytes of JSON, and no more than 400 are sent; ask for less",
                "{tool}"
            );
            assert_eq!(too_long.result()["isError"], true);
        }
    }
}

#[tokio::test]
async fn structured_content_counts_with_its_text_and_goes_with_it() {
    let tool = Tool::new("structured")
        .guard(Guard::new().max_result_bytes(400))
        .handler(|it: Big| Ok::<_, ToolError>(Structured(Text { text: "x".repeat(it.bytes) })));
    let server = Server::builder("bounded", "1").tool(tool).build().unwrap();
    let client = Client::stateless(&server, MODERN);
    assert!(client.call(1, "structured", json!({"bytes": 100})).await.result()["structuredContent"].is_object());
    let too_long = client.call(1, "structured", json!({"bytes": 200})).await;
    assert!(too_long.result()["structuredContent"].is_null());
    assert_eq!(too_long.result()["isError"], true);
}

#[tokio::test]
async fn resources_and_prompts_are_bounded_by_an_error() {
    let guard = || Guard::new().max_result_bytes(200);
    let server = Server::builder("bounded", "1")
        .resource(Resource::new("book://long", "long").guard(guard()).text("x".repeat(300)))
        .prompt(Prompt::new("long").guard(guard()).handler(|_: NoArguments| Ok::<_, HandlerError>("x".repeat(300))))
        .build()
        .unwrap();
    let client = Client::stateless(&server, MODERN);
    for (method, params) in
        [("resources/read", json!({"uri": "book://long"})), ("prompts/get", json!({"name": "long"}))]
    {
        let answer = client.now(1, method, params);
        assert_eq!(answer.error(), (-32603, ReplyStatus::Ok));
        assert!(answer.message().starts_with("the result is too long: "), "{}", answer.message());
        assert!(!answer.text.contains("xxx"));
    }
}

async fn sleeps(_: NoArguments, _: Context) -> Result<&'static str, ToolError> {
    tokio::time::sleep(Duration::from_secs(30)).await;
    Ok("slept")
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_dropped() {
    let guard = |seconds| Guard::new().timeout(Duration::from_secs(seconds));
    let sleeping_raw = |call: RawCall<'_>| {
        let mut reply = call.reply();
        RawAnswer::Later(Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            reply.write(|writer| writer.text("slept")).unwrap();
            reply.done(Ok(()))
        }))
    };
    let server = Server::builder("bounded", "1")
        .tool(Tool::new("late").guard(guard(29)).handler_async(sleeps))
        .tool(Tool::new("in-time").guard(guard(31)).handler_async(sleeps))
        .tool(Tool::raw(listed("raw"), sleeping_raw).guard(guard(29)))
        .resource(Resource::new("book://slow", "slow").guard(guard(29)).handler_async(|_, _| async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok::<_, HandlerError>("read")
        }))
        .build()
        .unwrap();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        assert_eq!(client.call(1, "in-time", json!({})).await.text(), "slept");
        for tool in ["late", "raw"] {
            let late = client.call(1, tool, json!({})).await;
            assert_eq!((late.text(), &late.result()["isError"]), ("timed out after 29 seconds", &Value::Bool(true)));
        }
        let late = client.ask(1, "resources/read", json!({"uri": "book://slow"})).await;
        assert_eq!((late.error().0, late.message()), (-32603, "timed out after 29 seconds"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_has_failed() {
    let guard = || Guard::new().timeout(Duration::from_secs(29));
    let server = Server::builder("bounded", "1")
        .tool(Tool::new("task").task().guard(guard()).handler_async(sleeps))
        .tool(Tool::new("on-demand").task_on_demand().guard(guard()).handler_async(
            |_: NoArguments, context: Context| async move {
                context.begin_task().await?;
                tokio::time::sleep(Duration::from_secs(30)).await;
                Ok::<_, ToolError>("slept")
            },
        ))
        .build()
        .unwrap();
    let client = Client::stateless(&server, MODERN);
    for tool in ["task", "on-demand"] {
        let begun = client.call(1, tool, json!({})).await;
        let id = begun.result()["taskId"].as_str().unwrap().to_owned();
        tokio::time::sleep(Duration::from_secs(40)).await;
        let task = client.now(2, "tasks/get", json!({"taskId": id}));
        assert_eq!(
            task.result()["result"]["content"][0]["text"],
            "timed out after 29 seconds",
            "{tool}: {}",
            task.text
        );
    }
}
