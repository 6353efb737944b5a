//! The token endpoint: what the client sends to it, and the tokens that come back. Pure.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use serde::Deserialize;

use super::request::{Pending, Registration, TokenAuth};
use super::{IdentityProvider, OAuthError, Secret};

/// How long before its end a token counts as expired: a request takes time to arrive.
const EARLY: Duration = Duration::from_secs(5);

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// An assertion that an identity provider makes for another authorization server (SEP-990).
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A request to the token endpoint: the form, and the `Authorization` header of clients that have a secret.
pub(crate) struct TokenRequest {
    pub(crate) form: String,
    pub(crate) authorization: Option<Secret>,
}

/// RFC 6749 §4.1.3, RFC 7636 §4.5.
pub(crate) fn code_request(
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
pub(crate) fn refresh_request(client: &Registration, refresh: &Secret, resource: Option<&str>) -> TokenRequest {
    token_request(client, &[("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())], resource)
}

/// RFC 6749 §4.4.2; `assertion` in the place of a secret (RFC 7523 §2.2).
pub(crate) fn credentials_request(
    client: &Registration,
    assertion: Option<&Secret>,
    resource: Option<&str>,
    scope: Option<&str>,
) -> TokenRequest {
    let mut pairs = vec![("grant_type", "client_credentials")];
    pairs.extend(scope.map(|scope| ("scope", scope)));
    let Some(assertion) = assertion else { return token_request(client, &pairs, resource) };
    pairs.push(("client_assertion_type", super::assertion::KIND));
    pairs.push(("client_assertion", assertion.reveal()));
    // A client that is known by its assertion names itself there, and has no secret to send.
    token_request(&Registration { secret: None, method: TokenAuth::None, ..client.clone() }, &pairs, resource)
}

/// RFC 7523 §2.1: `assertion` is another party's.
pub(crate) fn assertion_request(
    client: &Registration,
    assertion: &Secret,
    resource: Option<&str>,
    scope: Option<&str>,
) -> TokenRequest {
    let mut pairs = vec![("grant_type", JWT_BEARER), ("assertion", assertion.reveal())];
    pairs.extend(scope.map(|scope| ("scope", scope)));
    token_request(client, &pairs, resource)
}

/// RFC 8693 §2.1: asks an identity provider for an assertion that the authorization server `audience` takes (SEP-990).
pub(crate) fn exchange_request(
    provider: &IdentityProvider,
    audience: &str,
    resource: Option<&str>,
    scope: Option<&str>,
) -> TokenRequest {
    let client = Registration { id: provider.client_id.clone(), secret: None, method: TokenAuth::None };
    let mut pairs = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", ID_JAG),
        ("audience", audience),
        ("subject_token", provider.id_token.reveal()),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
    ];
    pairs.extend(scope.map(|scope| ("scope", scope)));
    token_request(&client, &pairs, resource)
}

/// The assertion in an identity provider's reply (RFC 8693 §2.2.1).
pub(crate) fn read_exchanged(text: &[u8]) -> Result<Secret, OAuthError> {
    #[derive(Deserialize)]
    struct Exchanged {
        access_token: String,
        issued_token_type: String,
    }
    let exchanged: Exchanged = serde_json::from_slice(text)
        .map_err(|_| OAuthError::BadToken("it has no access_token and issued_token_type"))?;
    if exchanged.issued_token_type != ID_JAG {
        return Err(OAuthError::BadToken("the identity provider's token is no assertion for another server"));
    }
    Ok(Secret::new(exchanged.access_token))
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
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// Whether each use of it takes a proof (RFC 9449).
    pub(crate) is_bound: bool,
    expires: Option<Instant>,
}

impl Tokens {
    /// Reads a token response (RFC 6749 §5.1) that came at `now`. A refresh token that isn't renewed stays.
    pub(crate) fn read_tokens(text: &[u8], now: Instant, refresh: Option<Secret>) -> Result<Self, OAuthError> {
        #[derive(Deserialize)]
        struct Granted {
            access_token: String,
            token_type: String,
            expires_in: Option<f64>,
            refresh_token: Option<String>,
        }
        let granted: Granted =
            serde_json::from_slice(text).map_err(|_| OAuthError::BadToken("it has no access_token and token_type"))?;
        let is_bound = granted.token_type.eq_ignore_ascii_case("dpop");
        if !(is_bound || granted.token_type.eq_ignore_ascii_case("bearer")) {
            return Err(OAuthError::BadToken("its token is neither a bearer token nor bound to a key"));
        }
        if granted.access_token.is_empty() || !granted.access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OAuthError::UnusableToken);
        }
        // A lifetime past what a clock holds is for ever.
        let lifetime = granted.expires_in.filter(|seconds| *seconds >= 0.0).map(Duration::try_from_secs_f64);
        Ok(Self {
            access: Secret::new(granted.access_token),
            refresh: granted.refresh_token.map(Secret::new).or(refresh),
            is_bound,
            expires: lifetime.and_then(Result::ok).and_then(|lifetime| now.checked_add(lifetime)),
        })
    }

    pub(crate) fn has_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now + EARLY >= expires)
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn each_kind_of_client_proves_itself_in_its_own_way() {
        let pending = Pending::new(Url::parse("http://localhost:1/callback").unwrap());
        let secret = Some(Secret::new("s:é"));
        let code = Secret::new("c");
        let public = Registration { id: "me".to_owned(), secret: None, method: TokenAuth::None };
        let public = code_request(&public, &pending, &code, Some("https://h/mcp"));
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
    fn an_assertion_for_another_server_is_told_by_its_type() {
        let reply = |kind: &str| format!(r#"{{"access_token":"jag","issued_token_type":"{kind}","token_type":"N_A"}}"#);
        assert_eq!(read_exchanged(reply(ID_JAG).as_bytes()).unwrap().reveal(), "jag");
        assert!(read_exchanged(reply("urn:ietf:params:oauth:token-type:access_token").as_bytes()).is_err());
        assert!(read_exchanged(br#"{"access_token":"jag"}"#).is_err());
    }

    #[test]
    fn tokens_expire_a_little_early_and_keep_their_refresh_token() {
        let text = br#"{"access_token":"a","token_type":"bearer","expires_in":60}"#;
        let now = Instant::now();
        let tokens = Tokens::read_tokens(text, now, Some(Secret::new("old"))).unwrap();
        let after = |seconds| now + Duration::from_secs(seconds);
        assert!(!tokens.has_expired(after(54)) && tokens.has_expired(after(55)));
        assert_eq!(tokens.refresh.unwrap().reveal(), "old");
        for bad in [
            &br#"{"access_token":"a"}"#[..],
            br#"{"access_token":"a","token_type":"mac"}"#,
            br#"{"access_token":"a\r\nX: y","token_type":"bearer"}"#,
            b"<html>",
        ] {
            assert!(Tokens::read_tokens(bad, now, None).is_err());
        }
        let forever = br#"{"access_token":"a","token_type":"Bearer","expires_in":1e300}"#;
        assert!(!Tokens::read_tokens(forever, now, None).unwrap().has_expired(after(1 << 40)));
    }
}
