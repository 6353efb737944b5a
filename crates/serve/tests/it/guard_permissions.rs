//! Scopes and permissions: who may use what, in all revisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use mcpace_serve::guard::{AccessRequest, BoxFuture, ComponentKind, Denial, Guard, RateLimit, Verdict};
use mcpace_serve::{
    Challenge, Completion, Context, HandlerError, NoArguments, Prompt, ReplyStatus, Resource, ResourceRequest,
    ResourceTemplate, Server, Tool, ToolError,
};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::Json;
use serde_json::json;
use tokio::sync::watch;

use crate::core_harness::{Client, MODERN, finish, legacy};

/// A handler that counts its calls.
fn counting(name: &str, guard: Guard, calls: &Arc<AtomicUsize>) -> Tool {
    let calls = Arc::clone(calls);
    Tool::new(name).guard(guard).handler(move |_: NoArguments| {
        calls.fetch_add(1, SeqCst);
        Ok::<_, ToolError>("done")
    })
}

fn only(subject: &'static str) -> impl Fn(&AccessRequest<'_>) -> Verdict + Send + Sync + 'static {
    move |asked| asked.principal.is_some_and(|principal| &*principal.subject == subject).into()
}

/// Allows only this subject, after a while.
fn only_later(subject: &'static str) -> impl Fn(&AccessRequest<'_>) -> Verdict + Send + Sync + 'static {
    move |asked| {
        let is_it = asked.principal.is_some_and(|principal| &*principal.subject == subject);
        let later: BoxFuture<Result<(), Denial>> = Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if is_it { Ok(()) } else { Err(Denial::new("not you")) }
        });
        Verdict::Later(later)
    }
}

fn server(guard: Guard) -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::default();
    let server = Server::builder("guarded", "1").tool(counting("tool", guard, &calls)).build().unwrap();
    (server, calls)
}

