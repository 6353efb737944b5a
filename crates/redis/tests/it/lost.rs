//! Words and keys that get lost, and processes that are cut off by themselves.

use std::time::Duration;

use mcpace_redis::{ConnectionEvent, Options, Redis, RedisLimiter};
use mcpace_serve::guard::{AccessRequest, Guard, Verdict};
use mcpace_serve::http::ResponseMode;
use mcpace_serve::store::{BroadcastChange, LogId, OnDown, Post, SessionName, To};
use mcpace_serve::{Resource, Server};
use serde_json::{Value, json};

use crate::fixture;
use crate::http_harness::{Request, ask, call, echo, event, head, open, session, text_of};
use crate::peer::{Peer, limited};
use crate::server::{Member, Proxy, RedisServer, gated, member, member_at, options, pair, until};

const REVISION: &str = "2025-11-25";

/// Key of the facts about a session's standalone stream.
fn meta(id: &str) -> String {
    format!("test:l:{}:m", LogId::standalone(SessionName::of(id)))
}

async fn listen(address: std::net::SocketAddr, id: &str) -> Peer {
    let mut stream = open(address, &Request::bare("GET").within(id, REVISION)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    stream
}

/// The next event that isn't priming, with its id.
async fn next(stream: &mut Peer) -> (Option<String>, Value) {
    loop {
        let event = limited("an event", stream.event()).await.unwrap().unwrap().unwrap();
        if !event.data.is_empty() {
            return (event.id, serde_json::from_str(&event.data).unwrap());
        }
    }
}

async fn gone(member: &mut Member) {
    member.told(|events| matches!(events.last(), Some(ConnectionEvent::Gone { .. }))).await;
}

async fn back(member: &mut Member) {
    member.told(|events| events.iter().any(|event| matches!(event, ConnectionEvent::Back { .. }))).await;
}

#[tokio::test]
async fn a_quiet_stream_is_kept_and_known_as_read() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = session(one.address(), REVISION).await;
    let _stream = listen(one.address(), &id).await;
    // Read, it does not grow old.
    let ttl = || redis.ask::<i64>(&["PTTL", &meta(&id)]);
    assert_eq!(redis.ask::<i64>(&["PEXPIRE", &meta(&id), "60000"]), 1);
    until("its time again", || ttl() >= 60_000).await;
    // Forgotten all the same, it is read again by whoever reads it.
    redis.ask::<i64>(&["DEL", &meta(&id)]);
    until("its reader", || redis.ask::<Option<String>>(&["HGET", &meta(&id), "r"]).is_some()).await;
    assert_eq!(ask(other.address(), &Request::bare("GET").within(&id, REVISION)).await.head.status, 409);
    // Even where somebody had something to say in between.
    redis.ask::<i64>(&["HDEL", &meta(&id), "r", "o"]);
    until("its reader", || redis.ask::<Option<String>>(&["HGET", &meta(&id), "r"]).is_some()).await;
}

