//! The authorization server in moved time.

use super::*;

const REDIRECT: &str = "http://localhost:3030/callback";
// RFC 7636 appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn authorization_server(refuses_consent: bool) -> AuthorizationServer {
    let policy = Policy { token_lifetime: Duration::from_secs(60), refuses_consent };
    AuthorizationServer::new("http://127.0.0.1:9", "/mcp", &[], policy)
}

fn registered_client(server: &AuthorizationServer, method: &str) -> Value {
    let body = format!(r#"{{"redirect_uris":["{REDIRECT}"],"token_endpoint_auth_method":"{method}"}}"#);
    match server.register_client(body.as_bytes()) {
        EndpointAnswer::Registered(client) => client,
        other => panic!("{other:?}"),
    }
}

fn encode_form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn authorization_query<'a>(client: &'a str, more: &[(&'a str, &'a str)]) -> String {
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
    encode_form(&pairs)
}

fn location_parameter(location: &str, name: &str) -> Option<String> {
    let query = location.split_once('?').unwrap().1;
    form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

fn authorization_code(server: &AuthorizationServer, client: &str, now: Instant) -> String {
    match server.authorize_client(&authorization_query(client, &[]), now) {
        EndpointAnswer::Consent(location) => location_parameter(&location, "code").unwrap(),
        other => panic!("{other:?}"),
    }
}

fn redeem_code(server: &AuthorizationServer, client: &str, code: &str, verifier: &str, now: Instant) -> EndpointAnswer {
    let form = encode_form(&[
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", verifier),
    ]);
    server.token_response(form.as_bytes(), None, now)
}

fn error_code(answer: EndpointAnswer) -> &'static str {
    match answer {
        EndpointAnswer::Error(error) => error.code,
        other => panic!("{other:?}"),
    }
}

