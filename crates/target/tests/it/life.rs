//! Start, TLS, limits, stop.

use std::sync::Arc;

use mcpace_target::{Blame, Faults, Options, Profile, Target, TargetError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::client::{Ask, Connection, authority, faulty, limited, start, text};

async fn refused(options: Options) -> TargetError {
    Target::start(options).await.map(|target| target.url().to_owned()).unwrap_err()
}

fn with_fault(profile: Profile, fault: &str) -> Options {
    Options { faults: Faults::parse([fault]).unwrap(), ..Options::new(profile) }
}

#[tokio::test]
async fn options_that_make_no_sense_are_the_callers_fault() {
    for (options, message) in [
        (Options::new(Profile::Github), "profile `github` needs the bearer token that it should expect; give one"),
        (
            with_fault(Profile::Simple, "tls-handshake=1ms"),
            "fault `tls-handshake` can only be seen over TLS; switch TLS on for this target",
        ),
        (
            with_fault(Profile::Simple, "session-lost=1"),
            "fault `session-lost` needs sessions, and this target keeps none; switch sessions on",
        ),
        (
            with_fault(Profile::Simple, "consent-refused"),
            "fault `consent-refused` needs OAuth; profile `simple` does not use it",
        ),
        (
            with_fault(Profile::Simple, "token-lifetime=1s"),
            "fault `token-lifetime` needs OAuth; profile `simple` does not use it",
        ),
        (
            with_fault(Profile::Simple, "token-endpoint=1s"),
            "fault `token-endpoint` needs OAuth; profile `simple` does not use it",
        ),
    ] {
        let error = refused(options).await;
        assert_eq!((error.to_string().as_str(), error.blame()), (message, Blame::Caller));
    }
    let error = TargetError::from("gihtub".parse::<Profile>().unwrap_err());
    assert_eq!(
        error.to_string(),
        "unknown profile `gihtub`; did you mean `github`? (profiles: simple, notion, github, limits)"
    );
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = faulty(&[]).await;
    let port = authority(&first).rsplit_once(':').unwrap().1.parse().unwrap();
    let error = refused(Options { port, ..Options::new(Profile::Simple) }).await;
    assert_eq!(error.blame(), Blame::Environment);
    assert_eq!(
        error.to_string(),
        format!("127.0.0.1:{port} is already in use; choose another port, or 0 for any free one")
    );
}

#[tokio::test]
async fn a_host_that_is_not_ours_cannot_be_listened_on() {
    let host = "192.0.2.1".parse().unwrap();
    let error = refused(Options { host, ..Options::new(Profile::Simple) }).await;
    assert!(matches!(error, TargetError::Listen { .. }), "{error}");
}

async fn over_tls(target: &Target) -> Connection<tokio_rustls::client::TlsStream<TcpStream>> {
    let certificate = CertificateDer::from_pem_slice(target.certificate_pem().unwrap().as_bytes());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = limited(TcpStream::connect(authority(target))).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream);
    Connection::over(limited(connected).await.unwrap())
}

#[tokio::test]
async fn tls_is_spoken_with_the_certificate_that_is_shown() {
    let target = start(Options { tls: true, ..Options::new(Profile::Simple) }).await;
    assert!(target.url().starts_with("https://127.0.0.1:"));
    let mut connection = over_tls(&target).await;
    let (_, body) = connection.exchange(&Ask::greet()).await;
    assert_eq!(text(&body), "Hello, World!");
}

#[tokio::test]
async fn a_delayed_handshake_keeps_a_tls_client_from_speaking() {
    let options = Options { tls: true, ..with_fault(Profile::Simple, "tls-handshake=500s") };
    let target = start(options).await;
    let early = over_tls(&target);
    tokio::pin!(early);
    // Another connection is accepted after this one, so this one's handshake has had its turn.
    tokio::select! {
        _ = &mut early => panic!("the handshake was not delayed"),
        () = async { while target.counters().connections < 1 { tokio::task::yield_now().await } } => {}
    }
    let short = with_fault(Profile::Simple, "tls-handshake=1ms");
    let target = start(Options { tls: true, ..short }).await;
    let (_, body) = over_tls(&target).await.exchange(&Ask::greet()).await;
    assert_eq!(text(&body), "Hello, World!");
}

#[tokio::test]
async fn plain_text_to_a_tls_port_is_a_failed_handshake() {
    let target = start(Options { tls: true, ..Options::new(Profile::Simple) }).await;
    let mut connection = Connection::open(&target).await;
    connection.send(&Ask::greet().encoded()).await;
    connection.one_read().await;
    assert_eq!(target.counters().failed_handshakes, 1);
}

#[tokio::test]
async fn oversized_heads_are_refused() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let ask = Ask::greet().with("X-Padding", &"x".repeat(70_000));
    connection.send(&ask.encoded()).await;
    assert_eq!(connection.head().await.status(), 431);
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_the_port() {
    let target = faulty(&[]).await;
    let place = authority(&target).to_owned();
    let mut connection = Connection::open(&target).await;
    connection.exchange(&Ask::greet()).await;
    limited(target.stop()).await;
    assert_eq!(connection.until_closed().await, "");
    assert!(TcpStream::connect(place).await.is_err());
}

#[tokio::test]
async fn stopping_is_bounded_by_force_where_a_peer_never_ends() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    let half = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    connection.send(half).await;
    while target.counters().http_requests < 1 {
        tokio::task::yield_now().await;
    }
    limited(target.stop()).await;
    assert_eq!(connection.until_closed().await, "");
}

#[tokio::test]
async fn dropping_a_target_closes_everything() {
    let target = faulty(&["first-byte=500s"]).await;
    let mut connection = Connection::open(&target).await;
    connection.ask(&Ask::greet()).await;
    drop(target);
    assert_eq!(connection.until_closed().await, "");
}

#[tokio::test]
async fn open_connections_are_counted_down_again() {
    let target = faulty(&[]).await;
    let mut connection = Connection::open(&target).await;
    connection.exchange(&Ask::greet()).await;
    assert_eq!(target.counters().open_connections, 1);
    drop(connection);
    limited(async {
        while target.counters().open_connections > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
