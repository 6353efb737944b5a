//! Answers of an introspection endpoint about a token (RFC 7662 §2.2). Pure: the clock is a parameter.
//!
//! `active` is the issuer's word for that it knows the token, of whatever kind, and whomever it is meant for: so what it tells of
//! the token is held to the same demands as a signed one's claims.

use std::time::Duration;

use serde::Deserialize;

use crate::access::Grant;
use crate::claims::{Claims, Demands};
use crate::digest::Digest;
use crate::{Failure, Outage, TokenRefusal};

/// Name of the answering endpoint, in messages.
pub(crate) const ENDPOINT: &str = "the issuer's introspection endpoint";

/// Judges an introspection endpoint's `answer` about `token` by `demands` at `now`, the time since 1970. This function
/// is for callers that have the answer already; [`crate::IntrospectionVerifier`] sends the request and caches the
/// answer.
///
/// # Errors
/// [`Failure::Refused`]: the token isn't good. [`Failure::Unavailable`]: it is no answer.
pub fn judge_answer(answer: &[u8], token: &str, demands: &Demands, now: Duration) -> Result<Grant, Failure> {
    judge_digest(answer, &Digest::of(token), demands, now)
}

pub(crate) fn judge_digest(answer: &[u8], token: &Digest, demands: &Demands, now: Duration) -> Result<Grant, Failure> {
    let unreadable = |reason| Outage::Unreadable { what: ENDPOINT, reason };
    let json = std::str::from_utf8(answer).map_err(|_| unreadable("UTF-8"))?;
    let claims = active_claims(json).map_err(unreadable)??;
    demands.check_claims(&claims, now)?;
    Ok(Grant::from_claims(&claims, json, token, demands))
}

/// Claims of an answer about an active token. The outer error means that the text is no introspection answer.
fn active_claims(json: &str) -> Result<Result<Claims, TokenRefusal>, &'static str> {
    #[derive(Deserialize)]
    struct IntrospectionAnswer {
        active: bool,
    }
    const WANTED: &str = "a JSON object with `active`, true or false";
    if !json.trim_ascii_start().starts_with('{') {
        return Err(WANTED);
    }
    let answer: IntrospectionAnswer = serde_json::from_str(json).map_err(|_| WANTED)?;
    Ok(if answer.active { Claims::read_claims(json) } else { Err(TokenRefusal::Inactive) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        assert!(active_claims(r#"{"active":true,"sub":"a"}"#).unwrap().is_ok());
        assert_eq!(active_claims(r#"{"active":false}"#).unwrap().unwrap_err(), TokenRefusal::Inactive);
        assert_eq!(active_claims(r#"{"active":true,"exp":"x"}"#).unwrap().unwrap_err(), TokenRefusal::Claim("exp"));
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
            assert!(active_claims(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_active_token_of_another_use_is_none() {
        let judged = |more: &str| {
            let answer = format!(r#"{{"active":true,"sub":"ada"{more}}}"#);
            judge_answer(answer.as_bytes(), "t", &Demands::default(), Duration::from_secs(1))
                .map(|grant| grant.principal)
        };
        assert_eq!(judged("").as_deref(), Ok("ada"));
        assert_eq!(judged(r#","token_type":"Bearer","typ":"Bearer""#).as_deref(), Ok("ada"));
        assert_eq!(judged(r#","typ":"Refresh""#), Err(TokenRefusal::Type.into()));
        assert_eq!(judged(r#","token_type":"DPoP","cnf":{"jkt":"k"}"#), Err(TokenRefusal::Type.into()));
        assert_eq!(judged(r#","token_type":"Bearer","cnf":{"x5t#S256":"k"}"#), Err(TokenRefusal::KeyBound.into()));
        assert!(matches!(
            judge_answer(b"\xff", "t", &Demands::default(), Duration::ZERO),
            Err(Failure::Unavailable(_))
        ));
    }
}
