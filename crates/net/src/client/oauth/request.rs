//! What the client sends to an authorization server, and what it reads from it. Pure but for randomness.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use form_urlencoded::{Serializer, byte_serialize};
use mcpace_record::Nanos;
use rand::RngCore as _;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::super::Secret;
use super::OAuthError;
use super::metadata::ServerMetadata;

/// How long before its end a token counts as expired: a request takes time to arrive.
const EARLY: Nanos = Nanos(5_000_000_000);

/// What one authorization must remember until its redirect: PKCE's verifier (RFC 7636 §4.1) and the state.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) verifier: Secret,
    pub(super) state: Secret,
    pub(super) redirect_uri: Url,
}

impl Pending {
    pub(super) fn new(redirect_uri: Url) -> Self {
        Self { verifier: Secret::new(random_text()), state: Secret::new(random_text()), redirect_uri }
    }

    /// RFC 7636 §4.2: BASE64URL(SHA256(verifier)).
    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.reveal()))
    }
}

/// A client as the authorization server knows it.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) method: TokenAuth,
}

/// How a client proves itself at the token endpoint (RFC 7591 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenAuth {
    None,
    Post,
    Basic,
}

impl TokenAuth {
    fn as_str(self) -> &'static str {
        match self {
            TokenAuth::None => "none",
            TokenAuth::Post => "client_secret_post",
            TokenAuth::Basic => "client_secret_basic",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [TokenAuth::None, TokenAuth::Post, TokenAuth::Basic].into_iter().find(|method| method.as_str() == name)
    }

    /// The best that the server offers: a program on a user's machine keeps no secret (RFC 8252 §8.5).
    fn offered(metadata: &ServerMetadata) -> Self {
        let Some(offered) = &metadata.token_endpoint_auth_methods_supported else { return TokenAuth::None };
        let has = |method: &TokenAuth| offered.iter().any(|name| name == method.as_str());
        [TokenAuth::None, TokenAuth::Post, TokenAuth::Basic].into_iter().find(has).unwrap_or(TokenAuth::None)
    }
}

/// Body of the registration request (RFC 7591 §3.1).
pub(super) fn registration_body(metadata: &ServerMetadata, redirect_uri: &Url, scope: Option<&str>) -> Vec<u8> {
    let mut body = json!({
        "client_name": "mcpace",
        "redirect_uris": [redirect_uri.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": TokenAuth::offered(metadata).as_str(),
        "application_type": "native",
    });
    if let Some(scope) = scope {
        body["scope"] = scope.into();
    }
    body.to_string().into_bytes()
}

/// Reads the registration response (RFC 7591 §3.2.1).
pub(super) fn registration(text: &[u8]) -> Result<Registration, OAuthError> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        client_secret: Option<String>,
        token_endpoint_auth_method: Option<String>,
    }
    let registered: Registered = serde_json::from_slice(text)
        .map_err(|_| OAuthError::BadMetadata("the registration's answer has no client_id".to_owned()))?;
    let named = registered.token_endpoint_auth_method.as_deref().and_then(TokenAuth::named);
    let unnamed = if registered.client_secret.is_some() { TokenAuth::Basic } else { TokenAuth::None };
    Ok(Registration {
        id: registered.client_id,
        secret: registered.client_secret.map(Secret::new),
        method: named.unwrap_or(unnamed),
    })
}

/// A client that the caller registered.
pub(super) fn known(client: &super::super::RegisteredClient, metadata: &ServerMetadata) -> Registration {
    let method = match (&client.secret, &metadata.token_endpoint_auth_methods_supported) {
        (None, _) => TokenAuth::None,
        (Some(_), Some(offered)) if offered.iter().any(|name| name == "client_secret_post") => TokenAuth::Post,
        (Some(_), _) => TokenAuth::Basic,
    };
    Registration { id: client.id.clone(), secret: client.secret.clone(), method }
}

/// The authorization URL (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2.1).
pub(super) fn authorization_url(
    metadata: &ServerMetadata,
    client: &Registration,
    pending: &Pending,
    resource: Option<&str>,
    scope: Option<&str>,
) -> Url {
    let mut url = metadata.authorization_endpoint.clone();
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", pending.redirect_uri.as_str())
        .append_pair("state", pending.state.reveal())
        .append_pair("code_challenge", &pending.challenge())
        .append_pair("code_challenge_method", "S256");
    if let Some(resource) = resource {
        query.append_pair("resource", resource);
    }
    if let Some(scope) = scope {
        query.append_pair("scope", scope);
        // OpenID Connect §11: without it there is no refresh token.
        if scope.split(' ').any(|scope| scope == "offline_access") {
            query.append_pair("prompt", "consent");
        }
    }
    drop(query);
    url
}

