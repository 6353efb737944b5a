//! A front connection and its back connection are one: reused together, ended together, and the recording says by whom.

use mcpace_record::{Closer, ConnectionId, EventKind, ReplyEnding, Side};

use crate::recorder_support::*;

async fn exchange(recorder: &mcpace_net::recorder::Recorder, client: &mut Peer, server: &mut Peer) {
    client.send(&post(recorder, "{}")).await;
    server.message().await;
    server.send(&json_reply("{}")).await;
    client.message().await;
}

async fn closed(recorder: &mcpace_net::recorder::Recorder, wanted: Side) -> Closer {
    noted(recorder.sink(), "a close", |event| match &event.kind {
        EventKind::ConnectionClosed { side, by, .. } if *side == wanted => Some(*by),
        _ => None,
    })
    .await
}

async fn ending(recorder: &mcpace_net::recorder::Recorder) -> ReplyEnding {
    noted(recorder.sink(), "a reply's end", |event| match event.kind {
        EventKind::ReplyEnd { side: Side::Front, ending, .. } => Some(ending),
        _ => None,
    })
    .await
}

fn opened(events: &[EventKind]) -> Vec<(Side, ConnectionId, Option<ConnectionId>)> {
    let one = |kind: &EventKind| match kind {
        EventKind::ConnectionOpened { side, conn, serves, .. } => Some((*side, *conn, *serves)),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

#[tokio::test]
async fn one_front_connection_has_one_back_connection_and_reuses_it() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "{}")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send(&json_reply("{}")).await;
    client.message().await;
    exchange(&recorder, &mut client, &mut server).await;
    exchange(&recorder, &mut client, &mut server).await;
    let mut second = Peer::connect(&recorder).await;
    second.send(&post(&recorder, "{}")).await;
    Peer::accept(&listener).await.message().await;
    let events = events(&recorder);
    let opened = opened(&events);
    type Opened = (Side, ConnectionId, Option<ConnectionId>);
    let (fronts, backs): (Vec<Opened>, Vec<Opened>) =
        opened.iter().copied().partition(|(side, ..)| *side == Side::Front);
    assert_eq!((fronts.len(), backs.len()), (2, 2), "{opened:?}");
    assert_eq!(backs.iter().map(|b| b.2).collect::<Vec<_>>(), fronts.iter().map(|f| Some(f.1)).collect::<Vec<_>>());
    let on = |wanted| move |kind: &&EventKind| matches!(kind, EventKind::RequestHead { side: Side::Back, conn, .. } if *conn == wanted);
    assert_eq!(events.iter().filter(on(backs[0].1)).count(), 3);
}

#[tokio::test]
async fn a_server_that_closes_an_idle_connection_closes_the_clients() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "{}")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send(&json_reply("{}")).await;
    client.message().await;
    drop(server);
    assert_eq!(client.rest().await, (String::new(), true));
    assert_eq!(closed(&recorder, Side::Back).await, Closer::Server);
    assert_eq!(closed(&recorder, Side::Front).await, Closer::Instrument);
}

#[tokio::test]
async fn connection_close_is_passed_on_both_ways() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&get(&recorder, "/mcp")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
    let (head, body) = client.message().await;
    assert!(head.to_ascii_lowercase().contains("connection: close") && body == "ok", "{head}");
    assert_eq!(client.rest().await, (String::new(), true));
    assert_eq!(closed(&recorder, Side::Back).await, Closer::Server);

    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let host = authority(&recorder);
    client.send(&format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
    let mut server = Peer::accept(&listener).await;
    assert!(server.message().await.0.to_ascii_lowercase().contains("connection: close"));
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    client.until("ok").await;
    assert_eq!(client.rest().await, (String::new(), true));
    assert_eq!(closed(&recorder, Side::Front).await, Closer::Client);
}

#[tokio::test]
async fn a_client_that_leaves_in_a_stream_ends_the_servers_side_at_once() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&get(&recorder, "/mcp")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").await;
    client.until("data: 1\n\n").await;
    drop(client);
    server.rest().await;
    assert_eq!(ending(&recorder).await, ReplyEnding::ClientLeft);
    assert_eq!(closed(&recorder, Side::Front).await, Closer::Client);
    assert_eq!(closed(&recorder, Side::Back).await, Closer::Instrument);
}

#[tokio::test]
async fn a_client_that_leaves_before_the_reply_ends_the_servers_side_too() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "{}")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    drop(client);
    assert_eq!(server.rest().await.0, "");
    assert_eq!(ending(&recorder).await, ReplyEnding::ClientLeft);
}

#[tokio::test]
async fn a_reused_connection_that_dies_unanswered_dies_for_the_client_too() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "{}")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send(&json_reply("{}")).await;
    client.message().await;
    client.send(&post(&recorder, "{}")).await;
    server.message().await;
    drop(server);
    assert_eq!(client.rest().await.0, "", "no answer is made up");
    let broke = noted(recorder.sink(), "the second end", |event| match event.kind {
        EventKind::ReplyEnd { side: Side::Back, ending: ReplyEnding::ServerBroke, .. } => Some(()),
        _ => None,
    });
    broke.await;
}
