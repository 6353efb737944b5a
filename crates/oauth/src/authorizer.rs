//! The way from a refusal to a token: 401 → resource metadata → authorization server metadata → registration → consent
//! → token → refresh. This file does the I/O; the pure modules decide which requests are sent and which answers are
//! trusted.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mcpace_wire::quote_printable;
use mcpace_wire::revision::Revision;
use tokio::sync::{Mutex, MutexGuard};
use url::Url;

use super::assertion::signed_assertion;
use super::consent::Consenting;
use super::dpop::{ALGORITHM, Prover};
use super::metadata::{self, ResourceMetadata, ServerMetadata};
use super::request::{self, Pending, Registration, TokenAuth};
use super::token::{self, TokenRequest, Tokens};
use super::{
    Asserted, Auth, AuthKind, Fetch, Fetched, HttpExchange, IdentityProvider, OAuthError, OAuthOptions, RefusedRequest,
    Secret,
};

/// The header with a proof, and the error that asks for another nonce in it (RFC 9449).
const PROOF: HeaderName = HeaderName::from_static("dpop");
const WANTS_NONCE: &str = "use_dpop_nonce";

/// Knows the token, and how to get one.
pub struct Authorizer {
    auth: Auth,
    revision: Option<Revision>,
    /// Proves possession of tokens, for clients that send proofs.
    prover: Option<Prover>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    grant: Option<TokenGrant>,
    /// By issuer, with the redirect URI that each was registered for.
    clients: HashMap<String, (Url, Registration)>,
}

/// A token and all that is needed to renew it.
struct TokenGrant {
    tokens: Tokens,
    metadata: ServerMetadata,
    client: Registration,
    resource: Option<String>,
    scope: Option<String>,
}

/// Result of discovery.
struct Discovered {
    metadata: ServerMetadata,
    resource: Option<String>,
    scopes: Option<String>,
}

impl Authorizer {
    /// `revision` is the one that will be spoken, where that is certain: older ones have laxer rules.
    #[must_use]
    pub fn new(auth: Auth, revision: Option<Revision>) -> Self {
        Self { auth, revision, prover: None, memory: Mutex::default() }
    }

    /// Has authorization servers that know DPoP bind their tokens to a key of this client (RFC 9449). The client then sends
    /// the headers of [`Authorizer::headers`].
    #[must_use]
    pub fn with_proofs(mut self) -> Self {
        if matches!(self.auth, Auth::OAuth(_)) {
            self.prover = Prover::new();
        }
        self
    }

    /// The headers that authorize one request, and the token in them.
    ///
    /// # Errors
    /// [`OAuthError::UnusableToken`], or the exchange's own.
    pub async fn headers<X: HttpExchange>(
        &self,
        method: &Method,
        url: &Url,
        http: &X,
    ) -> Result<(HeaderMap, Option<Secret>), X::Error> {
        let mut headers = HeaderMap::new();
        let Some(token) = self.token(http).await? else { return Ok((headers, None)) };
        let is_bound = match &self.prover {
            Some(_) => self.memory.lock().await.grant.as_ref().is_some_and(|grant| grant.tokens.is_bound),
            None => false,
        };
        let scheme = if is_bound { "DPoP" } else { "Bearer" };
        let value = HeaderValue::try_from(format!("{scheme} {}", token.reveal()));
        let mut value = value.map_err(|_| OAuthError::UnusableToken)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        if let Some(prover) = self.prover.as_ref().filter(|_| is_bound) {
            headers.insert(PROOF, prover.proof_header(method, url, Some(&token)).ok_or(OAuthError::UnusableKey)?);
        }
        Ok((headers, Some(token)))
    }

    /// For [`RefusedRequest::advice`].
    #[must_use]
    pub fn kind(&self) -> AuthKind {
        match self.auth {
            Auth::None => AuthKind::None,
            Auth::Bearer(_) => AuthKind::Bearer,
            Auth::OAuth(_) => AuthKind::OAuth,
        }
    }

    /// The token to send, renewed where it has expired. `None` where there is none yet.
    ///
    /// # Errors
    /// The exchange's own, when the renewal gets no reply.
    pub async fn token<X: HttpExchange>(&self, http: &X) -> Result<Option<Secret>, X::Error> {
        match &self.auth {
            Auth::None => Ok(None),
            Auth::Bearer(token) => Ok(Some(token.clone())),
            Auth::OAuth(_) => {
                let mut memory = self.memory.lock().await;
                if memory.grant.as_ref().is_some_and(|grant| grant.tokens.has_expired(Instant::now())) {
                    self.renew_token(&mut memory, http).await?;
                }
                Ok(memory.grant.as_ref().map(|grant| grant.tokens.access.clone()))
            }
        }
    }

