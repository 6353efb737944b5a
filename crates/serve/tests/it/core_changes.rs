//! Changes of the registered tools, prompts and resources while clients are connected; and tracing.

use std::sync::{Arc, Mutex};

use mcpace_serve::{BuildError, HandlerError, NoArguments, Prompt, Resource, Tool, ToolError};
use mcpace_wire::Revision;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

use crate::core_harness::{Client, MODERN, finish};
use crate::core_server::{Probe, builder, server};

fn tool(name: &str, says: &'static str) -> Tool {
    Tool::new(name).handler(move |_: NoArguments| Ok::<_, ToolError>(says))
}

#[tokio::test(start_paused = true)]
async fn clients_see_and_hear_of_changes() {
    let probe = Arc::<Probe>::default();
    let server = builder(&probe).page_size(1).build().unwrap();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        if revision.is_legacy() {
            server.attach(client.session(), client.outbox.clone());
        }
        let cursor = client.now(1, "tools/list", json!({})).result()["nextCursor"].clone();
        let call = tokio::spawn(finish(client.send(2, "tools/call", json!({"name": "hold"}))));
        probe.started.notified().await;
        server
            .update(|changes| {
                changes.tool(tool("late", "first"));
                changes.tool(tool("late", "second"));
                changes.remove_tool("echo");
                changes.remove_prompt("greet");
                changes.remove_prompt("nope");
                changes.resource(Resource::new("note://late", "late").text("x"));
                changes.prompt(Prompt::new("late").handler(|_: NoArguments| Ok::<_, HandlerError>("x")));
                changes.remove_resource_template("note://{year}/{title}");
            })
            .unwrap();
        assert_eq!(client.call(3, "late", json!({})).await.text(), "second");
        assert_eq!(client.call(3, "echo", json!({})).await.error().0, -32602);
        assert!(client.now(4, "resources/read", json!({"uri": "note://late"})).result()["contents"].is_array());
        // A reader in the middle of the list begins again.
        assert_eq!(client.now(5, "tools/list", json!({"cursor": cursor})).error().0, -32602);
        if revision.is_legacy() {
            let told = client.outbox.take();
            let methods: Vec<_> = told.iter().map(|message| message["method"].as_str().unwrap()).collect();
            assert!(methods.contains(&"notifications/tools/list_changed"), "{methods:?}");
            assert!(methods.contains(&"notifications/resources/list_changed"), "{methods:?}");
        }
        // A call of before goes on.
        server.update(|changes| changes.remove_tool("hold")).unwrap();
        probe.release.notify_one();
        assert_eq!(call.await.unwrap().text(), "released");
        restore(&server, &probe);
    }
}

/// Puts back what the test took away.
fn restore(server: &mcpace_serve::Server, probe: &Arc<Probe>) {
    let probe = Arc::clone(probe);
    server
        .update(|changes| {
            changes.tool(Tool::new("hold").handler_async(move |_: NoArguments, _| {
                let probe = Arc::clone(&probe);
                async move {
                    probe.started.notify_one();
                    probe.release.notified().await;
                    Ok::<_, ToolError>("released")
                }
            }));
        })
        .unwrap();
}

#[test]
fn a_mistake_changes_nothing() {
    let server = server();
    let client = Client::connect(&server, MODERN);
    let before = client.now(1, "tools/list", json!({})).text;
    let wrong = server.update(|changes| {
        changes.tool(tool("fine", "x"));
        changes.tool(tool("not fine", "x"));
    });
    assert!(matches!(wrong, Err(BuildError::Name { .. })));
    assert_eq!(client.now(1, "tools/list", json!({})).text, before);
}

/// Remembers spans and what was recorded in them.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<String>>, Arc<Mutex<Option<&'static Metadata<'static>>>>);

impl Visit for Spans {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?};"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        *self.1.lock().unwrap() = Some(span.metadata());
        Id::from_u64(1)
    }

    /// Good enough for one request at a time.
    fn current_span(&self) -> Current {
        self.1.lock().unwrap().map_or_else(Current::none, |metadata| Current::new(Id::from_u64(1), metadata))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        self.0.lock().unwrap().push('>');
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().push('<');
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_traced_by_the_conventions() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let client = Client::connect(&server(), MODERN);
    let meta = json!({"traceparent": "00-a-b-01"});
    let call = |tool: &'static str| client.ask("x", "tools/call", json!({"name": tool, "_meta": meta}));
    let mut told = String::new();
    // Another test's thread may be registering the span at this moment, without knowing of our subscriber.
    for _ in 0..1_000 {
        call("sleep").await;
        told = std::mem::take(&mut *spans.0.lock().unwrap());
        if !told.is_empty() {
            break;
        }
        tracing::callsite::rebuild_interest_cache();
    }
    for part in [
        "otel.name=tools/call sleep;",
        "otel.kind=\"server\";",
        "mcp.method.name=\"tools/call\";",
        "mcp.protocol.version=\"2026-07-28\";",
        "gen_ai.tool.name=\"sleep\";",
        "jsonrpc.request.id=x;",
        "gen_ai.operation.name=\"execute_tool\";",
        "traceparent=\"00-a-b-01\";",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Entered for the hand-over and for each time that the handler went on.
    assert!(told.matches('>').count() > 2, "{told}");
    assert!(!told.contains("error.type"));
    call("told").await;
    assert!(spans.0.lock().unwrap().contains("error.type=\"tool_error\";"));
}
