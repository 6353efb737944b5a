//! The server that dialogues and the corpus speak to: tools that do one thing each, and wait for one another instead of for
//! time.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpace_serve::guard::{AccessRequest, Algorithm, By, Denial, Guard, MemoryLimiter, RateLimit, Verdict};
use mcpace_serve::http::{Authorization, TokenError, TokenVerifier};
use mcpace_serve::{
    Context, Elicited, HandlerError, NoArguments, Principal, Prompt, Resource, Server, Tool, ToolError, http,
};
use mcpace_wire::Revision;
use mcpace_wire::mcp::LoggingLevel;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

/// The signals that tools exchange.
#[derive(Default)]
struct Stage {
    /// `open` was called.
    open: watch::Sender<bool>,
    /// How many calls of `wait` have begun, finished, been dropped before their end.
    waiting: watch::Sender<u32>,
    finished: watch::Sender<u32>,
    cancelled: watch::Sender<u32>,
    /// The server itself, for the tool that changes it.
    server: OnceLock<Server>,
}

/// Counts a call of `wait`, however it ends.
struct Waiting {
    stage: Arc<Stage>,
    is_finished: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let count = if self.is_finished { &self.stage.finished } else { &self.stage.cancelled };
        count.send_modify(|count| *count += 1);
    }
}

impl Stage {
    async fn opened(&self) {
        // The sender lives as long as `self`.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

/// The first count past zero, as text.
async fn some(count: &watch::Sender<u32>) -> String {
    count.subscribe().wait_for(|count| *count > 0).await.map_or_else(|_| String::new(), |count| count.to_string())
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Region {
    region: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    who: String,
}

/// `words`: `legacy` or `modern` for a server that speaks only those revisions, `guarded` for one whose tools not everybody may
/// use.
pub(crate) fn server(words: &str) -> Server {
    if words == "guarded" {
        return guarded();
    }
    let stage = Arc::new(Stage::default());
    let mut builder = Server::builder("fixture", "1");
    let wanted = |revision: &Revision| match words {
        "legacy" => revision.is_legacy(),
        "modern" => revision.is_modern(),
        "" | "guarded" => true,
        _ => panic!("no such server: {words}"),
    };
    let revisions: Vec<_> = Revision::ALL.into_iter().filter(wanted).collect();
    builder = builder.revisions(&revisions);
    for tool in plain_tools().into_iter().chain(waiting_tools(&stage)).chain(asking_tools()) {
        builder = builder.tool(tool);
    }
    let server = builder
        .resource(Resource::new("test://greeting", "greeting").mime_type("text/plain").text("hello"))
        .prompt(Prompt::new("greet").handler(|who: Who| Ok::<_, HandlerError>(format!("Greet {}", who.who))))
        .build()
        .unwrap();
    assert!(stage.server.set(server.clone()).is_ok());
    server
}

/// Two entries on a page; the limiter's clock stands still.
fn guarded() -> Server {
    let stocktaking = || Denial::new("closed for stocktaking");
    let closed = move |_: &AccessRequest<'_>| Verdict::Denied(stocktaking());
    let closed_later = move |_: &AccessRequest<'_>| {
        Verdict::Later(Box::pin(async move {
            tokio::task::yield_now().await;
            Err(stocktaking())
        }))
    };
    let hour = Duration::from_secs(3_600);
    let rare = RateLimit::new("rare", 1, hour).algorithm(Algorithm::FixedWindow).by(By::Session);
    let tool = |name: &'static str, guard: Guard| {
        Tool::new(name).guard(guard).handler(move |_: NoArguments| Ok::<_, ToolError>(name))
    };
    let closed_prompt = Prompt::new("closed").guard(Guard::new().permission(closed));
    Server::builder("fixture", "1")
        .page_size(2)
        .limiter(Arc::new(MemoryLimiter::with_clock(100, || Duration::ZERO)))
        .tool(Tool::new("echo").handler(|echo: Echo| Ok::<_, ToolError>(echo.text)))
        .tool(tool("secret", Guard::new().scope("secrets:read")))
        .tool(tool("closed", Guard::new().permission(closed)))
        .tool(tool("rare", Guard::new().limit(rare)))
        .tool(tool("closed-later", Guard::new().permission(closed_later)))
        .tool(tool("last", Guard::new()))
        .resource(Resource::new("test://closed", "closed").guard(Guard::new().permission(closed)).text("closed"))
        .prompt(closed_prompt.handler(|_: NoArguments| Ok::<_, HandlerError>("closed")))
        .build()
        .unwrap()
}

/// Knows two tokens: `plain`, and `all`, which grants more.
struct Tokens;

impl TokenVerifier for Tokens {
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        let granted: &[&str] = match token {
            "plain" => &["mcp"],
            "all" => &["mcp", "secrets:read"],
            _ => &[],
        };
        let scopes: Vec<String> = granted.iter().map(|&scope| scope.to_owned()).collect();
        let known = if scopes.is_empty() { Err(TokenError::Invalid) } else { Ok(Principal::new("somebody", scopes)) };
        Box::pin(std::future::ready(known))
    }
}

