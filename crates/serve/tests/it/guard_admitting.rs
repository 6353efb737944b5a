//! Guards asked for a caller within the process: the same answers as a client's, counted together with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use mcpace_serve::guard::{AccessRequest, BoxFuture, ComponentKind, Denial, Guard, RateLimit, Verdict};
use mcpace_serve::{
    Challenge, HandlerError, NoArguments, Principal, Prompt, Reply, ReplyStatus, Resource, ResourceRequest,
    ResourceTemplate, Server, Tool, ToolError,
};
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN};

fn ada() -> Option<Principal> {
    Some(Principal::new("ada", vec!["read".to_owned()]))
}

fn tool() -> Vec<String> {
    vec!["tool".to_owned()]
}

fn server(guard: Guard) -> Server {
    let tool = Tool::new("tool").guard(guard).handler(|_: NoArguments| Ok::<_, ToolError>("done"));
    Server::builder("guarded", "1").tool(tool).build().unwrap()
}

fn error(reply: &Reply) -> Value {
    serde_json::from_slice::<Value>(&reply.message).unwrap()["error"].clone()
}

#[tokio::test]
async fn a_refusal_is_the_reply_that_a_client_would_have_got() {
    let server = server(Guard::new().scope("write").scope("admin"));
    let refused = server.admit(ComponentKind::Tool, "tool".to_owned(), None, ada()).await.unwrap_err();
    assert_eq!(refused.status, ReplyStatus::Forbidden);
    assert_eq!(refused.challenge, Some(Challenge::Scopes(vec!["write".into(), "admin".into()])));
    let client = Client::connect(&server, MODERN).granted("ada", &["read"]);
    let answer = client.call(2, "tool", json!({})).await;
    assert_eq!(error(&refused), answer.body["error"]);
    assert_eq!(server.may_see(ComponentKind::Tool, tool(), ada()).await, [false]);
}

#[tokio::test]
async fn uses_count_with_those_of_clients_and_looks_do_not() {
    let server = server(Guard::new().limit(RateLimit::new("tool", 2, Duration::from_secs(60))));
    let admit = || server.admit(ComponentKind::Tool, "tool".to_owned(), None, ada());
    for _ in 0..5 {
        assert_eq!(server.may_see(ComponentKind::Tool, tool(), ada()).await, [true]);
    }
    assert!(admit().await.is_ok());
    let client = Client::connect(&server, MODERN).granted("ada", &["read"]);
    assert!(client.call(2, "tool", json!({})).await.result().is_object());
    let refused = admit().await.unwrap_err();
    assert_eq!(refused.status, ReplyStatus::TooManyRequests);
    assert!(error(&refused)["data"]["retryAfterMs"].as_u64().unwrap() > 0);
    // Another's count is another's.
    assert!(server.admit(ComponentKind::Tool, "tool".to_owned(), None, None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_takes_time_to_agree_is_waited_for_and_counts_only_when_it_did() {
    let agrees = Arc::new(AtomicBool::new(false));
    let its = Arc::clone(&agrees);
    let guard = Guard::new().limit(RateLimit::new("tool", 1, Duration::from_secs(60))).permission(
        move |_: &AccessRequest<'_>| {
            let agrees = its.load(SeqCst);
            let later: BoxFuture<Result<(), Denial>> = Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if agrees { Ok(()) } else { Err(Denial::new("not yet")) }
            });
            Verdict::Later(later)
        },
    );
    let server = server(guard);
    let refused = server.admit(ComponentKind::Tool, "tool".to_owned(), None, ada()).await.unwrap_err();
    assert_eq!(error(&refused)["message"], "not yet");
    agrees.store(true, SeqCst);
    assert_eq!(server.may_see(ComponentKind::Tool, tool(), ada()).await, [true]);
    assert!(server.admit(ComponentKind::Tool, "tool".to_owned(), None, ada()).await.is_ok());
}

#[tokio::test]
async fn each_sort_has_its_own_guards_and_is_told_what_is_asked() {
    type Heard = (ComponentKind, String, Option<String>, bool);
    let heard: Arc<std::sync::Mutex<Vec<Heard>>> = Arc::default();
    let guard = || {
        let heard = Arc::clone(&heard);
        Guard::new().permission(move |asked: &AccessRequest<'_>| {
            let uri = asked.uri.map(str::to_owned);
            heard.lock().unwrap().push((asked.kind, asked.name.to_owned(), uri, asked.listing));
            Verdict::Allowed
        })
    };
    let read = |_: ResourceRequest| Ok::<_, HandlerError>("contents");
    let server = Server::builder("guarded", "1")
        .resource(Resource::new("a://b", "b").guard(guard()).text("b"))
        .resource_template(ResourceTemplate::new("a://{x}/c", "c").guard(guard()).handler(read))
        .prompt(Prompt::new("p").guard(guard()).handler(|_: NoArguments| Ok::<_, HandlerError>("prompt")))
        .tool(Tool::new("open").handler(|_: NoArguments| Ok::<_, ToolError>("open")))
        .build()
        .unwrap();
    let uri = Some("a://7/c".to_owned());
    for (kind, name, uri) in [
        (ComponentKind::Resource, "a://b", None),
        (ComponentKind::Template, "a://{x}/c", uri.clone()),
        (ComponentKind::Prompt, "p", None),
        // Unguarded, and unknown: nobody is asked.
        (ComponentKind::Tool, "open", None),
        (ComponentKind::Prompt, "nothing", None),
    ] {
        assert!(server.admit(kind, name.to_owned(), uri, None).await.is_ok());
    }
    assert_eq!(
        server.may_see(ComponentKind::Prompt, vec!["p".to_owned(), "nothing".to_owned()], None).await,
        [true, true]
    );
    let expected = [
        (ComponentKind::Resource, "a://b".to_owned(), None, false),
        (ComponentKind::Template, "a://{x}/c".to_owned(), uri, false),
        (ComponentKind::Prompt, "p".to_owned(), None, false),
        (ComponentKind::Prompt, "p".to_owned(), None, true),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
}
