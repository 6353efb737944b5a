//! Authorization requests, codes and token requests.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use form_urlencoded::Serializer;
use sha2::{Digest as _, Sha256};

use super::OAuthError;
use super::resource::Resource;
use crate::secret::Secret;

pub(super) const UNKNOWN_CODE: OAuthError =
    OAuthError { code: "invalid_grant", description: "this code was never given out, or was used before" };
pub(super) const UNKNOWN_REFRESH_TOKEN: OAuthError =
    OAuthError { code: "invalid_grant", description: "this refresh token was never given out, or was used before" };

/// Request of a client at the authorization endpoint.
#[derive(Debug)]
pub(super) struct AuthorizationRequest {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    response_type: Option<String>,
    state: Option<String>,
    challenge: Option<String>,
    challenge_method: Option<String>,
    resource: Option<String>,
    scope: Option<String>,
}

impl AuthorizationRequest {
    /// Reads the query. Without client and redirect URI there is nobody to answer.
    pub(super) fn parse(query: &str) -> Result<Self, OAuthError> {
        let mut given = parse_parameters(query.as_bytes())?;
        Ok(Self {
            client_id: given.remove("client_id").ok_or(OAuthError::new("invalid_request", "client_id is missing"))?,
            redirect_uri: given
                .remove("redirect_uri")
                .ok_or(OAuthError::new("invalid_request", "redirect_uri is missing"))?,
            response_type: given.remove("response_type"),
            state: given.remove("state"),
            challenge: given.remove("code_challenge"),
            challenge_method: given.remove("code_challenge_method"),
            resource: given.remove("resource"),
            scope: given.remove("scope"),
        })
    }

    /// The error code with which the client is sent back, if the request can't be granted.
    pub(super) fn refusal(&self, ours: &Resource) -> Option<&'static str> {
        if self.response_type.as_deref() != Some("code") {
            return Some("unsupported_response_type");
        }
        // RFC 7636 §4.3; `plain` is refused, as OAuth 2.1 asks. A S256 challenge has 43 characters.
        let has_challenge = self.challenge.as_ref().is_some_and(|challenge| challenge.len() == 43);
        if !has_challenge || self.challenge_method.as_deref() != Some("S256") {
            return Some("invalid_request");
        }
        match &self.resource {
            Some(resource) if !ours.is_named_by(resource) => Some("invalid_target"),
            _ => None,
        }
    }

    /// Where the client is sent, with `code` or `error`, its state, and who answers (RFC 9207).
    pub(super) fn redirect_url(&self, name: &str, value: &str, issuer: &str) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair(name, value);
        if let Some(state) = &self.state {
            query.append_pair("state", state);
        }
        query.append_pair("iss", issuer);
        let joint = if self.redirect_uri.contains('?') { '&' } else { '?' };
        format!("{}{joint}{}", self.redirect_uri, query.finish())
    }
}

/// A code that waits to be redeemed.
#[derive(Debug)]
pub(super) struct Code {
    request: AuthorizationRequest,
    expires: Instant,
}

impl Code {
    pub(super) fn new(request: AuthorizationRequest, expires: Instant) -> Self {
        Self { request, expires }
    }

    /// Turns the code into a grant if everything fits the authorization request.
    pub(super) fn redeem_code(self, with: &TokenRequest, ours: &Resource, now: Instant) -> Result<Grant, OAuthError> {
        let refused = |description| Err(OAuthError::new("invalid_grant", description));
        let GrantKind::Code { redirect_uri, verifier, .. } = &with.kind else {
            return Err(UNKNOWN_CODE);
        };
        if now >= self.expires {
            return refused("this code has expired");
        }
        if with.client_id != self.request.client_id {
            return refused("this code was given to another client");
        }
        if *redirect_uri != self.request.redirect_uri {
            return refused("the redirect_uri is not that of the authorization request");
        }
        let challenge = Secret::new(self.request.challenge.unwrap_or_default());
        if !challenge.equals(&URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))) {
            return refused("the code_verifier does not fit the code_challenge");
        }
        check_resource(with.resource.as_deref(), ours)?;
        Ok(Grant { client_id: self.request.client_id, scope: self.request.scope })
    }
}

