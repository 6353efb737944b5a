//! Signed tokens (JWT as access tokens, RFC 9068), verified without asking anybody but for keys.
//!
//! Once verified, a token is known by its SHA-256 for a few minutes, never past its `exp` nor past the time of the keys that
//! verified it: a signature costs fifty times a hash.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpace_serve::http::{TokenError, TokenVerifier};
use mcpace_serve::{PerProcess, Principal};

use crate::access::{Grant, check_shape, server_answer};
use crate::cache::{Cache, Until};
use crate::claims::{Claims, Demands};
use crate::digest::Digest;
use crate::key::Key;
use crate::key_ring::KeyRing;
use crate::key_set::{Judgement, KeySet};
use crate::provider::{Reach, Way};
use crate::rotation::Policy;
use crate::token_parts::Jws;
use crate::{Algorithm, AuthError, Clock, Failure, Report, Secret, SystemClock, TokenRefusal};

/// Where the keys are.
pub enum Keys {
    /// An issuer's `jwks_uri`.
    Url(String),
    /// One public key in PEM.
    Pem(String),
    /// A key set (RFC 7517 §5) that was got otherwise.
    Set(String),
    /// A secret that issuer and server share; of 32 bytes at least.
    Shared(Secret),
}

/// How [`JwtVerifier`] verifies.
pub struct JwtOptions {
    /// Where the keys are.
    pub keys: Keys,
    /// Algorithms that tokens may be signed with. If empty, all algorithms that fit the keys are accepted; for a shared
    /// secret the algorithm must be named.
    pub algorithms: Vec<Algorithm>,
    /// Demands on tokens. Default: any issuer and any audience, with an `exp` and a clock tolerance of 10 s.
    pub demands: Demands,
    /// How long keys are believed without asking again. Default: an hour.
    pub key_lifetime: Duration,
    /// How long keys go on while the issuer is away. Default: a day.
    pub keys_kept: Duration,
    /// The least time between two requests for keys. Default: 30 s.
    pub key_interval: Duration,
    /// How the issuer is reached.
    pub reach: Reach,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Hears of refusals and outages.
    pub report: Option<Report>,
}

impl JwtOptions {
    /// With defaults for all else.
    #[must_use]
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            algorithms: Vec::new(),
            demands: Demands { leeway: Duration::from_secs(10), needs_expiry: true, ..Demands::default() },
            key_lifetime: Duration::from_secs(3600),
            keys_kept: Duration::from_secs(24 * 3600),
            key_interval: Duration::from_secs(30),
            reach: Reach::default(),
            clock: Arc::new(SystemClock::default()),
            report: None,
        }
    }
}

/// Verifier of signed tokens (JWT), which caches the tokens that it has verified.
pub struct JwtVerifier {
    own: PerProcess<Own>,
    algorithms: Vec<Algorithm>,
    demands: Demands,
    clock: Arc<dyn Clock>,
    report: Option<Report>,
}

/// State that each process has for itself.
struct Own {
    source: KeySource,
    verified: Mutex<Cache<Verified>>,
}

enum KeySource {
    Given(Arc<KeySet>),
    Issuer(KeyRing),
}

#[derive(Clone)]
struct Verified {
    grant: Arc<Grant>,
    /// Generation of the keys that verified the token.
    generation: u64,
}

/// How long a verified token is known, at most.
const KNOWN: Duration = Duration::from_secs(300);
/// The generation of keys that were given.
const GIVEN: u64 = 0;
const MOST_KNOWN: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
const MOST_KNOWN_BYTES: usize = 16 << 20;

impl JwtVerifier {
    /// # Errors
    /// [`AuthError`]: a key, a URL or an algorithm that can't be used.
    pub fn new(options: JwtOptions) -> Result<Self, AuthError> {
        let algorithms = allowed_algorithms(&options)?;
        let make: Box<dyn Fn() -> KeySource + Send + Sync> = match &options.keys {
            Keys::Url(url) => {
                let way = Way::new("the issuer's key set", url, &options.reach)?;
                let policy =
                    Policy { lifetime: options.key_lifetime, kept: options.keys_kept, interval: options.key_interval };
                let (clock, report) = (Arc::clone(&options.clock), options.report.clone());
                Box::new(move || {
                    KeySource::Issuer(KeyRing::new(way.open_provider(), policy, Arc::clone(&clock), report.clone()))
                })
            }
            Keys::Pem(pem) => fixed_source(fitting_keys(KeySet::of(Key::from_pem(pem)?), &algorithms)?),
            Keys::Set(json) => {
                let read = KeySet::read_keys(json.as_bytes());
                let set = read.map_err(|_| AuthError::Key("a key set is a JSON object with an array `keys`"))?;
                fixed_source(fitting_keys(set, &algorithms)?)
            }
            Keys::Shared(secret) => fixed_source(KeySet::of(Key::shared_secret(secret)?)),
        };
        let own = PerProcess::new(move || Own {
            source: make(),
            verified: Mutex::new(Cache::new(MOST_KNOWN, MOST_KNOWN_BYTES)),
        });
        Ok(Self { own, algorithms, demands: options.demands, clock: options.clock, report: options.report })
    }

