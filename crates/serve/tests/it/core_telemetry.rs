//! The requests that an observer is told of, and how handlers find their own.

use std::any::Any;
use std::sync::{Arc, Mutex};

use mcpace_serve::telemetry::{Begun, EndedRequest, Failure, Observer, Operation, current_operation};
use mcpace_serve::{NoArguments, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::core_harness::{Client, MODERN, finish};

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down what it is told.
struct Witness(Log);

struct Seen {
    name: String,
    log: Log,
}

impl Observer for Witness {
    fn begin(&self, begun: &Begun<'_>) -> Option<Arc<dyn Operation>> {
        let name = format!("{} {}", begun.method.as_str(), begun.target.or(begun.uri).unwrap_or_default());
        if name.starts_with("ping") {
            return None;
        }
        let trace = [&begun.trace.parent, &begun.trace.state, &begun.trace.baggage].map(Option::as_deref);
        self.0.lock().unwrap().push(format!("begin {name} {} {trace:?}", begun.id));
        Some(Arc::new(Seen { name, log: Arc::clone(&self.0) }))
    }
}

impl Operation for Seen {
    fn end(self: Arc<Self>, ended: &EndedRequest<'_>) {
        let failure = match &ended.failure {
            None => "well".to_owned(),
            Some(Failure::Error { code, message }) => format!("{code} {message}"),
            Some(other) => format!("{other:?}"),
        };
        self.log.lock().unwrap().push(format!("end {}: {failure}", self.name));
    }
}

/// The name of the operation that the handler is part of.
fn own() -> String {
    let operation: Arc<dyn Any + Send + Sync> =
        current_operation().expect("a handler of an observed server has an operation");
    operation.downcast::<Seen>().expect("of our own kind").name.clone()
}

fn observed(release: &Arc<Notify>) -> (Server, Log) {
    let release = Arc::clone(release);
    let later = move |_: NoArguments, _| {
        let release = Arc::clone(&release);
        async move {
            let before = own();
            release.notified().await;
            Ok::<_, ToolError>(format!("{before}, {}", own()))
        }
    };
    let server = Server::builder("observed", "1")
        .tool(Tool::new("now").handler(|_: NoArguments| Ok::<_, ToolError>(own())))
        .tool(Tool::new("later").handler_async(later))
        .tool(Tool::new("fails").handler(|_: NoArguments| Err::<String, _>(ToolError::new("no"))))
        .build()
        .unwrap();
    let log = Log::default();
    assert!(server.observe(Witness(Arc::clone(&log))));
    assert!(!server.observe(Witness(Log::default())));
    (server, log)
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_request_is_told_at_its_begin_and_at_its_end() {
    let release = Arc::<Notify>::default();
    let (server, log) = observed(&release);
    let client = Client::stateless(&server, MODERN);
    let meta = json!({"traceparent": "00-1", "tracestate": "a=b", "baggage": "c=d"});
    assert_eq!(client.now(1, "tools/call", json!({"name": "now", "_meta": meta})).text(), "tools/call now");
    let begin = r#"begin tools/call now 1 [Some("00-1"), Some("a=b"), Some("c=d")]"#;
    assert_eq!(taken(&log), [begin, "end tools/call now: well"]);
    client.call(2, "fails", json!({})).await;
    assert_eq!(taken(&log)[1], "end tools/call fails: Tool");
    assert_eq!(client.call(3, "none", json!({})).await.error().0, -32602);
    assert_eq!(taken(&log)[1], "end tools/call : -32602 unknown tool: none");
    client.now(4, "tools/list", json!({}));
    assert_eq!(taken(&log)[1], "end tools/list : well");
    assert!(current_operation().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_comes_later_is_part_of_its_request_too() {
    let release = Arc::<Notify>::default();
    let (server, log) = observed(&release);
    let client = Client::stateless(&server, MODERN);
    let held = tokio::spawn(finish(client.send(1, "tools/call", json!({"name": "later"}))));
    release.notify_one();
    assert_eq!(held.await.unwrap().text(), "tools/call later, tools/call later");
    assert_eq!(taken(&log)[1], "end tools/call later: well");
    // The client of this request is gone.
    drop(client.send(2, "tools/call", json!({"name": "later"})));
    assert_eq!(taken(&log)[1], "end tools/call later: Cancelled");
}

#[tokio::test(start_paused = true)]
async fn layers_are_told_to_nobody_else() {
    let (server, _) = observed(&Arc::default());
    let mut client = Client::stateless(&server, MODERN);
    let answer = client.call(1, "now", json!({})).await;
    assert!(
        answer.timing.is_none() && !answer.body["result"]["_meta"].to_string().contains("timing"),
        "{}",
        answer.text
    );
    client.timed = true;
    assert!(client.call(2, "now", json!({})).await.timing.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_wants_nothing_changes_nothing() {
    let (server, log) = observed(&Arc::default());
    let client = Client::connect(&server, mcpace_wire::Revision::V2025_06_18);
    taken(&log);
    assert_eq!(client.now(1, "ping", Value::Null).body["result"], json!({}));
    assert_eq!(taken(&log), [] as [&str; 0]);
}
