//! An issuer's published keys (RFC 7517 §5). Pure; what can't be used is passed over, key by key.

use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Algorithm;
use crate::key::Key;
use crate::token_parts::Jws;

/// Keys that an issuer published.
#[derive(Default, PartialEq)]
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

/// How many keys are read; the rest is passed over.
const MOST_KEYS: usize = 64;
/// How many keys a token is tried with that doesn't say which.
const MOST_TRIES: usize = 4;

impl KeySet {
    /// Key set of one key.
    pub(crate) fn of(key: Key) -> Self {
        Self { keys: vec![key] }
    }

    /// Reads the keys that an issuer published. A set without a usable key is valid: its issuer has withdrawn all keys.
    pub(crate) fn read_keys(json: &[u8]) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        struct Published<'a> {
            #[serde(borrow)]
            keys: Vec<&'a RawValue>,
        }
        const WANTED: &str = "a JSON object with an array `keys`";
        // A list would be read as one, too.
        if !json.trim_ascii_start().starts_with(b"{") {
            return Err(WANTED);
        }
        let published: Published<'_> = serde_json::from_slice(json).map_err(|_| WANTED)?;
        let keys = published.keys.into_iter().take(MOST_KEYS);
        let usable = keys.filter_map(|key| Key::from_jwk(&serde_json::from_str::<Jwk>(key.get()).ok()?));
        Ok(Self { keys: usable.collect() })
    }

    /// Whether there is a key for one of these algorithms.
    pub(crate) fn fits_any(&self, algorithms: &[Algorithm]) -> bool {
        self.keys.iter().any(|key| algorithms.iter().any(|&algorithm| key.fits_algorithm(algorithm)))
    }

    /// Whether one of the keys signed it. A token that names its key is that one's; keys without a name, such as one that was
    /// given, may have signed any.
    pub(crate) fn judge_token(&self, token: &Jws<'_>) -> Judgement {
        let verifies = |key: &&Key| key.verifies_signature(token.algorithm, token.signed, &token.signature);
        let fitting = || self.keys.iter().filter(|key| key.fits_algorithm(token.algorithm));
        if let Some(named) = &token.key {
            let mut bearers = fitting().filter(|key| key.id.as_ref() == Some(named)).take(MOST_TRIES).peekable();
            if bearers.peek().is_some() {
                return if bearers.any(|key| verifies(&key)) { Judgement::Good } else { Judgement::Forged };
            }
        }
        let nameless = fitting().filter(|key| token.key.is_none() || key.id.is_none()).take(MOST_TRIES);
        if nameless.into_iter().any(|key| verifies(&key)) { Judgement::Good } else { Judgement::Missing }
    }
}

/// Verdict of a key set on a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Signed by one of them.
    Good,
    /// Not signed by the one that it names.
    Forged,
    /// Signed by none of them.
    Missing,
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    fn pair(seed: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
    }

    fn jwk(seed: u8, id: &str) -> String {
        use base64::Engine as _;
        let x = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(pair(seed).public_key().as_ref());
        format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"{id}}}"#)
    }

    fn set(keys: &[String]) -> KeySet {
        KeySet::read_keys(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes()).unwrap()
    }

    fn signed(seed: u8, algorithm: Algorithm, key: Option<&str>) -> Jws<'static> {
        let signed = b"head.claims";
        let signature = pair(seed).sign(signed).as_ref().to_vec();
        Jws { algorithm, key: key.map(str::to_owned), signed, signature, payload: Vec::new() }
    }

    #[test]
    fn keys_are_found_by_their_name_and_kind() {
        let set = set(&[jwk(1, r#","kid":"a""#), jwk(2, r#","kid":"b""#)]);
        let judge = |seed, key| set.judge_token(&signed(seed, Algorithm::EdDsa, key));
        assert_eq!(judge(1, Some("a")), Judgement::Good);
        assert_eq!(judge(2, Some("a")), Judgement::Forged);
        assert_eq!(judge(2, Some("c")), Judgement::Missing);
        assert_eq!(judge(2, None), Judgement::Good);
        assert_eq!(judge(3, None), Judgement::Missing);
        assert_eq!(set.judge_token(&signed(1, Algorithm::Rs256, Some("a"))), Judgement::Missing);
    }

    #[test]
    fn a_key_without_a_name_may_have_signed_any_token() {
        let set = set(&[jwk(1, ""), jwk(2, r#","kid":"b""#)]);
        assert_eq!(set.judge_token(&signed(1, Algorithm::EdDsa, Some("x"))), Judgement::Good);
        assert_eq!(set.judge_token(&signed(2, Algorithm::EdDsa, Some("x"))), Judgement::Missing);
    }

    #[test]
    fn a_key_that_cannot_be_read_takes_no_other_along() {
        let odd = r#"{"kty":7},{"kid":[],"kty":"RSA"},"text",null,{"kty":"RSA","n":"!","e":"AQAB"}"#;
        assert_eq!(set(&[odd.to_owned(), jwk(1, "")]).keys.len(), 1);
    }

    #[test]
    fn what_is_no_key_set_is_no_empty_one() {
        for text in ["", "[]", "[[]]", "{}", r#"{"keys":{}}"#, r#"{"keys":null}"#, "<html>"] {
            assert!(KeySet::read_keys(text.as_bytes()).is_err(), "{text}");
        }
        assert!(KeySet::read_keys(br#"{"keys":[]}"#).unwrap().keys.is_empty());
    }

    #[test]
    fn no_more_keys_are_kept_or_tried_than_is_sensible() {
        let mut keys = vec![jwk(9, ""); MOST_TRIES];
        keys.push(jwk(1, ""));
        assert_eq!(set(&keys).judge_token(&signed(1, Algorithm::EdDsa, None)), Judgement::Missing);
        assert_eq!(set(&vec![jwk(1, ""); MOST_KEYS + 9]).keys.len(), MOST_KEYS);
    }
}
