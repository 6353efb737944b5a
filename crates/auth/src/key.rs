//! A key, and what it can verify. A signature is checked by the *pair* of algorithm and key: no text of a token's makes a
//! public key into a secret, or an elliptic curve into another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{DecodingKey, DecodingKeyKind};
use ring::{hmac, signature};

use crate::algorithm::Algorithm;
use crate::algorithm::Algorithm::{EdDsa, Es256, Es384, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
use crate::{AuthError, Secret};

/// Public key or shared secret, and the algorithms that it can verify.
#[derive(PartialEq)]
pub(crate) struct Key {
    /// The issuer's name for it.
    pub(crate) id: Option<String>,
    /// The one algorithm that the issuer has it for, where it says.
    only: Option<Algorithm>,
    material: Material,
}

#[derive(PartialEq)]
enum Material {
    /// Modulus and exponent, big-endian.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An `RSAPublicKey` of PKCS #1.
    RsaDer(Vec<u8>),
    /// Uncompressed points.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Shared(Vec<u8>),
}

/// Key sizes that ring accepts: 2048 to 8192 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// The shortest secret: as many bits as the shortest hash has (RFC 7518 §3.2).
const LEAST_SECRET: usize = 32;

impl Key {
    /// A public key of PEM text: `PUBLIC KEY` (any kind) or `RSA PUBLIC KEY`.
    pub(crate) fn from_pem(pem: &str) -> Result<Self, AuthError> {
        let of = |material| Ok(Self { id: None, only: None, material });
        if pem.contains("PRIVATE KEY-----") {
            return Err(AuthError::Key("it is a private key; only the issuer has that: give its public key"));
        }
        if !pem.contains("PUBLIC KEY-----") {
            return Err(AuthError::Key(
                "it is no PEM text with PUBLIC KEY in it (of a certificate, `openssl x509 -pubkey -noout` gives it)",
            ));
        }
        let bytes = |key: DecodingKey| key.try_get_as_bytes().map(<[u8]>::to_vec).ok();
        let read = |parsed: jsonwebtoken::errors::Result<DecodingKey>| parsed.ok().and_then(bytes);
        if let Some(point) = read(DecodingKey::from_ec_pem(pem.as_bytes())) {
            return match point.len() {
                65 => of(Material::P256(point)),
                97 => of(Material::P384(point)),
                _ => Err(AuthError::Key("of elliptic curves only P-256 and P-384 are known")),
            };
        }
        if let Some(point) = read(DecodingKey::from_ed_pem(pem.as_bytes())) {
            return of(Material::Ed25519(point));
        }
        match read(DecodingKey::from_rsa_pem(pem.as_bytes())) {
            Some(der) if der.len() > *RSA_BYTES.start() => of(Material::RsaDer(der)),
            Some(_) => Err(AuthError::Key("RSA keys must have 2048 bits at least")),
            None => Err(AuthError::Key("it is neither RSA nor P-256, P-384 or Ed25519")),
        }
    }

    /// A secret that issuer and server share.
    pub(crate) fn shared_secret(secret: &Secret) -> Result<Self, AuthError> {
        let secret = secret.reveal();
        if secret.contains("-----BEGIN ") || secret.contains("\"kty\"") {
            return Err(AuthError::Key(
                "HS256, HS384 and HS512 take a shared secret, and this is a key that all may know",
            ));
        }
        if secret.len() < LEAST_SECRET {
            return Err(AuthError::Key("a shared secret must have 32 bytes at least, or it can be guessed"));
        }
        Ok(Self { id: None, only: None, material: Material::Shared(secret.as_bytes().to_vec()) })
    }

    /// One of an issuer's published keys. `None` for those that verify no signatures of ours (RFC 7517 §5: passed over), and
    /// for secrets: what is published is none.
    pub(crate) fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        if !common.public_key_use.as_ref().is_none_or(|wanted| *wanted == PublicKeyUse::Signature) {
            return None;
        }
        if !common.key_operations.as_ref().is_none_or(|allowed| allowed.contains(&KeyOperations::Verify)) {
            return None;
        }
        let only = match common.key_algorithm {
            Some(named) => Some(Algorithm::of(named.try_into().ok()?)?),
            None => None,
        };
        let material = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => rsa_material(&DecodingKey::from_jwk(jwk).ok()?)?,
            AlgorithmParameters::EllipticCurve(params) => {
                let (size, make): (usize, fn(Vec<u8>) -> Material) = match params.curve {
                    EllipticCurve::P256 => (32, Material::P256),
                    EllipticCurve::P384 => (48, Material::P384),
                    _ => return None,
                };
                let coordinate = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == size);
                make([vec![4], coordinate(&params.x)?, coordinate(&params.y)?].concat())
            }
            AlgorithmParameters::OctetKeyPair(params) if params.curve == EllipticCurve::Ed25519 => {
                Material::Ed25519(URL_SAFE_NO_PAD.decode(&params.x).ok().filter(|bytes| bytes.len() == 32)?)
            }
            _ => return None,
        };
        Some(Self { id: common.key_id.clone(), only, material })
    }

    /// Whether the key is for signatures of this algorithm.
    pub(crate) fn fits_algorithm(&self, algorithm: Algorithm) -> bool {
        let by_kind = match self.material {
            Material::Rsa { .. } | Material::RsaDer(_) => {
                matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512)
            }
            Material::P256(_) => algorithm == Es256,
            Material::P384(_) => algorithm == Es384,
            Material::Ed25519(_) => algorithm == EdDsa,
            Material::Shared(_) => algorithm.is_symmetric(),
        };
        by_kind && self.only.is_none_or(|only| only == algorithm)
    }

    /// Whether `signature` is this key's of `message`.
    pub(crate) fn verifies_signature(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.fits_algorithm(algorithm) {
            return false;
        }
        let public = |kind: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(kind, key).verify(message, signature).is_ok()
        };
        match &self.material {
            Material::Rsa { n, e } => rsa_parameters(algorithm).is_some_and(|parameters| {
                signature::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }),
            Material::RsaDer(der) => rsa_parameters(algorithm).is_some_and(|parameters| public(parameters, der)),
            Material::P256(point) => public(&signature::ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => public(&signature::ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(point) => public(&signature::ED25519, point),
            Material::Shared(secret) => hmac_hash(algorithm)
                .is_some_and(|hash| hmac::verify(&hmac::Key::new(hash, secret), message, signature).is_ok()),
        }
    }
}

