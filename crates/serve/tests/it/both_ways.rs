//! One dialogue with a server that answers at once and with one that answers later, over each transport: sessions,
//! headers, rate limits, tasks and telemetry must not depend on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcpace_serve::guard::{AccessRequest, BoxFuture, Denial, Guard, RateLimit, Verdict};
use mcpace_serve::http::{self, Options, ResponseMode};
use mcpace_serve::telemetry::{Begun, EndedRequest, Observer, Operation};
use mcpace_serve::{
    Context, Delegate, Delegated, HandlerError, NoArguments, RawAnswer, RawCall, Resource, ResourceRequest, Server,
    Tool, stdio,
};
use mcpace_wire::Revision;
use mcpace_wire::mcp::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::yield_now;

use crate::core_harness::{Client, able};
use crate::http_harness::{Request, ask, event, open};
use crate::peer::limited;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const OLDEST: &str = "2024-11-05";

/// When a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    AtOnce,
    Later,
}

type Log = Arc<Mutex<Vec<String>>>;

/// Notes requests and how they ended.
struct Witness(Log);

struct Noted(Log, String);

impl Observer for Witness {
    fn begin(&self, begun: &Begun<'_>) -> Option<Arc<dyn Operation>> {
        let header = begun.headers.as_ref().and_then(|headers| headers.get("x-test").map(<[u8]>::to_vec));
        let what = format!("{} {:?} {:?} {header:?}", begun.method, begun.target, begun.session.is_some());
        Some(Arc::new(Noted(Arc::clone(&self.0), what)))
    }
}

impl Operation for Noted {
    fn end(self: Arc<Self>, ended: &EndedRequest<'_>) {
        self.0.lock().unwrap().push(format!("{}: {:?}", self.1, ended.failure));
    }
}

/// Answers `initialize` as the server itself would, but later.
struct LateInitialize(HashMap<String, Bytes>);

impl Delegate for LateInitialize {
    fn takes(&self, method: Method) -> bool {
        method == Method::Initialize
    }

    fn call(&self, context: Context) -> Delegated {
        let result = {
            let params: Value = serde_json::from_slice(context.params().unwrap()).unwrap();
            self.0[params["protocolVersion"].as_str().unwrap()].clone()
        };
        Box::pin(async move {
            yield_now().await;
            Ok(result)
        })
    }
}

fn verdict(pace: Pace, is_allowed: bool) -> Verdict {
    match pace {
        Pace::AtOnce => is_allowed.into(),
        Pace::Later => {
            let later: BoxFuture<Result<(), Denial>> = Box::pin(async move {
                yield_now().await;
                if is_allowed { Ok(()) } else { Err(Denial::default()) }
            });
            Verdict::Later(later)
        }
    }
}

fn guard(pace: Pace, is_allowed: bool) -> Guard {
    Guard::new().permission(move |_: &AccessRequest<'_>| verdict(pace, is_allowed))
}

/// A raw tool that says what it knows of its call.
fn knowing(pace: Pace, name: &str, is_error: bool) -> Tool {
    let listed = json!({"name": name, "inputSchema": {"type": "object"}});
    Tool::raw(serde_json::from_value(listed).unwrap(), move |call: RawCall<'_>| {
        let context = call.context().unwrap();
        let header = context.headers().and_then(|headers| headers.get("x-test").map(<[u8]>::to_vec));
        let said = format!(
            "{} {} {} {header:?}",
            context.revision(),
            context.session().is_some(),
            context.client_capabilities().is_some(),
        );
        context.progress(1.0, None, Some("half way"));
        let mut reply = call.reply();
        let done = move || {
            if is_error {
                return reply.done(Err(HandlerError::new(said)));
            }
            let written = reply.write(|writer| writer.text(&said));
            reply.done(written.map_err(HandlerError::internal))
        };
        match pace {
            Pace::AtOnce => RawAnswer::Now(done()),
            Pace::Later => RawAnswer::Later(Box::pin(async move {
                yield_now().await;
                done()
            })),
        }
    })
}

