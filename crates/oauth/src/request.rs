//! Registration and authorization: what the client sends, and what it reads back. Pure but for randomness.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::OAuthError;
use super::Secret;
use super::metadata::ServerMetadata;

/// State of one authorization until its redirect: PKCE's verifier (RFC 7636 §4.1) and the `state` parameter.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) verifier: Secret,
    pub(crate) state: Secret,
    pub(crate) redirect_uri: Url,
}

impl Pending {
    pub(crate) fn new(redirect_uri: Url) -> Self {
        Self { verifier: Secret::new(random_text()), state: Secret::new(random_text()), redirect_uri }
    }

    /// RFC 7636 §4.2: BASE64URL(SHA256(verifier)).
    fn code_challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.reveal()))
    }
}

/// A client as the authorization server knows it.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
    pub(crate) method: TokenAuth,
}

/// How a client proves itself at the token endpoint (RFC 7591 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenAuth {
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

    fn from_name(name: &str) -> Option<Self> {
        [TokenAuth::None, TokenAuth::Post, TokenAuth::Basic].into_iter().find(|method| method.as_str() == name)
    }

    /// The best that the server offers: a program on a user's machine keeps no secret (RFC 8252 §8.5).
    fn best_offered(metadata: &ServerMetadata) -> Self {
        let Some(offered) = &metadata.token_endpoint_auth_methods_supported else { return TokenAuth::None };
        let has = |method: &TokenAuth| offered.iter().any(|name| name == method.as_str());
        [TokenAuth::None, TokenAuth::Post, TokenAuth::Basic].into_iter().find(has).unwrap_or(TokenAuth::None)
    }
}

/// Body of the registration request (RFC 7591 §3.1).
pub(crate) fn registration_body(metadata: &ServerMetadata, redirect_uri: &Url, scope: Option<&str>) -> Vec<u8> {
    let mut body = json!({
        "client_name": "mcpace",
        "redirect_uris": [redirect_uri.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": TokenAuth::best_offered(metadata).as_str(),
        "application_type": "native",
    });
    if let Some(scope) = scope {
        body["scope"] = scope.into();
    }
    body.to_string().into_bytes()
}

/// Reads the registration response (RFC 7591 §3.2.1).
pub(crate) fn read_registration(text: &[u8]) -> Result<Registration, OAuthError> {
    #[derive(Deserialize)]
    struct RegisteredMembers {
        client_id: String,
        client_secret: Option<String>,
        token_endpoint_auth_method: Option<String>,
    }
    let registered: RegisteredMembers = serde_json::from_slice(text)
        .map_err(|_| OAuthError::BadMetadata("the registration's answer has no client_id".to_owned()))?;
    let named = registered.token_endpoint_auth_method.as_deref().and_then(TokenAuth::from_name);
    let unnamed = if registered.client_secret.is_some() { TokenAuth::Basic } else { TokenAuth::None };
    Ok(Registration {
        id: registered.client_id,
        secret: registered.client_secret.map(Secret::new),
        method: named.unwrap_or(unnamed),
    })
}

/// A client that the caller registered.
pub(crate) fn known_registration(client: &super::RegisteredClient, metadata: &ServerMetadata) -> Registration {
    let method = match (&client.secret, &metadata.token_endpoint_auth_methods_supported) {
        (None, _) => TokenAuth::None,
        (Some(_), Some(offered)) if offered.iter().any(|name| name == "client_secret_post") => TokenAuth::Post,
        (Some(_), _) => TokenAuth::Basic,
    };
    Registration { id: client.id.clone(), secret: client.secret.clone(), method }
}

/// The authorization URL (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2.1).
pub(crate) fn authorization_url(
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
        .append_pair("code_challenge", &pending.code_challenge())
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
pub(crate) fn code_of(redirect: &Url, pending: &Pending, metadata: &ServerMetadata) -> Result<Secret, OAuthError> {
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
        return Err(OAuthError::Denied(mcpace_wire::quote_printable(&format!("{error} {description}"))));
    }
    parameter("code")?.map(Secret::new).ok_or(OAuthError::BadRedirect("it has no code"))
}

/// The words of an OAuth error body (RFC 6749 §5.2), or the body's beginning.
pub(crate) fn refusal_of(text: &[u8]) -> String {
    #[derive(Deserialize)]
    struct RegistrationRefusal {
        error: String,
        error_description: Option<String>,
    }
    let words = match serde_json::from_slice::<RegistrationRefusal>(text) {
        Ok(RegistrationRefusal { error, error_description: Some(description) }) => format!("{error} ({description})"),
        Ok(RegistrationRefusal { error, error_description: None }) => error,
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    };
    mcpace_wire::quote_printable(&words)
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
        assert_eq!(pending.code_challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
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
    fn registration_names_a_native_client_and_reads_what_the_server_decided() {
        let metadata = without_metadata(&url("https://as"));
        let body = registration_body(&metadata, &url("http://localhost:1/callback"), None);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["application_type"], "native");
        assert_eq!(body["token_endpoint_auth_method"], "none");
        let read = read_registration(br#"{"client_id":"x","client_secret":"y"}"#).unwrap();
        assert_eq!((read.method, read.secret.is_some()), (TokenAuth::Basic, true));
        assert!(read_registration(b"{}").is_err());
    }
}
