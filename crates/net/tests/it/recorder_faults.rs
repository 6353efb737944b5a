//! Servers that can't be reached, break off or speak no HTTP, clients that ask for what the recorder doesn't do.

use std::sync::Arc;
use std::time::Duration;

use mcpace_net::NetError;
use mcpace_net::recorder::{Recorder, RecorderOptions};
use mcpace_record::{EventKind, ReplyEnding, Side};
use tokio::net::TcpListener;

use crate::recorder_support::*;

fn endings(events: &[EventKind]) -> Vec<ReplyEnding> {
    let one = |kind: &EventKind| match kind {
        EventKind::ReplyEnd { side: Side::Front, ending, .. } => Some(*ending),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

#[tokio::test]
async fn an_unreachable_server_is_a_502_and_the_request_is_recorded() {
    let (listener, url) = listen().await;
    drop(listener);
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#)).await;
    let (head, body) = client.message().await;
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    assert!(
        body.starts_with("mcpace recorder: could not connect to 127.0.0.1:") && body.lines().count() == 1,
        "{body}"
    );
    // The front connection is still good.
    client.send(&get(&recorder, "/mcp")).await;
    assert!(client.message().await.0.starts_with("HTTP/1.1 502"));
    let events = events(&recorder);
    assert_eq!(endings(&events), [ReplyEnding::NoReply, ReplyEnding::NoReply]);
    assert!(events.iter().any(|kind| matches!(kind, EventKind::ConnectFailed { .. })));
    let initialize = |kind: &EventKind| matches!(kind, EventKind::RequestEnd { messages, .. } if messages.iter().any(|m| m.requests("initialize")));
    assert!(events.iter().any(initialize));
}

#[tokio::test]
async fn whoever_started_the_recorder_is_told_that_nobody_is_there_until_somebody_is() {
    let (listener, url) = listen().await;
    let address = listener.local_addr().unwrap();
    drop(listener);
    let recorder = record(&url);
    assert_eq!(recorder.unreachable(), None);
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "{}")).await;
    client.message().await;
    let why = recorder.unreachable().unwrap();
    assert!(why.starts_with(&format!("could not connect to {address}: ")), "{why}");
    let listener = TcpListener::bind(address).await.unwrap();
    client.send(&get(&recorder, "/mcp")).await;
    Peer::accept(&listener).await.message().await;
    assert_eq!(recorder.unreachable(), None);
}

#[tokio::test]
async fn a_server_that_speaks_no_http_or_hangs_up_is_a_502() {
    for words in ["SSH-2.0-OpenSSH_9.2\r\n\r\n", ""] {
        let (listener, url) = listen().await;
        let recorder = record(&url);
        let mut client = Peer::connect(&recorder).await;
        client.send(&post(&recorder, "{}")).await;
        let mut server = Peer::accept(&listener).await;
        server.message().await;
        server.send(words).await;
        drop(server);
        assert!(client.message().await.0.starts_with("HTTP/1.1 502"), "{words:?}");
        assert_eq!(endings(&events(&recorder)), [ReplyEnding::NoReply]);
    }
}

#[tokio::test]
async fn a_reply_that_breaks_off_breaks_off_for_the_client() {
    for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let (listener, url) = listen().await;
        let recorder = record(&url);
        let mut client = Peer::connect(&recorder).await;
        client.send(&get(&recorder, "/mcp")).await;
        let mut server = Peer::accept(&listener).await;
        server.message().await;
        server.send(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n4\r\nhalf\r\n")).await;
        client.until("half").await;
        drop(server);
        let (rest, _) = client.rest().await;
        assert!(!rest.contains("0\r\n\r\n"), "an end is made up: {rest:?}");
        assert_eq!(endings(&events(&recorder)), [ReplyEnding::ServerBroke], "{head}");
    }
}

#[tokio::test]
async fn tls_with_a_certificate_of_nobody_is_refused_and_with_its_root_accepted() {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, pem) = (key.cert.der().clone(), key.cert.pem());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.signing_key.serialize_der().try_into().unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: url::Url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port()).parse().unwrap();

    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    client.send(&get(&recorder, "/mcp")).await;
    let refused = async {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.is_err()
    };
    let (refused, (head, body)) = tokio::join!(limited("a handshake", refused), client.message());
    assert!(refused && head.starts_with("HTTP/1.1 502") && body.contains("TLS with localhost failed"), "{head}{body}");

    let options = RecorderOptions { extra_root: Some(pem), ..RecorderOptions::new(url) };
    let recorder = Recorder::start(options, sink()).unwrap();
    let mut client = Peer::connect(&recorder).await;
    client.send(&get(&recorder, "/mcp")).await;
    let (stream, _) = limited("a connection", listener.accept()).await.unwrap();
    let mut server = Peer::over(limited("a handshake", acceptor.accept(stream)).await.unwrap());
    let (head, _) = server.message().await;
    let port = listener.local_addr().unwrap().port();
    assert!(head.to_ascii_lowercase().contains(&format!("host: localhost:{port}\r\n")), "{head}");
    server.send(&json_reply("{\"a\":1}")).await;
    assert_eq!(client.message().await.1, "{\"a\":1}");
    assert!(events(&recorder).iter().any(|kind| matches!(kind, EventKind::TlsReady { .. })));
}

