//! Verifiers in a server that is called over HTTP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mcpace_auth::{
    AllowAny, Bound, IntrospectionOptions, IntrospectionVerifier, JwtOptions, JwtVerifier, Keys, Secret,
};
use mcpace_auth::{StaticToken, StaticTokens};
use mcpace_serve::http::{self, Authorization, Options, ServerHandle, TokenVerifier};
use mcpace_serve::{Context, NoArguments, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

use crate::issuer::{Issuer, Manual, json as reply, limited};
use crate::signing::{Signer, claims};

const RESOURCE: &str = "https://mcp.example/api/mcp";

fn options(verifier: Arc<dyn TokenVerifier>, address: &str) -> Options {
    let authorization = Authorization {
        verifier,
        resource: RESOURCE.to_owned(),
        authorization_servers: vec!["https://id.example".to_owned()],
        scopes: vec!["read".to_owned()],
    };
    Options {
        address: address.parse().unwrap(),
        authorization: Some(authorization),
        stateless: true,
        workers: std::num::NonZeroUsize::new(2),
        ..Options::default()
    }
}

fn start(verifier: Arc<dyn TokenVerifier>) -> ServerHandle {
    let who = Tool::new("who").handler_async(|_: NoArguments, context: Context| async move {
        Ok::<_, ToolError>(context.principal().map_or("nobody".to_owned(), |principal| principal.subject.to_string()))
    });
    let server = Server::builder("tokens", "1").tool(who).build().unwrap();
    http::serve(server, options(verifier, "127.0.0.1:0")).unwrap()
}

/// One connection.
struct Caller {
    sender: SendRequest<Full<Bytes>>,
}

impl Caller {
    async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, io) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(io);
        Self { sender }
    }

    /// Status, challenge and body of a call.
    async fn call(&mut self, token: &str) -> (u16, String, Value) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who"}});
        let request = Request::post("/mcp")
            .header("Host", "localhost")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2025-11-25")
            .header("Authorization", format!("Bearer {token}"));
        let (status, challenge, body) = self.send(request.body(Full::new(message.to_string().into())).unwrap()).await;
        (status, challenge, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> (u16, String, Bytes) {
        self.sender.ready().await.unwrap();
        let reply = limited("a reply", self.sender.send_request(request)).await.unwrap();
        let challenge = reply.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
        let status = reply.status().as_u16();
        (status, challenge.unwrap_or_default(), reply.into_body().collect().await.unwrap().to_bytes())
    }
}

/// How often an issuer was asked for each token.
type Counts = Arc<Mutex<HashMap<String, usize>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_issuer_is_asked_once_for_each_token_and_lifetime() {
    const TOKENS: usize = 1000;
    const CONNECTIONS: usize = 50;
    let counts: Counts = Arc::default();
    let asked = Arc::clone(&counts);
    // So slow that each connection waits for the others': two of them at a time have the same token.
    let slowest = Arc::new(Barrier::new(CONNECTIONS / 2));
    let issuer = Issuer::start(move |question| {
        let token = question.field("token").unwrap();
        *asked.lock().unwrap().entry(token.clone()).or_default() += 1;
        let slowest = Arc::clone(&slowest);
        async move {
            slowest.wait().await;
            reply(json!({"active": true, "sub": token, "scope": "read"}).to_string())
        }
    })
    .await;
    let clock = Manual::new();
    let mut options = IntrospectionOptions::new(format!("{}/i", issuer.url), "server", Secret::new("s"));
    options.clock = clock.clone();
    options.reach.time = Duration::from_secs(60);
    let running = start(Arc::new(IntrospectionVerifier::new(options).unwrap()));
    let address = running.address();
    // Each connection calls with some of the tokens, in order; `shift` says with which.
    let round = |shift: usize, of_each: usize| async move {
        let mut callers = Vec::new();
        for index in 0..CONNECTIONS {
            callers.push(tokio::spawn(async move {
                let mut caller = Caller::connect(address).await;
                // Two connections have the same tokens at the same time.
                let first = (index / 2 + shift) * (TOKENS * 2 / CONNECTIONS);
                for token in (first..first + of_each).map(|number| format!("token-{}", number % TOKENS)) {
                    let (status, _, body) = caller.call(&token).await;
                    assert_eq!(
                        (status, body["result"]["content"][0]["text"].as_str()),
                        (200, Some(token.as_str())),
                        "{body}"
                    );
                }
            }));
        }
        for caller in callers {
            limited("the calls", caller).await.unwrap();
        }
    };
    let once = |times: usize| {
        let counts = counts.lock().unwrap();
        (counts.len(), counts.values().filter(|&&count| count != times).count())
    };
    round(0, 40).await;
    assert_eq!(once(1), (TOKENS, 0), "one request a token, whoever else waits for it");
    // All of them again, by other connections: nobody is asked.
    clock.pass(59);
    round(7, 40).await;
    assert_eq!((once(1), issuer.asked()), ((TOKENS, 0), TOKENS));
    // The next lifetime, for some.
    clock.pass(1);
    round(3, 2).await;
    assert_eq!(issuer.asked(), TOKENS + CONNECTIONS);
    assert_eq!(counts.lock().unwrap().values().max(), Some(&2));
}

