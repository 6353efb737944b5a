//! Bounds on the data that one client, or one process, can make Redis and the other processes keep.

use std::time::Duration;

use mcpace_redis::{Redis, RedisLimiter};
use mcpace_serve::Server;
use mcpace_serve::guard::{Limiter as _, RateLimit, Taking};
use mcpace_serve::http::ResponseMode;
use mcpace_serve::store::{BroadcastChange, OnDown, Post, SessionName, Stores, To};
use serde_json::{Value, json};

use crate::http_harness::{Request, ask, call, echo, event, head, open, receive, session, text_of};
use crate::peer::limited;
use crate::server::{RedisServer, eliciting, options, pair, until};

const REVISION: &str = "2025-11-25";
const MIB: usize = 1 << 20;

fn stores(redis: &RedisServer) -> Stores {
    Redis::open(&redis.url(), options(OnDown::Refuse).0).unwrap().stores()
}

fn memory(redis: &RedisServer, key: &str) -> usize {
    redis.ask::<Option<usize>>(&["MEMORY", "USAGE", key, "SAMPLES", "0"]).unwrap_or_default()
}

#[tokio::test]
async fn what_a_client_cancels_or_gives_up_is_told_in_few_words() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = session(one.address(), REVISION).await;
    let within = |message: &Value| Request::post(message).within(&id, REVISION);
    let long = "\"".repeat(MIB);
    for number in 0..8 {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": {"requestId": number, "reason": long}});
        assert_eq!(ask(one.address(), &within(&cancel)).await.head.status, 202);
        let long_id = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x".repeat(MIB / 8)}});
        assert_eq!(ask(one.address(), &within(&long_id)).await.head.status, 202);
        let give_up =
            json!({"jsonrpc": "2.0", "id": number, "method": "resources/unsubscribe", "params": {"uri": long}});
        assert_eq!(ask(one.address(), &within(&give_up)).await.head.status, 200);
    }
    // The eight cancellations are there.
    assert_eq!(redis.ask::<usize>(&["XLEN", "test:all"]), 8);
    assert!(memory(&redis, "test:all") < MIB / 8);
    assert_eq!(text_of(&ask(other.address(), &within(&echo(1, "hi"))).await.json()), "hi");
}

#[tokio::test]
async fn one_client_is_not_all_that_processes_hear() {
    let redis = RedisServer::start();
    let [one, _other] = pair(&redis, |_| {});
    let id = session(one.address(), "2025-03-26").await;
    let cancel =
        |number| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}});
    for _ in 0..20 {
        let batch: Vec<_> = (0..100).map(cancel).collect();
        let request = Request::post(&Value::Array(batch)).within(&id, "2025-03-26");
        assert_eq!(ask(one.address(), &request).await.head.status, 202);
    }
    let most: usize = redis.ask(&["XLEN", "test:all"]);
    // A hundred a second, however many seconds that took here.
    assert!((100..2_000).contains(&most), "{most}");
}

/// Batches, so that it is all said within a second.
const BATCHES: &str = "2025-03-26";

#[tokio::test]
async fn who_cancels_much_can_still_answer_and_answers_too_many_are_refused() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = eliciting(one.address(), BATCHES).await;
    let mut stream = open(other.address(), &Request::bare("GET").within(&id, BATCHES)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let within = |messages: Vec<Value>| Request::post(&Value::Array(messages)).within(&id, BATCHES);
    let answer = |number: i64| {
        json!({"jsonrpc": "2.0", "id": number,
               "result": {"action": "accept", "content": {"name": "Grace"}}})
    };
    for is_flood in [false, true] {
        let call = Request::post(&call(1, "ask", &json!({}))).within(&id, BATCHES);
        let mut asking = open(one.address(), &call).await;
        let question = event(&mut stream).await.unwrap()["id"].as_i64().unwrap();
        if is_flood {
            // One that comes with ninety others, and some long ones, is refused with all of them, and none is passed on.
            let long = |more| json!({"jsonrpc": "2.0", "id": question + more, "result": {"text": "x".repeat(MIB / 4)}});
            let others = (1..=90).map(|more| answer(question + more)).chain((91..=94).map(long));
            let flood = [answer(question)].into_iter().chain(others).collect();
            assert_eq!(ask(other.address(), &within(flood)).await.head.status, 429);
            let said = limited("room", async {
                loop {
                    let said = ask(other.address(), &within(vec![answer(question)])).await;
                    if said.head.status != 429 {
                        return said;
                    }
                }
            });
            assert_eq!(said.await.unwrap().head.status, 202);
        } else {
            let cancel = |number: i64| {
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                       "params": {"requestId": 1_000 + number}})
            };
            let batch = (0..99).map(cancel).collect();
            assert_eq!(ask(other.address(), &within(batch)).await.head.status, 202);
            let batch = (0..50).map(cancel).chain([answer(question)]).collect();
            assert_eq!(ask(other.address(), &within(batch)).await.head.status, 202);
        }
        assert_eq!(text_of(&receive(&mut asking).await.json()), "Grace");
    }
}

