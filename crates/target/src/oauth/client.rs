//! Registered clients (RFC 7591).

use http::Uri;
use serde_json::{Map, Value, json};

use super::OAuthError;
use crate::secret::{Secret, random_text};

/// A client keeps what it registered, and gets it back.
#[derive(Debug)]
pub(super) struct RegisteredClient {
    metadata: Map<String, Value>,
    redirect_uris: Vec<String>,
    method: AuthenticationMethod,
    secret: Option<(Secret, String)>,
}

/// How a client proves itself at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthenticationMethod {
    None,
    Post,
    Basic,
}

const MOST_REDIRECT_URIS: usize = 20;

impl RegisteredClient {
    /// Reads a registration request and makes up an id, and a secret where the method needs one.
    pub(super) fn from_registration(body: &[u8]) -> Result<(String, Self), OAuthError> {
        let mut metadata: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| invalid_client("the body is no JSON object"))?;
        let redirect_uris = redirect_uris(&metadata)?;
        let method = match metadata.get("token_endpoint_auth_method").map(Value::as_str) {
            // RFC 7591 §2: `client_secret_basic` where nothing is said.
            None | Some(Some("client_secret_basic")) => AuthenticationMethod::Basic,
            Some(Some("client_secret_post")) => AuthenticationMethod::Post,
            Some(Some("none")) => AuthenticationMethod::None,
            Some(_) => return Err(invalid_client("this token_endpoint_auth_method is not supported")),
        };
        let secret = (method != AuthenticationMethod::None).then(random_text);
        // The client can't set the members that the server decides.
        for decided in ["client_id", "client_secret", "client_id_issued_at", "client_secret_expires_at"] {
            metadata.remove(decided);
        }
        let client = Self {
            metadata,
            redirect_uris,
            method,
            secret: secret.map(|secret| (Secret::new(secret.clone()), secret)),
        };
        Ok((random_text(), client))
    }

    /// The registration response (RFC 7591 §3.2.1).
    pub(super) fn registration_response(&self, id: &str) -> Value {
        let mut registration = Value::Object(self.metadata.clone());
        registration["client_id"] = json!(id);
        registration["token_endpoint_auth_method"] = json!(match self.method {
            AuthenticationMethod::None => "none",
            AuthenticationMethod::Post => "client_secret_post",
            AuthenticationMethod::Basic => "client_secret_basic",
        });
        if let Some((_, secret)) = &self.secret {
            registration["client_secret"] = json!(secret);
            registration["client_secret_expires_at"] = json!(0);
        }
        registration
    }

    /// Whether a code may be sent there: exactly as registered, but for the port on loopback
    /// (RFC 8252 §7.3).
    pub(super) fn may_redirect_to(&self, given: &str) -> bool {
        self.redirect_uris.iter().any(|registered| {
            registered == given
                || matches!(
                    (loopback_without_port(registered), loopback_without_port(given)),
                    (Some(registered), Some(given)) if registered == given
                )
        })
    }

    /// Checks the client's secret, which public clients don't have.
    pub(super) fn check_secret(&self, given: Option<&str>) -> Result<(), OAuthError> {
        let accepted = match (&self.secret, given) {
            (None, None) => true,
            (Some((secret, _)), Some(given)) => secret.equals(given),
            _ => false,
        };
        accepted.then_some(()).ok_or(OAuthError::new("invalid_client", "the client's authentication failed"))
    }
}

fn redirect_uris(metadata: &Map<String, Value>) -> Result<Vec<String>, OAuthError> {
    let refused = |description| OAuthError::new("invalid_redirect_uri", description);
    let listed = metadata
        .get("redirect_uris")
        .and_then(Value::as_array)
        .filter(|listed| (1..=MOST_REDIRECT_URIS).contains(&listed.len()))
        .ok_or(refused("redirect_uris must list 1 to 20 URIs"))?;
    listed
        .iter()
        .map(|uri| {
            uri.as_str()
                .filter(|uri| is_acceptable(uri))
                .map(str::to_owned)
                .ok_or(refused("redirect URIs are https, or http on the loopback interface"))
        })
        .collect()
}

fn is_acceptable(uri: &str) -> bool {
    let secure = uri.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
    !uri.contains('#') && (secure || loopback_without_port(uri).is_some())
}

/// Scheme, host, path and query of a plain-text loopback URI.
fn loopback_without_port(uri: &str) -> Option<(String, String)> {
    let uri: Uri = uri.parse().ok()?;
    let host = uri.host()?.to_ascii_lowercase();
    let local = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
    // A user name before the host would make `http://localhost@elsewhere/` look local to a reader.
    let plain = !uri.authority()?.as_str().contains('@');
    (uri.scheme_str() == Some("http") && local && plain)
        .then(|| (host, uri.path_and_query().map(ToString::to_string).unwrap_or_default()))
}

fn invalid_client(description: &'static str) -> OAuthError {
    OAuthError::new("invalid_client_metadata", description)
}