#[tokio::test]
async fn refusals_and_outages_are_told_as_the_rfcs_have_it() {
    let key = Signer::ed(1);
    let mut options = JwtOptions::new(Keys::Pem(key.pem()));
    options.clock = Manual::new();
    options.demands.issuers = vec!["https://id.example".to_owned()];
    let running = start(Arc::new(JwtVerifier::new(options).unwrap()));
    let mut caller = Caller::connect(running.address()).await;
    let (status, _, body) = caller.call(&key.token("k", &claims(&json!({})))).await;
    assert_eq!((status, body["result"]["content"][0]["text"].as_str()), (200, Some("ada")));
    let metadata = r#"resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/api/mcp""#;
    let (status, challenge, _) = caller.call("rubbish").await;
    assert_eq!((status, challenge), (401, format!(r#"Bearer error="invalid_token", scope="read", {metadata}"#)));
    let (status, challenge, _) = caller.call(&key.token("k", &claims(&json!({"scope": "write"})))).await;
    assert_eq!((status, challenge), (403, format!(r#"Bearer error="insufficient_scope", scope="read", {metadata}"#)));
    // The metadata is where the challenge says, behind a proxy that strips a prefix of the endpoint's path, too.
    for path in ["/.well-known/oauth-protected-resource/api/mcp", "/.well-known/oauth-protected-resource/mcp"] {
        let request = Request::get(path).header("Host", "localhost").body(Full::default()).unwrap();
        let (status, _, body) = caller.send(request).await;
        let document: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, document["resource"].as_str()), (200, Some(RESOURCE)), "{path}");
    }
    // Two tokens: whatever stands in front might have looked at the other one.
    let good = format!("Bearer {}", key.token("k", &claims(&json!({}))));
    let twice = Request::post("/mcp").header("Host", "localhost").header("Content-Type", "application/json");
    let twice = twice.header("Authorization", &good).header("Authorization", &good).body(Full::from("{}")).unwrap();
    assert_eq!(caller.send(twice).await.0, 401);

    let away = Issuer::start(|_| async { crate::issuer::status(500) }).await;
    let verifier = JwtVerifier::new(JwtOptions::new(Keys::Url(away.url.clone()))).unwrap();
    let running = start(Arc::new(verifier));
    let (status, challenge, _) =
        Caller::connect(running.address()).await.call(&key.token("k", &claims(&json!({})))).await;
    assert_eq!((status, challenge.as_str()), (503, ""));
}

#[tokio::test]
async fn tokens_are_held_to_the_servers_own_address() {
    let key = Signer::ed(1);
    let mut options = JwtOptions::new(Keys::Pem(key.pem()));
    options.clock = Manual::new();
    let running = start(Arc::new(Bound::new(Arc::new(JwtVerifier::new(options).unwrap()), RESOURCE, None)));
    let mut caller = Caller::connect(running.address()).await;
    for (audience, status) in [
        (json!(RESOURCE), 200),
        (json!(["https://other", format!("{RESOURCE}/")]), 200),
        (json!("https://mcp.example/mcp"), 401),
        (json!(null), 401),
    ] {
        let token = key.token("k", &claims(&json!({"aud": audience})));
        assert_eq!(caller.call(&token).await.0, status, "{audience}");
    }
}

#[tokio::test]
async fn tokens_for_development_serve_this_machine_only() {
    let list = || {
        let ada = StaticToken {
            client_id: "app".to_owned(),
            subject: Some("ada".to_owned()),
            scopes: vec!["read".to_owned()],
            ..StaticToken::default()
        };
        let late = StaticToken { expires: Some(Duration::from_secs(1)), ..ada.clone() };
        StaticTokens::new([("one".to_owned(), ada), ("late".to_owned(), late)])
    };
    let running = start(Arc::new(list()));
    let mut caller = Caller::connect(running.address()).await;
    for (token, status) in [("one", 200), ("late", 401), ("two", 401), ("on", 401)] {
        assert_eq!(caller.call(token).await.0, status, "{token}");
    }
    let any = start(Arc::new(AllowAny::new("anyone", ["read".to_owned()])));
    let (status, _, body) = Caller::connect(any.address()).await.call("whatever").await;
    assert_eq!((status, body["result"]["content"][0]["text"].as_str()), (200, Some(":client::anyone")));

    let server = || Server::builder("tokens", "1").build().unwrap();
    let strict: [Arc<dyn TokenVerifier>; 3] = [
        Arc::new(list()),
        Arc::new(AllowAny::new("anyone", [])),
        Arc::new(Bound::new(Arc::new(list()), RESOURCE, None)),
    ];
    for verifier in strict {
        let error = http::serve(server(), options(verifier, "0.0.0.0:0")).err().map(|error| error.to_string());
        assert!(error.as_deref().is_some_and(|said| said.contains("loopback")), "{error:?}");
    }
    let told: [Arc<dyn TokenVerifier>; 2] =
        [Arc::new(list().beyond_loopback(true)), Arc::new(AllowAny::new("anyone", []).beyond_loopback(true))];
    for verifier in told {
        assert!(http::serve(server(), options(verifier, "0.0.0.0:0")).is_ok());
    }
}

#[test]
fn who_takes_tokens_of_other_servers_says_so() {
    let key = Signer::ed(1);
    let jwt = |audiences: &[&str]| {
        let mut options = JwtOptions::new(Keys::Pem(key.pem()));
        options.demands.audiences = audiences.iter().map(|&audience| audience.to_owned()).collect();
        JwtVerifier::new(options).unwrap()
    };
    let introspected = |audiences: &[&str]| {
        let mut options = IntrospectionOptions::new("https://id.example/i", "server", Secret::new("s"));
        options.demands.audiences = audiences.iter().map(|&audience| audience.to_owned()).collect();
        IntrospectionVerifier::new(options).unwrap()
    };
    assert!(jwt(&[]).takes_any_audience() && introspected(&[]).takes_any_audience());
    assert!(!jwt(&[RESOURCE]).takes_any_audience() && !introspected(&[RESOURCE]).takes_any_audience());
    assert!(!Bound::new(Arc::new(jwt(&[])), RESOURCE, None).takes_any_audience());
}
