//! A Redis that goes, comes back, or has lost what it knew.

use mcpace_redis::{ConnectionEvent, OpenError, Redis};
use mcpace_serve::store::OnDown;
use serde_json::json;

use crate::http_harness::{Request, ask, call, echo, head, initialize, open, session, text_of};
use crate::peer::limited;
use crate::server::{RedisServer, gated, member, member_at, options, pair};

const REVISION: &str = "2025-11-25";

#[tokio::test]
async fn refused_while_it_is_away_and_nothing_is_lost_over_its_restart() {
    let mut redis = RedisServer::start();
    let [mut one, mut other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    one.server.notify(&id, "notifications/kept", None).await.unwrap();
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    redis.kill();
    one.told(|events| !events.is_empty()).await;
    for _ in 0..3 {
        let refused = ask(one.address(), &request).await;
        assert_eq!((refused.head.status, refused.head.header("retry-after")), (503, Some("1")));
    }
    assert_eq!(ask(one.address(), &Request::post(&initialize(REVISION))).await.head.status, 503);
    assert!(one.server.notify(&id, "notifications/lost", None).await.is_err());
    redis.restart();
    one.told(|events| matches!(events.as_slice(), [ConnectionEvent::Gone { .. }, ConnectionEvent::Back { .. }])).await;
    other
        .told(|events| matches!(events.as_slice(), [ConnectionEvent::Gone { .. }, ConnectionEvent::Back { .. }]))
        .await;
    assert_eq!(text_of(&ask(other.address(), &request).await.json()), "hi");
    assert_eq!(text_of(&ask(one.address(), &request).await.json()), "hi");
    let mut stream = open(other.address(), &Request::bare("GET").within(&id, REVISION)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let kept = crate::http_harness::event(&mut stream).await.unwrap();
    assert_eq!(kept["method"], "notifications/kept");
}

#[tokio::test]
async fn in_memory_sessions_go_on_and_are_put_back_into_a_store_that_lost_them() {
    let mut redis = RedisServer::start();
    let [mut one, mut other] = [(); 2].map(|()| member(&redis, OnDown::Memory, |_| {}));
    let before = session(one.address(), REVISION).await;
    redis.kill();
    one.told(|events| !events.is_empty()).await;
    let meanwhile = session(one.address(), REVISION).await;
    let request = |id: &str| Request::post(&echo(1, "hi")).within(id, REVISION);
    for id in [&before, &meanwhile] {
        assert_eq!(text_of(&ask(one.address(), &request(id)).await.json()), "hi");
    }
    redis.restart_empty();
    let emptied = |events: &Vec<ConnectionEvent>| {
        matches!(events.as_slice(), [.., ConnectionEvent::Back { .. }, ConnectionEvent::Emptied { .. }])
    };
    one.told(emptied).await;
    other.told(emptied).await;
    // The process that knows them puts them there, asked or not.
    for id in [&before, &meanwhile] {
        limited("the session", async { while ask(other.address(), &request(id)).await.head.status != 200 {} })
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn what_is_said_while_it_is_away_is_there_afterwards() {
    let mut redis = RedisServer::start();
    let (server, gate) = gated();
    let mut one = member_at(&redis.url(), server, OnDown::Refuse, |_| {});
    let mut other = member(&redis, OnDown::Refuse, |_| {});
    let id = session(one.address(), REVISION).await;
    let steps = Request::post(&call(1, "steps", &json!({}))).within(&id, REVISION);
    let mut lost = open(one.address(), &steps).await;
    head(&mut lost).await;
    let priming = limited("priming", lost.event()).await.unwrap().unwrap().unwrap();
    limited("the first step", lost.event()).await.unwrap().unwrap().unwrap();
    redis.kill();
    one.told(|events| !events.is_empty()).await;
    gate.send_replace(true);
    // The rest is said while nobody is there to keep it.
    limited("the second step", lost.event()).await.unwrap().unwrap().unwrap();
    limited("the result", lost.event()).await.unwrap().unwrap().unwrap();
    drop(lost);
    redis.restart();
    one.told(|events| events.len() == 2).await;
    other.told(|events| events.len() == 2).await;
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", priming.id.unwrap());
    let answer = limited("the stream", async {
        loop {
            let answer = ask(other.address(), &again).await;
            if answer.head.status == 200 {
                return answer;
            }
        }
    });
    assert_eq!(text_of(answer.await.unwrap().events().last().unwrap()), "stepped");
}

/// A Redis whose memory is full.
#[tokio::test]
async fn a_store_that_answers_and_refuses_is_not_said_to_be_out_of_reach() {
    let redis = RedisServer::start();
    let mut one = member(&redis, OnDown::Refuse, |_| {});
    redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(ask(one.address(), &Request::post(&initialize(REVISION))).await.head.status, 503);
    one.told(
        |events| matches!(&events[..], [ConnectionEvent::Gone { answers: true, reason, .. }] if reason.contains("OOM")),
    )
    .await;
    let error = Redis::open(&redis.url(), options(OnDown::Refuse).0).unwrap_err();
    assert!(matches!(&error, OpenError::Unusable { reason, .. } if reason.contains("OOM")), "{error}");
    redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    one.told(|events| matches!(events.as_slice(), [ConnectionEvent::Gone { .. }, ConnectionEvent::Back { .. }])).await;
}

#[tokio::test]
async fn a_store_that_is_not_there_is_said_at_once_and_without_its_password() {
    let (refusing, _) = options(OnDown::Refuse);
    let error = Redis::open("redis://:hunter2@127.0.0.1:1/0", refusing.clone()).unwrap_err();
    assert!(matches!(&error, OpenError::Unreachable { address, .. } if address == "127.0.0.1:1"), "{error}");
    for wrong in ["", "http://127.0.0.1", "redis://:hunter2@[", "rediss://:hunter2@127.0.0.1:1/#insecure"] {
        let error = Redis::open(wrong, refusing.clone()).unwrap_err();
        assert!(matches!(error, OpenError::Url(_)) && !error.to_string().contains("hunter2"), "{wrong}: {error}");
    }
    let (waiting, mut events) = options(OnDown::Memory);
    let redis = Redis::open("redis://127.0.0.1:1", waiting).unwrap();
    let gone = events.wait_for(|events| matches!(events.as_slice(), [ConnectionEvent::Gone { .. }]));
    limited("word that it is away", gone).await.unwrap().unwrap();
    drop(redis);
}