type Verifying<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>>;

fn authorization() -> Authorization {
    Authorization {
        verifier: Arc::new(Tokens),
        resource: "https://mcp.example/mcp".to_owned(),
        authorization_servers: vec!["https://auth.example".to_owned()],
        scopes: vec!["mcp".to_owned()],
    }
}

fn plain_tools() -> Vec<Tool> {
    let region = serde_json::json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}
    });
    vec![
        Tool::new("echo").handler(|echo: Echo| Ok::<_, ToolError>(echo.text)),
        Tool::new("big").handler(|big: Big| Ok::<_, ToolError>("x".repeat(big.bytes))),
        Tool::new("fail").handler(|_: NoArguments| Err::<(), _>(ToolError::new("it failed"))),
        Tool::new("panic").handler(panics),
        Tool::new("region")
            .input_schema(schemars::Schema::try_from(region).unwrap())
            .handler(|region: Region| Ok::<_, ToolError>(region.region.unwrap_or_else(|| "nowhere".to_owned()))),
    ]
}

fn panics(_: NoArguments) -> Result<(), ToolError> {
    panic!("this tool panics on purpose")
}

fn waiting_tools(stage: &Arc<Stage>) -> Vec<Tool> {
    let tool = |name, stage: &Arc<Stage>, run: fn(Arc<Stage>, Context) -> Answer| {
        let stage = Arc::clone(stage);
        Tool::new(name).handler_async(move |_: NoArguments, context| run(Arc::clone(&stage), context))
    };
    vec![
        tool("wait", stage, |stage, _| {
            Box::pin(async move {
                stage.waiting.send_modify(|count| *count += 1);
                let mut waiting = Waiting { stage: Arc::clone(&stage), is_finished: false };
                stage.opened().await;
                waiting.is_finished = true;
                Ok("waited".to_owned())
            })
        }),
        tool("steps", stage, |stage, context| {
            Box::pin(async move {
                context.progress(1.0, Some(2.0), None);
                stage.opened().await;
                context.progress(2.0, Some(2.0), None);
                Ok("stepped".to_owned())
            })
        }),
        tool("open", stage, |stage, _| {
            Box::pin(async move {
                stage.open.send_replace(true);
                Ok("opened".to_owned())
            })
        }),
        tool("waiting", stage, |stage, _| Box::pin(async move { Ok(some(&stage.waiting).await) })),
        tool("finished", stage, |stage, _| Box::pin(async move { Ok(some(&stage.finished).await) })),
        tool("cancelled", stage, |stage, _| Box::pin(async move { Ok(some(&stage.cancelled).await) })),
        tool("change", stage, |stage, _| {
            Box::pin(async move {
                stage.server.get().unwrap().tools_changed();
                Ok("changed".to_owned())
            })
        }),
        tool("turn", stage, |_, _| {
            Box::pin(async move {
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                Ok("turned".to_owned())
            })
        }),
    ]
}

type Answer = std::pin::Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send>>;

fn asking_tools() -> Vec<Tool> {
    vec![
        Tool::new("talk").handler_async(|_: NoArguments, context: Context| async move {
            context.progress(1.0, Some(2.0), Some("half"));
            context.log(LoggingLevel::Info, None, &"talking");
            context.progress(2.0, Some(2.0), None);
            Ok::<_, ToolError>("talked")
        }),
        Tool::new("ask").handler_async(|_: NoArguments, context: Context| async move {
            match context.elicit_form::<Name>("Who?").await? {
                Elicited::Accepted(name) => Ok::<_, ToolError>(name.name),
                Elicited::Declined | Elicited::Cancelled => Ok("nobody".to_owned()),
            }
        }),
    ]
}

/// Serves it over HTTP on a port of its own.
pub(crate) fn http<'a>(
    server: Server,
    settings: impl IntoIterator<Item = &'a (String, String)>,
) -> Result<http::ServerHandle, String> {
    let mut options = http::Options { address: ([127, 0, 0, 1], 0).into(), ..http::Options::default() };
    for (name, value) in settings {
        match (name.as_str(), value.as_str()) {
            ("response", "json") => options.response = http::ResponseMode::Json,
            ("response", "sse") => options.response = http::ResponseMode::Sse,
            ("response", "auto") => options.response = http::ResponseMode::Auto,
            ("sessions", "none") => options.stateless = true,
            ("legacy sse", "yes") => options.legacy_sse = true,
            ("tokens", "yes") => options.authorization = Some(authorization()),
            _ => return Err(format!("no such setting: {name}: {value}")),
        }
    }
    http::serve(server, options).map_err(|error| error.to_string())
}