    async fn check_token(&self, token: &str) -> Result<Arc<Grant>, Failure> {
        check_shape(token)?;
        let (own, digest, now) = (self.own.get(), Digest::of(token), self.clock.now());
        let generation = own.trusted_generation(now.steady);
        let known = own.lock_cache().find_fresh(&digest, now).cloned();
        if let Some(known) = known.filter(|known| Some(known.generation) == generation) {
            return Ok(known.grant);
        }
        let jws = Jws::read_token(token)?;
        if !self.algorithms.contains(&jws.algorithm) {
            return Err(TokenRefusal::Algorithm(jws.algorithm).into());
        }
        let generation = match &own.source {
            KeySource::Issuer(ring) => ring.check_signature(&jws).await?,
            KeySource::Given(keys) if keys.judge_token(&jws) == Judgement::Good => GIVEN,
            KeySource::Given(_) => return Err(TokenRefusal::Signature.into()),
        };
        // Only now is anything in it believed.
        let json = std::str::from_utf8(&jws.payload).map_err(|_| TokenRefusal::Claim("set"))?;
        let claims = Claims::read_claims(json)?;
        let now = self.clock.now();
        self.demands.check_claims(&claims, now.wall)?;
        let grant = Arc::new(Grant::from_claims(&claims, json, &digest, &self.demands));
        if let Some(until) = Until::capped_time(KNOWN, grant.good_until, now) {
            let known = Verified { grant: Arc::clone(&grant), generation };
            own.lock_cache().keep_value(digest, known, grant.size_bytes(), until);
        }
        Ok(grant)
    }
}

impl Own {
    /// Generation of the current keys, if they are still trusted at `now`.
    fn trusted_generation(&self, now: Duration) -> Option<u64> {
        match &self.source {
            KeySource::Given(_) => Some(GIVEN),
            KeySource::Issuer(ring) => ring.trusted_generation(now),
        }
    }

    fn lock_cache(&self) -> MutexGuard<'_, Cache<Verified>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenVerifier for JwtVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(server_answer(self.check_token(token), self.report.as_ref(), token))
    }

    fn takes_any_audience(&self) -> bool {
        self.demands.audiences.is_empty()
    }
}

/// Keys that stay.
fn fixed_source(keys: KeySet) -> Box<dyn Fn() -> KeySource + Send + Sync> {
    let keys = Arc::new(keys);
    Box::new(move || KeySource::Given(Arc::clone(&keys)))
}

/// Algorithms that tokens may be signed with.
fn allowed_algorithms(options: &JwtOptions) -> Result<Vec<Algorithm>, AuthError> {
    let is_shared = matches!(options.keys, Keys::Shared(_));
    let wrong = |value: String, reason| Err(AuthError::Option { option: "the algorithm", value, reason });
    match options.algorithms.iter().find(|named| named.is_symmetric() != is_shared) {
        Some(named) if is_shared => {
            wrong(named.to_string(), "a shared secret is for HS256, HS384 and HS512; others need a public key")
        }
        Some(named) => {
            wrong(named.to_string(), "HS256, HS384 and HS512 need a shared secret, and these keys are public")
        }
        None if !options.algorithms.is_empty() => Ok(options.algorithms.clone()),
        None if is_shared => wrong("left out".to_owned(), "of a shared secret say which: HS256, HS384 or HS512"),
        None => Ok(Algorithm::ALL.into_iter().filter(|algorithm| !algorithm.is_symmetric()).collect()),
    }
}

/// A key that no algorithm fits would refuse every token: better said at once.
fn fitting_keys(keys: KeySet, algorithms: &[Algorithm]) -> Result<KeySet, AuthError> {
    if keys.fits_any(algorithms) {
        return Ok(keys);
    }
    let names: Vec<_> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
    Err(AuthError::Option {
        option: "the algorithm",
        value: names.join(", "),
        reason: "there is no usable key for it: RSA keys are for RS and PS, P-256 for ES256, P-384 for ES384, Ed25519 for EdDSA",
    })
}
