//! A compact JWS (RFC 7515 §7.1) taken apart: head, payload, and what was signed. Nothing in it is believed yet.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::{Algorithm, TokenRefusal};

/// Compact JWS, split into its parts and decoded. Its signature is not verified yet.
pub(crate) struct Jws<'a> {
    pub(crate) algorithm: Algorithm,
    /// Which of the issuer's keys, where it says.
    pub(crate) key: Option<String>,
    /// Bytes that the signature covers.
    pub(crate) signed: &'a [u8],
    pub(crate) signature: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl<'a> Jws<'a> {
    pub(crate) fn read_token(token: &'a str) -> Result<Self, TokenRefusal> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenRefusal::Malformed)?;
        let (_, payload) =
            signed.split_once('.').filter(|(_, rest)| !rest.contains('.')).ok_or(TokenRefusal::Malformed)?;
        let head = jsonwebtoken::decode_header(token).map_err(|_| TokenRefusal::Malformed)?;
        // Nothing that must be understood is (`b64` of RFC 7797 would change what was signed).
        if head.crit.is_some() {
            return Err(TokenRefusal::Critical);
        }
        if !head.typ.as_deref().is_none_or(is_access_token) {
            return Err(TokenRefusal::Type);
        }
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenRefusal::Malformed);
        Ok(Self {
            algorithm: Algorithm::of(head.alg).ok_or(TokenRefusal::Malformed)?,
            key: head.kid,
            signed: signed.as_bytes(),
            signature: decoded(signature)?,
            payload: decoded(payload)?,
        })
    }
}

/// Whether a token of this `typ` may be an access token (RFC 9068 §2.1): `JWT` says nothing, all others say what they are.
fn is_access_token(kind: &str) -> bool {
    let kind = kind.strip_prefix("application/").unwrap_or(kind);
    kind.eq_ignore_ascii_case("JWT") || kind.eq_ignore_ascii_case("at+jwt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(head: &str) -> String {
        format!("{}.e30.c2ln", URL_SAFE_NO_PAD.encode(head))
    }

    fn refusal(token: &str) -> TokenRefusal {
        Jws::read_token(token).map(|_| ()).expect_err("it is refused")
    }

    #[test]
    fn a_token_is_taken_apart() {
        let token = token(r#"{"alg":"ES256","kid":"k","typ":"at+jwt","x":1}"#);
        let jws = Jws::read_token(&token).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((jws.algorithm, jws.key.as_deref()), (Algorithm::Es256, Some("k")));
        assert_eq!((jws.payload.as_slice(), jws.signature.as_slice()), (b"{}".as_slice(), b"sig".as_slice()));
        assert_eq!(jws.signed, token.strip_suffix(".c2ln").unwrap().as_bytes());
    }

    #[test]
    fn what_is_no_signed_token_is_refused() {
        for head in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None"}"#,
            r#"{"alg":""}"#,
            r#"{"alg":null}"#,
            "{}",
            r#"{"alg":"RSA-OAEP","enc":"A128GCM"}"#,
            "no JSON",
        ] {
            assert_eq!(refusal(&token(head)), TokenRefusal::Malformed, "{head}");
        }
        for text in ["", "a", "a.b", "..", "a.b.c.d", "a.b.c.d.e", "e30.e30.", "\u{e9}.\u{e9}.\u{e9}"] {
            assert_eq!(refusal(text), TokenRefusal::Malformed, "{text}");
        }
        let padded = token(r#"{"alg":"RS256"}"#) + "=";
        assert_eq!(refusal(&padded), TokenRefusal::Malformed);
    }

    #[test]
    fn tokens_of_another_use_and_with_critical_extensions_are_refused() {
        for kind in ["dpop+jwt", "logout+jwt", "id+jwt", "application/secevent+jwt", ""] {
            assert_eq!(refusal(&token(&format!(r#"{{"alg":"RS256","typ":"{kind}"}}"#))), TokenRefusal::Type, "{kind}");
        }
        for kind in ["JWT", "jwt", "application/at+jwt"] {
            assert!(Jws::read_token(&token(&format!(r#"{{"alg":"RS256","typ":"{kind}"}}"#))).is_ok(), "{kind}");
        }
        assert_eq!(refusal(&token(r#"{"alg":"RS256","crit":["b64"],"b64":false}"#)), TokenRefusal::Critical);
        assert_eq!(refusal(&token(r#"{"alg":"RS256","crit":[]}"#)), TokenRefusal::Critical);
    }
}
