//! The server that most tests of the core talk to.

use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::{
    Builder, Completion, CompletionRequest, Context, Elicited, HandlerError, InputRequired, NoArguments, Prompt,
    Resource, ResourceRequest, ResourceTemplate, Server, Structured, Tool, ToolError,
};
use mcpace_wire::mcp::{CallToolResult, ContentBlock, CreateMessageParams, ListRootsResult, LoggingLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Echo {
    /// Text to say.
    pub(crate) text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nested {
    #[allow(dead_code, reason = "only read")]
    points: Vec<Point>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Point {
    x: i64,
    y: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Any arguments.
#[derive(Deserialize, JsonSchema)]
struct Loose {
    #[serde(flatten)]
    _any: std::collections::BTreeMap<String, serde_json::Value>,
}

/// The means by which tests watch a handler.
#[derive(Default)]
pub(crate) struct Probe {
    pub(crate) started: Notify,
    pub(crate) release: Notify,
    pub(crate) dropped: Notify,
}

struct OnDrop(Arc<Probe>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

pub(crate) fn builder(probe: &Arc<Probe>) -> Builder {
    let probe = Arc::clone(probe);
    tools(Server::builder("test-server", "1.0").instructions("Be kind."))
        .tool(Tool::new("hold").handler_async(move |_: NoArguments, context: Context| {
            let probe = Arc::clone(&probe);
            async move {
                let _dropped = OnDrop(Arc::clone(&probe));
                probe.started.notify_one();
                tokio::select! {
                    () = probe.release.notified() => Ok::<_, ToolError>("released"),
                    () = std::future::pending() => Err(ToolError::new(format!("{context:?}"))),
                }
            }
        }))
        .resource(Resource::new("note://one", "one").title("One").mime_type("text/plain").text("first"))
        .resource(Resource::new("note://bytes", "bytes").blob(vec![0, 255]))
        .resource(Resource::new("note://gone", "gone").handler(|_| Err::<String, _>(HandlerError::not_found())))
        .resource(Resource::new("note://slow", "slow").handler_async(|_, context: Context| async move {
            Ok::<_, HandlerError>(format!("for {}", context.request_id()))
        }))
        .resource_template(ResourceTemplate::new("note://{year}/{title}", "dated").handler(|note: ResourceRequest| {
            Ok::<_, HandlerError>(format!("{} in {}", note.variable("title"), note.variable("year")))
        }))
        .prompt(
            Prompt::new("greet")
                .description("Greets")
                .handler(|echo: Echo| Ok::<_, HandlerError>(format!("Greet {}", echo.text))),
        )
        .prompt(Prompt::new("broken").handler(|_: NoArguments| {
            "x".parse::<u8>()?;
            Ok::<_, HandlerError>("never")
        }))
        .completion(
            Completion::prompt("greet", "text")
                .handler(|typed: CompletionRequest| Ok((0..150).map(|n| format!("{}{n}", typed.value)).collect())),
        )
        .completion(
            Completion::resource_template("note://{year}/{title}", "year")
                .handler_async(|typed: CompletionRequest, _| async move { Ok(typed.settled.into_values().collect()) }),
        )
}

fn tools(builder: Builder) -> Builder {
    builder
        .tool(Tool::new("echo").description("Echoes").handler(|echo: Echo| Ok::<_, ToolError>(echo.text)))
        .tool(Tool::new("nested").handler(|_: Nested| Ok::<_, ToolError>("fine")))
        .tool(Tool::new("point").handler(|point: Point| Ok::<_, ToolError>(Structured(point))))
        .tool(Tool::new("list").handler(|_: NoArguments| Ok::<_, ToolError>(Structured(vec![1, 2]))))
        .tool(Tool::new("told").handler(|_: NoArguments| Err::<(), _>(ToolError::new("no luck"))))
        .tool(Tool::new("hidden").handler(|_: NoArguments| {
            "secret".parse::<u8>()?;
            Ok::<_, ToolError>(())
        }))
        .tool(Tool::new("panic").handler(|_: NoArguments| -> Result<(), ToolError> { panic!("secret") }))
        .tool(Tool::new("panic-later").handler_async(|_: NoArguments, _| async move {
            tokio::task::yield_now().await;
            if true {
                panic!("secret");
            }
            Ok::<_, ToolError>(())
        }))
        .tool(Tool::new("unwritable").handler(|_: NoArguments| {
            Ok::<_, ToolError>(Structured(std::collections::BTreeMap::from([(vec![1_u8], 1)])))
        }))
        .tool(Tool::new("protocol").handler(|_: NoArguments| Err::<(), _>(ToolError::protocol(-31_999, "mine", None))))
        .tool(
            Tool::new("old-code")
                .handler(|_: NoArguments| Err::<(), _>(ToolError::protocol(-32_042, "go there", None))),
        )
        .tool(Tool::new("blocks").handler(|_: NoArguments| {
            let mut result =
                CallToolResult { content: vec![ContentBlock::text("a"), ContentBlock::text("b")], ..<_>::default() };
            result.meta = serde_json::from_str(r#"{"k":1}"#).ok();
            Ok::<_, ToolError>(result)
        }))
        .tool(Tool::new("talk").handler_async(|_: NoArguments, context: Context| async move {
            for progress in [0.5, 0.5, 0.2, 1.0, f64::NAN] {
                context.progress(progress, Some(1.0), Some("on it"));
            }
            context.log(LoggingLevel::Debug, None, &"quiet");
            context.log(LoggingLevel::Error, Some("talk"), &"loud");
            Ok::<_, ToolError>("talked")
        }))
        .tool(Tool::new("sleep").handler_async(|_: NoArguments, _| async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, ToolError>("slept")
        }))
        .tool(Tool::new("work").task().handler_async(|echo: Echo, context: Context| async move {
            match echo.text.as_str() {
                "ask" => Ok(match context.elicit_form::<Name>("Who?").await? {
                    Elicited::Accepted(name) => name.name,
                    other => format!("{other:?}"),
                }),
                "fail" => Err(ToolError::new("failed")),
                "refuse" => Err(ToolError::protocol(-31_999, "refused", None)),
                "forever" => std::future::pending().await,
                _ => Ok::<_, ToolError>(echo.text),
            }
        }))
        .tool(Tool::new("ask-name").handler_async(|_: NoArguments, context: Context| async move {
            Ok::<_, ToolError>(match context.elicit_form::<Name>("Who?").await? {
                Elicited::Accepted(name) => format!("hello {}", name.name),
                other => format!("{other:?}"),
            })
        }))
        .tool(Tool::new("ask-twice").handler_async(|_: Loose, context: Context| async move {
            let roots = context.list_roots().await?;
            let Elicited::Accepted(name) = context.elicit_form::<Name>("Who?").await? else {
                return Err(ToolError::new("declined"));
            };
            Ok(format!("{} in {} roots", name.name, roots.roots.len()))
        }))
        .tool(Tool::new("ask-url").handler_async(|_: NoArguments, context: Context| async move {
            let params = serde_json::from_str(r#"{"mode":"url","message":"Go","url":"https://example.com/"}"#)?;
            let answer = context.elicit(params).await?;
            Ok::<_, ToolError>(format!("{:?}", answer.action))
        }))
        .tool(Tool::new("ask-model").handler_async(|_: NoArguments, context: Context| async move {
            let answer = context.sample(CreateMessageParams { max_tokens: 5, ..<_>::default() }).await?;
            Ok::<_, ToolError>(answer.model)
        }))
        .tool(Tool::new("steps").handler_async(|_: NoArguments, context: Context| async move {
            match context.request_state::<u32>() {
                Some(2) => Ok(format!(
                    "done with {:?}",
                    context.input_response::<ListRootsResult>("mine").map(|it| it.roots.len())
                )),
                step => Err(InputRequired::new().list_roots("mine").state(&(step.unwrap_or(0) + 1))?.into()),
            }
        }))
        .tool(Tool::new("block").handler_blocking(|echo: Echo, context| {
            Ok::<_, ToolError>(format!("{} by {}", echo.text, context.revision()))
        }))
}

pub(crate) fn server() -> Server {
    builder(&Arc::default()).build().unwrap()
}
