//! Proofs that a token's user is who it was given to (RFC 9449): a JWT for each request, signed with a key that lives as long
//! as the client.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderValue, Method};
use rand::RngCore as _;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use url::Url;

use super::Secret;

/// The algorithm of our proofs, as servers list it.
pub(crate) const ALGORITHM: &str = "ES256";
/// Nonces that are kept, one an origin.
const MOST_NONCES: usize = 64;

/// Signs proofs with a key pair of its own, one proof for each request (RFC 9449 §4.2).
pub(crate) struct Prover {
    key: EcdsaKeyPair,
    random: SystemRandom,
    /// The public key (RFC 7517).
    jwk: Value,
    /// The latest nonce of each origin (RFC 9449 §8, §9).
    nonces: Mutex<HashMap<String, String>>,
}

impl Prover {
    /// One with a new key; `None` where the system has no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).ok()?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).ok()?;
        // An uncompressed point: one byte, then both coordinates.
        let (x, y) = key.public_key().as_ref().get(1..)?.split_at(32);
        let jwk = json!({"kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)});
        Some(Self { key, random, jwk, nonces: Mutex::default() })
    }

    /// The proof for one request (RFC 9449 §4.2), with the token that the request shows.
    pub(crate) fn proof_header(&self, method: &Method, url: &Url, token: Option<&Secret>) -> Option<HeaderValue> {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let mut unique = [0; 16];
        rand::rng().fill_bytes(&mut unique);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut claims = json!({
            "jti": URL_SAFE_NO_PAD.encode(unique),
            "htm": method.as_str(),
            "htu": target.as_str(),
            "iat": now,
        });
        if let Some(token) = token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(digest(&SHA256, token.reveal().as_bytes())).into();
        }
        if let Some(nonce) = self.lock_nonces().get(&url.origin().ascii_serialization()) {
            claims["nonce"] = nonce.as_str().into();
        }
        let head = json!({"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self.jwk});
        let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encoded(&head), encoded(&claims));
        let signature = self.key.sign(&self.random, signed.as_bytes()).ok()?;
        HeaderValue::try_from(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))).ok()
    }

    /// Remembers the nonce that a server wants in the next proof.
    pub(crate) fn note_nonce(&self, url: &Url, nonce: &str) {
        let mut nonces = self.lock_nonces();
        if nonces.len() >= MOST_NONCES {
            nonces.clear();
        }
        nonces.insert(url.origin().ascii_serialization(), nonce.to_owned());
    }

    fn lock_nonces(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        // Nothing under the lock can panic half way.
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn claims(prover: &Prover, proof: &HeaderValue) -> Value {
        let (signed, signature) = proof.to_str().unwrap().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, prover.key.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let mut parts = signed.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let head: Value = serde_json::from_slice(&parts.next().unwrap()).unwrap();
        assert_eq!((&head["typ"], &head["jwk"]), (&json!("dpop+jwt"), &prover.jwk));
        serde_json::from_slice(&parts.next().unwrap()).unwrap()
    }

    #[test]
    fn a_proof_is_of_one_request_and_its_token() {
        let prover = Prover::new().unwrap();
        let url = Url::parse("https://h/mcp?a=b#c").unwrap();
        let token = Secret::new("token");
        let first = claims(&prover, &prover.proof_header(&Method::POST, &url, Some(&token)).unwrap());
        assert_eq!((&first["htm"], &first["htu"]), (&json!("POST"), &json!("https://h/mcp")));
        assert_eq!(first["ath"], json!("PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A"));
        prover.note_nonce(&Url::parse("https://h/token").unwrap(), "n");
        let second = claims(&prover, &prover.proof_header(&Method::POST, &url, None).unwrap());
        assert_eq!((&second["nonce"], second.get("ath")), (&json!("n"), None));
        assert_ne!(first["jti"], second["jti"]);
    }
}