fn token_pair(answer: EndpointAnswer) -> (String, String) {
    let EndpointAnswer::Tokens(tokens) = answer else { panic!("{answer:?}") };
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

#[test]
fn a_code_becomes_a_token_that_is_good_until_it_expires() {
    let (server, now) = (authorization_server(false), Instant::now());
    let client = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let (access, _) = token_pair(redeem_code(&server, id, &authorization_code(&server, id, now), VERIFIER, now));
    assert_eq!(server.check_token(&access, now + Duration::from_secs(59)), Ok(()));
    assert_eq!(server.check_token(&access, now + Duration::from_secs(60)), Err(TokenRefused::Expired));
    assert_eq!(server.check_token("made up", now), Err(TokenRefused::Unknown));
}

#[test]
fn consent_brings_back_state_and_issuer() {
    let server = authorization_server(false);
    let client = registered_client(&server, "none");
    let query = authorization_query(client["client_id"].as_str().unwrap(), &[]);
    let EndpointAnswer::Consent(location) = server.authorize_client(&query, Instant::now()) else { panic!() };
    assert!(location.starts_with(&format!("{REDIRECT}?code=")));
    assert_eq!(location_parameter(&location, "state").unwrap(), "s t");
    assert_eq!(location_parameter(&location, "iss").unwrap(), "http://127.0.0.1:9");
}

#[test]
fn a_wrong_verifier_spoils_the_code() {
    let (server, now) = (authorization_server(false), Instant::now());
    let client = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let code = authorization_code(&server, id, now);
    let wrong = VERIFIER.replace('d', "e");
    assert_eq!(error_code(redeem_code(&server, id, &code, &wrong, now)), "invalid_grant");
    assert_eq!(error_code(redeem_code(&server, id, &code, VERIFIER, now)), "invalid_grant");
}

#[test]
fn a_code_is_good_once_for_a_minute_and_for_its_own_client() {
    let (server, now) = (authorization_server(false), Instant::now());
    let client = registered_client(&server, "none");
    let other = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let first = authorization_code(&server, id, now);
    token_pair(redeem_code(&server, id, &first, VERIFIER, now));
    assert_eq!(error_code(redeem_code(&server, id, &first, VERIFIER, now)), "invalid_grant");
    let late = authorization_code(&server, id, now);
    let after = now + CODE_LIFETIME;
    assert_eq!(error_code(redeem_code(&server, id, &late, VERIFIER, after)), "invalid_grant");
    let stolen = authorization_code(&server, id, now);
    let thief = other["client_id"].as_str().unwrap();
    assert_eq!(error_code(redeem_code(&server, thief, &stolen, VERIFIER, now)), "invalid_grant");
}

#[test]
fn refreshing_rotates_the_refresh_token() {
    let (server, now) = (authorization_server(false), Instant::now());
    let client = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let (_, refresh) = token_pair(redeem_code(&server, id, &authorization_code(&server, id, now), VERIFIER, now));
    let form = encode_form(&[("grant_type", "refresh_token"), ("client_id", id), ("refresh_token", &refresh)]);
    let later = now + Duration::from_secs(100);
    let (access, next) = token_pair(server.token_response(form.as_bytes(), None, later));
    assert_eq!(server.check_token(&access, later), Ok(()));
    assert_ne!(refresh, next);
    assert_eq!(error_code(server.token_response(form.as_bytes(), None, later)), "invalid_grant");
}

#[test]
fn requests_that_cannot_be_granted_go_back_to_the_client() {
    let server = authorization_server(false);
    let client = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    for (parameter_name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("resource", "https://elsewhere.example/mcp", "invalid_target"),
    ] {
        let query = authorization_query(id, &[(parameter_name, value)]);
        let EndpointAnswer::Refusal(location) = server.authorize_client(&query, Instant::now()) else { panic!() };
        assert_eq!(location_parameter(&location, "error").as_deref(), Some(expected));
        assert_eq!(location_parameter(&location, "state").as_deref(), Some("s t"));
    }
}

#[test]
fn nobody_is_redirected_to_an_unregistered_place() {
    let server = authorization_server(false);
    let client = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let at = |uri: &str| server.authorize_client(&authorization_query(id, &[("redirect_uri", uri)]), Instant::now());
    assert_eq!(error_code(at("http://localhost:3030/other")), "invalid_request");
    assert_eq!(error_code(at("http://localhost@evil.example:3030/callback")), "invalid_request");
    assert!(matches!(at("http://localhost:4040/callback"), EndpointAnswer::Consent(_)), "any loopback port");
    let query = authorization_query("nobody", &[]);
    assert_eq!(error_code(server.authorize_client(&query, Instant::now())), "invalid_client");
}

#[test]
fn refused_consent_is_access_denied() {
    let server = authorization_server(true);
    let client = registered_client(&server, "none");
    let query = authorization_query(client["client_id"].as_str().unwrap(), &[]);
    let EndpointAnswer::Refusal(location) = server.authorize_client(&query, Instant::now()) else { panic!() };
    assert_eq!(location_parameter(&location, "error").as_deref(), Some("access_denied"));
}

#[test]
fn confidential_clients_must_show_their_secret() {
    use base64::Engine as _;
    let (server, now) = (authorization_server(false), Instant::now());
    for method in ["client_secret_post", "client_secret_basic"] {
        let client = registered_client(&server, method);
        let id = client["client_id"].as_str().unwrap();
        let secret = client["client_secret"].as_str().unwrap();
        let without = redeem_code(&server, id, &authorization_code(&server, id, now), VERIFIER, now);
        assert_eq!(error_code(without), "invalid_client");
        let fresh = authorization_code(&server, id, now);
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", fresh.as_str()),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
        let form = encode_form(&pairs);
        token_pair(server.token_response(form.as_bytes(), Some(&format!("Basic {basic}")), now));
    }
}

#[test]
fn registrations_that_make_no_sense_are_refused() {
    let server = authorization_server(false);
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
        assert_eq!(error_code(server.register_client(body.as_bytes())), expected, "{body}");
    }
}

#[test]
fn a_token_for_another_resource_is_not_given_out() {
    let (server, now) = (authorization_server(false), Instant::now());
    let client = registered_client(&server, "none");
    let id = client["client_id"].as_str().unwrap();
    let code = authorization_code(&server, id, now);
    let form = encode_form(&[
        ("grant_type", "authorization_code"),
        ("client_id", id),
        ("code", &code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
        ("resource", "https://elsewhere.example/mcp"),
    ]);
    assert_eq!(error_code(server.token_response(form.as_bytes(), None, now)), "invalid_target");
}
