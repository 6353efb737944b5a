//! Tokens that only their issuer can read: it is asked (RFC 7662), once for a token and a while, whoever else waits for the
//! same.
//!
//! Kept: what is good, for its time and never past `exp`; what isn't, briefly, apart from the good ones so that a flood of
//! rubbish drives none of them out. Never kept: that nobody could tell.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use mcpace_serve::Principal;
use mcpace_serve::http::{TokenError, TokenVerifier};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::access::{Grant, check_shape};
use crate::cache::{Cache, Until};
use crate::claims::{Claims, Expected};
use crate::digest::Digest;
use crate::error::told;
use crate::provider::{Reach, Way};
use crate::ticket::Ticket;
use crate::{AuthError, Clock, Failure, Outage, Refusal, Report, Secret, SystemClock};

/// How this server proves to the issuer that it may ask (RFC 6749 §2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// `client_secret_basic`: in the header.
    #[default]
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

/// How [`IntrospectionVerifier`] asks.
pub struct IntrospectionOptions {
    /// The issuer's introspection endpoint.
    pub url: String,
    /// This server's own name there.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// How it is shown.
    pub client_auth: ClientAuth,
    /// What tokens must be meant for, one of them (RFC 8707). None: what the issuer says is enough.
    pub audiences: Vec<String>,
    /// Issuers, as `iss` has them. None: not looked at.
    pub issuers: Vec<String>,
    /// How far clocks may differ. Default: none; the issuer has looked at its own.
    pub leeway: Duration,
    /// How long a good answer is kept; a token that is revoked meanwhile is taken for as long. Default: a minute.
    pub kept: Duration,
    /// How long a bad one is. Default: 5 s.
    pub refusals_kept: Duration,
    /// How many of each are kept. Default: 10,000.
    pub most_kept: NonZeroUsize,
    /// How many requests go to the issuer at a time. Default: 64.
    pub most_requests: usize,
    /// How the issuer is reached.
    pub reach: Reach,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Hears of refusals and outages.
    pub report: Option<Report>,
}

impl IntrospectionOptions {
    /// With defaults for all else.
    #[must_use]
    pub fn new(url: impl Into<String>, client_id: impl Into<String>, client_secret: Secret) -> Self {
        Self {
            url: url.into(),
            client_id: client_id.into(),
            client_secret,
            client_auth: ClientAuth::default(),
            audiences: Vec::new(),
            issuers: Vec::new(),
            leeway: Duration::ZERO,
            kept: Duration::from_secs(60),
            refusals_kept: Duration::from_secs(5),
            most_kept: MOST_KEPT,
            most_requests: 64,
            reach: Reach::default(),
            clock: Arc::new(SystemClock::default()),
            report: None,
        }
    }
}

/// See the module.
pub struct IntrospectionVerifier {
    shared: Arc<Shared>,
    report: Option<Report>,
}

struct Shared {
    provider: crate::provider::Provider,
    client: Client,
    expected: Expected,
    kept: Duration,
    refusals_kept: Duration,
    places: Semaphore,
    time: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    good: Cache<Arc<Grant>>,
    bad: Cache<Refusal>,
    under_way: HashMap<Digest, Ticket<Verdict>>,
}

type Verdict = Result<Arc<Grant>, Failure>;

const MOST_KEPT: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
const MOST_KEPT_BYTES: usize = 32 << 20;
/// How many tokens wait for their verdict at most, those being asked for included.
const MOST_WAITING: usize = 1024;

impl IntrospectionVerifier {
    /// # Errors
    /// [`AuthError`]: a URL or credentials that can't be used.
    pub fn new(options: IntrospectionOptions) -> Result<Self, AuthError> {
        let provider = Way::new("the issuer's introspection endpoint", &options.url, &options.reach)?.open();
        let state = State {
            good: Cache::new(options.most_kept, MOST_KEPT_BYTES),
            bad: Cache::new(options.most_kept, MOST_KEPT_BYTES),
            under_way: HashMap::new(),
        };
        let shared = Shared {
            provider,
            client: Client::new(&options.client_id, &options.client_secret, options.client_auth)?,
            expected: Expected {
                issuers: options.issuers,
                audiences: options.audiences,
                leeway: options.leeway,
                needs_expiry: false,
            },
            kept: options.kept,
            refusals_kept: options.refusals_kept,
            places: Semaphore::new(options.most_requests.clamp(1, MOST_WAITING)),
            time: options.reach.time,
            clock: options.clock,
            state: Mutex::new(state),
        };
        Ok(Self { shared: Arc::new(shared), report: options.report })
    }