#[tokio::test]
async fn who_lacks_a_scope_is_told_which_scopes_it_takes() {
    let (server, calls) = server(Guard::new().scope("read").scope("write"));
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for client in [client.clone(), client.clone().granted("a", &["read"]), client.clone().granted("a", &["writer"])]
        {
            let answer = client.call(2, "tool", json!({})).await;
            let has_step_up = revision >= Revision::V2025_11_25;
            let status = if has_step_up { ReplyStatus::Forbidden } else { ReplyStatus::Ok };
            assert_eq!(answer.error(), (-32003, status), "{revision}");
            assert_eq!(answer.message(), "the scopes read, write are needed");
            assert_eq!(answer.body["error"]["data"], json!({"requiredScopes": ["read", "write"]}));
            assert_eq!(answer.challenge, Some(Challenge::Scopes(vec!["read".into(), "write".into()])));
        }
        assert_eq!(calls.swap(0, SeqCst), 0);
        let may = client.granted("a", &["write", "more", "read"]);
        assert_eq!(may.call(3, "tool", json!({})).await.text(), "done");
        assert_eq!(calls.swap(0, SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_permission_decides_now_or_later() {
    for guard in [Guard::new().permission(only("alice")), Guard::new().permission(only_later("alice"))] {
        let (server, calls) = server(guard);
        for revision in Revision::ALL {
            let client = Client::connect(&server, revision);
            for client in [client.clone(), client.clone().of("bob")] {
                let answer = client.call(2, "tool", json!({})).await;
                // A client of old takes any other status for the connection's end.
                let status = if revision.is_modern() { ReplyStatus::Forbidden } else { ReplyStatus::Ok };
                assert_eq!(answer.error(), (-32003, status), "{revision}");
                assert!(answer.body["error"]["data"].is_null());
                assert_eq!(answer.challenge, None);
            }
            assert_eq!(calls.swap(0, SeqCst), 0);
            assert_eq!(client.of("alice").call(3, "tool", json!({})).await.text(), "done");
            assert_eq!(calls.swap(0, SeqCst), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_have_to_agree_and_the_first_refusal_ends_the_asking() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = |answer: fn() -> Verdict| {
        let asked = Arc::clone(&asked);
        move |_: &AccessRequest<'_>| {
            asked.fetch_add(1, SeqCst);
            answer()
        }
    };
    let (server, calls) = server(
        Guard::new()
            .permission(counts(|| Verdict::Allowed))
            .permission(only_later("alice"))
            .permission(counts(|| Verdict::Denied(Denial::new("closed today").scopes(["sunday"]))))
            .permission(counts(|| Verdict::Allowed)),
    );
    let answer = Client::stateless(&server, MODERN).of("alice").call(1, "tool", json!({})).await;
    assert_eq!(answer.message(), "closed today");
    assert_eq!(answer.challenge, Some(Challenge::Scopes(vec!["sunday".into()])));
    assert_eq!((asked.load(SeqCst), calls.load(SeqCst)), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn who_panics_does_not_agree() {
    let later = |_: &AccessRequest<'_>| {
        Verdict::Later(Box::pin(async {
            tokio::task::yield_now().await;
            panic!("this permission panics on purpose")
        }))
    };
    let now = |_: &AccessRequest<'_>| -> Verdict { panic!("this permission panics on purpose") };
    for guard in [Guard::new().permission(now), Guard::new().permission(later)] {
        let (server, calls) = server(guard);
        let client = Client::stateless(&server, MODERN).of("alice");
        let answer = client.call(1, "tool", json!({})).await;
        assert_eq!(answer.error(), (-32003, ReplyStatus::Forbidden));
        assert_eq!(answer.message(), "not permitted");
        assert_eq!(calls.load(SeqCst), 0);
        assert_eq!(client.ask(2, "tools/list", json!({})).await.result()["tools"], json!([]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_is_the_same_request() {
    let speak = |arguments: serde_json::Map<String, serde_json::Value>, context: Context| async move {
        context.progress(1.0, None, None);
        let who = context.principal().map(|principal| principal.subject.to_string());
        Ok::<_, ToolError>(format!("{arguments:?} of {who:?} in {}", context.revision()))
    };
    let tool = Tool::new("speak").guard(Guard::new().permission(only_later("alice")));
    let server = Server::builder("guarded", "1").tool(tool.handler_async(speak)).build().unwrap();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision).of("alice");
        let params = json!({"name": "speak", "arguments": {"a": [1, "\u{e9}"]}, "_meta": {"progressToken": "p"}});
        let answer = client.ask("id", "tools/call", params).await;
        assert_eq!(answer.body["id"], "id");
        assert_eq!(
            answer.text(),
            format!("{{\"a\": Array [Number(1), String(\"é\")]}} of Some(\"alice\") in {revision}")
        );
        let told = client.outbox.take();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["params"]["progressToken"], "p");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_can_be_taken_back_while_it_waits() {
    let (asking, asked) = watch::channel(false);
    let never = move |_: &AccessRequest<'_>| {
        let asking = asking.clone();
        Verdict::Later(Box::pin(async move {
            asking.send_replace(true);
            std::future::pending().await
        }))
    };
    let (server, calls) = server(Guard::new().permission(never));
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        let call = client.send(7, "tools/call", json!({"name": "tool"}));
        assert_eq!(client.session().in_flight(), 1);
        let waiting = tokio::spawn(finish(call));
        asked.clone().wait_for(|asked| *asked).await.unwrap();
        client.notify("notifications/cancelled", json!({"requestId": 7}));
        assert!(waiting.await.unwrap().cancelled);
        assert_eq!(client.session().in_flight(), 0);
    }
    assert_eq!(calls.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_about_is_what_runs() {
    let guard = Guard::new().permission(only_later("alice"));
    let (server, calls) = server(guard);
    let client = Client::stateless(&server, MODERN).of("alice");
    let call = client.send(1, "tools/call", json!({"name": "tool"}));
    let other = Tool::new("tool").handler(|_: NoArguments| Ok::<_, ToolError>("another tool of the same name"));
    server.update(|changes| changes.tool(other)).unwrap();
    assert_eq!(finish(call).await.text(), "done");
    assert_eq!(calls.load(SeqCst), 1);
    assert_eq!(client.call(2, "tool", json!({})).await.text(), "another tool of the same name");
}

/// Resources, a template and a prompt that are Alice's, with what their permission saw.
fn library(seen: &Arc<std::sync::Mutex<Vec<String>>>) -> Server {
    let guard = || {
        let seen = Arc::clone(seen);
        Guard::new().permission(move |asked: &AccessRequest<'_>| {
            let uri = asked.uri.unwrap_or("-");
            let seen_now = format!("{} {} {uri} {}", asked.kind.as_str(), asked.name, asked.listing);
            seen.lock().unwrap().push(seen_now);
            asked.principal.is_some_and(|principal| &*principal.subject == "alice").into()
        })
    };
    let note = ResourceTemplate::new("note://{id}", "note")
        .guard(guard())
        .handler(|request: ResourceRequest| Ok::<_, HandlerError>(request.variable("id").to_owned()));
    Server::builder("library", "1")
        .cache(60_000, mcpace_wire::mcp::CacheScope::Public)
        .resource(Resource::new("book://one", "one").guard(guard()).text("one"))
        .resource_template(note)
        .prompt(Prompt::new("sum-up").guard(guard()).handler(|_: NoArguments| Ok::<_, HandlerError>("Sum up")))
        .completion(Completion::resource_template("note://{id}", "id").handler(|_| Ok(vec!["secret".to_owned()])))
        .build()
        .unwrap()
}

#[tokio::test]
async fn resources_templates_prompts_and_completions_are_guarded() {
    let seen = Arc::default();
    let server = library(&seen);
    let complete =
        json!({"ref": {"type": "ref/resource", "uri": "note://{id}"}, "argument": {"name": "id", "value": ""}});
    let requests = [
        ("resources/read", json!({"uri": "book://one"}), "resource book://one - false"),
        ("resources/read", json!({"uri": "note://7"}), "template note://{id} note://7 false"),
        ("prompts/get", json!({"name": "sum-up"}), "prompt sum-up - false"),
        ("completion/complete", complete, "template note://{id} - false"),
    ];
    for revision in [Revision::V2025_11_25, MODERN] {
        let client = Client::connect(&server, revision);
        for (method, params, asked) in &requests {
            let refused = client.now(1, method, params.clone());
            assert_eq!(refused.error().0, -32003, "{method}");
            assert!(!refused.text.contains("secret"));
            assert_eq!(seen.lock().unwrap().drain(..).collect::<Vec<String>>(), [*asked]);
            let answer = client.clone().of("alice").now(1, method, params.clone());
            assert!(answer.result().is_object(), "{method}");
            seen.lock().unwrap().clear();
            if *method == "resources/read" && revision.is_modern() {
                // Not everybody may see it, so nobody may keep it for others.
                assert_eq!(answer.result()["cacheScope"], "private");
            }
        }
    }
    assert_eq!(ComponentKind::Template.as_str(), "template");
}

/// A completer for everything would else tell a stranger, under a name that no guard is of, what a guarded one hides.
#[tokio::test]
async fn what_nobody_has_is_not_completed_beside_what_not_everybody_may() {
    let asked = Arc::new(AtomicUsize::new(0));
    let complete = |server: &Server| {
        let asked = Arc::clone(&asked);
        let completer = move |changes: &mut mcpace_serve::Changes| {
            changes.completer(move |_, _| {
                asked.fetch_add(1, SeqCst);
                async { Ok(mcpace_wire::mcp::Completion::default()) }
            });
        };
        server.update(completer).unwrap();
    };
    let guarded = library(&Arc::default());
    let open = Server::builder("open", "1").build().unwrap();
    complete(&guarded);
    complete(&open);
    for reference in [
        json!({"type": "ref/prompt", "name": "nope"}),
        json!({"type": "ref/resource", "uri": "note://a/b"}),
        json!({"type": "ref/resource", "uri": "note://{id"}),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
        let refused = Client::connect(&guarded, MODERN).now(1, "completion/complete", params.clone());
        // The last of them could be a resource of the family: its guard refuses it.
        assert!([code::INVALID_PARAMS, -32003].contains(&refused.error().0), "{}", refused.text);
        assert_eq!(asked.load(SeqCst), 0);
        let answer = Client::connect(&open, MODERN).ask(1, "completion/complete", params).await;
        assert!(answer.result().is_object());
        assert_eq!(asked.swap(0, SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_watches_what_it_may_not_read() {
    for is_later in [false, true] {
        let guard = if is_later {
            Guard::new().permission(only_later("alice"))
        } else {
            Guard::new().permission(only("alice"))
        };
        let server = Server::builder("library", "1")
            .resource(Resource::new("book://one", "one").guard(guard).text("one"))
            .resource(Resource::new("book://open", "open").text("open"))
            .build()
            .unwrap();
        let client = Client::connect(&server, Revision::V2025_11_25);
        let refused = client.ask(1, "resources/subscribe", json!({"uri": "book://one"})).await;
        assert_eq!(refused.error().0, -32003);
        let alice = client.of("alice").ask(1, "resources/subscribe", json!({"uri": "book://one"})).await;
        assert_eq!(alice.result(), &json!({}));
        for (who, watched) in [("alice", json!(["book://one", "book://open"])), ("bob", json!(["book://open"]))] {
            let client = Client::stateless(&server, MODERN).of(who);
            let wanted = json!({"notifications": {"resourceSubscriptions": ["book://one", "book://open"]}});
            let listening = tokio::spawn(finish(client.send(1, "subscriptions/listen", wanted)));
            let acknowledged = client.outbox.next().await;
            assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], watched, "{acknowledged}");
            listening.abort();
        }
    }
}

#[test]
fn a_guard_that_cannot_be_meant_so_is_refused() {
    let second = Duration::from_secs(1);
    let bucket = mcpace_serve::guard::Algorithm::TokenBucket { burst: 0 };
    let guards = [
        (Guard::new().scope("two words"), "a scope is a word without quotes"),
        (Guard::new().scope(""), "a scope is a word without quotes"),
        (Guard::new().limit(RateLimit::new("x", 0, second)), "a rate limit allows at least one call"),
        (Guard::new().limit(RateLimit::new("x", 1, Duration::ZERO)), "a rate limit's time is longer than nothing"),
        (Guard::new().limit(RateLimit::new("x", 1, second).algorithm(bucket)), "a bucket holds at least one call"),
        (Guard::new().timeout(Duration::ZERO), "a time limit is longer than nothing"),
    ];
    for (guard, reason) in guards {
        let tool = Tool::new("tool").guard(guard).handler(|_: NoArguments| Ok::<_, ToolError>("done"));
        let error = Server::builder("guarded", "1").tool(tool).build().err().unwrap();
        assert_eq!(error.to_string(), format!("tool \"tool\": {reason}"));
    }
}

#[tokio::test]
async fn what_a_handler_refuses_as_a_guard_would_has_a_guards_status() {
    let refusing = |code: i64, data: &'static str| {
        move |_: NoArguments| {
            let data = Json::from_text(data.to_owned()).unwrap();
            Err::<&str, _>(HandlerError::protocol(code, "not this one", Some(data)))
        }
    };
    let server = Server::builder("guarded", "1")
        .tool(Tool::new("scope").handler(refusing(-32003, r#"{"requiredScopes":["write"]}"#)))
        .tool(Tool::new("row").handler(refusing(-32003, r#"{"requiredScopes":[]}"#)))
        .tool(Tool::new("wait").handler(refusing(-32004, r#"{"retryAfterMs":1500}"#)))
        .tool(Tool::new("own").handler(refusing(-32003, r#"{"something":"else"}"#)))
        .build()
        .unwrap();
    let client = Client::stateless(&server, MODERN);
    let scope = client.call(1, "scope", json!({})).await;
    assert_eq!(scope.error(), (-32003, ReplyStatus::Forbidden));
    assert_eq!(scope.message(), "not this one");
    assert_eq!(scope.challenge, Some(Challenge::Scopes(vec!["write".into()])));
    let row = client.call(2, "row", json!({})).await;
    assert_eq!((row.error(), row.challenge), ((-32003, ReplyStatus::Forbidden), None));
    let wait = client.call(3, "wait", json!({})).await;
    assert_eq!(wait.error(), (-32004, ReplyStatus::TooManyRequests));
    assert_eq!(wait.challenge, Some(Challenge::Wait(Duration::from_millis(1500))));
    let own = client.call(4, "own", json!({})).await;
    assert_eq!(own.error(), (-32003, ReplyStatus::Ok));
    assert_eq!(own.body["error"]["data"], json!({"something": "else"}));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_asks_once_about_each_thing_that_it_names() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let permission = move |about: &AccessRequest<'_>| {
        counts.fetch_add(1, SeqCst);
        let is_it = about.uri.is_none_or(|uri| uri.ends_with("7"));
        Verdict::Later(Box::pin(async move {
            tokio::task::yield_now().await;
            if is_it { Ok(()) } else { Err(Denial::default()) }
        }))
    };
    let template = ResourceTemplate::new("note://{number}", "notes").guard(Guard::new().permission(permission));
    let template = template.handler(|_: ResourceRequest| Ok::<_, HandlerError>("note"));
    let server = Server::builder("watched", "1").resource_template(template).build().unwrap();
    let client = Client::connect(&server, MODERN);
    let mut uris = vec!["note://1"; 500];
    uris.extend(["note://7"; 500]);
    let filter = json!({"notifications": {"resourceSubscriptions": uris}});
    let listening = tokio::spawn(finish(client.send(json!(7), "subscriptions/listen", filter)));
    let acknowledged = client.outbox.next().await;
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!(["note://7"]));
    assert_eq!(asked.load(SeqCst), 2);
    server.close();
    assert!(listening.await.is_ok());
}
