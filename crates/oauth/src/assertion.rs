//! A client that proves itself by a key: the signed assertion of RFC 7523 §2.2 (`private_key_jwt`), with ES256.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rand::RngCore as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use super::{OAuthError, Secret};

/// Value of `client_assertion_type`.
pub(crate) const KIND: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Seconds that an assertion holds: it is used at once.
const LIFETIME: u64 = 120;

/// The assertion of `client` for the server `audience`, signed with a PKCS #8 key in PEM.
pub(crate) fn signed_assertion(client: &str, audience: &str, key: &Secret) -> Result<Secret, OAuthError> {
    let random = SystemRandom::new();
    let key = pkcs8_bytes(key.reveal()).ok_or(OAuthError::UnusableKey)?;
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random)
        .map_err(|_| OAuthError::UnusableKey)?;
    // A clock before 1970 makes an assertion that no server takes; there is nothing better to do.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut unique = [0; 16];
    rand::rng().fill_bytes(&mut unique);
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": audience,
        "iat": now,
        "exp": now + LIFETIME,
        "jti": URL_SAFE_NO_PAD.encode(unique),
    });
    let head = json!({"alg": "ES256", "typ": "JWT"});
    let encoded = |part: &serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encoded(&head), encoded(&claims));
    let signature = key.sign(&random, signed.as_bytes()).map_err(|_| OAuthError::UnusableKey)?;
    Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

/// The key's bytes out of its PEM.
fn pkcs8_bytes(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    use super::*;

    #[test]
    fn the_assertion_is_signed_with_the_key_and_names_client_and_audience() {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap();
        let body = STANDARD.encode(made.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----\n", &body[..64], &body[64..]);
        let token = signed_assertion("me", "https://as", &Secret::new(pem)).unwrap();
        let (signed, signature) = token.reveal().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((claims["iss"].as_str(), claims["aud"].as_str()), (Some("me"), Some("https://as")));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), LIFETIME);
        assert_eq!(signed_assertion("me", "x", &Secret::new("no key")), Err(OAuthError::UnusableKey));
    }
}