    async fn check(&self, token: &str) -> Verdict {
        check_shape(token)?;
        let digest = Digest::of(token);
        let ticket = match self.shared.look(&digest, token)? {
            Known::Verdict(verdict) => return verdict,
            Known::Ticket(ticket) => ticket,
        };
        let what = self.shared.provider.what();
        ticket.wait().await.unwrap_or(Err(Outage::Thread { what }.into()))
    }
}

impl TokenVerifier for IntrospectionVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(async move {
            let checked = self.check(token).await.map_err(|failure| told(self.report.as_ref(), failure));
            Ok(Grant::principal(&checked?, token))
        })
    }
}

enum Known {
    Verdict(Verdict),
    Ticket(Ticket<Verdict>),
}

impl Shared {
    /// What is known of a token, or a place among those who wait for it: in one look, so that nobody asks for what has just
    /// been told.
    fn look(self: &Arc<Self>, digest: &Digest, token: &str) -> Result<Known, Outage> {
        let now = self.clock.now();
        let what = self.provider.what();
        let mut state = self.lock();
        if let Some(grant) = state.good.look(digest, now) {
            return Ok(Known::Verdict(Ok(Arc::clone(grant))));
        }
        if let Some(refusal) = state.bad.look(digest, now) {
            return Ok(Known::Verdict(Err(refusal.clone().into())));
        }
        let waiting = state.under_way.len();
        let begin = || {
            let (shared, digest, token) = (Arc::clone(self), *digest, Secret::new(token));
            let work = async move { shared.settle(digest, &token).await };
            Ticket::begin(work).ok_or(Outage::Thread { what })
        };
        match state.under_way.entry(*digest) {
            Entry::Occupied(mut known) => {
                if known.get().is_broken() {
                    known.insert(begin()?);
                }
                Ok(Known::Ticket(known.get().clone()))
            }
            Entry::Vacant(_) if waiting >= MOST_WAITING => Err(Outage::Busy { what, limit: MOST_WAITING }),
            Entry::Vacant(place) => Ok(Known::Ticket(place.insert(begin()?).clone())),
        }
    }

    /// Asks, and keeps what was told.
    async fn settle(&self, digest: Digest, token: &Secret) -> Verdict {
        let verdict = match self.ask(token).await {
            Ok(json) => self.read(&json, &digest),
            Err(outage) => Err(outage.into()),
        };
        let now = self.clock.now();
        let mut state = self.lock();
        match &verdict {
            Ok(grant) => {
                let expires = grant.expires.map(|end| end.saturating_add(self.expected.leeway));
                if let Some(until) = Until::within(self.kept, expires, now) {
                    state.good.keep(digest, Arc::clone(grant), grant.bytes(), until);
                }
            }
            Err(Failure::Refused(refusal)) => {
                if let Some(until) = Until::within(self.refusals_kept, None, now) {
                    state.bad.keep(digest, refusal.clone(), size_of::<Refusal>(), until);
                }
            }
            Err(Failure::Unavailable(_)) => {}
        }
        state.under_way.remove(&digest);
        verdict
    }

    async fn ask(&self, token: &Secret) -> Result<Bytes, Outage> {
        let what = self.provider.what();
        let asking = async {
            // Never closed.
            let _place = self.places.acquire().await.map_err(|_| Outage::Thread { what })?;
            self.provider.ask(Method::POST, &self.client.headers, self.client.form(token)).await
        };
        let asked = tokio::time::timeout(self.time, asking).await;
        asked.unwrap_or(Err(Outage::TimeLimit { what, limit: self.time }))
    }

