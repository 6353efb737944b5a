//! Every framing of HTTP/1.1 passes as it is, hop-by-hop headers don't, and no secret enters the recording.

use mcpace_net::SinkOptions;
use mcpace_net::recorder::{Recorder, RecorderOptions};
use mcpace_record::{EventKind, Nanos, Reader, ReplyEnding, Side};

use crate::recorder_support::*;

#[tokio::test]
async fn bodiless_replies_and_informational_ones_keep_the_connection_in_step() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let host = authority(&recorder);

    client.send(&format!("HEAD /mcp HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    let mut server = Peer::accept(&listener).await;
    assert!(server.message().await.0.starts_with("HEAD /mcp HTTP/1.1\r\n"));
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n").await;
    let head = client.until("\r\n\r\n").await;
    assert!(head.to_ascii_lowercase().contains("content-length: 1234"), "{head}");

    client.send(&format!("DELETE /mcp HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    server.message().await;
    server.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    let head = client.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 204") && !head.to_ascii_lowercase().contains("content-length"), "{head}");

    client.send(&post(&recorder, "{}")).await;
    server.message().await;
    server.send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n").await;
    let head = client.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 Fine"), "{head}");
    client.until("2\r\nok\r\n0\r\n\r\n").await;

    client.send(&post(&recorder, "{}")).await;
    server.message().await;
    server.send("HTTP/1.0 200 OK\r\n\r\nto the end").await;
    drop(server);
    let (rest, _) = client.rest().await;
    assert!(rest.contains("to the end"), "{rest}");

    let ended = |kind: &EventKind| matches!(kind, EventKind::ReplyEnd { ending: ReplyEnding::Complete, .. });
    assert_eq!(events(&recorder).iter().filter(|kind| ended(kind)).count(), 8);
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_gets_it() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let host = authority(&recorder);
    client
        .send(&format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"))
        .await;
    client.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send("{}").await;
    let mut server = Peer::accept(&listener).await;
    assert_eq!(server.message().await.1, "{}");
    server.send(&json_reply("{}")).await;
    client.message().await;
}

#[tokio::test]
async fn headers_pass_with_their_spelling_and_without_what_belongs_to_the_connection() {
    let (listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let host = authority(&recorder);
    let named =
        "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nMcp-Session-Id: abc\r\nX-Twice: 1\r\nX-Twice: 2";
    client.send(&format!("GET /mcp?a=%20b HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{named}\r\n\r\n")).await;
    let mut server = Peer::accept(&listener).await;
    let (head, _) = server.message().await;
    assert!(head.starts_with("GET /mcp?a=%20b HTTP/1.1\r\n"), "{head}");
    for present in ["Mcp-Session-Id: abc\r\n", "X-Twice: 1\r\n", "X-Twice: 2\r\n"] {
        assert!(head.contains(present), "{present} in {head}");
    }
    let own = listener.local_addr().unwrap();
    let lower = head.to_ascii_lowercase();
    assert!(
        lower.contains(&format!("host: {own}\r\n")) && lower.contains(&format!("origin: http://{own}\r\n")),
        "{head}"
    );
    assert!(!lower.contains("x-hop") && !lower.contains("te:"), "{head}");
    server.send("HTTP/1.1 200 OK\r\nX-Odd-CASE: 1\r\nServer-Timing: transport;dur=1, service;dur=2.5\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n").await;
    let head = client.until("\r\n\r\n").await;
    assert!(
        head.contains("X-Odd-CASE: 1\r\n") && head.to_ascii_lowercase().contains("keep-alive: timeout=5\r\n"),
        "{head}"
    );
    assert!(!head.to_ascii_lowercase().contains("\r\ndate:"), "nothing is added: {head}");
    let timed = events(&recorder).iter().any(|kind| match kind {
        EventKind::ServerTiming { timing, .. } => timing.service == Nanos::from_micros(2500),
        _ => false,
    });
    assert!(timed);
}

#[tokio::test]
async fn no_planted_secret_reaches_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    let sink = sink_with(SinkOptions { keep: false, file: Some(file.clone()), ..SinkOptions::default() });
    let site = Site::start(|_, _| {
        let body = r#"{"access_token":"PLANTED-reply","refresh_token":"PLANTED-reply"}"#;
        let head = "Set-Cookie: sid=PLANTED-cookie\r\nMcp-Session-Id: PLANTED-session\r\nLocation: http://127.0.0.1:9/cb?code=PLANTED-code&state=PLANTED-state";
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    })
    .await;
    let recorder = Recorder::start(RecorderOptions::new(site.url.clone()), sink).unwrap();
    let host = authority(&recorder);
    let mut client = Peer::connect(&recorder).await;
    let headers = "Authorization: Bearer PLANTED-bearer\r\nCookie: a=PLANTED-cookie\r\nX-Api-Key: PLANTED-key\r\nmcp-session-id: PLANTED-session";
    for (kind, body) in [
        (
            "application/x-www-form-urlencoded",
            "grant_type=x&code=PLANTED-form&code_verifier=PLANTED-form&client_secret=PLANTED-form",
        ),
        (
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"password":"PLANTED-json"}}}"#,
        ),
    ] {
        let size = body.len();
        client.send(&format!("POST /token?access_token=PLANTED-query HTTP/1.1\r\nHost: {host}\r\n{headers}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n{body}")).await;
        let (head, reply) = client.message().await;
        // The recording is redacted, the traffic is not.
        assert!(head.contains("PLANTED-session") && reply.contains("PLANTED-reply"), "{head}{reply}");
        assert!(site.last().1.contains("PLANTED") && site.last().0.contains("Bearer PLANTED-bearer"));
    }
    recorder.stop().unwrap();
    recorder.sink().finish().unwrap();
    let text = String::from_utf8(zstd::decode_all(std::fs::File::open(&file).unwrap()).unwrap()).unwrap();
    assert!(!text.contains("PLANTED"), "{text}");
    assert!(text.contains("[redacted ") && text.contains("grant_type=x"), "{text}");
    let recording = Reader::read(std::fs::File::open(&file).unwrap()).unwrap();
    assert!(
        !recording.partial
            && recording.events().iter().any(|e| matches!(e.kind, EventKind::ReplyHead { side: Side::Front, .. }))
    );
}