#[tokio::test]
async fn another_host_name_is_refused() {
    let (_listener, url) = listen().await;
    let recorder = record(&url);
    let port = authority(&recorder).split_once(':').unwrap().1.to_owned();
    for host in [format!("evil.example:{port}"), "127.0.0.1:1".to_owned(), String::new()] {
        let mut client = Peer::connect(&recorder).await;
        client.send(&format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert!(client.message().await.0.starts_with("HTTP/1.1 403"), "{host}");
    }
    let mut client = Peer::connect(&recorder).await;
    client.send(&format!("GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")).await;
    assert!(client.message().await.0.starts_with("HTTP/1.1 403"));
    assert_eq!(endings(&events(&recorder)), [ReplyEnding::NoReply; 4]);
}

#[tokio::test]
async fn it_is_no_open_proxy() {
    let (other, other_url) = listen().await;
    let (_listener, url) = listen().await;
    let recorder = record(&url);
    let mut client = Peer::connect(&recorder).await;
    let elsewhere = format!("127.0.0.1:{}", other_url.port().unwrap());
    for target in [
        format!("/.mcpace/http/{elsewhere}/"),
        format!("/.well-known/x/.mcpace/http/{elsewhere}/"),
        "/.mcpace/x".to_owned(),
    ] {
        client.send(&get(&recorder, &target)).await;
        assert!(client.message().await.0.starts_with("HTTP/1.1 404"), "{target}");
    }
    client.send(&format!("CONNECT {elsewhere} HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n")).await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 501"));
    drop(recorder);
    // It doesn't block: whoever connected would be waiting by now.
    let nobody = other.into_std().unwrap().accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn limits_end_what_does_not_end_by_itself() {
    let short = Duration::from_millis(30);
    type SetLimit = fn(&mut RecorderOptions, Duration);
    let cases: [(&str, SetLimit); 3] =
        [("GET /mcp HT", |o, d| o.head_limit = d), ("", |o, d| o.idle_limit = d), ("GET", |o, d| o.exchange_limit = d)];
    for (sent, limit) in cases {
        let (listener, url) = listen().await;
        let mut options = RecorderOptions::new(url);
        limit(&mut options, short);
        let recorder = Recorder::start(options, sink()).unwrap();
        let mut client = Peer::connect(&recorder).await;
        if sent == "GET" {
            client.send(&get(&recorder, "/mcp")).await;
            Peer::accept(&listener).await.rest().await;
        } else {
            client.send(sent).await;
        }
        assert_eq!(client.rest().await.0, "");
        let reason = |kind: &EventKind| match kind {
            EventKind::ConnectionClosed { side: Side::Front, reason, .. } => reason.clone(),
            _ => None,
        };
        let reason = events(&recorder).iter().find_map(reason).unwrap();
        assert!(reason.contains("longer than the recorder's limit"), "{reason}");
    }
}

#[tokio::test]
async fn bodies_and_connections_past_their_limits_are_refused() {
    let (listener, url) = listen().await;
    let options = RecorderOptions { body_limit: 10, max_connections: 1, ..RecorderOptions::new(url) };
    let recorder = Recorder::start(options, sink()).unwrap();
    let mut client = Peer::connect(&recorder).await;
    client.send(&post(&recorder, "12345678901")).await;
    assert!(client.message().await.0.starts_with("HTTP/1.1 413"));
    assert_eq!(Peer::connect(&recorder).await.rest().await.0, "");
    client.send(&get(&recorder, "/mcp")).await;
    let mut server = Peer::accept(&listener).await;
    server.message().await;
    server.send(&json_reply("12345678901")).await;
    assert_eq!(client.rest().await.0, "", "no half of it is passed");
    assert!(endings(&events(&recorder)).contains(&ReplyEnding::Cut));
}

#[tokio::test]
async fn a_taken_port_and_a_bad_url_are_said_at_the_start() {
    let (listener, url) = listen().await;
    let options = RecorderOptions { listen: listener.local_addr().unwrap(), ..RecorderOptions::new(url) };
    assert!(matches!(Recorder::start(options, sink()), Err(NetError::Listen { .. })));
    let options = RecorderOptions::new("ftp://example.com/".parse().unwrap());
    assert!(matches!(Recorder::start(options, sink()), Err(NetError::BadUrl { .. })));
    let options = RecorderOptions {
        extra_root: Some("no pem".to_owned()),
        ..RecorderOptions::new("https://a/".parse().unwrap())
    };
    assert!(matches!(Recorder::start(options, sink()), Err(NetError::Tls { .. })));
}
