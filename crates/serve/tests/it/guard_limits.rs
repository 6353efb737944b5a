//! Rate limits: whose uses are counted, what is told when there were too many, and limiters of other making.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcpace_serve::guard::{
    AccessRequest, Algorithm, By, Denial, Exceeded, Guard, KeyOf, Keyed, Limiter, LimiterDown, MemoryLimiter,
    OnLimiterDown, RateLimit, Taking, Verdict,
};
use mcpace_serve::{
    Challenge, Channel, HandlerError, Incoming, NoArguments, Outlet, Prompt, ReplyStatus, Resource, Server, Tool,
    ToolError,
};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Message;
use serde_json::json;

use crate::core_harness::{Answer, Client, MODERN, Outbox, finish};

/// A limiter, and its clock in milliseconds.
fn frozen() -> (Arc<MemoryLimiter>, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(0));
    let its = Arc::clone(&clock);
    (Arc::new(MemoryLimiter::with_clock(1_000, move || Duration::from_millis(its.load(SeqCst)))), clock)
}

fn limit(calls: u32, seconds: u64) -> RateLimit {
    RateLimit::new(format!("{calls} in {seconds}"), calls, Duration::from_secs(seconds))
        .algorithm(Algorithm::FixedWindow)
}

fn server(guard: Guard, limiter: Arc<dyn Limiter>) -> Server {
    let tool = Tool::new("tool").guard(guard).handler(|_: NoArguments| Ok::<_, ToolError>("done"));
    Server::builder("limited", "1").limiter(limiter).tool(tool).build().unwrap()
}

async fn passes(client: &Client) -> bool {
    client.call(1, "tool", json!({})).await.body["error"].is_null()
}

#[tokio::test]
async fn who_calls_too_often_is_told_when_to_come_back() {
    for revision in Revision::ALL {
        let (limiter, clock) = frozen();
        let server = server(Guard::new().limit(limit(2, 60)), limiter);
        let client = Client::connect(&server, revision);
        assert!(passes(&client).await && passes(&client).await);
        clock.store(30_500, SeqCst);
        let refused = client.call(1, "tool", json!({})).await;
        let status = if revision.is_modern() { ReplyStatus::TooManyRequests } else { ReplyStatus::Ok };
        assert_eq!(refused.error(), (-32004, status), "{revision}");
        assert_eq!(refused.body["error"]["data"], json!({"retryAfterMs": 29_500}));
        assert_eq!(refused.challenge, Some(Challenge::Wait(Duration::from_millis(29_500))));
        clock.store(60_000, SeqCst);
        assert!(passes(&client).await);
    }
}

#[tokio::test]
async fn each_principal_has_its_own_count_and_strangers_have_one() {
    let (limiter, _) = frozen();
    let server = server(Guard::new().limit(limit(1, 60).by(By::Principal)), limiter);
    let (first, second) = (Client::stateless(&server, MODERN), Client::stateless(&server, MODERN));
    assert!(passes(&first).await);
    assert!(!passes(&second).await);
    for who in ["alice", "bob"] {
        assert!(passes(&first.clone().of(who)).await);
        assert!(!passes(&second.clone().of(who)).await);
    }
}

#[tokio::test]
async fn everyone_is_counted_together_where_that_is_wanted() {
    let (limiter, _) = frozen();
    let server = server(Guard::new().limit(limit(2, 60).by(By::Everyone)), limiter);
    let client = Client::stateless(&server, MODERN);
    assert!(passes(&client.clone().of("alice")).await);
    assert!(passes(&client.clone().of("bob")).await);
    assert!(!passes(&client.of("carol")).await);
}

/// A way that knows its session.
struct Way(Option<&'static str>);

impl Channel for Way {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::new(Outbox::default())
    }

    fn session_id(&self) -> Option<&str> {
        self.0
    }
}