/// The code out of the redirect's URL, after all checks: state, `iss` (RFC 9207 §2.4), error (RFC 6749 §4.1.2.1).
pub(super) fn code_of(redirect: &Url, pending: &Pending, metadata: &ServerMetadata) -> Result<Secret, OAuthError> {
    let parameter = |name: &str| -> Result<Option<String>, OAuthError> {
        let mut found = redirect.query_pairs().filter(|(key, _)| key == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(OAuthError::BadRedirect("a parameter is there twice")),
            (first, None) => Ok(first.map(|(_, value)| value.into_owned())),
        }
    };
    if parameter("state")?.as_deref() != Some(pending.state.reveal()) {
        return Err(OAuthError::BadRedirect("its state is not ours"));
    }
    match parameter("iss")? {
        Some(issuer) if issuer != metadata.issuer => return Err(OAuthError::BadRedirect("its iss is another server")),
        None if metadata.authorization_response_iss_parameter_supported => {
            return Err(OAuthError::BadRedirect("its iss is missing though the server announces it"));
        }
        _ => {}
    }
    if let Some(error) = parameter("error")? {
        let description = parameter("error_description")?.unwrap_or_default();
        return Err(OAuthError::Denied(super::quoted(&format!("{error} {description}"))));
    }
    parameter("code")?.map(Secret::new).ok_or(OAuthError::BadRedirect("it has no code"))
}

/// A request to the token endpoint: the form, and the `Authorization` header of clients that have a secret.
pub(super) struct TokenRequest {
    pub(super) form: String,
    pub(super) authorization: Option<Secret>,
}

/// RFC 6749 §4.1.3, RFC 7636 §4.5.
pub(super) fn code_request(
    client: &Registration,
    pending: &Pending,
    code: &Secret,
    resource: Option<&str>,
) -> TokenRequest {
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code.reveal()),
        ("redirect_uri", pending.redirect_uri.as_str()),
        ("code_verifier", pending.verifier.reveal()),
    ];
    token_request(client, &pairs, resource)
}

/// RFC 6749 §6.
pub(super) fn refresh_request(client: &Registration, refresh: &Secret, resource: Option<&str>) -> TokenRequest {
    token_request(client, &[("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())], resource)
}

fn token_request(client: &Registration, pairs: &[(&str, &str)], resource: Option<&str>) -> TokenRequest {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(pairs);
    if let Some(resource) = resource {
        form.append_pair("resource", resource);
    }
    let mut authorization = None;
    match (client.method, &client.secret) {
        (TokenAuth::Basic, Some(secret)) => {
            // RFC 6749 §2.3.1: both halves are form-encoded before Base64.
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encode(&client.id), encode(secret.reveal()));
            authorization = Some(Secret::new(format!("Basic {}", STANDARD.encode(pair))));
        }
        (TokenAuth::Post, Some(secret)) => {
            form.append_pair("client_id", &client.id).append_pair("client_secret", secret.reveal());
        }
        _ => {
            form.append_pair("client_id", &client.id);
        }
    }
    TokenRequest { form: form.finish(), authorization }
}

/// An access token with what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    expires: Option<Nanos>,
}

impl Tokens {
    /// Reads a token response (RFC 6749 §5.1) that came at `now`. A refresh token that isn't renewed stays.
    pub(super) fn read(text: &[u8], now: Nanos, refresh: Option<Secret>) -> Result<Self, OAuthError> {
        #[derive(Deserialize)]
        struct Granted {
            access_token: String,
            token_type: String,
            expires_in: Option<f64>,
            refresh_token: Option<String>,
        }
        let granted: Granted =
            serde_json::from_slice(text).map_err(|_| OAuthError::BadToken("it has no access_token and token_type"))?;
        if !granted.token_type.eq_ignore_ascii_case("bearer") {
            return Err(OAuthError::BadToken("its token is no bearer token"));
        }
        if granted.access_token.is_empty() || !granted.access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OAuthError::UnusableToken);
        }
        // A float cast to an integer is cut at the type's ends, so no answer makes this overflow.
        let lifetime = granted.expires_in.filter(|seconds| *seconds >= 0.0).map(|seconds| (seconds * 1e9) as u64);
        Ok(Self {
            access: Secret::new(granted.access_token),
            refresh: granted.refresh_token.map(Secret::new).or(refresh),
            expires: lifetime.map(|lifetime| Nanos(now.0.saturating_add(lifetime))),
        })
    }

    pub(super) fn has_expired(&self, now: Nanos) -> bool {
        self.expires.is_some_and(|expires| now.0.saturating_add(EARLY.0) >= expires.0)
    }
}

/// The words of an OAuth error body (RFC 6749 §5.2), or the body's beginning.
pub(super) fn refusal_of(text: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
        error_description: Option<String>,
    }
    let words = match serde_json::from_slice::<Refusal>(text) {
        Ok(Refusal { error, error_description: Some(description) }) => format!("{error} ({description})"),
        Ok(Refusal { error, error_description: None }) => error,
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    };
    super::quoted(&words)
}

