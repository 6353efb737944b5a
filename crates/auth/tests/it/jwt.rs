//! Signed tokens: which are taken, which aren't, and how often an issuer is asked for its keys.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_auth::{
    Access, Algorithm, AuthError, Failure, JwtOptions, JwtVerifier, Keys, Outage, Reach, Secret, TokenRefusal,
};
use mcpace_serve::http::{TokenError, TokenVerifier as _};
use serde_json::{Value, json};

use crate::issuer::{BEGIN, Issuer, Manual, json as reply, limited, status};
use crate::signing::{RSA_PUBLIC, Signer, claims};

/// A verifier, its time, and what it said of tokens last.
struct Tried {
    verifier: Arc<JwtVerifier>,
    clock: Arc<Manual>,
    heard: Arc<Mutex<Vec<Failure>>>,
}

impl Tried {
    fn new(keys: Keys, change: impl FnOnce(&mut JwtOptions)) -> Self {
        let (clock, heard) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
        let mut options = JwtOptions::new(keys);
        options.demands.issuers = vec!["https://id.example".to_owned()];
        options.demands.audiences = vec!["https://mcp.example/mcp".to_owned()];
        options.clock = clock.clone();
        let told = Arc::clone(&heard);
        options.report = Some(Arc::new(move |failure: &Failure| told.lock().unwrap().push(failure.clone())));
        change(&mut options);
        Self { verifier: Arc::new(JwtVerifier::new(options).unwrap()), clock, heard }
    }

    fn at(issuer: &Issuer) -> Self {
        Self::new(Keys::Url(format!("{}/jwks", issuer.url)), |_| {})
    }

    /// The subject of a token, or why there is none.
    async fn check(&self, token: &str) -> Result<String, Failure> {
        match limited("a verdict", self.verifier.verify(token)).await {
            Ok(principal) => Ok(principal.subject.to_string()),
            Err(error) => {
                // That it rests is told to nobody: why it does was.
                let resting = || Outage::Resting { what: "the issuer's key set" }.into();
                let failure = self.heard.lock().unwrap().pop().unwrap_or_else(resting);
                assert_eq!(error, failure.clone().into());
                Err(failure)
            }
        }
    }

