//! Signed tokens and the keys that issuers publish, made here; and wrong ones.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding,
    RsaKeyPair,
};
use ring::{hmac, rsa};
use serde_json::{Value, json};

use crate::issuer::BEGIN;

/// A key that signs, made for these tests and good for nothing else.
pub(crate) enum Signer {
    Rsa(Box<RsaKeyPair>),
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
    Shared(Vec<u8>),
}

pub(crate) const RSA_PUBLIC: &str = include_str!("rsa.pub.pem");

impl Signer {
    pub(crate) fn rsa() -> Self {
        let body: String = include_str!("rsa.pem").lines().filter(|line| !line.starts_with("-----")).collect();
        Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(&STANDARD.decode(body).unwrap()).unwrap()))
    }

    pub(crate) fn p256() -> Self {
        Self::ec(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256")
    }

    pub(crate) fn p384() -> Self {
        Self::ec(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384")
    }

    fn ec(kind: &'static ring::signature::EcdsaSigningAlgorithm, curve: &'static str) -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap(), curve)
    }

    /// Different for each seed.
    pub(crate) fn ed(seed: u8) -> Self {
        Self::Ed(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    pub(crate) fn shared(secret: &[u8]) -> Self {
        Self::Shared(secret.to_vec())
    }

    /// The public key as issuers publish it.
    pub(crate) fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(pair) => {
                let public = rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "kid": kid, "n": text(&public.n), "e": text(&public.e)})
            }
            Self::Ec(pair, curve) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "kid": kid, "crv": curve, "x": text(x), "y": text(y)})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": text(pair.public_key().as_ref())})
            }
            Self::Shared(secret) => json!({"kty": "oct", "kid": kid, "k": text(secret)}),
        }
    }

    /// The public key as PEM.
    pub(crate) fn pem(&self) -> String {
        let der = match self {
            Self::Rsa(_) => return RSA_PUBLIC.to_owned(),
            Self::Ec(pair, "P-256") => {
                [&hex("3059301306072a8648ce3d020106082a8648ce3d030107034200"), pair.public_key().as_ref()].concat()
            }
            Self::Ec(pair, _) => {
                [&hex("3076301006072a8648ce3d020106052b81040022036200"), pair.public_key().as_ref()].concat()
            }
            Self::Ed(pair) => [&hex("302a300506032b6570032100"), pair.public_key().as_ref()].concat(),
            Self::Shared(_) => panic!("a secret has no public key"),
        };
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
    }

    /// A token with this head and these claims.
    pub(crate) fn sign(&self, head: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(head), part(claims));
        let (random, message) = (SystemRandom::new(), signed.as_bytes());
        let algorithm = head["alg"].as_str().unwrap_or_default();
        let signature = match self {
            Self::Rsa(pair) => {
                let kind: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(kind, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(pair, _) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Shared(secret) => {
                let kind = match algorithm {
                    "HS384" => hmac::HMAC_SHA384,
                    "HS512" => hmac::HMAC_SHA512,
                    _ => hmac::HMAC_SHA256,
                };
                hmac::sign(&hmac::Key::new(kind, secret), message).as_ref().to_vec()
            }
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// A good token of EdDSA, or whatever the key is for first, with `kid`.
    pub(crate) fn token(&self, kid: &str, claims: &Value) -> String {
        let algorithm = match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_, "P-256") => "ES256",
            Self::Ec(..) => "ES384",
            Self::Ed(_) => "EdDSA",
            Self::Shared(_) => "HS256",
        };
        self.sign(&json!({"alg": algorithm, "kid": kid}), claims)
    }
}

/// Claims of an hour that are good, with changes.
pub(crate) fn claims(more: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://id.example",
        "aud": "https://mcp.example/mcp",
        "sub": "ada",
        "client_id": "app",
        "scope": "read write",
        "exp": BEGIN + 3600,
    });
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