async fn call_in(client: &Client, session: Option<&'static str>) -> Answer {
    let params = client.params(json!({"name": "tool"}));
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let body = Bytes::from(text);
    let message = Message::parse(&body).unwrap();
    finish(client.server.handle(Incoming {
        outline: None,
        message: &message,
        body: &body,
        peer: &client.peer,
        channel: &Way(session),
        received: std::time::Instant::now(),
        timed: false,
    }))
    .await
}

#[tokio::test]
async fn each_session_has_its_own_count_and_else_each_principal() {
    let (limiter, _) = frozen();
    let server = server(Guard::new().limit(limit(1, 60).by(By::Session)), limiter);
    let client = Client::stateless(&server, MODERN).of("alice");
    for session in [Some("a"), Some("b"), None] {
        assert!(call_in(&client, session).await.body["error"].is_null(), "{session:?}");
        assert_eq!(call_in(&client, session).await.error().0, -32004, "{session:?}");
    }
    assert!(call_in(&client.of("bob"), None).await.body["error"].is_null());
}

struct Tenant;

impl KeyOf for Tenant {
    fn key<'a>(&self, asked: &AccessRequest<'a>) -> Keyed<'a> {
        match asked.principal.map(|principal| &*principal.subject) {
            None => Keyed::Denied(Denial::new("who are you?")),
            Some("panic") => panic!("this key panics on purpose"),
            Some(later) if later.starts_with("later") => {
                let tenant = later.rsplit('@').next().unwrap_or_default().to_owned();
                Keyed::Later(Box::pin(async move {
                    tokio::task::yield_now().await;
                    if tenant == "nowhere" { Err(Denial::new("where?")) } else { Ok(tenant) }
                }))
            }
            Some(who) => Keyed::Now(Cow::Borrowed(who.rsplit('@').next().unwrap_or_default())),
        }
    }
}

#[tokio::test]
async fn a_key_of_ones_own_says_who_is_counted_together() {
    let (limiter, _) = frozen();
    let server = server(Guard::new().limit(limit(1, 60).by(By::Key(Arc::new(Tenant)))).limit(limit(9, 90)), limiter);
    let client = Client::stateless(&server, MODERN);
    let of = |who: &str| client.clone().of(who);
    assert!(passes(&of("a@one")).await);
    assert!(!passes(&of("b@one")).await);
    assert!(!passes(&of("later@one")).await);
    assert!(passes(&of("later@two")).await);
    assert!(!passes(&of("c@two")).await);
    assert_eq!(client.call(1, "tool", json!({})).await.message(), "who are you?");
    assert_eq!(of("later@nowhere").call(1, "tool", json!({})).await.message(), "where?");
    assert_eq!(of("panic").call(1, "tool", json!({})).await.error(), (-32003, ReplyStatus::Forbidden));
}

#[tokio::test]
async fn what_is_refused_for_another_reason_is_not_counted() {
    let (limiter, clock) = frozen();
    let only_alice =
        |asked: &AccessRequest<'_>| Verdict::from(asked.principal.is_some_and(|it| &*it.subject == "alice"));
    let guard = Guard::new().permission(only_alice).limit(limit(3, 3_600).by(By::Everyone)).limit(limit(1, 1));
    let server = server(guard, limiter);
    let (alice, bob) = (Client::stateless(&server, MODERN).of("alice"), Client::stateless(&server, MODERN).of("bob"));
    for second in 0..3 {
        clock.store(second * 1_000, SeqCst);
        assert!(passes(&alice).await);
        // Neither for want of permission, nor for too many in this second.
        for _ in 0..5 {
            assert_eq!(bob.call(1, "tool", json!({})).await.error().0, -32003);
            assert_eq!(alice.call(1, "tool", json!({})).await.challenge, Some(Challenge::Wait(Duration::from_secs(1))));
        }
        // Lists don't count.
        assert_eq!(alice.now(2, "tools/list", json!({})).result()["tools"].as_array().unwrap().len(), 1);
    }
    clock.store(3_000, SeqCst);
    assert_eq!(alice.call(1, "tool", json!({})).await.challenge, Some(Challenge::Wait(Duration::from_secs(3_597))));
}