#[tokio::test]
async fn an_answer_too_long_to_be_passed_on_is_an_error_to_who_asked() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = eliciting(one.address(), REVISION).await;
    let mut stream = open(other.address(), &Request::bare("GET").within(&id, REVISION)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let mut asking = open(one.address(), &Request::post(&call(1, "ask", &json!({}))).within(&id, REVISION)).await;
    let question = event(&mut stream).await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
                        "result": {"action": "accept", "content": {"name": "x".repeat(2 * MIB)}}});
    let answered = ask(other.address(), &Request::post(&answer).within(&id, REVISION)).await;
    assert_eq!(answered.head.status, 202);
    let reply = receive(&mut asking).await;
    assert!(
        reply.body.contains("too long to be passed on") && reply.json()["result"]["isError"] == true,
        "{}",
        reply.body
    );
}

#[tokio::test]
async fn boxes_are_bounded_in_bytes_and_what_went_is_said() {
    let redis = RedisServer::start();
    let [speaker, reader] = [stores(&redis), stores(&redis)];
    let told = |text: String| Post::Told(BroadcastChange::Message(text));
    let long = told("x".repeat(MIB));
    for _ in 0..40 {
        assert!(speaker.broker.post(To::Others, &long).await.unwrap());
    }
    assert!(redis.ask::<usize>(&["XLEN", "test:all"]) <= 16);
    assert!(memory(&redis, "test:all") < 20 * MIB);
    assert!(!speaker.broker.post(To::Others, &told("x".repeat(5 * MIB))).await.unwrap(), "one has its limit, too");
    // A listener either reads all messages or learns that some are missing, and receives the messages after them.
    speaker.broker.post(To::Others, &told("last".to_owned())).await.unwrap();
    let (mut heard, mut is_renewed) = (0, false);
    limited("the last", async {
        loop {
            let received = reader.broker.receive().await;
            is_renewed |= received.renewed;
            heard += received.posts.len();
            if received.posts.last() == Some(&told("last".to_owned())) {
                break;
            }
        }
    })
    .await
    .unwrap();
    assert!(heard == 41 || is_renewed, "{heard}");
}

#[tokio::test]
async fn what_a_process_has_read_of_its_own_box_is_taken_out() {
    let redis = RedisServer::start();
    let [speaker, reader] = [stores(&redis), stores(&redis)];
    let number = reader.broker.number();
    for count in 0..200 {
        let wake = Post::Wake(count.to_string());
        assert!(speaker.broker.post(To::Process(number), &wake).await.unwrap());
    }
    let (own, bytes) = (format!("test:box:{number}"), format!("test:box:{number}:b"));
    until("an empty box", || redis.ask::<usize>(&["XLEN", &own]) <= 64).await;
    let left: i64 = redis.ask(&["GET", &bytes]);
    assert!((0..64 * 20).contains(&left), "{left}");
    for key in [own, bytes, format!("test:box:{number}:n")] {
        assert!(redis.ask::<i64>(&["PTTL", &key]) > 0, "{key}");
    }
}

#[tokio::test]
async fn sessions_that_begin_and_end_leave_no_key_each() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let mut last = String::new();
    for _ in 0..50 {
        last = session(one.address(), REVISION).await;
        let delete = Request::bare("DELETE").within(&last, REVISION);
        assert_eq!(ask(one.address(), &delete).await.head.status, 204);
    }
    assert_eq!(redis.ask::<usize>(&["ZCARD", "test:ended"]), 50);
    assert!(redis.ask::<i64>(&["PTTL", "test:ended"]) > 0);
    assert!(redis.ask::<usize>(&["DBSIZE"]) < 20);
    let request = Request::post(&echo(1, "hi")).within(&last, REVISION);
    assert_eq!(ask(other.address(), &request).await.head.status, 404);
}

