//! Streams that one process writes and another one's client reads.

use mcpace_redis::Redis;
use mcpace_serve::NotifyError;
use mcpace_serve::store::{Bounds, EntryContent, LogId, OnDown, SessionName, StreamEntry};
use std::time::Duration;

use mcpace_serve::http::ResponseMode;
use serde_json::{Value, json};

use crate::http_harness::{Request, ask, call, echo, event, head, open, session, text_of};
use crate::peer::{Peer, limited};
use crate::server::{RedisServer, eliciting, options, pair};

const REVISION: &str = "2025-11-25";

async fn listen(address: std::net::SocketAddr, id: &str) -> Peer {
    let mut stream = open(address, &Request::bare("GET").within(id, REVISION)).await;
    let head = head(&mut stream).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    stream
}

/// The next event that isn't priming, with its id.
async fn next(stream: &mut Peer) -> (String, Value) {
    loop {
        let event = limited("an event", stream.event()).await.unwrap().unwrap().unwrap();
        if !event.data.is_empty() {
            return (event.id.unwrap(), serde_json::from_str(&event.data).unwrap());
        }
    }
}

#[tokio::test]
async fn what_one_says_reaches_the_stream_that_another_holds() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = session(one.address(), REVISION).await;
    let mut stream = listen(other.address(), &id).await;
    let talk = Request::post(&call(1, "talk", &json!({}))).within(&id, REVISION);
    assert_eq!(text_of(&ask(one.address(), &talk).await.json()), "talked");
    for method in ["notifications/progress", "notifications/message", "notifications/progress"] {
        assert_eq!(next(&mut stream).await.1["method"], method);
    }
    one.server.notify(&id, "notifications/test", None).await.unwrap();
    assert_eq!(next(&mut stream).await.1["method"], "notifications/test");
}

#[tokio::test]
async fn a_notification_waits_for_the_stream_that_takes_it_and_comes_once() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    one.server.notify(&id, "notifications/first", None).await.unwrap();
    let mut stream = listen(other.address(), &id).await;
    let (first, message) = next(&mut stream).await;
    assert_eq!(message["method"], "notifications/first");
    drop(stream);
    other.server.notify(&id, "notifications/second", None).await.unwrap();
    // At the other process now, after what it had seen.
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", first);
    let mut stream = open(one.address(), &again).await;
    assert_eq!(head(&mut stream).await.status, 200);
    assert_eq!(next(&mut stream).await.1["method"], "notifications/second");
    let unknown = one.server.notify(&"0".repeat(32), "notifications/test", None).await;
    assert!(matches!(unknown, Err(NotifyError::Unknown)), "{unknown:?}");
}

#[tokio::test]
async fn a_reply_is_taken_up_at_another_process_while_it_is_written() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let steps = Request::post(&call(1, "steps", &json!({}))).within(&id, REVISION);
    let mut lost = open(one.address(), &steps).await;
    head(&mut lost).await;
    let priming = limited("priming", lost.event()).await.unwrap().unwrap().unwrap();
    let (_, first) = next(&mut lost).await;
    drop(lost);
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", priming.id.unwrap());
    let mut stream = limited("the stream", async {
        loop {
            // It may have come before the store had it.
            let mut stream = open(other.address(), &again).await;
            if head(&mut stream).await.status == 200 {
                return stream;
            }
        }
    })
    .await
    .unwrap();
    let (seen, repeated) = next(&mut stream).await;
    assert_eq!(repeated, first);
    let opened = Request::post(&call(2, "open", &json!({}))).within(&id, REVISION);
    assert_eq!(ask(one.address(), &opened).await.head.status, 200);
    let progress = next(&mut stream).await.1;
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(text_of(&next(&mut stream).await.1), "stepped");
    assert!(event(&mut stream).await.is_none(), "the stream ends with its reply");
    // It has ended, and can still be had after any event of it.
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", seen);
    let whole = ask(other.address(), &again).await;
    assert_eq!(whole.events().len(), 2);
}

#[tokio::test]
async fn one_process_at_a_time_reads_the_standalone_stream() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let mut stream = listen(one.address(), &id).await;
    let second = Request::bare("GET").within(&id, REVISION);
    assert_eq!(ask(other.address(), &second).await.head.status, 409);
    one.server.notify(&id, "notifications/test", None).await.unwrap();
    let (seen, _) = next(&mut stream).await;
    // A client that names the last event is the one that had the stream.
    let mut taken = open(other.address(), &second.with("Last-Event-ID", seen)).await;
    assert_eq!(head(&mut taken).await.status, 200);
    assert!(event(&mut stream).await.is_none(), "the old connection ends");
    one.server.tools_changed();
    assert_eq!(next(&mut taken).await.1["method"], "notifications/tools/list_changed");
    one.server.notify(&id, "notifications/last", None).await.unwrap();
    assert_eq!(next(&mut taken).await.1["method"], "notifications/last", "what changed is told once");
}