    async fn refusal(&self, token: &str) -> TokenRefusal {
        match self.check(token).await {
            Err(Failure::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    async fn outage(&self, token: &str) -> Outage {
        match self.check(token).await {
            Err(Failure::Unavailable(outage)) => outage,
            other => panic!("{other:?}"),
        }
    }
}

fn published(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

async fn publishing(keys: &[Value]) -> Issuer {
    let text = published(keys);
    Issuer::start(move |_| {
        let text = text.clone();
        async { reply(text) }
    })
    .await
}

#[tokio::test]
async fn each_algorithm_is_verified_by_published_and_by_given_keys() {
    let (rsa, p256, p384, ed) = (Signer::rsa(), Signer::p256(), Signer::p384(), Signer::ed(1));
    let issuer = publishing(&[rsa.jwk("r"), p256.jwk("p"), p384.jwk("q"), ed.jwk("e")]).await;
    let by_url = Tried::at(&issuer);
    for (signer, kid, names) in [
        (&rsa, "r", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"].as_slice()),
        (&p256, "p", &["ES256"]),
        (&p384, "q", &["ES384"]),
        (&ed, "e", &["EdDSA"]),
    ] {
        let by_pem = Tried::new(Keys::Pem(signer.pem()), |_| {});
        for name in names {
            let token = signer.sign(&json!({"alg": name, "kid": kid, "typ": "at+jwt"}), &claims(&json!({})));
            assert_eq!(by_url.check(&token).await.as_deref(), Ok("ada"), "{name}");
            assert_eq!(by_pem.check(&token).await.as_deref(), Ok("ada"), "{name}");
            let root =
                signer.sign(&json!({"alg": name, "kid": kid, "typ": "at+jwt"}), &claims(&json!({"sub": "root"})));
            let (said, _) = root.rsplit_once('.').unwrap();
            let (_, signature) = token.rsplit_once('.').unwrap();
            let forged = format!("{said}.{signature}");
            assert_eq!(by_pem.refusal(&forged).await, TokenRefusal::Signature, "{name}");
            assert_eq!(by_url.refusal(&forged).await, TokenRefusal::Signature, "{name}");
        }
    }
    assert_eq!(issuer.asked(), 1);
    let secret = "0123456789abcdef0123456789abcdef";
    for (algorithm, name) in [(Algorithm::Hs256, "HS256"), (Algorithm::Hs384, "HS384"), (Algorithm::Hs512, "HS512")] {
        let tried = Tried::new(Keys::Shared(Secret::new(secret)), |options| options.algorithms = vec![algorithm]);
        let token = Signer::shared(secret.as_bytes()).sign(&json!({"alg": name}), &claims(&json!({})));
        assert_eq!(tried.check(&token).await.as_deref(), Ok("ada"), "{name}");
        let other = Signer::shared(b"another").sign(&json!({"alg": name}), &claims(&json!({})));
        assert_eq!(tried.refusal(&other).await, TokenRefusal::Signature);
    }
}

#[tokio::test]
async fn what_a_token_says_reaches_handlers() {
    let key = Signer::ed(1);
    let tried = Tried::new(Keys::Pem(key.pem()), |_| {});
    let token = key.token("k", &claims(&json!({"scope": "read write", "tenant": 7})));
    let principal = tried.verifier.verify(&token).await.unwrap();
    assert_eq!(*principal.scopes, ["read".to_owned(), "write".to_owned()]);
    let access = principal.details.unwrap().downcast::<Access>().unwrap();
    assert_eq!(access.token.reveal(), token);
    assert_eq!((access.grant.client_id.as_str(), access.grant.subject.as_deref()), ("app", Some("ada")));
    assert_eq!(access.grant.expires, Some(Duration::from_secs(BEGIN + 3600)));
    assert_eq!(access.grant.audiences, ["https://mcp.example/mcp"]);
    assert_eq!(serde_json::from_str::<Value>(&access.grant.claims).unwrap()["tenant"], 7);
}

#[tokio::test]
async fn forged_expired_and_foreign_tokens_are_refused() {
    let (key, other) = (Signer::ed(1), Signer::ed(2));
    let issuer = publishing(&[key.jwk("k")]).await;
    let tried = Tried::at(&issuer);
    let good = key.token("k", &claims(&json!({})));
    assert_eq!(tried.check(&good).await.as_deref(), Ok("ada"));

    assert_eq!(tried.refusal(&other.token("k", &claims(&json!({})))).await, TokenRefusal::Signature);
    let forged = key.token("k", &claims(&json!({"sub": "root"})));
    let parts: Vec<&str> = good.split('.').zip(forged.split('.')).map(|(good, _)| good).collect();
    let swapped = format!("{}.{}.{}", parts[0], forged.split('.').nth(1).unwrap(), parts[2]);
    assert_eq!(tried.refusal(&swapped).await, TokenRefusal::Signature);
    for (more, refusal) in [
        (json!({"exp": BEGIN - 11}), TokenRefusal::Expired),
        (json!({"exp": BEGIN.to_string()}), TokenRefusal::Claim("exp")),
        (json!({"exp": null}), TokenRefusal::Claim("exp")),
        (json!({"nbf": BEGIN + 11}), TokenRefusal::NotYet),
        (json!({"iss": "https://evil.example"}), TokenRefusal::Issuer),
        (json!({"iss": null}), TokenRefusal::Issuer),
        (json!({"aud": "https://other.example/mcp"}), TokenRefusal::Audience),
        (json!({"aud": ["a", "b"]}), TokenRefusal::Audience),
        (json!({"aud": null}), TokenRefusal::Audience),
    ] {
        assert_eq!(tried.refusal(&key.token("k", &claims(&more))).await, refusal, "{more}");
    }
    let within_leeway = key.token("k", &claims(&json!({"exp": BEGIN - 9, "nbf": BEGIN + 9})));
    assert!(tried.check(&within_leeway).await.is_ok());
    let long = key.token("k", &claims(&json!({"pad": "x".repeat(20_000)})));
    assert!(matches!(tried.refusal(&long).await, TokenRefusal::TooLong { .. }));
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn a_token_with_any_character_changed_is_refused() {
    let key = Signer::ed(1);
    let tried = Tried::new(Keys::Pem(key.pem()), |_| {});
    let good = key.token("k", &claims(&json!({})));
    assert!(tried.check(&good).await.is_ok());
    for at in 0..good.len() {
        for change in ["A", "_", ".", ""] {
            let changed = format!("{}{change}{}", &good[..at], &good[at + 1..]);
            if changed != good {
                assert!(matches!(tried.check(&changed).await, Err(Failure::Refused(_))), "{changed}");
            }
        }
    }
    for longer in [format!("{good}A"), format!("{good}="), format!("{good}.e30"), format!("A{good}")] {
        assert!(matches!(tried.check(&longer).await, Err(Failure::Refused(_))), "{longer}");
    }
}

#[tokio::test]
async fn no_text_of_a_token_chooses_how_it_is_verified() {
    let (rsa, p256) = (Signer::rsa(), Signer::p256());
    let issuer = publishing(&[rsa.jwk("k"), p256.jwk("p"), Signer::shared(&[7; 32]).jwk("s")]).await;
    let by_url = Tried::at(&issuer);
    let by_pem = Tried::new(Keys::Pem(RSA_PUBLIC.to_owned()), |_| {});
    let claims = claims(&json!({}));
    for tried in [&by_url, &by_pem] {
        // Nothing signed.
        for none in ["none", "None", "NONE", ""] {
            let signed = rsa.sign(&json!({"alg": none, "kid": "k"}), &claims);
            let bare = format!("{}.", signed.rsplit_once('.').unwrap().0);
            assert_eq!(tried.refusal(&signed).await, TokenRefusal::Malformed, "{none}");
            assert_eq!(tried.refusal(&bare).await, TokenRefusal::Malformed, "{none}");
        }
        // The public key as a secret, in each spelling that a program might have it.
        let der: Vec<u8> = RSA_PUBLIC.bytes().collect();
        for secret in [der.as_slice(), RSA_PUBLIC.trim().as_bytes(), rsa.jwk("k")["n"].as_str().unwrap().as_bytes()] {
            let confused = Signer::shared(secret).sign(&json!({"alg": "HS256", "kid": "k"}), &claims);
            assert_eq!(tried.refusal(&confused).await, TokenRefusal::Algorithm(Algorithm::Hs256));
        }
        // A key that the token brings along.
        let own = Signer::ed(9);
        let brought = own.sign(&json!({"alg": "EdDSA", "kid": "k", "jwk": own.jwk("k")}), &claims);
        assert!(matches!(tried.refusal(&brought).await, TokenRefusal::UnknownKey | TokenRefusal::Signature));
    }
    // A secret that somebody published is none.
    let published = Signer::shared(&[7; 32]).sign(&json!({"alg": "HS256", "kid": "s"}), &claims);
    assert_eq!(by_url.refusal(&published).await, TokenRefusal::Algorithm(Algorithm::Hs256));
    // One kind of key, another's name.
    let misnamed = p256.sign(&json!({"alg": "ES256", "kid": "k"}), &claims);
    assert_eq!(by_url.refusal(&misnamed).await, TokenRefusal::UnknownKey);
    let only = Tried::new(Keys::Pem(RSA_PUBLIC.to_owned()), |options| options.algorithms = vec![Algorithm::Ps256]);
    let other = rsa.sign(&json!({"alg": "RS256"}), &claims);
    assert_eq!(only.refusal(&other).await, TokenRefusal::Algorithm(Algorithm::Rs256));
}

#[tokio::test]
async fn many_at_once_make_one_request_and_unknown_keys_one_an_interval() {
    let key = Signer::ed(1);
    let issuer = publishing(&[key.jwk("k")]).await;
    let tried = Arc::new(Tried::at(&issuer));
    let storm = |kind: &'static str, count: usize| {
        let tasks: Vec<_> = (0..count)
            .map(|index| {
                let kid = if kind == "known" { "k".to_owned() } else { format!("{kind}-{index}") };
                let token = key.token(&kid, &claims(&json!({"jti": index})));
                let verifier = Arc::clone(&tried.verifier);
                tokio::spawn(async move { verifier.verify(&token).await.map(|_| ()) })
            })
            .collect();
        async move {
            let mut verdicts = Vec::new();
            for task in tasks {
                verdicts.push(limited("a verdict", task).await.unwrap());
            }
            verdicts
        }
    };
    assert!(storm("known", 50).await.iter().all(Result::is_ok));
    assert_eq!(issuer.asked(), 1);
    for round in 0..3 {
        assert_eq!(storm("unknown", 200).await, vec![Err(TokenError::Invalid); 200]);
        assert_eq!(issuer.asked(), 1 + round, "one for all of the storm, and none within the interval");
        tried.clock.pass(30);
    }
    assert!(storm("known", 5).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn keys_rotate_and_what_old_ones_signed_is_over() {
    let (old, new) = (Signer::ed(1), Signer::ed(2));
    let issuer = publishing(&[old.jwk("old")]).await;
    let tried = Tried::at(&issuer);
    let of_old = old.token("old", &claims(&json!({})));
    let of_new = new.token("new", &claims(&json!({"sub": "bob"})));
    assert_eq!(tried.check(&of_old).await.as_deref(), Ok("ada"));
    let text = published(&[new.jwk("new")]);
    issuer.answers(move |_| {
        let text = text.clone();
        async { reply(text) }
    });
    // Known by its hash for a while, and the issuer was asked a moment ago.
    assert_eq!(tried.check(&of_old).await.as_deref(), Ok("ada"));
    assert_eq!(tried.refusal(&of_new).await, TokenRefusal::UnknownKey);
    tried.clock.pass(30);
    assert_eq!(tried.check(&of_new).await.as_deref(), Ok("bob"));
    assert_eq!(issuer.asked(), 2);
    assert_eq!(tried.refusal(&of_old).await, TokenRefusal::UnknownKey);
}

#[tokio::test]
async fn a_verified_token_is_not_known_beyond_its_time() {
    let key = Signer::ed(1);
    let tried = Tried::new(Keys::Pem(key.pem()), |_| {});
    let token = key.token("k", &claims(&json!({"exp": BEGIN + 60})));
    for _ in 0..2 {
        assert!(tried.check(&token).await.is_ok());
        tried.clock.pass(34);
    }
    tried.clock.pass(2);
    assert_eq!(tried.refusal(&token).await, TokenRefusal::Expired);
}

#[tokio::test]
async fn an_issuer_that_is_away_takes_nothing_down_for_a_day() {
    let (key, new) = (Signer::ed(1), Signer::ed(2));
    let issuer = publishing(&[key.jwk("k")]).await;
    let tried = Tried::at(&issuer);
    let token = |jti: u64| key.token("k", &claims(&json!({"jti": jti, "exp": BEGIN + 1_000_000})));
    assert!(tried.check(&token(0)).await.is_ok());
    issuer.answers(|_| async { status(500) });
    tried.clock.pass(2 * 3600);
    assert!(tried.check(&token(1)).await.is_ok());
    let heard = tried.heard.lock().unwrap().pop();
    assert!(matches!(heard, Some(Failure::Unavailable(Outage::Status { status: 500, .. }))), "it is said: {heard:?}");
    assert!(tried.check(&token(2)).await.is_ok());
    assert_eq!(issuer.asked(), 2, "it is not asked for each token");
    assert!(matches!(tried.outage(&new.token("new", &claims(&json!({})))).await, Outage::Resting { .. }));
    tried.clock.pass(23 * 3600);
    assert!(matches!(tried.outage(&token(3)).await, Outage::Status { status: 500, .. }));
}

#[tokio::test]
async fn an_issuer_that_was_away_at_first_is_found_again() {
    let key = Signer::ed(1);
    let issuer = Issuer::start(|_| async { status(503) }).await;
    let tried = Tried::at(&issuer);
    let token = key.token("k", &claims(&json!({})));
    assert!(matches!(tried.outage(&token).await, Outage::Status { status: 503, .. }));
    assert!(matches!(tried.outage(&token).await, Outage::Resting { .. }));
    assert_eq!(issuer.asked(), 1);
    let text = published(&[key.jwk("k")]);
    issuer.answers(move |_| {
        let text = text.clone();
        async { reply(text) }
    });
    tried.clock.pass(1);
    assert!(tried.check(&token).await.is_ok());
}

#[tokio::test]
async fn what_is_no_key_set_or_too_large_or_late_is_no_verdict() {
    let key = Signer::ed(1);
    let token = key.token("k", &claims(&json!({})));
    let elsewhere = publishing(&[key.jwk("k")]).await;
    let leads_away = format!("{}/jwks", elsewhere.url);
    let issuer = Issuer::start(move |asked| {
        let leads_away = leads_away.clone();
        async move {
            match asked.path.as_str() {
                "/html" => reply("<html>"),
                "/large" => reply(format!(r#"{{"keys":[],"pad":"{}"}}"#, "x".repeat(300 << 10))),
                "/never" => std::future::pending().await,
                _ => {
                    let mut away = status(302);
                    away.headers_mut().insert("location", leads_away.parse().unwrap());
                    away
                }
            }
        }
    })
    .await;
    for (path, is_it) in [
        ("/html", (|outage| matches!(outage, Outage::Unreadable { .. })) as fn(&Outage) -> bool),
        ("/large", |outage| matches!(outage, Outage::TooLarge { .. })),
        ("/never", |outage| matches!(outage, Outage::TimeLimit { .. })),
        ("/away", |outage| matches!(outage, Outage::Status { status: 302, .. })),
    ] {
        let tried = Tried::new(Keys::Url(format!("{}{path}", issuer.url)), |options| {
            let time = if path == "/never" { Duration::from_millis(50) } else { Duration::from_secs(30) };
            options.reach = Reach { time, ..Reach::default() };
        });
        let outage = tried.outage(&token).await;
        assert!(is_it(&outage), "{path}: {outage}");
    }
    assert_eq!(elsewhere.asked(), 0, "no redirect is followed");
}

#[tokio::test]
async fn an_issuer_with_tls_must_be_trusted() {
    let key = Signer::ed(1);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let chain = vec![made.cert.der().clone()];
    let private = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, private).unwrap();
    let text = published(&[key.jwk("k")]);
    let answer = move |_| {
        let text = text.clone();
        async { reply(text) }
    };
    let issuer = Issuer::over(Some(Arc::new(config).into()), answer).await;
    let token = key.token("k", &claims(&json!({})));
    let strict = Tried::at(&issuer);
    let outage = strict.outage(&token).await;
    assert!(matches!(&outage, Outage::Unreachable { reason, .. } if reason.contains("certificate")), "{outage}");
    let trusting = Tried::new(Keys::Url(format!("{}/jwks", issuer.url)), |options| {
        options.reach.extra_root = Some(made.cert.pem());
    });
    assert!(trusting.check(&token).await.is_ok());
}

#[test]
fn what_makes_no_sense_is_said_at_once() {
    let of = |keys: Keys, algorithms: &[Algorithm]| {
        let mut options = JwtOptions::new(keys);
        options.algorithms = algorithms.to_vec();
        JwtVerifier::new(options).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let pem = || Keys::Pem(RSA_PUBLIC.to_owned());
    let url = || Keys::Url("https://id.example/jwks".to_owned());
    let secret = || Keys::Shared(Secret::new("x".repeat(32)));
    for (said, says) in [
        (of(pem(), &[Algorithm::Hs256]), "shared secret"),
        (of(url(), &[Algorithm::Rs256, Algorithm::Hs256]), "shared secret"),
        (of(secret(), &[Algorithm::Rs256]), "public key"),
        (of(secret(), &[]), "say which"),
        (of(Keys::Shared(Secret::new(RSA_PUBLIC)), &[Algorithm::Hs256]), "all may know"),
        (of(Keys::Shared(Secret::new("short")), &[Algorithm::Hs256]), "32 bytes"),
        (of(pem(), &[Algorithm::Es256]), "no usable key"),
        (of(Keys::Set("{}".to_owned()), &[]), "`keys`"),
        (of(Keys::Set(r#"{"keys":[]}"#.to_owned()), &[]), "no usable key"),
        (of(Keys::Url("http://id.example/jwks".to_owned()), &[]), "https"),
    ] {
        assert!(said.contains(says), "{said:?} does not say {says:?}");
        assert!(!said.contains("MII"), "{said}");
    }
    assert_eq!(of(pem(), &[]) + &of(url(), &[]) + &of(secret(), &[Algorithm::Hs512]), "");
    let error = AuthError::Key("x");
    assert_eq!(error.to_string(), "the key can't be used: x");
}