    fn read(&self, json: &[u8], digest: &Digest) -> Verdict {
        let unreadable = |reason| Outage::Unreadable { what: self.provider.what(), reason };
        let json = std::str::from_utf8(json).map_err(|_| unreadable("UTF-8"))?;
        let claims = active(json).map_err(unreadable)??;
        self.expected.check(&claims, self.clock.now().wall)?;
        Ok(Arc::new(Grant::of(&claims, json, digest, self.expected.issuers.len() > 1)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an answer says of a token that is active. The outer error: it is no answer.
fn active(json: &str) -> Result<Result<Claims, Refusal>, &'static str> {
    #[derive(Deserialize)]
    struct Answer {
        active: bool,
    }
    const WANTED: &str = "a JSON object with `active`, true or false";
    if !json.trim_ascii_start().starts_with('{') {
        return Err(WANTED);
    }
    let answer: Answer = serde_json::from_str(json).map_err(|_| WANTED)?;
    Ok(if answer.active { Claims::read(json) } else { Err(Refusal::Inactive) })
}

/// This server, as the issuer knows it.
struct Client {
    headers: Vec<(HeaderName, HeaderValue)>,
    /// What the body ends in; a secret.
    rest: Secret,
}

impl Client {
    fn new(id: &str, secret: &Secret, auth: ClientAuth) -> Result<Self, AuthError> {
        if id.is_empty() {
            let (option, value) = ("the client's id", "empty".to_owned());
            return Err(AuthError::Option {
                option,
                value,
                reason: "the issuer answers only to clients that it knows",
            });
        }
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut headers = vec![(CONTENT_TYPE, form)];
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let (id, secret) = (encoded(id), encoded(secret.reveal()));
        let rest = match auth {
            ClientAuth::Basic => {
                let credentials = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
                let unusable = |_| AuthError::Key("the client's credentials fit no header");
                let mut header = HeaderValue::from_str(&credentials).map_err(unusable)?;
                header.set_sensitive(true);
                headers.push((AUTHORIZATION, header));
                String::new()
            }
            ClientAuth::Post => format!("&client_id={id}&client_secret={secret}"),
        };
        Ok(Self { headers, rest: Secret::new(rest) })
    }

    /// The question about a token.
    fn form(&self, token: &Secret) -> Bytes {
        let token: String = form_urlencoded::byte_serialize(token.reveal().as_bytes()).collect();
        format!("token={token}&token_type_hint=access_token{}", self.rest.reveal()).into()
    }
}

impl std::fmt::Debug for IntrospectionVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntrospectionVerifier").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_written_as_the_rfc_has_them() {
        let secret = Secret::new("p&s:ß");
        let basic = Client::new("a b", &secret, ClientAuth::Basic).unwrap();
        let shown = basic.headers[1].1.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(shown).unwrap(), b"a+b:p%26s%3A%C3%9F");
        assert_eq!(basic.form(&Secret::new("t+k")), "token=t%2Bk&token_type_hint=access_token");
        let post = Client::new("a b", &secret, ClientAuth::Post).unwrap();
        assert_eq!(post.headers.len(), 1);
        let form = "token=t&token_type_hint=access_token&client_id=a+b&client_secret=p%26s%3A%C3%9F";
        assert_eq!(post.form(&Secret::new("t")), form);
        assert!(!format!("{:?}", basic.headers).contains(shown));
    }

    #[test]
    fn only_a_plain_yes_is_one() {
        assert!(active(r#"{"active":true,"sub":"a"}"#).unwrap().is_ok());
        assert_eq!(active(r#"{"active":false}"#).unwrap().unwrap_err(), Refusal::Inactive);
        assert_eq!(active(r#"{"active":true,"exp":"x"}"#).unwrap().unwrap_err(), Refusal::Claim("exp"));
        for text in [
            "",
            "{}",
            "[]",
            "true",
            "[true]",
            r#"{"active":"true"}"#,
            r#"{"active":1}"#,
            r#"{"active":null}"#,
            "<html>",
        ] {
            assert!(active(text).is_err(), "{text}");
        }
    }
}
