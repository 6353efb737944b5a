//! The authorization server in moved time.

use super::*;

const REDIRECT: &str = "http://localhost:3030/callback";
// RFC 7636 appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn server(refuses_consent: bool) -> AuthorizationServer {
    let policy = Policy { token_lifetime: Duration::from_secs(60), refuses_consent };
    AuthorizationServer::new("http://127.0.0.1:9", "/mcp", &[], policy)
}

fn registered(server: &AuthorizationServer, method: &str) -> Value {
    let body = format!(r#"{{"redirect_uris":["{REDIRECT}"],"token_endpoint_auth_method":"{method}"}}"#);
    match server.register(body.as_bytes()) {
        Answer::Registered(client) => client,
        other => panic!("{other:?}"),
    }
}

fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn authorization<'a>(client: &'a str, more: &[(&'a str, &'a str)]) -> String {
    let mut pairs = vec![
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("state", "s t"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    for (name, value) in more {
        pairs.retain(|(known, _)| known != name);
        pairs.push((name, value));
    }
    form(&pairs)
}

fn parameter(location: &str, name: &str) -> Option<String> {
    let query = location.split_once('?').unwrap().1;
    form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

fn code(server: &AuthorizationServer, client: &str, now: Instant) -> String {
    match server.authorize(&authorization(client, &[]), now) {
        Answer::Consent(location) => parameter(&location, "code").unwrap(),
        other => panic!("{other:?}"),
    }
}

fn redeem(server: &AuthorizationServer, client: &str, code: &str, verifier: &str, now: Instant) -> Answer {
    let form = form(&[
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", verifier),
    ]);
    server.token(form.as_bytes(), None, now)
}

fn error(answer: Answer) -> &'static str {
    match answer {
        Answer::Error(error) => error.code,
        other => panic!("{other:?}"),
    }
}

fn tokens(answer: Answer) -> (String, String) {
    let Answer::Tokens(tokens) = answer else { panic!("{answer:?}") };
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

#[test]
fn a_code_becomes_a_token_that_is_good_until_it_expires() {
    let (server, now) = (server(false), Instant::now());
    let client = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let (access, _) = tokens(redeem(&server, id, &code(&server, id, now), VERIFIER, now));
    assert_eq!(server.check(&access, now + Duration::from_secs(59)), Ok(()));
    assert_eq!(server.check(&access, now + Duration::from_secs(60)), Err(TokenRefused::Expired));
    assert_eq!(server.check("made up", now), Err(TokenRefused::Unknown));
}

#[test]
fn consent_brings_back_state_and_issuer() {
    let server = server(false);
    let client = registered(&server, "none");
    let query = authorization(client["client_id"].as_str().unwrap(), &[]);
    let Answer::Consent(location) = server.authorize(&query, Instant::now()) else { panic!() };
    assert!(location.starts_with(&format!("{REDIRECT}?code=")));
    assert_eq!(parameter(&location, "state").unwrap(), "s t");
    assert_eq!(parameter(&location, "iss").unwrap(), "http://127.0.0.1:9");
}

#[test]
fn a_wrong_verifier_spoils_the_code() {
    let (server, now) = (server(false), Instant::now());
    let client = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let code = code(&server, id, now);
    let wrong = VERIFIER.replace('d', "e");
    assert_eq!(error(redeem(&server, id, &code, &wrong, now)), "invalid_grant");
    assert_eq!(error(redeem(&server, id, &code, VERIFIER, now)), "invalid_grant");
}

#[test]
fn a_code_is_good_once_for_a_minute_and_for_its_own_client() {
    let (server, now) = (server(false), Instant::now());
    let client = registered(&server, "none");
    let other = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let first = code(&server, id, now);
    tokens(redeem(&server, id, &first, VERIFIER, now));
    assert_eq!(error(redeem(&server, id, &first, VERIFIER, now)), "invalid_grant");
    let late = code(&server, id, now);
    let after = now + CODE_LIFETIME;
    assert_eq!(error(redeem(&server, id, &late, VERIFIER, after)), "invalid_grant");
    let stolen = code(&server, id, now);
    let thief = other["client_id"].as_str().unwrap();
    assert_eq!(error(redeem(&server, thief, &stolen, VERIFIER, now)), "invalid_grant");
}

#[test]
fn refreshing_rotates_the_refresh_token() {
    let (server, now) = (server(false), Instant::now());
    let client = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let (_, refresh) = tokens(redeem(&server, id, &code(&server, id, now), VERIFIER, now));
    let form = form(&[("grant_type", "refresh_token"), ("client_id", id), ("refresh_token", &refresh)]);
    let later = now + Duration::from_secs(100);
    let (access, next) = tokens(server.token(form.as_bytes(), None, later));
    assert_eq!(server.check(&access, later), Ok(()));
    assert_ne!(refresh, next);
    assert_eq!(error(server.token(form.as_bytes(), None, later)), "invalid_grant");
}

#[test]
fn requests_that_cannot_be_granted_go_back_to_the_client() {
    let server = server(false);
    let client = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    for (parameter_name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("resource", "https://elsewhere.example/mcp", "invalid_target"),
    ] {
        let query = authorization(id, &[(parameter_name, value)]);
        let Answer::Refusal(location) = server.authorize(&query, Instant::now()) else { panic!() };
        assert_eq!(parameter(&location, "error").as_deref(), Some(expected));
        assert_eq!(parameter(&location, "state").as_deref(), Some("s t"));
    }
}

#[test]
fn nobody_is_redirected_to_an_unregistered_place() {
    let server = server(false);
    let client = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let at = |uri: &str| server.authorize(&authorization(id, &[("redirect_uri", uri)]), Instant::now());
    assert_eq!(error(at("http://localhost:3030/other")), "invalid_request");
    assert_eq!(error(at("http://localhost@evil.example:3030/callback")), "invalid_request");
    assert!(matches!(at("http://localhost:4040/callback"), Answer::Consent(_)), "any loopback port");
    let query = authorization("nobody", &[]);
    assert_eq!(error(server.authorize(&query, Instant::now())), "invalid_client");
}

#[test]
fn refused_consent_is_access_denied() {
    let server = server(true);
    let client = registered(&server, "none");
    let query = authorization(client["client_id"].as_str().unwrap(), &[]);
    let Answer::Refusal(location) = server.authorize(&query, Instant::now()) else { panic!() };
    assert_eq!(parameter(&location, "error").as_deref(), Some("access_denied"));
}

#[test]
fn confidential_clients_must_show_their_secret() {
    use base64::Engine as _;
    let (server, now) = (server(false), Instant::now());
    for method in ["client_secret_post", "client_secret_basic"] {
        let client = registered(&server, method);
        let id = client["client_id"].as_str().unwrap();
        let secret = client["client_secret"].as_str().unwrap();
        let without = redeem(&server, id, &code(&server, id, now), VERIFIER, now);
        assert_eq!(error(without), "invalid_client");
        let fresh = code(&server, id, now);
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", fresh.as_str()),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
        let form = form(&pairs);
        tokens(server.token(form.as_bytes(), Some(&format!("Basic {basic}")), now));
    }
}

#[test]
fn registrations_that_make_no_sense_are_refused() {
    let server = server(false);
    for (body, expected) in [
        ("[]", "invalid_client_metadata"),
        ("{}", "invalid_redirect_uri"),
        (r#"{"redirect_uris":[]}"#, "invalid_redirect_uri"),
        (r#"{"redirect_uris":["http://evil.example/"]}"#, "invalid_redirect_uri"),
        (r#"{"redirect_uris":["javascript:alert(1)"]}"#, "invalid_redirect_uri"),
        (
            r#"{"redirect_uris":["https://a/"],"token_endpoint_auth_method":"private_key_jwt"}"#,
            "invalid_client_metadata",
        ),
    ] {
        assert_eq!(error(server.register(body.as_bytes())), expected, "{body}");
    }
}

#[test]
fn a_token_for_another_resource_is_not_given_out() {
    let (server, now) = (server(false), Instant::now());
    let client = registered(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let code = code(&server, id, now);
    let form = form(&[
        ("grant_type", "authorization_code"),
        ("client_id", id),
        ("code", &code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
        ("resource", "https://elsewhere.example/mcp"),
    ]);
    assert_eq!(error(server.token(form.as_bytes(), None, now)), "invalid_target");
}