#[tokio::test]
async fn one_limit_over_many_things() {
    let (limiter, _) = frozen();
    let guard = || Guard::new().limit(limit(3, 60));
    let prompt = Prompt::new("prompt").guard(guard()).handler(|_: NoArguments| Ok::<_, HandlerError>("done"));
    let tool = Tool::new("tool").guard(guard()).handler(|_: NoArguments| Ok::<_, ToolError>("done"));
    let server = Server::builder("limited", "1")
        .limiter(limiter)
        .tool(tool)
        .prompt(prompt)
        .resource(Resource::new("book://one", "one").guard(guard()).text("one"))
        .build()
        .unwrap();
    let client = Client::stateless(&server, MODERN);
    let requests = [
        ("tools/call", json!({"name": "tool"})),
        ("prompts/get", json!({"name": "prompt"})),
        ("resources/read", json!({"uri": "book://one"})),
    ];
    for (method, params) in &requests {
        assert!(client.now(1, method, params.clone()).body["error"].is_null(), "{method}");
    }
    for (method, params) in &requests {
        assert_eq!(client.now(1, method, params.clone()).error(), (-32004, ReplyStatus::TooManyRequests), "{method}");
    }
}

/// A limiter somewhere else, which may be away.
#[derive(Default)]
struct Distant {
    asked: Mutex<Vec<String>>,
    takes: AtomicUsize,
    is_down: bool,
}

impl Limiter for Distant {
    fn take(&self, rule: &RateLimit, key: &str) -> Taking {
        self.asked.lock().unwrap().push(format!("{} {key}", rule.name));
        let (taken, is_down) = (self.takes.fetch_add(1, SeqCst), self.is_down);
        Taking::Later(Box::pin(async move {
            tokio::task::yield_now().await;
            match taken {
                _ if is_down => Err(LimiterDown),
                0..4 => Ok(Ok(())),
                _ => Ok(Err(Exceeded { retry_after: Duration::from_micros(1_500) })),
            }
        }))
    }
}

#[tokio::test]
async fn a_limiter_may_take_its_time() {
    let distant = Arc::new(Distant::default());
    let guard = Guard::new().limit(limit(9, 60)).limit(limit(5, 1).by(By::Everyone));
    let server = server(guard, Arc::<Distant>::clone(&distant));
    let client = Client::stateless(&server, MODERN).of("alice");
    assert!(passes(&client).await && passes(&client).await);
    // One limit after the other, that of the shortest time first.
    assert_eq!(*distant.asked.lock().unwrap(), ["5 in 1 ", "9 in 60 alice", "5 in 1 ", "9 in 60 alice"]);
    let refused = client.call(1, "tool", json!({})).await;
    assert_eq!(refused.error(), (-32004, ReplyStatus::TooManyRequests));
    assert_eq!(refused.body["error"]["data"], json!({"retryAfterMs": 2}));
    assert_eq!(distant.asked.lock().unwrap().len(), 5, "who is refused is not counted further");
}

#[tokio::test]
async fn where_nobody_can_count_the_server_refuses_or_goes_on() {
    for (then, status) in
        [(OnLimiterDown::Refuse, Some((-32603, ReplyStatus::Unavailable))), (OnLimiterDown::Allow, None)]
    {
        let tool = Tool::new("tool").guard(Guard::new().limit(limit(1, 60)).limit(limit(1, 90)));
        let server = Server::builder("limited", "1")
            .limiter(Arc::new(Distant { is_down: true, ..Distant::default() }))
            .on_limiter_down(then)
            .tool(tool.handler(|_: NoArguments| Ok::<_, ToolError>("done")))
            .build()
            .unwrap();
        let answer = Client::stateless(&server, MODERN).call(1, "tool", json!({})).await;
        match status {
            Some(status) => assert_eq!(answer.error(), status),
            None => assert_eq!(answer.text(), "done"),
        }
    }
}
