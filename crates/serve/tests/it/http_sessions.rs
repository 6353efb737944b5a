//! Sessions over HTTP: their ids, limits, owners and ends; tokens; the two endpoints of 2024-11-05.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use mcpace_serve::http::{self, Authorization, Options, ResponseMode, TokenError, TokenVerifier};
use mcpace_serve::{Context, NoArguments, Principal, Server, Tool, ToolError};
use serde_json::json;

use crate::http_harness::{Request, ask, call, echo, event, head, initialize, open, session, start, text_of};
use crate::peer::limited;

const REVISION: &str = "2025-06-18";

#[tokio::test]
async fn a_session_lives_until_it_is_deleted() {
    let running = start(|_| {});
    let address = running.address();
    let (one, other) = (session(address, REVISION).await, session(address, REVISION).await);
    assert_ne!(one, other);
    assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    assert_eq!(running.sessions(), 2);

    let request = Request::post(&echo(1, "hi")).within(&one, REVISION);
    assert_eq!(text_of(&ask(address, &request).await.json()), "hi");
    let delete = Request::bare("DELETE").within(&one, REVISION);
    assert_eq!(ask(address, &delete).await.head.status, 204);
    assert_eq!(ask(address, &request).await.head.status, 404);
    assert_eq!(ask(address, &delete).await.head.status, 404);
    assert_eq!(running.sessions(), 1);
}

#[tokio::test]
async fn deleting_a_session_cancels_what_it_has_under_way() {
    let running = start(|options| options.response = ResponseMode::Sse);
    let address = running.address();
    let (one, other) = (session(address, "2025-11-25").await, session(address, "2025-11-25").await);
    let mut waiting = open(address, &Request::post(&call(1, "wait", &json!({}))).within(&one, "2025-11-25")).await;
    head(&mut waiting).await;
    let probe = |tool| Request::post(&call(2, tool, &json!({}))).within(&other, "2025-11-25");
    limited("the call begins", ask(address, &probe("waiting"))).await.unwrap();
    assert_eq!(ask(address, &Request::bare("DELETE").within(&one, "2025-11-25")).await.head.status, 204);
    limited("the call is cancelled", ask(address, &probe("cancelled"))).await.unwrap();
    assert_eq!(event(&mut waiting).await, None);
}

#[tokio::test]
async fn past_the_limit_there_are_no_more_sessions_until_one_ends() {
    let running = start(|options| options.limits.sessions = 1);
    let address = running.address();
    let id = session(address, REVISION).await;
    // In use: one that nobody used yet would make room.
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    assert_eq!(ask(address, &request).await.head.status, 200);
    let refused = ask(address, &Request::post(&initialize(REVISION))).await;
    assert_eq!(refused.status_and_code(), (503, -32603));
    assert!(refused.head.header("retry-after").is_some());
    ask(address, &Request::bare("DELETE").within(&id, REVISION)).await;
    session(address, REVISION).await;
}

#[tokio::test]
async fn sessions_that_only_begin_keep_nobody_out() {
    let running = start(|options| options.limits.sessions = 4);
    let address = running.address();
    let used = session(address, REVISION).await;
    let request = |id: &str| Request::post(&echo(1, "hi")).within(id, REVISION);
    assert_eq!(ask(address, &request(&used)).await.head.status, 200);
    let mut begun = Vec::new();
    for _ in 0..6 {
        begun.push(session(address, REVISION).await);
        assert!(running.sessions() <= 4);
    }
    // The oldest went, the one that is used stays.
    let status = async |id: &str| ask(address, &request(id)).await.head.status;
    assert_eq!(status(&used).await, 200);
    for (id, expected) in begun.iter().zip([404, 404, 404, 200, 200, 200]) {
        assert_eq!(status(id).await, expected);
    }
}

