//! The client against the scripted targets: bearer tokens, OAuth, sessions, TLS, the servers' own timing.

use std::sync::Arc;
use std::time::Duration;

use mcpace_net::client::{Auth, BrowserConsent, ClientOptions, Consent, OAuthOptions, Secret};
use mcpace_record::EventKind;
use mcpace_target::{Faults, Options, Profile, Target};
use mcpace_wire::Revision;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use crate::client_support::*;

async fn target(options: Options) -> Target {
    Target::start(options).await.unwrap()
}

fn oauth() -> ClientOptions {
    ClientOptions { auth: Auth::OAuth(Box::default()), ..options() }
}

/// Connects, lists and calls; everything must go well.
async fn goes_well(target: &Target, options: ClientOptions) -> std::sync::Arc<mcpace_net::Sink> {
    let (mut client, sink) = client_with(target.url(), options);
    client.connect().await.unwrap();
    assert!(client.list_tools().await.unwrap().iter().any(|tool| tool.name == "greet"));
    let result = call_tool(&mut client, "greet", &json!({ "name": "Ada" })).await.unwrap();
    assert!(result.result.get().contains("Ada"), "{:?}", result.result);
    client.disconnect().await;
    sink
}

#[tokio::test]
async fn every_revision_is_spoken_and_the_servers_timing_is_told() {
    let target = target(Options::new(Profile::Simple)).await;
    for revision in Revision::ALL {
        let options = ClientOptions { revision: Some(revision), server_timing: true, ..options() };
        let (mut client, _) = client_with(target.url(), options);
        assert_eq!(client.connect().await.unwrap().revision, revision);
        let result = call_tool(&mut client, "greet", &json!({ "name": "Ada" })).await.unwrap();
        assert!(result.timing.is_some(), "{revision}");
        client.disconnect().await;
    }
    let sink = goes_well(&target, options()).await;
    assert_eq!(connections(&sink), 1);
}

#[tokio::test]
async fn tls_is_spoken_with_a_certificate_that_the_caller_trusts() {
    let target = target(Options { tls: true, ..Options::new(Profile::Simple) }).await;
    let extra_root = target.certificate_pem().map(str::to_owned);
    let sink = goes_well(&target, ClientOptions { extra_root, ..options() }).await;
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::TlsReady { .. })), 1);
    let (mut client, _) = client_with(target.url(), options());
    assert_eq!(client.connect().await.unwrap_err().code(), "tls");
}