fn server(pace: Pace) -> (Server, Log) {
    let waiting = |_: NoArguments, context: Context| async move {
        context.cancellation().cancelled().await;
        Ok::<_, HandlerError>("cancelled")
    };
    let resource = Resource::new("test://one", "one").guard(guard(pace, true));
    let resource = match pace {
        Pace::AtOnce => resource.handler(|request: ResourceRequest| Ok::<_, HandlerError>(request.uri)),
        Pace::Later => resource.handler_async(|request: ResourceRequest, _: Context| async move {
            yield_now().await;
            Ok::<_, HandlerError>(request.uri)
        }),
    };
    let limited = guard(pace, true).limit(RateLimit::new("twice", 2, Duration::from_secs(3_600)));
    let server = Server::builder("both", "1")
        .keep_headers(true)
        .tool(knowing(pace, "knows", false))
        .tool(knowing(pace, "fails", true))
        .tool(knowing(pace, "limited", false).guard(limited))
        .tool(knowing(pace, "denied", false).guard(guard(pace, false)))
        .tool(Tool::new("waits").guard(guard(pace, true)).task().handler_async(waiting))
        .resource(resource)
        .build()
        .unwrap();
    if pace == Pace::Later {
        let initialized = [LEGACY, OLDEST].map(|revision| {
            let client = Client::stateless(&server, revision.parse::<Revision>().unwrap());
            let result = client.now(1, "initialize", initialize(revision)["params"].clone()).result().to_string();
            (revision.to_owned(), Bytes::from(result))
        });
        assert!(server.delegate(LateInitialize(initialized.into())));
    }
    let log = Log::default();
    assert!(server.observe(Witness(Arc::clone(&log))));
    (server, log)
}

fn initialize(revision: &str) -> Value {
    let params = json!({"protocolVersion": revision, "capabilities": {"roots": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// A client's messages after the beginning, where `{task}` stands for the task that it was given.
fn dialogue(revision: &str) -> Vec<Value> {
    let call = |tool: &str| ("tools/call", json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}}));
    let mut asked = vec![
        ("tools/list", json!({})),
        call("knows"),
        call("fails"),
        call("limited"),
        call("limited"),
        call("limited"),
        call("denied"),
        call("unknown"),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "test://one"})),
        ("resources/read", json!({"uri": "test://none"})),
    ];
    if revision == MODERN {
        asked.extend([
            call("waits"),
            ("tasks/get", json!({"taskId": "{task}"})),
            ("tasks/cancel", json!({"taskId": "{task}"})),
            ("tasks/get", json!({"taskId": "{task}"})),
        ]);
    } else {
        asked.extend([("resources/subscribe", json!({"uri": "test://one"})), ("ping", json!({}))]);
    }
    let numbered = asked.into_iter().enumerate().map(|(index, (method, mut params))| {
        if revision == MODERN {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            meta["io.modelcontextprotocol/clientCapabilities"] = able();
        }
        json!({"jsonrpc": "2.0", "id": index + 1, "method": method, "params": params})
    });
    numbered.collect()
}

/// Puts the task's id where a message names it.
fn filled(message: &Value, task: &str) -> Value {
    serde_json::from_str(&message.to_string().replace("{task}", task)).unwrap()
}

/// The id of the task in an answer, and the answer without what differs from run to run.
fn masked(mut answer: Value) -> (Option<String>, Value) {
    let task = answer["result"]["taskId"].as_str().map(str::to_owned);
    if task.is_some() {
        for name in ["taskId", "createdAt", "lastUpdatedAt"] {
            answer["result"][name] = json!("*");
        }
    }
    if !answer["error"]["data"]["retryAfterMs"].is_null() {
        answer["error"]["data"]["retryAfterMs"] = json!("*");
    }
    (task, answer)
}

/// The messages that a client reads over HTTP, with the status of each reply.
async fn over_http(server: Server, response: ResponseMode, revision: &str) -> Vec<Value> {
    let address = ([127, 0, 0, 1], 0).into();
    let running = http::serve(server, Options { address, response, ..Options::default() }).unwrap();
    let address = running.address();
    let (mut read, mut session, mut task) = (Vec::new(), None::<String>, String::new());
    let begin = (revision != MODERN).then(|| initialize(revision));
    for message in begin.into_iter().chain(dialogue(revision)) {
        let message = filled(&message, &task);
        let params = &message["params"];
        let mut request = Request::post(&message).and("X-Test", "kept").with("MCP-Protocol-Version", revision);
        if revision == MODERN {
            request = request.and("Mcp-Method", message["method"].as_str().unwrap());
            let name = ["name", "uri", "taskId"].iter().find_map(|member| params[*member].as_str());
            request = name.into_iter().fold(request, |request, name| request.and("Mcp-Name", name));
        }
        if let Some(session) = &session {
            request = request.within(session, revision);
        }
        let answer = ask(address, &request).await;
        session = session.or_else(|| answer.head.header("mcp-session-id").map(str::to_owned));
        let is_events = answer.head.header("content-type") == Some("text/event-stream");
        for message in if is_events { answer.events() } else { vec![answer.json()] } {
            let (begun, message) = masked(message);
            task = begun.unwrap_or(task);
            read.push(json!([answer.head.status, answer.head.header("retry-after").is_some(), message]));
        }
    }
    assert_eq!(session.is_some(), revision != MODERN);
    running.stop();
    read
}