/// 256 random bits in characters that are safe in URLs (43 of them, as RFC 7636 §4.1 advises).
fn random_text() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::metadata::without_metadata;
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn public() -> Registration {
        Registration { id: "me".to_owned(), secret: None, method: TokenAuth::None }
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let mut pending = Pending::new(url("http://localhost:1/callback"));
        // RFC 7636 appendix B.
        pending.verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(pending.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn the_authorization_url_has_everything_and_keeps_its_own_query() {
        let mut metadata = without_metadata(&url("https://as"));
        metadata.authorization_endpoint = url("https://as/authorize?tenant=1");
        let pending = Pending::new(url("http://localhost:1/callback"));
        let url = authorization_url(&metadata, &public(), &pending, Some("https://h/mcp"), Some("a b"));
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "tenant",
                "response_type",
                "client_id",
                "redirect_uri",
                "state",
                "code_challenge",
                "code_challenge_method",
                "resource",
                "scope"
            ]
        );
        assert!(!url.as_str().contains(pending.verifier.reveal()));
    }

    #[test]
    fn a_redirect_is_believed_only_with_our_state_and_the_right_issuer() {
        let mut metadata = without_metadata(&url("https://as"));
        let pending = Pending::new(url("http://localhost:1/callback"));
        let state = pending.state.reveal().to_owned();
        let code = |query: &str, metadata: &ServerMetadata| {
            code_of(&url(&format!("http://localhost:1/callback?{query}")), &pending, metadata)
        };
        assert_eq!(code(&format!("code=c&state={state}"), &metadata).unwrap().reveal(), "c");
        assert!(matches!(code("code=c&state=x", &metadata), Err(OAuthError::BadRedirect(_))));
        assert!(matches!(code("code=c", &metadata), Err(OAuthError::BadRedirect(_))));
        assert!(matches!(code(&format!("code=c&code=d&state={state}"), &metadata), Err(OAuthError::BadRedirect(_))));
        let foreign = format!("code=c&state={state}&iss=https%3A%2F%2Fevil");
        assert!(matches!(code(&foreign, &metadata), Err(OAuthError::BadRedirect(_))));
        let denied = code(&format!("error=access_denied&state={state}"), &metadata);
        assert!(matches!(denied, Err(OAuthError::Denied(_))));
        metadata.authorization_response_iss_parameter_supported = true;
        assert!(matches!(code(&format!("code=c&state={state}"), &metadata), Err(OAuthError::BadRedirect(_))));
        assert!(code(&format!("code=c&state={state}&iss=https%3A%2F%2Fas"), &metadata).is_ok());
    }

    #[test]
    fn each_kind_of_client_proves_itself_in_its_own_way() {
        let pending = Pending::new(url("http://localhost:1/callback"));
        let secret = Some(Secret::new("s:é"));
        let code = Secret::new("c");
        let public = code_request(&public(), &pending, &code, Some("https://h/mcp"));
        assert!(public.form.ends_with("resource=https%3A%2F%2Fh%2Fmcp&client_id=me") && public.authorization.is_none());
        let basic = Registration { id: "m:e".to_owned(), secret: secret.clone(), method: TokenAuth::Basic };
        let basic = refresh_request(&basic, &Secret::new("r"), None);
        assert_eq!(basic.form, "grant_type=refresh_token&refresh_token=r");
        let expected = format!("Basic {}", STANDARD.encode("m%3Ae:s%3A%C3%A9"));
        assert_eq!(basic.authorization.unwrap().reveal(), expected);
        let post = Registration { id: "me".to_owned(), secret, method: TokenAuth::Post };
        assert!(refresh_request(&post, &Secret::new("r"), None).form.ends_with("client_secret=s%3A%C3%A9"));
    }

    #[test]
    fn tokens_expire_a_little_early_and_keep_their_refresh_token() {
        let text = br#"{"access_token":"a","token_type":"bearer","expires_in":60}"#;
        let tokens = Tokens::read(text, Nanos(0), Some(Secret::new("old"))).unwrap();
        assert!(!tokens.has_expired(Nanos(54_000_000_000)) && tokens.has_expired(Nanos(55_000_000_000)));
        assert_eq!(tokens.refresh.unwrap().reveal(), "old");
        for bad in [
            &br#"{"access_token":"a"}"#[..],
            br#"{"access_token":"a","token_type":"mac"}"#,
            br#"{"access_token":"a\r\nX: y","token_type":"bearer"}"#,
            b"<html>",
        ] {
            assert!(Tokens::read(bad, Nanos(0), None).is_err());
        }
        let forever = br#"{"access_token":"a","token_type":"Bearer","expires_in":1e300}"#;
        assert!(!Tokens::read(forever, Nanos(7), None).unwrap().has_expired(Nanos(u64::MAX / 2)));
    }

    #[test]
    fn registration_names_a_native_client_and_reads_what_the_server_decided() {
        let metadata = without_metadata(&url("https://as"));
        let body = registration_body(&metadata, &url("http://localhost:1/callback"), None);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["application_type"], "native");
        assert_eq!(body["token_endpoint_auth_method"], "none");
        let read = registration(br#"{"client_id":"x","client_secret":"y"}"#).unwrap();
        assert_eq!((read.method, read.secret.is_some()), (TokenAuth::Basic, true));
        assert!(registration(b"{}").is_err());
    }
}