#[tokio::test]
async fn one_caller_does_not_take_all_sessions() {
    let running = start(|options| {
        guarded(options);
        options.limits.sessions = 20;
    });
    let address = running.address();
    let of = |request: Request, token: &str| request.with("Authorization", format!("Bearer {token}"));
    let begin = async |token: &str| {
        let begun = ask(address, &of(Request::post(&initialize(REVISION)), token)).await;
        if let Some(id) = begun.head.header("mcp-session-id") {
            let used = of(Request::post(&echo(1, "hi")).within(id, REVISION), token);
            assert_eq!(ask(address, &used).await.head.status, 200);
        }
        (begun.head.status, begun.head.header("mcp-session-id").map(str::to_owned))
    };
    let mut ids = Vec::new();
    for _ in 0..10 {
        let (status, id) = begin("alice").await;
        assert_eq!(status, 200);
        ids.extend(id);
    }
    assert_eq!(begin("alice").await.0, 503);
    assert_eq!(begin("bob").await.0, 200);
    // Counted back as they end.
    for id in ids.drain(..9) {
        assert_eq!(ask(address, &of(Request::bare("DELETE").within(&id, REVISION), "alice")).await.head.status, 204);
    }
    assert_eq!(begin("alice").await.0, 200);
}

#[tokio::test]
async fn an_initialize_that_fails_takes_no_place() {
    let running = start(|options| options.limits.sessions = 1);
    let mut wrong = initialize(REVISION);
    wrong["params"] = json!({"protocolVersion": 7});
    for _ in 0..3 {
        let answer = ask(running.address(), &Request::post(&wrong)).await;
        assert_eq!(answer.json()["error"]["code"], -32602, "{}", answer.body);
    }
    session(running.address(), REVISION).await;
}

#[tokio::test]
async fn without_sessions_no_id_is_given() {
    let running = start(|options| options.stateless = true);
    let answer = ask(running.address(), &Request::post(&initialize(REVISION))).await;
    assert_eq!((answer.head.status, answer.head.header("mcp-session-id")), (200, None));
}

#[tokio::test]
async fn a_session_nobody_uses_ends() {
    let running = start(|options| options.limits.session_idle = std::time::Duration::from_millis(20));
    session(running.address(), REVISION).await;
    let gone = async {
        while running.sessions() > 0 {
            tokio::task::yield_now().await;
        }
    };
    limited("the session ends", gone).await.unwrap();
}

/// Knows two people, and one who may do nothing.
struct Names;

impl TokenVerifier for Names {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(async move {
            let scopes: &[&str] = match token {
                "alice" | "bob" => &["mcp"],
                "carol" => &[],
                "later" => return Err(TokenError::Unavailable),
                _ => return Err(TokenError::Invalid),
            };
            let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
            Ok(Principal::new(token, scopes))
        })
    }
}

pub(crate) fn guarded(options: &mut Options) {
    options.authorization = Some(Authorization {
        verifier: Arc::new(Names),
        resource: "https://mcp.example/mcp".to_owned(),
        authorization_servers: vec!["https://login.example".to_owned()],
        scopes: vec!["mcp".to_owned()],
    });
}

#[tokio::test]
async fn a_request_without_a_good_token_is_challenged() {
    let running = start(guarded);
    let request = Request::post(&initialize(REVISION));
    let metadata = "resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\"";
    for (token, status, says) in [
        (None, 401, metadata),
        (Some("Basic alice"), 401, metadata),
        (Some("Bearer mallory"), 401, "error=\"invalid_token\""),
        (Some("Bearer carol"), 403, "error=\"insufficient_scope\", scope=\"mcp\""),
    ] {
        let request = token.map_or(request.clone(), |token| request.clone().with("Authorization", token));
        let answer = ask(running.address(), &request).await;
        let challenge = answer.head.header("www-authenticate").unwrap_or_default();
        assert_eq!(answer.head.status, status, "{token:?}");
        assert!(challenge.starts_with("Bearer ") && challenge.contains(says), "{token:?}: {challenge}");
    }
    let later = ask(running.address(), &request.clone().with("Authorization", "Bearer later")).await;
    assert_eq!(later.head.status, 503);
    let good = ask(running.address(), &request.with("Authorization", "bearer alice")).await;
    assert_eq!(good.head.status, 200);
}

#[tokio::test]
async fn the_resource_tells_who_gives_tokens() {
    let running = start(guarded);
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let answer = ask(running.address(), &Request::bare("GET").path(path)).await;
        assert_eq!(answer.head.status, 200);
        assert_eq!(answer.json()["resource"], "https://mcp.example/mcp");
        assert_eq!(answer.json()["authorization_servers"], json!(["https://login.example"]));
    }
}

