//! Bearer tokens: whatever text comes as one, and whatever an issuer answers about one, ends in a verdict, without a
//! panic; and no good verdict comes of a signature that isn't the key's, nor of claims that break what is demanded.
#![no_main]

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use libfuzzer_sys::fuzz_target;
use mcpace_auth::{
    Access, Algorithm, Clock, Demands, Grant, JwtOptions, JwtVerifier, Keys, Moment, Secret, judge_answer,
};
use mcpace_serve::http::TokenVerifier as _;
use ring::hmac;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
/// An Ed25519 key without a private part here.
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
const NOW: Duration = Duration::from_secs(1_800_000_000);

struct Standing;

impl Clock for Standing {
    fn now(&self) -> Moment {
        Moment { wall: NOW, steady: Duration::ZERO }
    }
}

fn demands() -> Demands {
    Demands {
        issuers: vec!["https://id".to_owned()],
        audiences: vec!["https://mcp".to_owned()],
        leeway: Duration::from_secs(10),
        needs_expiry: true,
    }
}

fn verifier(keys: Keys, algorithms: Vec<Algorithm>) -> JwtVerifier {
    let options = JwtOptions { algorithms, demands: demands(), clock: Arc::new(Standing), ..JwtOptions::new(keys) };
    let quiet = JwtOptions { report: Some(Arc::new(|_| {})), ..options };
    JwtVerifier::new(quiet).expect("the options are good")
}

static SHARED: LazyLock<JwtVerifier> = LazyLock::new(|| {
    let secret = std::str::from_utf8(SECRET).expect("ASCII");
    verifier(Keys::Shared(Secret::new(secret)), vec![Algorithm::Hs256])
});
static GIVEN: LazyLock<JwtVerifier> = LazyLock::new(|| verifier(Keys::Pem(PUBLIC.to_owned()), Vec::new()));

fuzz_target!(|input: &[u8]| {
    let Some((&how, rest)) = input.split_first() else { return };
    match how % 4 {
        // The input as a token.
        0 => {
            if let Ok(token) = std::str::from_utf8(rest) {
                assert!(taken(&GIVEN, token).is_none(), "nobody has the key");
                let _ = taken(&SHARED, token);
            }
        }
        // A token with head and claims of the input, signed with the secret.
        1 => {
            let Some(at) = rest.iter().position(|byte| *byte == b'\n') else { return };
            let (head, claims) = (&rest[..at], &rest[at + 1..]);
            let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
            let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes());
            let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
            assert!(taken(&GIVEN, &token).is_none(), "nobody has the key");
            if let Some(grant) = taken(&SHARED, &token) {
                meets(&grant);
                assert_eq!(grant.claims.as_bytes(), claims);
            }
        }
        // The head of every token, arbitrary claims, and an invalid signature.
        2 => {
            let token = format!("eyJhbGciOiJIUzI1NiJ9.{}.AAAA", URL_SAFE_NO_PAD.encode(rest));
            assert!(taken(&SHARED, &token).is_none(), "a forged one");
        }
        // An issuer's answer to introspection.
        _ => {
            if let Ok(grant) = judge_answer(rest, "token", &demands(), NOW) {
                meets(&grant);
            }
            let _ = judge_answer(rest, "token", &Demands::default(), NOW);
        }
    }
});

/// Asserts that an accepted token was issued for this audience and has not expired.
fn meets(grant: &Grant) {
    assert!(grant.audiences.iter().any(|audience| audience == "https://mcp"));
    assert_eq!(grant.issuer.as_deref(), Some("https://id"));
    assert!(grant.expires.is_some_and(|end| NOW < end.saturating_add(Duration::from_secs(10))));
    assert!(!grant.principal.is_empty() || grant.subject.as_deref() == Some(""));
}

/// Verifies a token, which never waits, because the keys are present.
fn taken(verifier: &JwtVerifier, token: &str) -> Option<Arc<Grant>> {
    let verdict = match pin!(verifier.verify(token)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(verdict) => verdict,
        Poll::Pending => panic!("it waits for somebody"),
    };
    let principal = verdict.ok()?;
    let details = principal.details.expect("a verifier of ours tells details");
    Some(Arc::clone(&details.downcast_ref::<Access>().expect("an access").grant))
}
