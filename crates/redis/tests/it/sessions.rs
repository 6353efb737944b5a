//! Sessions that any process finds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::Principal;
use mcpace_serve::http::{Authorization, Options, TokenError, TokenVerifier};
use serde_json::{Value, json};

use crate::http_harness::{Request, ask, call, echo, event, head, initialize, open, session, text_of};
use crate::server::{RedisServer, pair};

const REVISION: &str = "2025-11-25";

fn method(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn a_session_begun_at_one_is_found_by_another_and_ended_for_all() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    assert_eq!(text_of(&ask(other.address(), &request).await.json()), "hi");
    assert_eq!((one.running.sessions(), other.running.sessions()), (1, 1));
    let delete = Request::bare("DELETE").within(&id, REVISION);
    assert_eq!(ask(other.address(), &delete).await.head.status, 204);
    assert_eq!(ask(other.address(), &request).await.head.status, 404);
    // The first learns it by a message.
    crate::peer::limited("the end", async { while ask(one.address(), &request).await.head.status != 404 {} })
        .await
        .unwrap();
    assert_eq!(one.running.sessions(), 0);
}

#[tokio::test]
async fn an_id_that_nobody_gave_is_found_nowhere() {
    let redis = RedisServer::start();
    let [one, _other] = pair(&redis, |_| {});
    let request = Request::post(&echo(1, "hi")).within(&"0".repeat(32), REVISION);
    assert_eq!(ask(one.address(), &request).await.head.status, 404);
}

struct Tokens;

impl TokenVerifier for Tokens {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(async move { Ok(Principal::new(token.trim_start_matches("secret-of-"), Vec::new())) })
    }
}

fn guarded(options: &mut Options) {
    options.authorization = Some(Authorization {
        verifier: Arc::new(Tokens),
        resource: "http://localhost/mcp".to_owned(),
        authorization_servers: vec!["http://localhost".to_owned()],
        scopes: Vec::new(),
    });
}

#[tokio::test]
async fn a_session_is_its_owners_at_every_process() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, guarded);
    let whose = |request: Request, name: &str| request.with("Authorization", format!("Bearer secret-of-{name}"));
    let begun = ask(one.address(), &whose(Request::post(&initialize(REVISION)), "grace")).await;
    let id = begun.head.header("mcp-session-id").unwrap().to_owned();
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    // Before and after the session was taken up there.
    assert_eq!(ask(other.address(), &whose(request.clone(), "bob")).await.head.status, 404);
    assert_eq!(ask(other.address(), &whose(request.clone(), "grace")).await.head.status, 200);
    assert_eq!(ask(other.address(), &whose(request.clone(), "bob")).await.head.status, 404);
    let delete = whose(Request::bare("DELETE").within(&id, REVISION), "bob");
    assert_eq!(ask(other.address(), &delete).await.head.status, 404);
    assert_eq!(ask(one.address(), &whose(request, "grace")).await.head.status, 200);
}

#[tokio::test]
async fn what_a_client_sets_at_one_holds_at_another() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let within = |message: &Value| Request::post(message).within(&id, REVISION);
    // Known there before and after it is set.
    assert_eq!(ask(other.address(), &within(&echo(1, "hi"))).await.head.status, 200);
    let mut stream = open(other.address(), &Request::bare("GET").within(&id, REVISION)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let watch = method(2, "resources/subscribe", &json!({"uri": "test://greeting"}));
    assert_eq!(ask(one.address(), &within(&watch)).await.json()["result"], json!({}));
    // Told by the process that neither has the stream nor took the subscription: here it is the first one again.
    crate::peer::limited("the update", async {
        loop {
            one.server.resource_updated("test://greeting");
            let told = tokio::time::timeout(Duration::from_millis(200), event(&mut stream)).await;
            if let Ok(told) = told {
                return assert_eq!(told.unwrap()["params"]["uri"], "test://greeting");
            }
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn changes_are_told_to_the_clients_of_all() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let mut stream = open(other.address(), &Request::bare("GET").within(&id, REVISION)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    one.server.tools_changed();
    assert_eq!(event(&mut stream).await.unwrap()["method"], "notifications/tools/list_changed");
    one.server.notify_all("notifications/message", None).await.unwrap();
    assert_eq!(event(&mut stream).await.unwrap()["method"], "notifications/message");
}

#[tokio::test]
async fn every_key_has_the_prefix_and_an_end_and_none_a_secret() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, guarded);
    let grace = |request: Request| request.with("Authorization", "Bearer secret-of-grace");
    let begun = ask(one.address(), &grace(Request::post(&initialize(REVISION)))).await;
    let id = begun.head.header("mcp-session-id").unwrap().to_owned();
    let mut stream = open(other.address(), &grace(Request::bare("GET").within(&id, REVISION))).await;
    assert_eq!(head(&mut stream).await.status, 200);
    for message in [call(1, "talk", &json!({})), method(2, "resources/subscribe", &json!({"uri": "test://greeting"}))] {
        assert_eq!(ask(one.address(), &grace(Request::post(&message).within(&id, REVISION))).await.head.status, 200);
    }
    one.server.notify(&id, "notifications/message", None).await.unwrap();
    assert!(event(&mut stream).await.is_some());
    one.server.tools_changed();
    assert!(event(&mut stream).await.is_some());
    let keys: Vec<String> = redis.ask(&["KEYS", "*"]);
    assert!(keys.len() > 5, "{keys:?}");
    let mut kinds = HashMap::new();
    for key in &keys {
        assert!(key.starts_with("test:"), "{key}");
        assert!(redis.ask::<i64>(&["PTTL", key]) > 0, "{key} has no end");
        let kind: String = redis.ask(&["TYPE", key]);
        let held: redis::Value = match kind.as_str() {
            "string" => redis.ask(&["GET", key]),
            "hash" => redis.ask(&["HGETALL", key]),
            "zset" => redis.ask(&["ZRANGE", key, "0", "-1"]),
            "list" => redis.ask(&["LRANGE", key, "0", "-1"]),
            "stream" => redis.ask(&["XRANGE", key, "-", "+"]),
            other => panic!("{key} is a {other}"),
        };
        *kinds.entry(kind).or_insert(0) += 1;
        let text = format!("{key} {}", text_in(&held));
        assert!(!text.contains("secret-of-grace") && !text.contains("grace") && !text.contains(&id), "{text}");
    }
    assert!(kinds.contains_key("hash") && kinds.contains_key("stream"), "{kinds:?}");
}

fn text_in(value: &redis::Value) -> String {
    match value {
        redis::Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        redis::Value::Array(values) => values.iter().map(text_in).collect::<Vec<_>>().join(" "),
        redis::Value::Map(pairs) => pairs.iter().map(|(key, value)| text_in(key) + " " + &text_in(value)).collect(),
        other => format!("{other:?}"),
    }
}
