//! How replies go out: modes, batches, streams that are lost and taken up again, disconnects.

use std::time::Duration;

use mcpace_serve::http::{Options, ResponseMode};
use serde_json::{Value, json};

use crate::http_harness::{Request, ask, call, echo, event, head, open, session, start, text_of};
use crate::peer::limited;

fn mode(response: ResponseMode) -> impl FnOnce(&mut Options) {
    move |options| {
        options.response = response;
        options.stateless = true;
    }
}

fn kind(answer: &crate::http_harness::Answer) -> &str {
    answer.head.header("content-type").unwrap_or_default()
}

#[tokio::test]
async fn a_result_that_is_there_at_once_is_one_piece_in_each_mode() {
    for (response, expected) in [
        (ResponseMode::Json, "application/json"),
        (ResponseMode::Auto, "application/json"),
        (ResponseMode::Sse, "text/event-stream"),
    ] {
        let running = start(mode(response));
        let answer = ask(running.address(), &Request::post(&echo(1, "hi"))).await;
        assert_eq!((answer.head.status, kind(&answer)), (200, expected));
        // Known length: head, events and end are one write.
        let length = answer.head.header("content-length").map(|length| length.parse().unwrap());
        assert_eq!(length, Some(answer.body.len()));
        let buffering = answer.head.header("x-accel-buffering");
        assert_eq!(buffering, (expected == "text/event-stream").then_some("no"));
    }
}

#[tokio::test]
async fn the_client_gets_what_it_reads() {
    let running = start(mode(ResponseMode::Sse));
    let request = Request::post(&echo(1, "hi"));
    assert_eq!(
        kind(&ask(running.address(), &request.clone().with("Accept", "application/json")).await),
        "application/json"
    );
    assert_eq!(kind(&ask(running.address(), &request.without("Accept")).await), "text/event-stream");
    let running = start(mode(ResponseMode::Json));
    let only_events = Request::post(&echo(1, "hi")).with("Accept", "text/event-stream");
    let answer = ask(running.address(), &only_events).await;
    assert_eq!(text_of(&answer.events()[0]), "hi");
}

#[tokio::test]
async fn auto_streams_only_for_handlers_that_speak() {
    let running = start(mode(ResponseMode::Auto));
    let quiet = ask(running.address(), &Request::post(&call(1, "turn", &json!({})))).await;
    assert_eq!(kind(&quiet), "application/json");
    let talk = ask(running.address(), &Request::post(&call(1, "talk", &json!({})))).await;
    assert_eq!(kind(&talk), "text/event-stream");
    let events = talk.events();
    let methods: Vec<_> = events.iter().filter_map(|event| event["method"].as_str()).collect();
    assert!(methods.contains(&"notifications/progress"), "{}", talk.body);
    assert_eq!(text_of(events.last().unwrap()), "talked");
    // No session: nothing to come back to.
    assert!(!talk.body.contains("id: "), "{}", talk.body);
}

#[tokio::test]
async fn auto_begins_a_stream_rather_than_be_silent_for_long() {
    let running = start(|options| {
        mode(ResponseMode::Auto)(options);
        options.keep_alive = Duration::from_millis(5);
    });
    let mut peer = open(running.address(), &Request::post(&call(1, "wait", &json!({})))).await;
    assert_eq!(head(&mut peer).await.header("content-type"), Some("text/event-stream"));
    ask(running.address(), &Request::post(&call(2, "open", &json!({})))).await;
    assert_eq!(text_of(&event(&mut peer).await.unwrap()), "waited");
    assert_eq!(event(&mut peer).await, None);
}

#[tokio::test]
async fn what_is_said_in_json_mode_goes_to_the_standalone_stream() {
    let running = start(|options| options.response = ResponseMode::Json);
    let address = running.address();
    let id = session(address, "2025-06-18").await;
    let mut standalone = open(address, &Request::bare("GET").within(&id, "2025-06-18")).await;
    assert_eq!(head(&mut standalone).await.status, 200);
    let talk = Request::post(&call(1, "talk", &json!({}))).within(&id, "2025-06-18");
    assert_eq!(text_of(&ask(address, &talk).await.json()), "talked");
    let said = event(&mut standalone).await.unwrap();
    assert_eq!(said["method"], "notifications/progress");

    let second = ask(address, &Request::bare("GET").within(&id, "2025-06-18")).await;
    assert_eq!(second.status_and_code(), (409, -32600));
}

