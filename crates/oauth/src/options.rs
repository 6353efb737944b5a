//! Settings of authorization.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::Secret;

/// How a client authorizes itself.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    /// Not at all.
    #[default]
    None,
    /// With a token that the caller has (RFC 6750).
    Bearer(Secret),
    /// By OAuth 2.1, when the server asks for it with a 401.
    OAuth(Box<OAuthOptions>),
}

/// Settings of OAuth.
#[derive(Clone, Debug, Default)]
pub struct OAuthOptions {
    /// How consent is given.
    pub consent: Consent,
    /// The client's registration with the authorization server; `None` registers dynamically (RFC 7591).
    pub registered: Option<RegisteredClient>,
    /// Where the client's own metadata document is, an `https` URL (client-id metadata documents): what it is known by where
    /// the server takes such and it isn't registered.
    pub metadata_url: Option<Url>,
    /// Scopes to ask for, separated by spaces; `None` asks for what the server names.
    pub scope: Option<String>,
    /// Without a user: the grant of client credentials (RFC 6749 §4.4), for `registered`.
    pub client_credentials: bool,
    /// A P-256 key in PKCS #8 PEM that proves who the client is, instead of a secret (`private_key_jwt`); for client
    /// credentials.
    pub private_key: Option<Secret>,
    /// Without a user: an assertion of another party, for which the authorization server gives a token (RFC 7523 §2.1).
    pub asserted: Option<Asserted>,
}

/// Where an assertion of another party comes from.
#[derive(Clone, Debug)]
pub enum Asserted {
    /// It is there: a JWT that the platform gave to this workload (workload identity federation, SEP-1933).
    Jwt(Secret),
    /// An identity provider gives one for the user's ID token (enterprise-managed authorization, SEP-990).
    ByIdentityProvider(IdentityProvider),
}

/// An identity provider that exchanges ID tokens (RFC 8693).
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    /// Its token endpoint: `https`, or on this machine.
    pub token_endpoint: Url,
    /// Identifier of this client at the identity provider.
    pub client_id: String,
    /// The user's ID token, which it gave to this client.
    pub id_token: Secret,
}

/// A client that the authorization server already knows.
#[derive(Clone, Debug)]
pub struct RegisteredClient {
    /// The client id.
    pub id: String,
    /// The client's secret, where it has one.
    pub secret: Option<Secret>,
}

/// How the user's consent is obtained.
#[derive(Clone, Default)]
pub enum Consent {
    /// Ask for the authorization URL ourselves and read where it redirects. Works only with servers that consent by
    /// themselves, such as our scripted targets.
    #[default]
    Follow,
    /// Hand the authorization URL to the caller, who opens it in a browser, and wait for the redirect on a callback
    /// port of this machine.
    Browser(BrowserConsent),
}

/// See [`Consent::Browser`].
#[derive(Clone)]
pub struct BrowserConsent {
    /// Shows or opens the URL. Must return at once.
    pub open: Arc<dyn Fn(&Url) + Send + Sync>,
    /// How long the user may take; the operation's own limit applies too.
    pub limit: Duration,
    /// Port of the callback on the loopback interface; 0 takes a free one.
    pub port: u16,
}

impl fmt::Debug for Consent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Consent::Follow => formatter.write_str("Follow"),
            Consent::Browser(browser) => formatter.debug_tuple("Browser").field(&browser.limit).finish(),
        }
    }
}
