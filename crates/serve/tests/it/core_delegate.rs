//! A server behind the registry: what goes to it, and that nothing is changed on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use mcpace_serve::{
    Context, Delegate, DelegateError, Delegated, NoArguments, Peer, ReplyStatus, Server, Tool, ToolError,
};
use mcpace_wire::Revision;
use mcpace_wire::mcp::{Json, Method};
use serde_json::json;

use crate::core_harness::{Client, MODERN, finish, legacy};

/// Says what it was asked; some tools do more.
struct Behind {
    dropped: Arc<AtomicBool>,
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Delegate for Behind {
    fn takes(&self, method: Method) -> bool {
        !matches!(method, Method::Ping | Method::PromptsList)
    }

    fn call(&self, context: Context) -> Delegated {
        let dropped = Dropped(Arc::clone(&self.dropped));
        Box::pin(async move {
            let params = context.params().map_or("null", |params| std::str::from_utf8(params).unwrap()).to_owned();
            if params.contains("waits") {
                std::future::pending::<()>().await;
            }
            drop(dropped);
            assert!(!params.contains("panics"), "as asked");
            if params.contains("refuses") {
                let data = Some(Json::of(&json!({"why": 1})).unwrap());
                return Err(DelegateError { code: -32_602, message: "no such thing".to_owned(), data });
            }
            if params.contains("inquires") {
                context.send_notification("notifications/odd", Some(&Json::of(&json!({"n": 1})).unwrap()));
                let answer = context.send_request(Method::RootsList, None).await;
                let answer = answer.map_or_else(|error| format!("{:?}", error.to_string()), String::from);
                return Ok(Bytes::from(format!(r#"{{"answer":{answer}}}"#)));
            }
            Ok(Bytes::from(format!(r#"{{"z":1,"method":"{}","params":{params},"isError":false}}"#, context.method())))
        })
    }
}

fn server() -> (Server, Arc<AtomicBool>) {
    let server = Server::builder("front", "1")
        .tool(Tool::new("ours").handler(|_: NoArguments| Ok::<_, ToolError>("ours")))
        .build()
        .unwrap();
    let dropped = Arc::<AtomicBool>::default();
    assert!(server.delegate(Behind { dropped: Arc::clone(&dropped) }));
    assert!(!server.delegate(Behind { dropped: Arc::clone(&dropped) }));
    (server, dropped)
}

/// A client in a session that the delegate answered for.
async fn connect(server: &Server, revision: Revision) -> Client {
    let mut client = Client::stateless(server, revision);
    if revision.is_legacy() {
        let params = json!({"protocolVersion": revision, "capabilities": {"roots": {}},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = finish(client.send(1, "initialize", params.clone())).await;
        assert_eq!(answer.result()["params"], params);
        client.peer = Peer { revision, session: answer.session, principal: None };
        assert_eq!(client.session().revision(), revision);
    }
    client
}

#[tokio::test(start_paused = true)]
async fn whole_requests_go_to_it_and_come_back_unchanged() {
    let (server, _) = server();
    for revision in Revision::ALL {
        let client = connect(&server, revision).await;
        assert_eq!(client.now(2, "tools/call", json!({"name": "ours"})).text(), "ours");
        let answer = finish(client.send(3, "tools/call", json!({"name": "theirs", "odd": [1]}))).await;
        assert_eq!(answer.result()["params"]["odd"], json!([1]), "{revision} {}", answer.text);
        assert!(answer.text.starts_with(r#"{"jsonrpc":"2.0","id":3,"result":{"z":1,"method":"tools/call","params":{"#));
        assert!(answer.text.ends_with(r#"},"isError":false}}"#), "{}", answer.text);
        let answer = finish(client.send(4, "tools/list", json!({}))).await;
        assert_eq!(answer.result()["method"], "tools/list");
        // Methods that the delegate doesn't take are answered by the server itself.
        let prompts = client.now(5, "prompts/list", json!({}));
        assert_eq!(prompts.error().0, -32_601);
    }
}

#[tokio::test(start_paused = true)]
async fn its_errors_are_told_as_they_are() {
    let (server, _) = server();
    for revision in Revision::ALL {
        let client = connect(&server, revision).await;
        let answer = finish(client.send(2, "resources/read", json!({"uri": "refuses:"}))).await;
        let status = if revision == MODERN { ReplyStatus::BadRequest } else { ReplyStatus::Ok };
        assert_eq!(answer.error(), (-32_602, status));
        assert_eq!(answer.body["error"], json!({"code": -32_602, "message": "no such thing", "data": {"why": 1}}));
        let answer = finish(client.send(3, "tools/call", json!({"name": "panics"}))).await;
        assert_eq!(answer.error(), (-32_603, ReplyStatus::Ok));
    }
}

#[tokio::test(start_paused = true)]
async fn it_tells_and_asks_the_client() {
    let (server, _) = server();
    for revision in legacy() {
        let client = connect(&server, revision).await;
        let call = tokio::spawn(finish(client.send(2, "tools/call", json!({"name": "inquires"}))));
        assert_eq!(client.outbox.next().await["params"], json!({"n": 1}));
        let request = client.outbox.next().await;
        assert_eq!(request["method"], "roots/list");
        client.respond(&request["id"], json!({"roots": []}));
        assert_eq!(call.await.unwrap().result(), &json!({"answer": {"roots": []}}));
    }
    let client = connect(&server, MODERN).await;
    let answer = finish(client.send(2, "tools/call", json!({"name": "inquires"}))).await;
    assert_eq!(answer.result(), &json!({"answer": "the client can't be asked on this connection"}));
}

#[tokio::test(start_paused = true)]
async fn it_learns_that_a_client_went_away() {
    let (server, dropped) = server();
    let client = connect(&server, Revision::V2025_11_25).await;
    dropped.store(false, Ordering::SeqCst);
    let call = tokio::spawn(finish(client.send(2, "tools/call", json!({"name": "waits"}))));
    tokio::task::yield_now().await;
    client.notify("notifications/cancelled", json!({"requestId": 2}));
    assert!(call.await.unwrap().cancelled);
    assert!(dropped.load(Ordering::SeqCst));
}

#[test]
fn the_revisions_that_a_delegate_discovers_are_those_that_have_the_method() {
    let (delegated, _) = server();
    let modern: Vec<Revision> = Revision::ALL.into_iter().filter(|revision| revision.is_modern()).collect();
    assert_eq!(delegated.discovered_revisions(), modern);
    let plain = Server::builder("plain", "1").build().unwrap();
    assert_eq!(plain.discovered_revisions(), Revision::ALL);
}
