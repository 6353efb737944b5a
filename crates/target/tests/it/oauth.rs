//! The notion profile: from a 401 to a tool's result, and everything that can be refused.

use std::time::{Duration, Instant};

use mcpace_target::{Faults, Options, Profile, Target};
use serde_json::{Value, json};

use crate::client::{Ask, Connection, LIMIT, NEVER, authority, limited, response, start, text};

const REDIRECT: &str = "http://localhost:3030/callback";
// RFC 7636 appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

async fn notion(hold: Duration, token_lifetime: Duration) -> Target {
    start(Options { hold, token_lifetime, ..Options::new(Profile::Notion) }).await
}

fn form(path: &str, pairs: &[(&str, &str)]) -> Ask {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    Ask::new("POST", path).with("Content-Type", "application/x-www-form-urlencoded").body(body)
}

async fn registered(connection: &mut Connection) -> String {
    let client = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
    let ask = Ask::new("POST", "/register").body(client.to_string());
    let (head, body) = connection.exchange(&ask).await;
    assert_eq!(head.status(), 201);
    response(&body)["client_id"].as_str().unwrap().to_owned()
}

/// The redirect of the authorization endpoint, as pairs.
async fn authorized(connection: &mut Connection, client: &str) -> Vec<(String, String)> {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("state", "xyz"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ])
        .finish();
    let (head, _) = connection.exchange(&Ask::new("GET", &format!("/authorize?{query}"))).await;
    assert_eq!(head.status(), 302);
    let location = head.header("location").unwrap();
    let (place, query) = location.split_once('?').unwrap();
    assert_eq!(place, REDIRECT);
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    &pairs.iter().find(|(known, _)| known == name).unwrap().1
}

async fn redeemed(connection: &mut Connection, client: &str, code: &str, verifier: &str) -> (u16, Value) {
    let ask = form(
        "/token",
        &[
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", verifier),
        ],
    );
    let (head, body) = connection.exchange(&ask).await;
    assert_eq!(head.header("cache-control"), Some("no-store"));
    (head.status(), response(&body))
}

/// Goes the whole way to a token response.
async fn tokens(connection: &mut Connection) -> (String, Value) {
    let client = registered(connection).await;
    let redirect = authorized(connection, &client).await;
    let (status, tokens) = redeemed(connection, &client, value(&redirect, "code"), VERIFIER).await;
    assert_eq!(status, 200, "{tokens}");
    (client, tokens)
}

fn bearer(ask: Ask, tokens: &Value) -> Ask {
    ask.with("Authorization", &format!("Bearer {}", tokens["access_token"].as_str().unwrap()))
}

/// Many clients write the head and the body apart: a connection that ended between them would be reset under the second.
#[tokio::test]
async fn a_refusal_waits_for_its_requests_body_and_leaves_the_connection_open() {
    let target = notion(Duration::ZERO, NEVER).await;
    let mut connection = Connection::open(&target).await;
    let somewhere = |method, path| Ask::new(method, path).body("{}");
    let refused = [
        (Ask::greet(), 401),
        (somewhere("POST", "/nowhere"), 404),
        (somewhere("PUT", "/token"), 405),
        (somewhere("PUT", "/mcp"), 401),
    ];
    for (number, (ask, status)) in (1..).zip(refused) {
        let whole = ask.encoded();
        let body = whole.windows(4).position(|at| at == b"\r\n\r\n").unwrap() + 4;
        connection.send(&whole[..body]).await;
        limited(async {
            while target.counters().http_requests < number {
                tokio::task::yield_now().await;
            }
        })
        .await;
        connection.send(&whole[body..]).await;
        let head = connection.head().await;
        assert_eq!(head.status(), status);
        connection.body(&head).await;
    }
}

