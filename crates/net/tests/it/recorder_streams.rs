//! Nothing is held back, either way, and the stamps of both sides are in the order in which things happened.

use mcpace_record::{EventKind, Nanos, ReplyEnding, Side};

use crate::recorder_support::*;

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[tokio::test]
async fn each_event_passes_before_the_next_one_is_sent() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)).await;
    let mut server = Peer::accept(&listener).await;
    let (_, body) = server.message().await;
    assert!(body.contains("tools/list"));

    // The head alone reaches the client, then each event before the server sends the next.
    server.send(STREAM_HEAD).await;
    client.until("\r\n\r\n").await;
    server.send(&chunk(": hello\n\n")).await;
    client.until(": hello\n\n").await;
    server.send(&chunk("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")).await;
    client.until("progress\"}\n\n").await;
    server.send(&chunk("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")).await;
    client.until("\"result\":{}}\n\n").await;
    server.send("0\r\n\r\n").await;
    client.until("0\r\n\r\n").await;

    let sink = recorder.sink();
    noted(sink, "the reply's end", |event| {
        matches!(event.kind, EventKind::ReplyEnd { side: Side::Front, .. }).then_some(())
    })
    .await;
    recorder.stop().unwrap();
    let recording = sink.recording();
    let at = |name: &str, wanted: &dyn Fn(&EventKind) -> bool| -> Nanos {
        recording.events().iter().find(|event| wanted(&event.kind)).unwrap_or_else(|| panic!("no {name}")).at
    };
    use EventKind::*;
    let mut stamps = Vec::new();
    for side in [Side::Front, Side::Back] {
        stamps.push(at("request head", &|k| matches!(k, RequestHead { side: s, .. } if *s == side)));
    }
    stamps.push(at("request end", &|k| matches!(k, RequestEnd { side: Side::Back, .. })));
    for name in ["head", "start", "event 0", "event 1", "end"] {
        for side in [Side::Back, Side::Front] {
            stamps.push(at(name, &|kind| match (name, kind) {
                ("head", ReplyHead { side: s, .. }) | ("start", ReplyBodyStart { side: s, .. }) => *s == side,
                ("event 0", ReplyEvent { side: s, seq: 0, .. }) | ("event 1", ReplyEvent { side: s, seq: 1, .. }) => {
                    *s == side
                }
                ("end", ReplyEnd { side: s, ending: ReplyEnding::Complete, .. }) => *s == side,
                _ => false,
            }));
        }
    }
    assert!(stamps.is_sorted(), "{stamps:?}");
    let front_end = at("request end", &|k| matches!(k, RequestEnd { side: Side::Front, .. }));
    assert!(stamps[0] <= front_end && front_end <= stamps[2], "{front_end:?} {stamps:?}");
}

/// A client that leaves with its result would else lose a connection before the recorder that it keeps without it.
#[tokio::test]
async fn an_end_that_the_server_sends_with_its_last_bytes_goes_on_with_them() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let json = STREAM_HEAD.replace("text/event-stream", "application/json");
    let replies = [
        format!("{json}{}0\r\n\r\n", chunk(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)),
        format!("{STREAM_HEAD}{}0\r\n\r\n", chunk("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")),
        format!(
            "{STREAM_HEAD}{}{}0\r\n\r\n",
            chunk("data: {\"jsonrpc\":\"2.0\","),
            chunk("\"id\":1,\"result\":{}}\n\n")
        ),
    ];
    let ask = post(&recorder, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    client.send(&ask).await;
    let mut server = Peer::accept(&listener).await;
    for (done, reply) in replies.iter().enumerate() {
        if done > 0 {
            client.send(&ask).await;
        }
        server.message().await;
        server.send(reply).await;
        assert_eq!(client.until("0\r\n\r\n").await.matches("HTTP/1.1").count(), 1);
    }
    // One that comes later is waited for by nobody.
    client.send(&ask).await;
    server.message().await;
    server.send(&format!("{STREAM_HEAD}{}", chunk("data: 1\n\n"))).await;
    client.until("data: 1\n\n").await;
    server.send(&format!("{}0\r\n\r\n", chunk("data: 2\n\n"))).await;
    client.until("0\r\n\r\n").await;
    recorder.stop().unwrap();
    let recording = recorder.sink().recording();
    let mut together = Vec::new();
    for event in recording.events() {
        if let EventKind::ReplyEnd { side: Side::Front, ex, ending: ReplyEnding::Complete, .. } = event.kind {
            let before = recording.events().iter().rev().find_map(|before| match before.kind {
                EventKind::ReplyBodyStart { side: Side::Front, ex: of }
                | EventKind::ReplyEvent { side: Side::Front, ex: of, .. } => (of == ex).then_some(before.at),
                _ => None,
            });
            together.push(before == Some(event.at));
        }
    }
    assert_eq!(together, [true; 4]);
}

#[tokio::test]
async fn a_requests_body_streams_too() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let host = authority(&recorder);
    client
        .send(&format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunk("one")))
        .await;
    let mut server = Peer::accept(&listener).await;
    server.until("one").await;
    client.send(&chunk("two")).await;
    server.until("two").await;
    client.send("0\r\n\r\n").await;
    server.until("0\r\n\r\n").await;
    server.send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 202"));
    let bytes = noted(recorder.sink(), "the request's end", |event| match event.kind {
        EventKind::RequestEnd { side: Side::Back, bytes, .. } => Some(bytes),
        _ => None,
    });
    assert_eq!(bytes.await, 6);
}

#[tokio::test]
async fn many_streams_are_open_at_once_and_none_waits_for_another() {
    const STREAMS: usize = 200;
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut pairs = Vec::new();
    for number in 0..STREAMS {
        let mut client = Peer::connect(&recorder).await;
        client.send(&get(&recorder, &format!("/mcp?stream={number}"))).await;
        let mut server = Peer::accept(&listener).await;
        assert!(server.until("\r\n\r\n").await.contains(&format!("stream={number} ")));
        server.send(STREAM_HEAD).await;
        client.until("\r\n\r\n").await;
        pairs.push((client, server));
    }
    // The last one opened speaks first: no stream depends on an earlier one's progress.
    for (number, (client, server)) in pairs.iter_mut().enumerate().rev() {
        server.send(&chunk(&format!("data: {number}\n\n"))).await;
        client.until(&format!("data: {number}\n\n")).await;
    }
    let cut =
        |kind: &EventKind| matches!(kind, EventKind::ReplyEnd { side: Side::Front, ending: ReplyEnding::Cut, .. });
    assert_eq!(events(&recorder).iter().filter(|kind| cut(kind)).count(), STREAMS, "a stop cuts what is open");
}

#[tokio::test]
async fn a_large_body_passes_whole() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let text = "x".repeat(3_000_000);
    let request = post(&recorder, &text);
    let (sent, received) = tokio::join!(client.send(&request), async {
        let mut server = Peer::accept(&listener).await;
        let (_, body) = server.message().await;
        (server, body)
    });
    let ((), (mut server, body)) = (sent, received);
    assert!(body == text);
    let reply = json_reply(&text);
    let ((), (_, back)) = tokio::join!(server.send(&reply), client.message());
    assert!(back == text);
}