#[tokio::test]
async fn what_waits_for_a_client_stays_as_long_as_its_session() {
    let redis = RedisServer::start();
    let [one, _other] = pair(&redis, |options| options.limits.session_idle = Duration::from_secs(8));
    let id = session(one.address(), REVISION).await;
    one.server.notify(&id, "notifications/kept", None).await.unwrap();
    let keys = [meta(&id), meta(&id).trim_end_matches(":m").to_owned()];
    for key in &keys {
        assert_eq!(redis.ask::<i64>(&["PEXPIRE", key, "6000"]), 1);
    }
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    for key in &keys {
        limited("its time again", async {
            while redis.ask::<i64>(&["PTTL", key]) < 6_000 {
                assert_eq!(ask(one.address(), &request).await.head.status, 200);
            }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_stream_that_is_read_elsewhere_is_let_go_though_nobody_said_so() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let mut stream = listen(one.address(), &id).await;
    redis.ask::<i64>(&["HSET", &meta(&id), "r", &format!("{}.9", u32::MAX)]);
    one.server.notify(&id, "notifications/message", None).await.unwrap();
    assert_eq!(event(&mut stream).await, None, "it is another's");
    // That one doesn't live.
    let mut taken = listen(other.address(), &id).await;
    assert_eq!(next(&mut taken).await.1["method"], "notifications/message");
    // Only who reads it tells its client what changed.
    one.server.tools_changed();
    assert_eq!(next(&mut taken).await.1["method"], "notifications/tools/list_changed");
    one.server.notify(&id, "notifications/last", None).await.unwrap();
    let last = next(&mut taken).await.1;
    assert_eq!(last["method"], "notifications/last", "what changed is told once");
}

#[tokio::test]
async fn a_process_that_is_back_leaves_a_stream_to_where_its_client_has_gone() {
    let redis = RedisServer::start();
    let proxy = Proxy::before(&redis);
    let mut one = member_at(&proxy.url(), fixture::server(""), OnDown::Refuse, |_| {});
    let other = member(&redis, OnDown::Refuse, |_| {});
    let id = session(one.address(), REVISION).await;
    let mut half_open = listen(one.address(), &id).await;
    other.server.notify(&id, "notifications/first", None).await.unwrap();
    let (last, _) = next(&mut half_open).await;
    proxy.cut();
    gone(&mut one).await;
    // For so long that nobody would tell it anything.
    let reader: String = redis.ask(&["HGET", &meta(&id), "r"]);
    let (process, _) = reader.split_once('.').unwrap();
    redis.ask::<i64>(&["DEL", &format!("test:up:{process}")]);
    let come_back = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", last.unwrap());
    let mut taken = open(other.address(), &come_back).await;
    assert_eq!(head(&mut taken).await.status, 200);
    proxy.mend();
    back(&mut one).await;
    assert_eq!(event(&mut half_open).await, None, "it is read elsewhere");
    one.server.notify(&id, "notifications/last", None).await.unwrap();
    assert_eq!(next(&mut taken).await.1["method"], "notifications/last");
}

/// A resource whose guard has to wait.
fn guarded() -> Server {
    let agrees = |_: &AccessRequest<'_>| {
        Verdict::Later(Box::pin(async {
            tokio::task::yield_now().await;
            Ok(())
        }))
    };
    let guard = Guard::new().permission(agrees);
    let resource = Resource::new("test://greeting", "greeting").guard(guard).text("hello");
    Server::builder("guarded", "1").resource(resource).build().unwrap()
}

#[tokio::test]
async fn what_had_to_wait_for_its_guard_is_told_before_it_is_answered() {
    let redis = RedisServer::start();
    for mode in [ResponseMode::Json, ResponseMode::Sse, ResponseMode::Auto] {
        let [one, other] =
            [(); 2].map(|()| member_at(&redis.url(), guarded(), OnDown::Refuse, |options| options.response = mode));
        let id = session(one.address(), REVISION).await;
        let mut stream = listen(other.address(), &id).await;
        let changes = format!("test:s:{}:c", SessionName::of(&id));
        for (method, count) in [("resources/subscribe", 1), ("resources/unsubscribe", 0), ("resources/subscribe", 1)] {
            let change = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": "test://greeting"}});
            let mut reply = open(one.address(), &Request::post(&change).within(&id, REVISION)).await;
            let is_stream = head(&mut reply).await.header("content-type") == Some("text/event-stream");
            if is_stream {
                assert_eq!(event(&mut reply).await.unwrap()["result"], json!({}), "{mode:?}");
            } else {
                limited("the reply", reply.rest()).await.unwrap().unwrap();
            }
            assert_eq!(redis.ask::<usize>(&["HLEN", &changes]), count, "{mode:?} {method}");
        }
        limited("the update", async {
            loop {
                one.server.resource_updated("test://greeting");
                if let Ok(told) = tokio::time::timeout(Duration::from_millis(200), event(&mut stream)).await {
                    return assert_eq!(told.unwrap()["params"]["uri"], "test://greeting");
                }
            }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn what_is_said_alone_passes_over_nothing_that_others_said() {
    let redis = RedisServer::start();
    let proxy = Proxy::before(&redis);
    let serve = |url: &str| member_at(url, crate::fixture::server(""), OnDown::Memory, |_| {});
    let (mut one, other) = (serve(&proxy.url()), serve(&redis.url()));
    let id = session(one.address(), REVISION).await;
    let mut stream = listen(one.address(), &id).await;
    one.server.notify(&id, "notifications/before", None).await.unwrap();
    assert!(next(&mut stream).await.0.is_some());
    proxy.cut();
    gone(&mut one).await;
    other.server.notify(&id, "notifications/theirs", None).await.unwrap();
    one.server.notify(&id, "notifications/ours", None).await.unwrap();
    let (position, ours) = next(&mut stream).await;
    assert_eq!((position, &ours["method"]), (None, &json!("notifications/ours")));
    proxy.mend();
    let (position, theirs) = next(&mut stream).await;
    assert_eq!((position.is_some(), &theirs["method"]), (true, &json!("notifications/theirs")));
}

#[tokio::test]
async fn a_stream_of_ones_own_is_taken_up_by_all_once_the_store_is_back() {
    let mut redis = RedisServer::start();
    let mut one = member(&redis, OnDown::Memory, |_| {});
    let id = session(one.address(), REVISION).await;
    let mut stream = listen(one.address(), &id).await;
    one.server.notify(&id, "notifications/before", None).await.unwrap();
    let (theirs, _) = next(&mut stream).await;
    redis.kill();
    gone(&mut one).await;
    drop(stream);
    // A stream of the store's is gone on with here, for as long as that is away.
    let again = |last: String| Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", last);
    let mut stream = limited("a stream", async {
        loop {
            let mut stream = open(one.address(), &again(theirs.clone().unwrap())).await;
            if head(&mut stream).await.status == 200 {
                return stream;
            }
        }
    })
    .await
    .unwrap();
    let own = limited("priming", stream.event()).await.unwrap().unwrap().unwrap().id.unwrap();
    one.server.notify(&id, "notifications/alone", None).await.unwrap();
    assert_eq!(next(&mut stream).await.1["method"], "notifications/alone");
    redis.restart();
    back(&mut one).await;
    assert_eq!(event(&mut stream).await, None, "it ends, so that its client comes back");
    // With what it had here, to the stream that all know.
    let mut stream = limited("the stream of all", async {
        loop {
            // The store may still believe in the reader before.
            let mut stream = open(one.address(), &again(own.clone())).await;
            match head(&mut stream).await.status {
                200 => return stream,
                status => assert_eq!(status, 409),
            }
        }
    })
    .await
    .unwrap();
    one.server.notify(&id, "notifications/after", None).await.unwrap();
    let (id, after) = next(&mut stream).await;
    assert_eq!((id.unwrap().starts_with("0-"), &after["method"]), (true, &json!("notifications/after")));
}

#[tokio::test]
async fn what_ends_while_the_store_is_away_does_not_come_back() {
    let mut redis = RedisServer::start();
    let [mut one, mut other] = [(); 2].map(|()| member(&redis, OnDown::Memory, |_| {}));
    let id = session(one.address(), REVISION).await;
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    assert_eq!(ask(other.address(), &request).await.head.status, 200);
    redis.kill();
    gone(&mut one).await;
    gone(&mut other).await;
    assert_eq!(ask(one.address(), &Request::bare("DELETE").within(&id, REVISION)).await.head.status, 204);
    redis.restart();
    back(&mut one).await;
    back(&mut other).await;
    assert_eq!(ask(one.address(), &request).await.head.status, 404);
    limited("its end for all", async { while ask(other.address(), &request).await.head.status != 404 {} })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_session_is_put_back_with_what_its_client_set_and_what_is_left_of_its_life() {
    let mut redis = RedisServer::start();
    let life = Duration::from_secs(3_600);
    let [mut one, mut other] = pair(&redis, |options| options.limits.session_life = Some(Duration::from_secs(3_600)));
    let begun = std::time::Instant::now();
    let id = session(one.address(), REVISION).await;
    let name = SessionName::of(&id);
    let ends_at = |redis: &RedisServer| redis.ask::<Option<i64>>(&["HGET", &format!("test:s:{name}"), "u"]);
    let first = ends_at(&redis).unwrap();
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "test://greeting"}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "error"}}),
    ];
    for message in &messages {
        assert_eq!(ask(one.address(), &Request::post(message).within(&id, REVISION)).await.head.status, 200);
    }
    redis.kill();
    gone(&mut one).await;
    gone(&mut other).await;
    redis.restart_empty();
    let emptied =
        |events: &Vec<ConnectionEvent>| events.iter().any(|event| matches!(event, ConnectionEvent::Emptied { .. }));
    one.told(emptied).await;
    other.told(emptied).await;
    let request = Request::post(&echo(3, "hi")).within(&id, REVISION);
    limited("the session", async { while ask(other.address(), &request).await.head.status != 200 {} }).await.unwrap();
    let changes = format!("test:s:{name}:c");
    until("what was set", || redis.ask::<usize>(&["HLEN", &changes]) == 2).await;
    let passed = i64::try_from(begun.elapsed().as_millis()).unwrap();
    let again = ends_at(&redis).unwrap();
    assert!(again - first < passed / 2, "it began anew: {again} after {first}, {passed} ms later ({life:?})");
}

#[tokio::test]
async fn a_store_that_is_emptied_is_noticed_without_a_break() {
    let redis = RedisServer::start();
    let [mut one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    redis.ask::<String>(&["FLUSHALL"]);
    one.told(|events| matches!(events.as_slice(), [ConnectionEvent::Emptied { .. }])).await;
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    limited("the session", async { while ask(other.address(), &request).await.head.status != 200 {} }).await.unwrap();
}

/// As after a fail-over to a machine whose clock is behind.
#[tokio::test]
async fn a_store_whose_clock_is_behind_is_heard_at_once() {
    let redis = RedisServer::start();
    let [mut one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let mut stream = listen(one.address(), &id).await;
    let reader: String = redis.ask(&["HGET", &meta(&id), "r"]);
    let (process, _) = reader.split_once('.').unwrap();
    // Both of its streams are in the far future.
    for (key, kind) in [("test:all".to_owned(), "tools"), (format!("test:box:{process}"), "prompts")] {
        let post = json!({"told": kind}).to_string();
        redis.ask::<String>(&["XADD", &key, "99999999999999-0", "n", "1", "f", "0", "p", &post]);
        assert_eq!(next(&mut stream).await.1["method"], format!("notifications/{kind}/list_changed"));
    }
    redis.ask::<String>(&["FLUSHALL"]);
    one.told(|events| matches!(events.as_slice(), [ConnectionEvent::Emptied { .. }])).await;
    // To all, and to its own box.
    other.server.tools_changed();
    let post = Post::Told(BroadcastChange::Prompts);
    let third = Redis::open(&redis.url(), options(OnDown::Refuse).0).unwrap().stores();
    assert!(third.broker.post(To::Process(process.parse().unwrap()), &post).await.unwrap());
    let mut heard = [next(&mut stream).await.1, next(&mut stream).await.1].map(|told| told["method"].to_string());
    heard.sort();
    assert_eq!(heard, ["\"notifications/prompts/list_changed\"", "\"notifications/tools/list_changed\""]);
}

#[tokio::test]
async fn who_only_counts_says_once_that_the_store_is_emptied() {
    let redis = RedisServer::start();
    let (options, mut events) = options(OnDown::Refuse);
    let alive = Duration::from_millis(300);
    let _limiter = RedisLimiter::open(&redis.url(), Options { alive, ..options }).unwrap();
    let emptied = |events: &Vec<ConnectionEvent>| {
        events.iter().filter(|event| matches!(event, ConnectionEvent::Emptied { .. })).count()
    };
    for times in 1..=2 {
        redis.ask::<String>(&["FLUSHALL"]);
        limited("word of it", events.wait_for(|events| emptied(events) >= times)).await.unwrap().unwrap();
        // It goes on to say that it lives: three times more.
        for _ in 0..3 {
            for key in redis.ask::<Vec<String>>(&["KEYS", "test:up:*"]) {
                redis.ask::<i64>(&["DEL", &key]);
            }
            until("its life", || !redis.ask::<Vec<String>>(&["KEYS", "test:up:*"]).is_empty()).await;
        }
        assert_eq!(emptied(&events.borrow()), times);
    }
}

#[tokio::test]
async fn what_redis_can_not_take_just_now_is_there_when_it_can() {
    let redis = RedisServer::start();
    let (server, gate) = gated();
    let mut one = member_at(&redis.url(), server, OnDown::Refuse, |_| {});
    let id = session(one.address(), REVISION).await;
    let steps = Request::post(&call(1, "steps", &json!({}))).within(&id, REVISION);
    let mut lost = open(one.address(), &steps).await;
    head(&mut lost).await;
    let priming = limited("priming", lost.event()).await.unwrap().unwrap().unwrap().id.unwrap();
    assert_eq!(next(&mut lost).await.1["method"], "notifications/progress");
    drop(lost);
    redis.ask::<String>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    gate.send_replace(true);
    gone(&mut one).await;
    assert!(one.server.notify(&id, "notifications/message", None).await.is_err());
    redis.ask::<String>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    back(&mut one).await;
    // At a process that never had it.
    let other = member(&redis, OnDown::Refuse, |_| {});
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", priming);
    let whole = limited("the stream", async {
        loop {
            let answer = ask(other.address(), &again).await;
            if answer.head.status == 200 {
                return answer.events();
            }
        }
    });
    assert_eq!(text_of(whole.await.unwrap().last().unwrap()), "stepped");
}

#[tokio::test]
async fn a_process_that_is_back_a_little_later_is_not_taken_for_gone() {
    let mut redis = RedisServer::start();
    let proxy = Proxy::before(&redis);
    let (server, gate) = gated();
    let mut writer = member_at(&proxy.url(), server, OnDown::Refuse, |_| {});
    let mut reader = member(&redis, OnDown::Refuse, |_| {});
    let id = session(writer.address(), REVISION).await;
    let steps = Request::post(&call(1, "steps", &json!({}))).within(&id, REVISION);
    let mut lost = open(writer.address(), &steps).await;
    head(&mut lost).await;
    let priming = limited("priming", lost.event()).await.unwrap().unwrap().unwrap().id.unwrap();
    assert_eq!(next(&mut lost).await.1["method"], "notifications/progress");
    drop(lost);
    proxy.cut();
    redis.kill();
    gone(&mut writer).await;
    gone(&mut reader).await;
    redis.restart();
    back(&mut reader).await;
    // As if it had been away for longer than a process counts as alive: what the file says is not known any more.
    for key in redis.ask::<Vec<String>>(&["KEYS", "test:up:*"]) {
        redis.ask::<i64>(&["DEL", &key]);
    }
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", priming);
    let mut stream = limited("the stream", async {
        loop {
            let mut stream = open(reader.address(), &again).await;
            if head(&mut stream).await.status == 200 {
                return stream;
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(next(&mut stream).await.1["method"], "notifications/progress");
    proxy.mend();
    back(&mut writer).await;
    gate.send_replace(true);
    assert_eq!(next(&mut stream).await.1["method"], "notifications/progress");
    assert_eq!(text_of(&next(&mut stream).await.1), "stepped");
}