#[tokio::test]
async fn a_session_is_its_owners() {
    let running = start(guarded);
    let address = running.address();
    let begin = Request::post(&initialize(REVISION)).with("Authorization", "Bearer alice");
    let id = ask(address, &begin).await.head.header("mcp-session-id").unwrap().to_owned();
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    let as_of = |token: &str| request.clone().with("Authorization", format!("Bearer {token}"));
    assert_eq!(ask(address, &as_of("bob")).await.head.status, 404);
    let delete = Request::bare("DELETE").within(&id, REVISION).with("Authorization", "Bearer bob");
    assert_eq!(ask(address, &delete).await.head.status, 404);
    assert_eq!(ask(address, &as_of("alice")).await.head.status, 200);
}

#[tokio::test]
async fn a_stream_is_taken_up_by_its_own_session_only() {
    let running = start(|options| options.response = ResponseMode::Sse);
    let address = running.address();
    let mut ids = Vec::new();
    for text in ["one", "other"] {
        let id = session(address, "2025-11-25").await;
        let said = ask(address, &Request::post(&echo(1, text)).within(&id, "2025-11-25")).await;
        let first = said.body.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
        ids.push((id, first, text));
    }
    // Both sessions count their streams from the same number: the id alone doesn't say whose it is.
    assert_eq!(ids[0].1, ids[1].1);
    for (id, first, text) in &ids {
        let again = ask(address, &Request::bare("GET").within(id, "2025-11-25").with("Last-Event-ID", first)).await;
        assert_eq!(text_of(&again.events()[0]), *text);
    }
    let third = session(address, "2025-11-25").await;
    let none = Request::bare("GET").within(&third, "2025-11-25").with("Last-Event-ID", &ids[0].1);
    assert_eq!(ask(address, &none).await.status_and_code(), (400, -32600));
}

/// Knows one person, for two seconds from the first time on; and for good.
struct Passing(OnceLock<SystemTime>);

impl TokenVerifier for Passing {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        let expires = *self.0.get_or_init(|| SystemTime::now() + Duration::from_secs(2));
        let expires = (token != "lasting").then_some(expires);
        Box::pin(async move { Ok(Principal { expires, ..Principal::new("alice", Vec::new()) }) })
    }
}

#[tokio::test]
async fn nobody_listens_for_longer_than_his_token() {
    let running = start(|options| {
        guarded(options);
        let authorization = options.authorization.as_mut().unwrap();
        (authorization.verifier, authorization.scopes) = (Arc::new(Passing(OnceLock::new())), Vec::new());
    });
    let address = running.address();
    let of = |request: Request, token: &str| request.with("Authorization", format!("Bearer {token}"));
    let begun = ask(address, &of(Request::post(&initialize("2025-11-25")), "passing")).await;
    let id = begun.head.header("mcp-session-id").unwrap().to_owned();
    let get = Request::bare("GET").within(&id, "2025-11-25");
    let mut stream = open(address, &of(get.clone(), "passing")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                  "io.modelcontextprotocol/clientCapabilities": {}}}});
    let listen =
        Request::post(&listen).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "subscriptions/listen");
    let mut listening = open(address, &of(listen, "passing")).await;
    assert_eq!(head(&mut listening).await.status, 200);
    assert_eq!(event(&mut listening).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let last = limited("priming", stream.event()).await.unwrap().unwrap().unwrap().id.unwrap();
    assert_eq!(event(&mut stream).await, None);
    assert_eq!(event(&mut listening).await.unwrap()["result"]["resultType"], "complete");
    // With a token that is good the stream goes on where it was.
    let mut again = open(address, &of(get.with("Last-Event-ID", last), "lasting")).await;
    assert_eq!(head(&mut again).await.status, 200);
    running.stop();
}

#[tokio::test]
async fn a_stream_of_2024_11_05_is_its_owners() {
    let running = start(|options| {
        guarded(options);
        options.legacy_sse = true;
    });
    let address = running.address();
    let of = |request: Request, token: &str| request.with("Authorization", format!("Bearer {token}"));
    let mut stream = open(address, &of(Request::bare("GET").path("/sse"), "alice")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let to = limited("the endpoint", stream.event()).await.unwrap().unwrap().unwrap().data;
    let message = Request::post(&initialize("2024-11-05")).path(&to);
    assert_eq!(ask(address, &of(message.clone(), "bob")).await.head.status, 404);
    assert_eq!(ask(address, &message).await.head.status, 401);
    assert_eq!(ask(address, &of(message, "alice")).await.head.status, 202);
}

/// Knows one person, with the scope that the token names.
struct Scopes;

impl TokenVerifier for Scopes {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(async move { Ok(Principal::new("alice", [token.to_owned()])) })
    }
}