    /// Does what can be done about a refusal. `false` where that is nothing.
    ///
    /// # Errors
    /// [`OAuthError`], or the exchange's own.
    pub async fn authorize<X: HttpExchange>(&self, refusal: &RefusedRequest, http: &X) -> Result<bool, X::Error> {
        let Auth::OAuth(options) = &self.auth else { return Ok(false) };
        let mut memory = self.memory.lock().await;
        let had = memory.grant.as_ref();
        if refusal.status == 403 {
            let wanted = refusal.challenge.scope.as_deref();
            let steps_up = refusal.challenge.error.as_deref() == Some("insufficient_scope");
            let held = had.and_then(|grant| grant.scope.as_deref());
            let Some(scope) = wanted.filter(|_| steps_up).and_then(|wanted| scope_union(held, wanted)) else {
                return Ok(false);
            };
            return self.obtain_grant(options, refusal, Some(scope), &mut memory, http).await.map(|()| true);
        }
        if let (Some(prover), Some(nonce)) = (&self.prover, &refusal.nonce)
            && refusal.challenge.error.as_deref() == Some(WANTS_NONCE)
        {
            prover.note_nonce(&refusal.server, nonce);
            return Ok(true);
        }
        // Another exchange renewed it while this one was under way.
        if had.is_some_and(|grant| refusal.token.as_ref() != Some(&grant.tokens.access)) {
            return Ok(true);
        }
        if had.is_some() && self.renew_token(&mut memory, http).await? {
            return Ok(true);
        }
        self.obtain_grant(options, refusal, None, &mut memory, http).await.map(|()| true)
    }