/// Client and scope of a grant. The resource needs no field, because there is only one.
#[derive(Debug)]
pub(super) struct Grant {
    client_id: String,
    pub(super) scope: Option<String>,
}

impl Grant {
    /// Checks a refresh against the grant that the refresh token stands for.
    pub(super) fn check_refresh(&self, with: &TokenRequest, ours: &Resource) -> Result<(), OAuthError> {
        if with.client_id != self.client_id {
            return Err(UNKNOWN_REFRESH_TOKEN);
        }
        check_resource(with.resource.as_deref(), ours)
    }
}

/// Clients before 2025-06-18 name no resource; theirs can only be the one that we guard.
fn check_resource(given: Option<&str>, ours: &Resource) -> Result<(), OAuthError> {
    match given {
        Some(resource) if !ours.is_named_by(resource) => {
            Err(OAuthError::new("invalid_target", "this server guards another resource"))
        }
        _ => Ok(()),
    }
}

/// Request of a client at the token endpoint.
#[derive(Debug)]
pub(super) struct TokenRequest {
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    pub(super) kind: GrantKind,
    resource: Option<String>,
}

#[derive(Debug)]
pub(super) enum GrantKind {
    Code { code: String, redirect_uri: String, verifier: String },
    Refresh { token: String },
}

impl TokenRequest {
    pub(super) fn parse(form: &[u8], authorization: Option<&str>) -> Result<Self, OAuthError> {
        let mut given = parse_parameters(form)?;
        let mut needed = |name, missing| given.remove(name).ok_or(OAuthError::new("invalid_request", missing));
        let kind = match needed("grant_type", "grant_type is missing")?.as_str() {
            "authorization_code" => GrantKind::Code {
                code: needed("code", "code is missing")?,
                redirect_uri: needed("redirect_uri", "redirect_uri is missing")?,
                verifier: needed("code_verifier", "code_verifier is missing")?,
            },
            "refresh_token" => GrantKind::Refresh { token: needed("refresh_token", "refresh_token is missing")? },
            _ => {
                return Err(OAuthError::new(
                    "unsupported_grant_type",
                    "only authorization_code and refresh_token are supported",
                ));
            }
        };
        let (client_id, client_secret) = match authorization {
            Some(header) => {
                let (id, secret) = basic_credentials(header)
                    .ok_or(OAuthError::new("invalid_client", "malformed Basic credentials"))?;
                (id, Some(secret))
            }
            None => (needed("client_id", "client_id is missing")?, given.remove("client_secret")),
        };
        Ok(Self { client_id, client_secret, kind, resource: given.remove("resource") })
    }
}

/// RFC 6749 §2.3.1: both halves are form-encoded before Base64.
fn basic_credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let (id, secret) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    let plain = |text: &str| {
        let pair = form_urlencoded::parse(text.as_bytes()).next();
        pair.map(|(name, _)| name.into_owned()).unwrap_or_default()
    };
    Some((plain(id), plain(secret)))
}

/// Form or query parameters. One that is repeated makes the request malformed (RFC 6749 §3.1), but
/// for `resource`, which may be (RFC 8707 §2); of those the first counts.
fn parse_parameters(text: &[u8]) -> Result<BTreeMap<String, String>, OAuthError> {
    let mut parameters = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(text) {
        if parameters.contains_key(name.as_ref()) {
            if name != "resource" {
                return Err(OAuthError::new("invalid_request", "a parameter is repeated"));
            }
            continue;
        }
        parameters.insert(name.into_owned(), value.into_owned());
    }
    Ok(parameters)
}