#[tokio::test]
async fn a_message_of_2024_11_05_has_its_own_tokens_scopes() {
    let scopes = Tool::new("scopes").handler_async(|_: NoArguments, context: Context| async move {
        Ok::<_, ToolError>(context.principal().map(|principal| principal.scopes.join(" ")).unwrap_or_default())
    });
    let server = Server::builder("scopes", "1").tool(scopes).build().unwrap();
    let authorization = Authorization {
        verifier: Arc::new(Scopes),
        resource: "https://mcp.example/mcp".to_owned(),
        authorization_servers: Vec::new(),
        scopes: Vec::new(),
    };
    let address = ([127, 0, 0, 1], 0).into();
    let options = Options { address, legacy_sse: true, authorization: Some(authorization), ..Options::default() };
    let running = http::serve(server, options).unwrap();
    let of = |request: Request, token: &str| request.with("Authorization", format!("Bearer {token}"));
    let mut stream = open(running.address(), &of(Request::bare("GET").path("/sse"), "write")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let to = limited("the endpoint", stream.event()).await.unwrap().unwrap().unwrap().data;
    ask(running.address(), &of(Request::post(&initialize("2024-11-05")).path(&to), "write")).await;
    assert_eq!(event(&mut stream).await.unwrap()["id"], 0);
    // The stream's owner, with less than the token that opened it granted.
    ask(running.address(), &of(Request::post(&call(1, "scopes", &json!({}))).path(&to), "read")).await;
    assert_eq!(text_of(&event(&mut stream).await.unwrap()), "read");
}

#[tokio::test]
async fn nothing_runs_on_a_stream_of_2024_11_05_before_it_is_initialized() {
    let running = start(|options| options.legacy_sse = true);
    let address = running.address();
    let mut stream = open(address, &Request::bare("GET").path("/sse")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let to = limited("the endpoint", stream.event()).await.unwrap().unwrap().unwrap().data;
    let post = async |message: &serde_json::Value| {
        assert_eq!(ask(address, &Request::post(message).path(&to)).await.head.status, 202);
    };
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut wrong = initialize("2024-11-05");
    wrong["params"] = json!({"protocolVersion": 7});
    for (message, code) in [
        (call(1, "wait", &json!({})), json!(-32600)),
        (ping, json!(null)),
        (wrong, json!(-32602)),
        (initialize("2024-11-05"), json!(null)),
        (echo(2, "hi"), json!(null)),
    ] {
        post(&message).await;
        let reply = event(&mut stream).await.unwrap();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&message["id"], &code), "{reply}");
    }
}

#[tokio::test]
async fn the_endpoints_of_2024_11_05_work_where_they_are_wanted() {
    let off = start(|_| {});
    assert_eq!(ask(off.address(), &Request::bare("GET").path("/sse")).await.head.status, 404);

    let running = start(|options| options.legacy_sse = true);
    let address = running.address();
    let mut stream = open(address, &Request::bare("GET").path("/sse")).await;
    assert_eq!(head(&mut stream).await.header("content-type"), Some("text/event-stream"));
    let endpoint = limited("the endpoint", stream.event()).await.unwrap().unwrap().unwrap();
    assert_eq!(endpoint.event.as_deref(), Some("endpoint"));
    let to = endpoint.data;
    for message in [initialize("2024-11-05"), echo(1, "hi"), call(2, "turn", &json!({}))] {
        assert_eq!(ask(address, &Request::post(&message).path(&to)).await.head.status, 202);
        let reply = event(&mut stream).await.unwrap();
        assert_eq!((&reply["id"], reply["error"].is_null()), (&message["id"], true), "{reply}");
    }
    let stranger = Request::post(&echo(1, "hi")).path("/messages?sessionId=0123456789abcdef0123456789abcdef");
    assert_eq!(ask(address, &stranger).await.head.status, 404);
    // The stream is the session: it ends with its connection.
    assert_eq!(running.sessions(), 1);
    drop(stream);
    let gone = async {
        while running.sessions() > 0 {
            tokio::task::yield_now().await;
        }
    };
    limited("the session ends", gone).await.unwrap();
    assert_eq!(ask(address, &Request::post(&echo(1, "hi")).path(&to)).await.head.status, 404);
}