fn rsa_material(key: &DecodingKey) -> Option<Material> {
    let DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else { return None };
    // Some issuers write a sign's zero before the modulus, which RFC 7518 §6.3.1.1 forbids and ring refuses.
    let n: Vec<u8> = n.iter().copied().skip_while(|&byte| byte == 0).collect();
    (RSA_BYTES.contains(&n.len()) && (1..=4).contains(&e.len())).then(|| Material::Rsa { n, e: e.clone() })
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static signature::RsaParameters> {
    Some(match algorithm {
        Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
        Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
        Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn hmac_hash(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Hs256 => Some(hmac::HMAC_SHA256),
        Hs384 => Some(hmac::HMAC_SHA384),
        Hs512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwk(text: &str) -> Option<Key> {
        Key::from_jwk(&serde_json::from_str(text).unwrap())
    }

    fn modulus(bytes: usize) -> String {
        URL_SAFE_NO_PAD.encode(vec![0xff; bytes])
    }

    fn fitting(key: &Key) -> Vec<&'static str> {
        Algorithm::ALL.into_iter().filter(|&algorithm| key.fits_algorithm(algorithm)).map(Algorithm::name).collect()
    }

    #[test]
    fn a_key_fits_its_own_kind_and_use_only() {
        let (x, n) = ("A".repeat(43), modulus(256));
        let ec = |more: &str| format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{x}"{more}}}"#);
        assert_eq!(fitting(&jwk(&ec("")).unwrap()), ["ES256"]);
        let rsa = |more: &str| format!(r#"{{"kty":"RSA","n":"{n}","e":"AQAB"{more}}}"#);
        let key = jwk(&rsa("")).unwrap();
        assert_eq!(fitting(&key), ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]);
        assert_eq!(fitting(&jwk(&rsa(r#","alg":"PS256","use":"sig","kid":"k""#)).unwrap()), ["PS256"]);
        assert_eq!(fitting(&jwk(&format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}"#)).unwrap()), ["EdDSA"]);
        for passed_over in [
            rsa(r#","use":"enc""#),
            rsa(r#","alg":"RSA-OAEP""#),
            rsa(r#","alg":"HS256","key_ops":["sign"]"#),
            ec("").replace("P-256", "P-384"),
            ec("").replace("P-256", "P-521"),
            format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"}}"#, modulus(128)),
            format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"}}"#, modulus(2048)),
            format!(r#"{{"kty":"oct","k":"{n}"}}"#),
            r#"{"kty":"new"}"#.to_owned(),
        ] {
            assert!(jwk(&passed_over).is_none(), "{passed_over}");
        }
    }

    #[test]
    fn an_algorithm_that_the_issuer_named_falsely_fits_nothing() {
        let n = modulus(256);
        let key = jwk(&format!(r#"{{"kty":"RSA","n":"{n}","e":"AQAB","alg":"HS256"}}"#)).unwrap();
        assert!(fitting(&key).is_empty());
    }

    #[test]
    fn a_secret_is_long_enough_and_no_public_key() {
        assert!(Key::shared_secret(&Secret::new("x".repeat(32))).is_ok());
        for wrong in [
            "short",
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
            r#"{"kty":"RSA","n":"0000000000000000000000"}"#,
        ] {
            assert!(Key::shared_secret(&Secret::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pem_text_must_be_a_public_key() {
        for (pem, says) in [
            ("", "no PEM text"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "private"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "openssl"),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "neither"),
        ] {
            let error = Key::from_pem(pem).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(says), "{pem}: {error}");
        }
    }
}