#[tokio::test]
async fn a_bearer_token_is_sent_and_never_recorded() {
    let token = Some(mcpace_target::Secret::new("TOPSECRET"));
    let target = target(Options { bearer_token: token, ..Options::new(Profile::Github) }).await;
    let auth = Auth::Bearer(Secret::new("TOPSECRET"));
    let sink = goes_well(&target, ClientOptions { auth, ..options() }).await;
    assert!(!serde_json::to_string(sink.recording().events()).unwrap().contains("TOPSECRET"));
    for auth in [Auth::None, Auth::Bearer(Secret::new("wrong"))] {
        let (mut client, _) = client_with(target.url(), ClientOptions { auth, ..options() });
        let error = client.connect().await.unwrap_err();
        assert_eq!(error.code(), "refused");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
}

#[tokio::test]
async fn oauth_goes_from_a_401_to_a_token_once_and_keeps_it_over_sessions() {
    let target = target(Options { hold: Duration::from_millis(50), ..Options::new(Profile::Notion) }).await;
    let (mut client, sink) = client_with(target.url(), ClientOptions { standalone_get: true, ..oauth() });
    for _ in 0..2 {
        client.connect().await.unwrap();
        client.list_tools().await.unwrap();
        call_tool(&mut client, "greet", &json!({ "name": "Ada" })).await.unwrap();
        client.disconnect().await;
    }
    let counters = target.counters();
    assert_eq!((counters.registrations, counters.authorizations, counters.tokens_issued), (1, 1, 1));
    assert_eq!(counters.unauthorized, 1);
    assert_eq!(counters.tools.get("greet"), Some(&2));
    let text = serde_json::to_string(sink.recording().events()).unwrap();
    assert!(text.contains("code_challenge=") && text.contains("[redacted "));
    assert!(text.contains("Bearer [redacted "));
}

#[tokio::test]
async fn an_expired_token_is_renewed_without_asking_for_consent_again() {
    let short =
        Options { hold: Duration::ZERO, token_lifetime: Duration::from_secs(1), ..Options::new(Profile::Notion) };
    let target = target(short).await;
    goes_well(&target, oauth()).await;
    let counters = target.counters();
    assert_eq!(counters.authorizations, 1);
    assert!(counters.tokens_issued > 1, "{counters:?}");
}

#[tokio::test]
async fn refused_consent_is_told_as_such() {
    let faults = Faults::parse(["consent-refused"]).unwrap();
    let target = target(Options { faults, ..Options::new(Profile::Notion) }).await;
    let (mut client, _) = client_with(target.url(), oauth());
    let error = client.connect().await.unwrap_err();
    assert_eq!(error.code(), "oauth-denied");
    assert!(error.to_string().contains("access_denied"), "{error}");
}

/// Asks for a URL by hand and returns the reply's text.
async fn visit(url: &Url) -> String {
    let address = format!("127.0.0.1:{}", url.port().unwrap());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let target = &url[url::Position::BeforePath..];
    let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", url.authority());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn consent_in_a_browser_comes_back_to_the_callback_port() {
    let target = target(Options { hold: Duration::ZERO, ..Options::new(Profile::Notion) }).await;
    let open = |url: &Url| {
        let url = url.clone();
        tokio::spawn(async move {
            let reply = visit(&url).await;
            let location = reply.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
            let callback: Url = location.parse().unwrap();
            // A browser asks for an icon too, and it must not be taken for the redirect.
            assert!(visit(&callback.join("/favicon.ico").unwrap()).await.contains("404"));
            assert!(visit(&callback).await.contains("200 OK"));
        });
    };
    let browser = BrowserConsent { open: Arc::new(open), limit: Duration::from_secs(20), port: 0 };
    let consent = Consent::Browser(browser);
    let auth = Auth::OAuth(Box::new(OAuthOptions { consent, ..OAuthOptions::default() }));
    goes_well(&target, ClientOptions { auth, ..options() }).await;
}

#[tokio::test]
async fn a_user_who_never_consents_ends_the_connect_at_the_browsers_limit() {
    let target = target(Options::new(Profile::Notion)).await;
    let browser = BrowserConsent { open: Arc::new(|_: &Url| {}), limit: Duration::from_millis(1), port: 0 };
    let auth = Auth::OAuth(Box::new(OAuthOptions { consent: Consent::Browser(browser), ..OAuthOptions::default() }));
    let (mut client, _) = client_with(target.url(), ClientOptions { auth, ..options() });
    assert_eq!(client.connect().await.unwrap_err().code(), "oauth-time-limit");
}

/// A guarded server whose authorization server says this about itself.
async fn guarded_by(metadata: impl Fn(&str) -> serde_json::Value + Send + Sync + 'static) -> Script {
    Script::serve(move |seen| {
        let origin = format!("http://{}", seen.header("host").unwrap());
        match seen.target.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => {
                json_reply(200, &json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] }))
            }
            "/.well-known/oauth-authorization-server" => json_reply(200, &metadata(&origin)),
            "/mcp" => reply(401, "WWW-Authenticate: Bearer\r\n", ""),
            _ => reply(404, "", ""),
        }
    })
    .await
}

#[tokio::test]
async fn an_authorization_server_that_can_not_be_trusted_gets_nothing_from_us() {
    let good = |origin: &str| {
        json!({ "issuer": origin, "authorization_endpoint": format!("{origin}/a"), "token_endpoint": format!("{origin}/t"),
                "registration_endpoint": format!("{origin}/r"), "code_challenge_methods_supported": ["S256"] })
    };
    let code_of = async |change: fn(&mut serde_json::Value)| {
        let script = guarded_by(move |origin| {
            let mut metadata = good(origin);
            change(&mut metadata);
            metadata
        })
        .await;
        let (mut client, _) = client_with(script.url.as_str(), oauth());
        let code = client.connect().await.unwrap_err().code();
        let posted = script.seen.lock().unwrap().iter().any(|seen| seen.target == "/r");
        (code, posted)
    };
    assert_eq!(code_of(|metadata| metadata["issuer"] = "https://evil".into()).await, ("oauth-bad-metadata", false));
    assert_eq!(
        code_of(|metadata| drop(metadata["code_challenge_methods_supported"].take())).await,
        ("oauth-no-pkce", false)
    );
    assert_eq!(
        code_of(|metadata| metadata["token_endpoint"] = "http://elsewhere/t".into()).await,
        ("oauth-bad-metadata", false)
    );
    assert_eq!(
        code_of(|metadata| drop(metadata["registration_endpoint"].take())).await,
        ("oauth-no-registration", false)
    );
    // The good one is believed, and refuses to register us.
    assert_eq!(code_of(|_| {}).await, ("oauth-refused", true));
}