/// The messages that a client reads over HTTP+SSE of 2024-11-05.
async fn over_legacy_sse(server: Server) -> Vec<Value> {
    let address = ([127, 0, 0, 1], 0).into();
    let running = http::serve(server, Options { address, legacy_sse: true, ..Options::default() }).unwrap();
    let mut stream = open(running.address(), &Request::bare("GET").path("/sse")).await;
    crate::http_harness::head(&mut stream).await;
    let endpoint = limited("an event", stream.event()).await.unwrap().unwrap().unwrap().data;
    let mut read = Vec::new();
    for message in [initialize(OLDEST)].into_iter().chain(dialogue(OLDEST)) {
        let answer = ask(running.address(), &Request::post(&message).path(&endpoint).and("X-Test", "kept")).await;
        assert_eq!(answer.head.status, 202);
        loop {
            let said = masked(event(&mut stream).await.unwrap()).1;
            read.push(said);
            if read.last().is_some_and(|said| said["id"] == message["id"]) {
                break;
            }
        }
    }
    running.stop();
    read
}

/// The messages that a client reads over a pair of streams.
async fn over_stdio(server: Server, revision: &str) -> Vec<Value> {
    let (mut input, their_input) = tokio::io::duplex(65_536);
    let (output, their_output) = tokio::io::duplex(65_536);
    let serving = tokio::spawn(stdio::serve_streams(server, stdio::Options::default(), their_input, their_output));
    let mut lines = BufReader::new(output).lines();
    let (mut read, mut task) = (Vec::new(), String::new());
    let begin = (revision != MODERN).then(|| initialize(revision));
    for message in begin.into_iter().chain(dialogue(revision)) {
        let message = filled(&message, &task);
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        loop {
            let line = limited("a line", lines.next_line()).await.unwrap().unwrap().unwrap();
            let (begun, said) = masked(serde_json::from_str(&line).unwrap());
            task = begun.unwrap_or(task);
            let is_answer = said["id"] == message["id"];
            read.push(said);
            if is_answer {
                break;
            }
        }
    }
    input.shutdown().await.unwrap();
    serving.await.unwrap().unwrap();
    read
}

/// Runs a dialogue with both servers and compares what was read and what was observed.
async fn compare<F: Future<Output = Vec<Value>>>(what: &str, run: impl Fn(Server) -> F) {
    let mut seen = Vec::new();
    for pace in [Pace::AtOnce, Pace::Later] {
        let (server, log) = server(pace);
        let read = run(server).await;
        let observed = std::mem::take(&mut *log.lock().unwrap());
        seen.push((read, observed));
    }
    let [(read, observed), (read_later, observed_later)] = <[_; 2]>::try_from(seen).unwrap();
    assert!(!read.is_empty() && !observed.is_empty(), "{what}");
    for (one, other) in read.iter().zip(&read_later) {
        assert_eq!(one, other, "{what}");
    }
    assert_eq!(read.len(), read_later.len(), "{what}");
    assert_eq!(observed, observed_later, "{what}");
}

#[tokio::test]
async fn answers_over_http_are_the_same_at_once_and_later() {
    for revision in [MODERN, LEGACY] {
        for mode in [ResponseMode::Auto, ResponseMode::Json, ResponseMode::Sse] {
            compare(&format!("{mode:?} {revision}"), |server| over_http(server, mode, revision)).await;
        }
    }
}

#[tokio::test]
async fn answers_over_http_and_sse_of_2024_are_the_same_at_once_and_later() {
    compare("2024-11-05", over_legacy_sse).await;
}

#[tokio::test]
async fn answers_over_stdio_are_the_same_at_once_and_later() {
    for revision in [MODERN, LEGACY] {
        compare(revision, |server| over_stdio(server, revision)).await;
    }
}
