//! The kernel's statistics of both connections stand in the recording.

use std::time::Duration;

use mcpace_record::{ConnectionId, Event, EventKind, Side, TcpInfo};
use tokio::net::TcpSocket;

use crate::recorder_support::*;

fn statistics(event: &Event, wanted: Side) -> Option<(ConnectionId, TcpInfo)> {
    match event.kind {
        EventKind::TcpInfo { side, conn, info } if side == wanted => Some((conn, info)),
        _ => None,
    }
}

#[tokio::test]
async fn both_connections_have_statistics_after_a_reply_and_at_their_end() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "{}")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send(&json_reply("{}")).await;
    client.message().await;
    for side in [Side::Front, Side::Back] {
        let (_, info) = noted(recorder.sink(), "statistics", |event| statistics(event, side)).await;
        assert!(info.rtt > mcpace_record::Nanos::ZERO && info.min_rtt <= info.rtt, "{info:?}");
        assert_eq!(info.retransmitted, 0);
        assert!(info.segments_in >= 2 && info.segments_out >= 2, "{info:?}");
    }
    // Within the period of the first sample; the close has one nevertheless.
    client.send(&post(&recorder, "{}")).await;
    server.message().await;
    server.send(&json_reply("{}")).await;
    client.message().await;
    recorder.stop().unwrap();
    for side in [Side::Front, Side::Back] {
        let recording = recorder.sink().recording();
        let samples: Vec<_> = recording.events().iter().filter_map(|event| statistics(event, side)).collect();
        let [(_, first), .., (_, last)] = samples.as_slice() else { panic!("{samples:?}") };
        assert!(last.segments_in > first.segments_in && last.segments_out > first.segments_out, "{samples:?}");
    }
}

#[tokio::test]
async fn a_client_with_a_small_receive_window_limits_the_front_connection() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = authority(&recorder).parse().unwrap();
    let mut client = Peer::over(limited("connect", socket.connect(address)).await.unwrap());
    client.send(&post(&recorder, "{}")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    let reply = json_reply(&"x".repeat(1 << 20));
    // The kernel counts the time in ticks of up to 10 ms: a client that reads at once may not be seen.
    let read_late = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.message().await
    };
    let ((), (_, body)) = tokio::join!(server.send(&reply), read_late);
    assert_eq!(body.len(), 1 << 20);
    recorder.stop().unwrap();
    let recording = recorder.sink().recording();
    let last = |side| recording.events().iter().filter_map(|event| statistics(event, side)).next_back().unwrap().1;
    assert!(last(Side::Front).rwnd_limited > mcpace_record::Nanos::ZERO, "{:?}", last(Side::Front));
    assert_eq!(last(Side::Back).rwnd_limited, mcpace_record::Nanos::ZERO);
}