#[tokio::test]
async fn a_question_goes_out_and_is_answered_through_another_process() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = eliciting(one.address(), REVISION).await;
    let mut stream = listen(other.address(), &id).await;
    let mut asking = open(one.address(), &Request::post(&call(1, "ask", &json!({}))).within(&id, REVISION)).await;
    let (_, question) = next(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
                        "result": {"action": "accept", "content": {"name": "Ada"}}});
    let answered = ask(other.address(), &Request::post(&answer).within(&id, REVISION)).await;
    assert_eq!(answered.head.status, 202);
    let reply = crate::http_harness::receive(&mut asking).await;
    assert_eq!(text_of(&reply.json()), "Ada");
}

#[tokio::test]
async fn a_question_that_no_stream_takes_is_given_up() {
    let redis = RedisServer::start();
    let [one, _other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = eliciting(one.address(), REVISION).await;
    let reply = ask(one.address(), &Request::post(&call(1, "ask", &json!({}))).within(&id, REVISION)).await;
    assert_eq!(reply.json()["result"]["isError"], true, "{}", reply.body);
}

#[tokio::test]
async fn a_call_is_cancelled_through_another_process() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.response = ResponseMode::Json);
    let id = session(one.address(), REVISION).await;
    let probe = |tool| Request::post(&call(2, tool, &json!({}))).within(&id, REVISION);
    let _asking = open(one.address(), &Request::post(&call(1, "wait", &json!({}))).within(&id, REVISION)).await;
    limited("the call begins", ask(one.address(), &probe("waiting"))).await.unwrap();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(ask(other.address(), &Request::post(&cancel).within(&id, REVISION)).await.head.status, 202);
    limited("the call is cancelled", ask(one.address(), &probe("cancelled"))).await.unwrap();
}

/// Beside what a test of Python's does with a real `kill -9`: this writer is gone at once.
#[tokio::test]
async fn a_call_whose_process_is_gone_is_answered_by_whoever_is_asked() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |_| {});
    let id = session(one.address(), REVISION).await;
    let gone = Redis::open(&redis.url(), options(OnDown::Refuse).0).unwrap().stores();
    let number = u64::from(gone.broker.number()) << 32 | 1;
    let log = LogId { session: SessionName::of(&id), number };
    let bounds = Bounds {
        events: 100,
        bytes: 10_000,
        ended_bytes: 10_000,
        ended: 10,
        idle: Duration::from_secs(600),
        after_end: Duration::from_secs(60),
    };
    let answer = r#"{"jsonrpc":"2.0","id":6,"result":{}}"#;
    let said = [EntryContent::Begin(r#"[6,7,"eight"]"#.into()), EntryContent::Event(Some(1), answer.into())];
    let entries: Vec<_> = said.into_iter().map(|what| StreamEntry { log, sequence: 0, what }).collect();
    gone.events.add(&entries, &bounds).await.unwrap();
    drop(gone);
    let again =
        |seen: u64| Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", format!("{number:x}-{seen}"));
    for (address, seen) in [(one.address(), 0), (other.address(), 0), (one.address(), 1)] {
        let events = ask(address, &again(seen)).await.events();
        let ids: Vec<_> = events.iter().map(|event| event["id"].clone()).collect();
        let all = [json!(6), json!(7), json!("eight")];
        assert_eq!(ids, all[usize::try_from(seen).unwrap()..], "what was answered is not answered again");
        for lost in &events[events.len() - 2..] {
            let message = lost["error"]["message"].as_str().unwrap();
            assert!(message.contains("ended before it answered"), "{message}");
        }
    }
    assert_eq!(
        ask(one.address(), &Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", "1f-0")).await.head.status,
        400
    );
}

#[tokio::test]
async fn what_nobody_reads_is_bounded() {
    let redis = RedisServer::start();
    let [one, other] = pair(&redis, |options| options.limits.stream_events = 4);
    let id = session(one.address(), REVISION).await;
    for number in 0..10 {
        one.server.notify(&id, &format!("notifications/{number}"), None).await.unwrap();
    }
    let mut stream = listen(other.address(), &id).await;
    for number in 6..10 {
        assert_eq!(next(&mut stream).await.1["method"], format!("notifications/{number}"));
    }
    assert_eq!(ask(one.address(), &Request::post(&echo(1, "hi")).within(&id, REVISION)).await.head.status, 200);
}