#[tokio::test]
async fn a_401_leads_by_metadata_registration_and_consent_to_a_result() {
    let target = notion(Duration::from_millis(1), Duration::from_secs(60)).await;
    let origin = format!("http://{}", authority(&target));
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::initialize("2025-06-18")).await;
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    assert_eq!(head.status(), 401);
    assert_eq!(head.header("www-authenticate").unwrap(), format!("Bearer resource_metadata=\"{metadata}\""));
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let (_, body) = connection.exchange(&Ask::new("GET", path)).await;
        assert_eq!(response(&body)["resource"], target.url());
        assert_eq!(response(&body)["authorization_servers"], json!([origin]));
    }
    let path = "/.well-known/oauth-authorization-server";
    let (_, body) = connection.exchange(&Ask::new("GET", path)).await;
    assert_eq!(response(&body)["issuer"], origin);
    assert_eq!(response(&body)["code_challenge_methods_supported"], json!(["S256"]));

    let client = registered(&mut connection).await;
    let redirect = authorized(&mut connection, &client).await;
    assert_eq!((value(&redirect, "state"), value(&redirect, "iss")), ("xyz", origin.as_str()));
    let code = value(&redirect, "code");
    let (status, tokens) = redeemed(&mut connection, &client, code, VERIFIER).await;
    assert_eq!((status, &tokens["expires_in"]), (200, &json!(60)));

    let (head, _) = connection.exchange(&bearer(Ask::initialize("2025-06-18"), &tokens)).await;
    let session = head.header("mcp-session-id").unwrap();
    let ask = bearer(Ask::greet(), &tokens).with("Mcp-Session-Id", session);
    assert_eq!(text(&connection.exchange(&ask).await.1), "Hello, World!");
    let counters = target.counters();
    assert_eq!(
        [
            counters.unauthorized,
            counters.resource_metadata_fetches,
            counters.authorization_metadata_fetches,
            counters.registrations,
            counters.authorizations,
            counters.token_requests,
            counters.tokens_issued,
        ],
        [1, 2, 1, 1, 1, 1, 1]
    );
}

#[tokio::test]
async fn a_wrong_verifier_gets_no_token() {
    let target = notion(Duration::ZERO, Duration::from_secs(60)).await;
    let mut connection = Connection::open(&target).await;
    let client = registered(&mut connection).await;
    let redirect = authorized(&mut connection, &client).await;
    let wrong = VERIFIER.replace('d', "e");
    let (status, error) = redeemed(&mut connection, &client, value(&redirect, "code"), &wrong).await;
    assert_eq!((status, &error["error"]), (400, &json!("invalid_grant")));
    assert_eq!(target.counters().tokens_issued, 0);
}

#[tokio::test]
async fn an_expired_token_is_refused_and_a_refreshed_one_would_be_taken() {
    let target = notion(Duration::ZERO, Duration::ZERO).await;
    let mut connection = Connection::open(&target).await;
    let (client, tokens) = tokens(&mut connection).await;
    let (head, _) = connection.exchange(&bearer(Ask::initialize("2025-06-18"), &tokens)).await;
    assert_eq!(head.status(), 401);
    let challenge = head.header("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"invalid_token\"") && challenge.contains("has expired"));
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let pairs = [("grant_type", "refresh_token"), ("client_id", client.as_str()), ("refresh_token", refresh)];
    let (head, body) = connection.exchange(&form("/token", &pairs)).await;
    assert_eq!(head.status(), 200);
    assert_ne!(response(&body)["access_token"], tokens["access_token"]);
    let (head, body) = connection.exchange(&form("/token", &pairs)).await;
    assert_eq!((head.status(), &response(&body)["error"]), (400, &json!("invalid_grant")));
}

#[tokio::test]
async fn a_faulty_lifetime_is_told_in_whole_seconds_and_kept() {
    let faulty = async |lifetime: &str| {
        let faults = Faults::parse([format!("token-lifetime={lifetime}")]).unwrap();
        start(Options { hold: Duration::ZERO, faults, ..Options::new(Profile::Notion) }).await
    };
    let target = faulty("2.9s").await;
    let (_, told) = tokens(&mut Connection::open(&target).await).await;
    assert_eq!(told["expires_in"], json!(2));
    // It has run out by the time that it arrives.
    let target = faulty("1us").await;
    let mut connection = Connection::open(&target).await;
    let (_, tokens) = tokens(&mut connection).await;
    let (head, _) = connection.exchange(&bearer(Ask::initialize("2025-06-18"), &tokens)).await;
    assert_eq!(head.status(), 401);
    assert!(head.header("www-authenticate").unwrap().contains("has expired"));
}