#[tokio::test]
async fn a_batch_is_answered_as_one() {
    let messages = json!([echo(1, "a"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, call(2, "turn", &json!({})), echo(3, "c")]);
    let request = Request::post(&messages).with("MCP-Protocol-Version", "2025-03-26");
    let ids = |replies: &[Value]| replies.iter().map(|reply| reply["id"].as_u64().unwrap()).collect::<Vec<_>>();

    let running = start(mode(ResponseMode::Json));
    let answer = ask(running.address(), &request).await;
    assert_eq!(ids(answer.json().as_array().unwrap()), [1, 2, 3]);
    // Without a header it is 2025-03-26.
    assert_eq!(ask(running.address(), &request.clone().without("MCP-Protocol-Version")).await.head.status, 200);

    let running = start(mode(ResponseMode::Sse));
    let mut replied = ids(&ask(running.address(), &request).await.events());
    replied.sort_unstable();
    assert_eq!(replied, [1, 2, 3]);

    let nothing = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    let answer = ask(running.address(), &Request::post(&nothing)).await;
    assert_eq!((answer.head.status, answer.body.as_str()), (202, ""));
}

#[tokio::test]
async fn a_lost_stream_is_taken_up_again_and_its_call_went_on() {
    let running = start(|options| options.response = ResponseMode::Auto);
    let address = running.address();
    let id = session(address, "2025-11-25").await;
    let within = |request: Request| request.within(&id, "2025-11-25");
    let mut lost = open(address, &within(Request::post(&call(1, "steps", &json!({}))))).await;
    assert_eq!(head(&mut lost).await.status, 200);
    let priming = limited("priming", lost.event()).await.unwrap().unwrap().unwrap();
    assert!(priming.data.is_empty() && priming.id.is_some());
    assert_eq!(lost.retry(), Some(1000));
    let first = limited("the first step", lost.event()).await.unwrap().unwrap().unwrap();
    drop(lost);

    let opened = within(Request::post(&call(2, "open", &json!({}))));
    assert_eq!(ask(address, &opened).await.head.status, 200);
    let again = within(Request::bare("GET")).with("Last-Event-ID", first.id.unwrap());
    let mut again = open(address, &again).await;
    assert_eq!(head(&mut again).await.status, 200);
    let second = event(&mut again).await.unwrap();
    assert_eq!(second["params"]["progress"], 2.0);
    assert_eq!(text_of(&event(&mut again).await.unwrap()), "stepped");
    assert_eq!(event(&mut again).await, None);

    // Once more from the start: it is kept for as long as there is room.
    let whole = within(Request::bare("GET")).with("Last-Event-ID", priming.id.unwrap());
    assert_eq!(ask(address, &whole).await.events().len(), 3);
    for unknown in ["ff-0", "nonsense", "1"] {
        let request = within(Request::bare("GET")).with("Last-Event-ID", unknown);
        assert_eq!(ask(address, &request).await.status_and_code(), (400, -32600), "{unknown}");
    }
}

#[tokio::test]
async fn streams_are_primed_only_where_the_revision_has_it() {
    let running = start(|options| options.response = ResponseMode::Sse);
    for (revision, primed) in [("2025-06-18", false), ("2025-11-25", true)] {
        let id = session(running.address(), revision).await;
        let answer = ask(running.address(), &Request::post(&echo(1, "hi")).within(&id, revision)).await;
        assert_eq!(answer.body.contains("retry: "), primed, "{}", answer.body);
        assert!(answer.body.contains("id: "), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_what_it_can_not_come_back_to() {
    for response in [ResponseMode::Json, ResponseMode::Auto, ResponseMode::Sse] {
        let running = start(mode(response));
        let address = running.address();
        let mut lost = open(address, &Request::post(&call(1, "wait", &json!({})))).await;
        if response == ResponseMode::Sse {
            head(&mut lost).await;
        }
        let probe = |tool| Request::post(&call(2, tool, &json!({})));
        limited("the call begins", ask(address, &probe("waiting"))).await.unwrap();
        drop(lost);
        limited("the call is cancelled", ask(address, &probe("cancelled"))).await.unwrap();
    }
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let running = start(|options| {
        mode(ResponseMode::Sse)(options);
        options.keep_alive = Duration::from_millis(5);
    });
    let request = Request::post(&call(1, "wait", &json!({}))).bytes();
    let mut stream = tokio::net::TcpStream::connect(running.address()).await.unwrap();
    let comments = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        stream.write_all(&request).await.unwrap();
        let mut read = Vec::new();
        while String::from_utf8_lossy(&read).matches(": keep-alive\n\n").count() < 3 {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
    };
    limited("comments", comments).await.unwrap();
}

#[tokio::test]
async fn layers_are_told_where_the_server_is_asked_to() {
    let running = start(|options| {
        mode(ResponseMode::Json)(options);
        options.server_timing = true;
    });
    let answer = ask(running.address(), &Request::post(&echo(1, "hi"))).await;
    let timing = answer.head.header("server-timing").unwrap();
    for layer in ["transport;dur=", "dispatch;dur=", "service;dur="] {
        assert!(timing.contains(layer), "{timing}");
    }
    let running = start(mode(ResponseMode::Json));
    assert_eq!(ask(running.address(), &Request::post(&echo(1, "hi"))).await.head.header("server-timing"), None);
}