    /// Renews the token by its refresh token (RFC 6749 §6). Without success the grant is forgotten.
    async fn renew_token<X: HttpExchange>(
        &self,
        memory: &mut MutexGuard<'_, Memory>,
        http: &X,
    ) -> Result<bool, X::Error> {
        let Some(grant) = memory.grant.take() else { return Ok(false) };
        let Some(refresh) = grant.tokens.refresh.clone() else { return Ok(false) };
        let request = token::refresh_request(&grant.client, &refresh, grant.resource.as_deref());
        match self.request_tokens(http, &grant.metadata, request, "the token's renewal", Some(refresh)).await? {
            Ok(tokens) => {
                memory.grant = Some(TokenGrant { tokens, ..grant });
                Ok(true)
            }
            Err(OAuthError::Refused { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The whole way from a refusal to a token.
    async fn obtain_grant<X: HttpExchange>(
        &self,
        options: &OAuthOptions,
        refusal: &RefusedRequest,
        wider: Option<String>,
        memory: &mut MutexGuard<'_, Memory>,
        http: &X,
    ) -> Result<(), X::Error> {
        memory.grant = None;
        let found = self.discover_servers(refusal, http).await?;
        let scope = match wider.or_else(|| options.scope.clone()) {
            Some(scope) => Some(scope),
            None => refreshable_scope(refusal.challenge.scope.clone().or(found.scopes), &found.metadata, options),
        };
        if let Some(asserted) = &options.asserted {
            let (resource, metadata) = (found.resource, found.metadata);
            let known = options.registered.as_ref().ok_or(OAuthError::NoCredentials)?;
            let client = request::known_registration(known, &metadata);
            let assertion = match asserted {
                Asserted::Jwt(assertion) => assertion.clone(),
                Asserted::ByIdentityProvider(provider) => {
                    exchange_assertion(provider, &metadata.issuer, resource.as_deref(), scope.as_deref(), http).await?
                }
            };
            let request = token::assertion_request(&client, &assertion, resource.as_deref(), scope.as_deref());
            let tokens = self.request_tokens(http, &metadata, request, "the token", None).await??;
            memory.grant = Some(TokenGrant { tokens, metadata, client, resource, scope });
            return Ok(());
        }
        if options.client_credentials {
            let (resource, metadata) = (found.resource, found.metadata);
            let known = options.registered.as_ref().ok_or(OAuthError::NoCredentials)?;
            let client = request::known_registration(known, &metadata);
            let key = options.private_key.as_ref();
            let assertion = key.map(|key| signed_assertion(&client.id, &metadata.issuer, key)).transpose()?;
            if assertion.is_none() && client.secret.is_none() {
                return Err(OAuthError::NoCredentials.into());
            }
            let request =
                token::credentials_request(&client, assertion.as_ref(), resource.as_deref(), scope.as_deref());
            let tokens = self.request_tokens(http, &metadata, request, "the token", None).await??;
            memory.grant = Some(TokenGrant { tokens, metadata, client, resource, scope });
            return Ok(());
        }
        let consent = Consenting::prepare_consent(&options.consent).await?;
        let redirect_uri = consent.redirect_uri()?;
        let client = register_client(options, &found.metadata, &redirect_uri, scope.as_deref(), memory, http).await?;
        let pending = Pending::new(redirect_uri);
        let resource = found.resource;
        let url = request::authorization_url(&found.metadata, &client, &pending, resource.as_deref(), scope.as_deref());
        let redirect = consent.obtain_redirect(&url, &pending, &found.metadata, &refusal.server, http).await?;
        let code = request::code_of(&redirect, &pending, &found.metadata)?;
        let request = token::code_request(&client, &pending, &code, resource.as_deref());
        let tokens = self.request_tokens(http, &found.metadata, request, "the token", None).await??;
        memory.grant = Some(TokenGrant { tokens, metadata: found.metadata, client, resource, scope });
        Ok(())
    }

    /// Asks an authorization server for tokens, with a proof where it knows DPoP.
    async fn request_tokens<X: HttpExchange>(
        &self,
        http: &X,
        metadata: &ServerMetadata,
        request: TokenRequest,
        what: &'static str,
        refresh: Option<Secret>,
    ) -> Result<Result<Tokens, OAuthError>, X::Error> {
        let knows_dpop = metadata.dpop_signing_alg_values_supported.iter().any(|name| name == ALGORITHM);
        let prover = self.prover.as_ref().filter(|_| knows_dpop);
        let text = post_form(http, &metadata.token_endpoint, request, what, prover).await?;
        Ok(text.and_then(|text| Tokens::read_tokens(&text, Instant::now(), refresh)))
    }

    async fn discover_servers<X: HttpExchange>(
        &self,
        refusal: &RefusedRequest,
        http: &X,
    ) -> Result<Discovered, X::Error> {
        let server = &refusal.server;
        let origin = server.origin().ascii_serialization();
        let old = self.revision.is_some_and(|revision| revision <= Revision::V2025_03_26);
        let named = refusal.challenge.resource_metadata.as_ref();
        if let Some(Err(reason)) = named.map(|named| metadata::check_address(named, server.as_str(), server)) {
            let reason = format!("the server names an address for it that is {reason}");
            return Err(OAuthError::BadMetadata(reason).into());
        }
        let candidates = metadata::resource_candidates(server, named);
        let resource: Option<ResourceMetadata> = first_document(http, &candidates, "the resource's metadata").await?;
        if let Some(resource) = &resource {
            metadata::check_resource(resource, server)?;
        }
        let issuer = resource.as_ref().and_then(|resource| resource.authorization_servers.first()).cloned();
        let (issuer, guessed) = match issuer {
            Some(issuer) => (issuer, false),
            // Before 2025-06-18 the server is its own authorization server.
            None => (origin.clone(), true),
        };
        let issuer_url = Url::parse(&issuer).map_err(|_| {
            OAuthError::BadMetadata(format!("the authorization server is no URL: {}", quote_printable(&issuer)))
        })?;
        if let Err(reason) = metadata::check_address(&issuer_url, server.as_str(), server) {
            return Err(OAuthError::BadMetadata(format!("the authorization server is {reason}")).into());
        }
        let candidates = metadata::server_candidates(&issuer_url);
        let metadata = match first_document(http, &candidates, "the authorization server's metadata").await? {
            Some(metadata) => {
                metadata::check_server(&metadata, &issuer, server, self.revision)?;
                metadata
            }
            None if guessed && old => metadata::without_metadata(server),
            None => {
                let what = "the authorization server's metadata";
                return Err(OAuthError::NoMetadata { what, origin: issuer_url.origin().ascii_serialization() }.into());
            }
        };
        // RFC 8707, since 2025-06-18; an older server that publishes RFC 9728 metadata understands it too.
        let named = resource.as_ref().map(|resource| resource.resource.clone());
        let canonical = || {
            let mut url = server.clone();
            url.set_fragment(None);
            url.to_string()
        };
        let scopes = resource.and_then(|resource| resource.scopes_supported).filter(|scopes| !scopes.is_empty());
        Ok(Discovered {
            metadata,
            resource: named.or_else(|| (!old).then(canonical)),
            scopes: scopes.map(|scopes| scopes.join(" ")),
        })
    }
}

async fn register_client<X: HttpExchange>(
    options: &OAuthOptions,
    metadata: &ServerMetadata,
    redirect_uri: &Url,
    scope: Option<&str>,
    memory: &mut MutexGuard<'_, Memory>,
    http: &X,
) -> Result<Registration, X::Error> {
    if let Some(client) = &options.registered {
        return Ok(request::known_registration(client, metadata));
    }
    if let Some(url) = options.metadata_url.as_ref().filter(|_| metadata.client_id_metadata_document_supported) {
        return Ok(Registration { id: url.to_string(), secret: None, method: TokenAuth::None });
    }
    let kept = memory.clients.get(&metadata.issuer).filter(|(uri, _)| uri == redirect_uri);
    if let Some((_, client)) = kept {
        return Ok(client.clone());
    }
    let endpoint = metadata.registration_endpoint.as_ref().ok_or(OAuthError::NoRegistration)?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let body = Bytes::from(request::registration_body(metadata, redirect_uri, scope));
    let what = "the registration";
    let fetched = http.fetch(Fetch { method: Method::POST, url: endpoint, headers, body, what }).await?;
    let text = accepted_body(fetched, what)?;
    let client = request::read_registration(&text)?;
    memory.clients.insert(metadata.issuer.clone(), (redirect_uri.clone(), client.clone()));
    Ok(client)
}

/// Has an identity provider make an assertion for the authorization server `audience`.
async fn exchange_assertion<X: HttpExchange>(
    provider: &IdentityProvider,
    audience: &str,
    resource: Option<&str>,
    scope: Option<&str>,
    http: &X,
) -> Result<Secret, X::Error> {
    let url = &provider.token_endpoint;
    if url.scheme() != "https" && !super::is_loopback(url) {
        let reason = "the identity provider's token endpoint is neither https nor on this machine";
        return Err(OAuthError::BadMetadata(reason.to_owned()).into());
    }
    let request = token::exchange_request(provider, audience, resource, scope);
    let what = "the identity provider's assertion";
    let text = post_form(http, url, request, what, None).await?;
    Ok(text.and_then(|text| token::read_exchanged(&text))?)
}

/// Sends a form to a token endpoint; the text of its reply.
async fn post_form<X: HttpExchange>(
    http: &X,
    url: &Url,
    request: TokenRequest,
    what: &'static str,
    prover: Option<&Prover>,
) -> Result<Result<Vec<u8>, OAuthError>, X::Error> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(authorization) = request.authorization {
        let value = HeaderValue::try_from(authorization.reveal()).map_err(|_| OAuthError::UnusableToken)?;
        headers.insert(AUTHORIZATION, value);
    }
    let body = Bytes::from(request.form);
    let mut is_first = true;
    loop {
        let mut headers = headers.clone();
        if let Some(prover) = prover {
            headers.insert(PROOF, prover.proof_header(&Method::POST, url, None).ok_or(OAuthError::UnusableKey)?);
        }
        let fetched = http.fetch(Fetch { method: Method::POST, url, headers, body: body.clone(), what }).await?;
        let nonce = prover.zip(fetched.nonce.as_deref());
        if let Some((prover, nonce)) = nonce {
            prover.note_nonce(url, nonce);
        }
        // RFC 9449 §8: the server says which nonce it wants once the first request has come without.
        let wants_nonce = nonce.is_some() && fetched.status >= 400 && is_error(&fetched.text, WANTS_NONCE);
        if !(is_first && wants_nonce) {
            return Ok(accepted_body(fetched, what));
        }
        is_first = false;
    }
}

/// Whether an error reply (RFC 6749 §5.2) has this code.
fn is_error(text: &[u8], code: &str) -> bool {
    serde_json::from_slice::<serde_json::Value>(text).is_ok_and(|reply| reply["error"] == code)
}

fn accepted_body(fetched: Fetched, what: &'static str) -> Result<Vec<u8>, OAuthError> {
    match fetched.status {
        200..300 => Ok(fetched.text),
        status => Err(OAuthError::Refused { what, status, reason: request::refusal_of(&fetched.text) }),
    }
}

/// The first of the candidates that is there. One that is there and can't be read is an error: guessing on would let
/// a broken document decide where credentials go.
async fn first_document<X: HttpExchange, T: serde::de::DeserializeOwned>(
    http: &X,
    candidates: &[Url],
    what: &'static str,
) -> Result<Option<T>, X::Error> {
    for url in candidates {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let fetched = http.fetch(Fetch { method: Method::GET, url, headers, body: Bytes::new(), what }).await?;
        // Many sites answer every path with a page: that is no document.
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(&fetched.text).is_ok();
        if fetched.status == 200 && is_json() {
            let parsed = serde_json::from_slice(&fetched.text);
            let bad = |error: serde_json::Error| {
                OAuthError::BadMetadata(format!(
                    "{what} at {} can't be read: {}",
                    url.path(),
                    quote_printable(&error.to_string())
                ))
            };
            return Ok(Some(parsed.map_err(bad)?));
        }
    }
    Ok(None)
}

/// With the scope that a refresh token wants, where the server has it (OpenID Connect §11). A program without a user asks
/// anew instead.
fn refreshable_scope(scope: Option<String>, metadata: &ServerMetadata, options: &OAuthOptions) -> Option<String> {
    const OFFLINE: &str = "offline_access";
    let offered = metadata.scopes_supported.as_ref().is_some_and(|scopes| scopes.iter().any(|scope| scope == OFFLINE));
    if !offered || options.client_credentials || options.asserted.is_some() {
        return scope;
    }
    match scope {
        Some(scope) if scope.split_whitespace().any(|scope| scope == OFFLINE) => Some(scope),
        Some(scope) => Some(format!("{scope} {OFFLINE}")),
        None => Some(OFFLINE.to_owned()),
    }
}

/// All scopes of both, or `None` where `wanted` brings nothing new.
fn scope_union(held: Option<&str>, wanted: &str) -> Option<String> {
    let mut scopes: Vec<&str> = held.unwrap_or_default().split_whitespace().collect();
    let before = scopes.len();
    for scope in wanted.split_whitespace() {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    (scopes.len() > before).then(|| scopes.join(" "))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A token endpoint that takes a proof only with its nonce.
    #[derive(Default)]
    struct WithNonce(Mutex<Vec<Option<String>>>);

    impl HttpExchange for WithNonce {
        type Error = OAuthError;

        async fn fetch(&self, fetch: Fetch<'_>) -> Result<Fetched, OAuthError> {
            use base64::Engine as _;
            let claims = fetch.headers[PROOF].to_str().unwrap().split('.').nth(1).unwrap();
            let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap();
            let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
            let nonce = claims["nonce"].as_str().map(str::to_owned);
            let is_good = nonce.as_deref() == Some("n");
            self.0.lock().unwrap().push(nonce);
            let text =
                if is_good { r#"{"access_token":"a","token_type":"DPoP"}"# } else { r#"{"error":"use_dpop_nonce"}"# };
            let status = if is_good { 200 } else { 400 };
            Ok(Fetched { status, location: None, nonce: Some("n".to_owned()), text: text.into() })
        }
    }

    #[tokio::test]
    async fn a_token_request_is_sent_again_with_the_nonce_that_the_server_wants() {
        let (server, prover) = (WithNonce::default(), Prover::new().unwrap());
        let url = Url::parse("https://as/token").unwrap();
        for _ in 0..2 {
            let request = TokenRequest { form: "grant_type=refresh_token".to_owned(), authorization: None };
            let text = post_form(&server, &url, request, "the token", Some(&prover)).await.unwrap().unwrap();
            assert!(Tokens::read_tokens(&text, Instant::now(), None).unwrap().is_bound);
        }
        // The nonce is kept for later requests.
        assert_eq!(*server.0.lock().unwrap(), [None, Some("n".to_owned()), Some("n".to_owned())]);
    }

    #[test]
    fn a_step_up_asks_for_the_earlier_scopes_too() {
        assert_eq!(scope_union(Some("a b"), "b c").as_deref(), Some("a b c"));
        assert_eq!(scope_union(None, "c").as_deref(), Some("c"));
        assert_eq!(scope_union(Some("a b"), "b"), None);
    }
}