#[tokio::test]
async fn a_slow_token_endpoint_takes_its_time() {
    let faults = Faults::parse(["token-endpoint=30ms"]).unwrap();
    let target = start(Options { faults, ..Options::new(Profile::Notion) }).await;
    let mut connection = Connection::open(&target).await;
    let client = registered(&mut connection).await;
    let redirect = authorized(&mut connection, &client).await;
    let asked = Instant::now();
    let (status, _) = redeemed(&mut connection, &client, value(&redirect, "code"), VERIFIER).await;
    assert_eq!(status, 200);
    assert!(asked.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn a_made_up_token_is_refused() {
    let target = notion(Duration::ZERO, Duration::from_secs(60)).await;
    let mut connection = Connection::open(&target).await;
    let (head, _) = connection.exchange(&Ask::greet().with("Authorization", "Bearer x")).await;
    assert_eq!(head.status(), 401);
    assert!(head.header("www-authenticate").unwrap().contains("was not given out"));
}

#[tokio::test]
async fn refused_consent_goes_back_as_access_denied() {
    let faults = Faults::parse(["consent-refused"]).unwrap();
    let target = start(Options { faults, ..Options::new(Profile::Notion) }).await;
    let mut connection = Connection::open(&target).await;
    let client = registered(&mut connection).await;
    let redirect = authorized(&mut connection, &client).await;
    assert_eq!((value(&redirect, "error"), value(&redirect, "state")), ("access_denied", "xyz"));
}

#[tokio::test]
async fn every_reply_stays_open_after_its_result_until_the_hold_ends() {
    let target = notion(NEVER, Duration::from_secs(60)).await;
    let mut connection = Connection::open(&target).await;
    let (_, tokens) = tokens(&mut connection).await;
    let head = connection.ask(&bearer(Ask::initialize("2025-06-18"), &tokens)).await;
    let session = head.header("mcp-session-id").unwrap().to_owned();
    let event = String::from_utf8(connection.chunk().await.unwrap()).unwrap();
    assert_eq!(response(&event)["result"]["protocolVersion"], "2025-06-18");
    let mut others = Vec::new();
    for ask in [Ask::request("tools/list", json!({})), Ask::greet(), Ask::request("ping", json!({}))] {
        let mut other = Connection::open(&target).await;
        other.ask(&bearer(ask, &tokens).with("Mcp-Session-Id", &session)).await;
        other.chunk().await.unwrap();
        others.push(other);
    }
    // A stream that doesn't stay open ends in the same write as its result. These end only when the
    // target stops, which ends every wait.
    for held in others.iter().chain([&connection]) {
        assert!(held.is_drained());
    }
    tokio::time::timeout(LIMIT, target.stop()).await.unwrap();
    for held in others.iter_mut().chain([&mut connection]) {
        assert_eq!(held.chunk().await, None);
    }
}

#[tokio::test]
async fn a_short_hold_ends_by_itself() {
    let target = notion(Duration::from_millis(5), Duration::from_secs(60)).await;
    let mut connection = Connection::open(&target).await;
    let (_, tokens) = tokens(&mut connection).await;
    let (head, body) = connection.exchange(&bearer(Ask::initialize("2025-06-18"), &tokens)).await;
    assert_eq!((head.status(), body.matches("data: ").count()), (200, 1));
}

#[tokio::test]
async fn the_standalone_stream_lives_as_long_as_its_session() {
    let target = notion(Duration::ZERO, Duration::from_secs(60)).await;
    let mut connection = Connection::open(&target).await;
    let (_, tokens) = tokens(&mut connection).await;
    let (head, _) = connection.exchange(&bearer(Ask::initialize("2025-06-18"), &tokens)).await;
    let session = head.header("mcp-session-id").unwrap();
    let in_session = |ask: Ask| bearer(ask, &tokens).with("Mcp-Session-Id", session);
    let mut stream = Connection::open(&target).await;
    let head = stream.ask(&in_session(Ask::new("GET", "/mcp"))).await;
    assert_eq!((head.status(), head.header("content-type")), (200, Some("text/event-stream")));
    let (head, _) = connection.exchange(&in_session(Ask::new("DELETE", "/mcp"))).await;
    assert_eq!(head.status(), 200);
    assert_eq!(stream.chunk().await, None);
    assert_eq!(target.counters().standalone_streams, 1);
}