#[tokio::test]
async fn keys_that_somebody_makes_up_share_their_counts() {
    let redis = RedisServer::start();
    let limiter = RedisLimiter::open(&redis.url(), options(OnDown::Refuse).0).unwrap();
    let rule = RateLimit::new("made-up", 1, Duration::from_secs(3_600));
    let take = async |key: &str| match limiter.take(&rule, key) {
        Taking::Now(taken) => taken,
        Taking::Later(later) => later.await.unwrap(),
    };
    assert!(take("first").await.is_ok());
    let seen: Vec<String> = redis.ask(&["KEYS", "test:k:*"]);
    // As if a hundred thousand others had come.
    let fill = "for i = 1, 110000 do redis.call('PFADD', KEYS[1], i) end return 1";
    redis.ask::<i64>(&["EVAL", fill, "1", &seen[0]]);
    assert!(take("first").await.is_err(), "who was there before counts by himself");
    let mut taken = 0;
    for number in 0..600 {
        taken += usize::from(take(&number.to_string()).await.is_ok());
    }
    assert!((200..=256).contains(&taken), "{taken}");
    assert!(redis.ask::<Vec<String>>(&["KEYS", "test:r:*"]).len() <= 257);
    for key in redis.ask::<Vec<String>>(&["KEYS", "*"]) {
        assert!(redis.ask::<i64>(&["PTTL", &key]) > 0, "{key}");
    }
}

#[tokio::test]
async fn who_only_counts_hears_nothing() {
    let redis = RedisServer::start();
    let limiter = RedisLimiter::open(&redis.url(), options(OnDown::Refuse).0).unwrap();
    let rule = RateLimit::new("alone", 1, Duration::from_secs(3_600));
    let Taking::Later(taken) = limiter.take(&rule, "grace") else { panic!("it asks Redis") };
    assert!(taken.await.unwrap().is_ok());
    let waiting = || redis.ask::<String>(&["CLIENT", "LIST"]).contains("cmd=xread");
    assert!(!waiting());
    let _stores = stores(&redis);
    until("one that hears", waiting).await;
}

/// An error of Redis itself is reported to the request that caused it, and fails no other.
#[tokio::test]
async fn what_an_earlier_request_left_fails_no_other() {
    let redis = RedisServer::start();
    let [one, _other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let name = mcpace_serve::store::SessionName::of(&id);
    // Not what is expected there.
    redis.ask::<String>(&["SET", &format!("test:s:{name}:c"), "rubbish", "PX", "600000"]);
    let within = |message: &Value| Request::post(message).within(&id, REVISION);
    let watch =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "test://greeting"}});
    assert_eq!(ask(one.address(), &within(&watch)).await.head.status, 503);
    assert_eq!(text_of(&ask(one.address(), &within(&echo(2, "hi"))).await.json()), "hi");
    redis.ask::<i64>(&["DEL", &format!("test:s:{name}:c")]);
    assert_eq!(text_of(&ask(one.address(), &within(&echo(3, "hi"))).await.json()), "hi");
    assert_eq!(redis.ask::<usize>(&["HLEN", &format!("test:s:{name}:c")]), 1, "it is told with the next request");
    let one: Server = one.server.clone();
    assert!(matches!(one.notify(&id, "notifications/message", None).await, Ok(())));
    redis.ask::<i64>(&["DEL", &format!("test:l:{name}.0"), &format!("test:l:{name}.0:m")]);
    redis.ask::<String>(&["SET", &format!("test:l:{name}.0:m"), "rubbish", "PX", "600000"]);
    let refused = one.notify(&id, "notifications/message", None).await;
    assert!(matches!(refused, Err(mcpace_serve::NotifyError::Refused)), "{refused:?}");
}

/// A server's question waits minutes for its answer, but fails at once if no answer can come.
#[tokio::test]
async fn a_question_that_redis_refuses_is_no_question() {
    let redis = RedisServer::start();
    let [one, _other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = eliciting(one.address(), REVISION).await;
    let meta = format!("test:l:{}.0:m", SessionName::of(&id));
    redis.ask::<String>(&["SET", &meta, "rubbish", "PX", "600000"]);
    let reply = ask(one.address(), &Request::post(&call(1, "ask", &json!({}))).within(&id, REVISION)).await;
    assert_eq!(reply.json()["result"]["isError"], true, "{}", reply.body);
}
