//! Claims of a token (RFC 7519 §4.1, RFC 8693 §4.2, RFC 7662 §2.2), and the check that they are meant for this server.
//! Pure: the clock is a parameter.
//!
//! A claim of the wrong type is a refusal, never a claim that isn't there. A token that is good for something else, and says
//! so, is refused: an issuer vouches for refresh and ID tokens as well.

use std::time::Duration;

use mcpace_wire::jsonrpc::is_deeper_than;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::TokenRefusal;

/// The claims that decide; whatever else there is stays in the text.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Claims {
    #[serde(default)]
    pub(crate) iss: Option<String>,
    #[serde(default)]
    pub(crate) sub: Option<String>,
    #[serde(default)]
    pub(crate) aud: Option<Words>,
    #[serde(default)]
    pub(crate) exp: Option<f64>,
    #[serde(default)]
    pub(crate) nbf: Option<f64>,
    #[serde(default)]
    pub(crate) client_id: Option<String>,
    #[serde(default)]
    pub(crate) azp: Option<String>,
    #[serde(default)]
    scope: Option<Words>,
    #[serde(default)]
    scp: Option<Words>,
    /// RFC 7662 §2.2.
    #[serde(default)]
    token_type: Option<String>,
    /// Purpose of the token, a claim of several issuers.
    #[serde(default)]
    typ: Option<String>,
    #[serde(default)]
    token_use: Option<String>,
    /// RFC 7800 §3.1: of RFC 8705 and RFC 9449.
    #[serde(default)]
    cnf: Option<IgnoredAny>,
}

/// How deep claims may nest: what some parser further on can't follow must not look like no token there.
const NESTING: usize = 32;

/// One text or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl Claims {
    /// Reads the claims from a JSON object.
    pub(crate) fn read_claims(json: &str) -> Result<Self, TokenRefusal> {
        // A list would be read as one, too: its items as the claims in their order here.
        if !json.trim_ascii_start().starts_with('{') {
            return Err(TokenRefusal::Claim("set"));
        }
        if is_deeper_than(json.as_bytes(), NESTING) {
            return Err(TokenRefusal::Nesting { limit: NESTING });
        }
        serde_json::from_str(json).map_err(|error| TokenRefusal::Claim(culprit_claim(json, &error)))
    }

    /// Scopes, of `scope` (RFC 8693) or else `scp`, which some issuers have: one text with spaces between, or a list.
    pub(crate) fn scope_list(&self) -> Vec<String> {
        match self.scope.as_ref().or(self.scp.as_ref()) {
            Some(Words::One(text)) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            Some(Words::Many(list)) => list.clone(),
            None => Vec::new(),
        }
    }

    pub(crate) fn audience_list(&self) -> &[String] {
        self.aud.as_ref().map_or(&[], Words::as_slice)
    }

    /// Whether it is an access token for whoever bears it, as far as it says.
    fn check_use(&self) -> Result<(), TokenRefusal> {
        let is_bearer = self.token_type.as_deref().is_none_or(is_bearer);
        let is_another = |kind: &Option<String>| kind.as_deref().is_some_and(is_another_use);
        if !is_bearer || is_another(&self.typ) || is_another(&self.token_use) {
            return Err(TokenRefusal::Type);
        }
        if self.cnf.is_some() { Err(TokenRefusal::KeyBound) } else { Ok(()) }
    }

    /// When it expires, on the calendar.
    pub(crate) fn expiry_time(&self) -> Option<Duration> {
        self.exp.map(since_1970)
    }
}

/// Demands on a token, independent of how its authenticity is proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Issuers, as `iss` has them, one of them. None: not looked at.
    pub issuers: Vec<String>,
    /// Accepted audiences: the token must have one of them (RFC 8707). If empty, the audience is not checked, and
    /// tokens for other servers are accepted too.
    pub audiences: Vec<String>,
    /// How far clocks may differ.
    pub leeway: Duration,
    /// Whether a token needs an `exp`.
    pub needs_expiry: bool,
}

impl Demands {
    /// `now` is by the calendar.
    pub(crate) fn check_claims(&self, claims: &Claims, now: Duration) -> Result<(), TokenRefusal> {
        claims.check_use()?;
        match self.good_until(claims) {
            Some(end) if now >= end => return Err(TokenRefusal::Expired),
            None if self.needs_expiry => return Err(TokenRefusal::Claim("exp")),
            _ => {}
        }
        if claims.nbf.is_some_and(|begin| now.saturating_add(self.leeway) < since_1970(begin)) {
            return Err(TokenRefusal::NotYet);
        }
        let issuer = claims.iss.as_ref();
        if !self.issuers.is_empty() && !issuer.is_some_and(|issuer| self.issuers.contains(issuer)) {
            return Err(TokenRefusal::Issuer);
        }
        if !self.audiences.is_empty() && !claims.audience_list().iter().any(|named| self.audiences.contains(named)) {
            return Err(TokenRefusal::Audience);
        }
        Ok(())
    }
}

impl Demands {
    /// When a token is no longer taken.
    pub(crate) fn good_until(&self, claims: &Claims) -> Option<Duration> {
        claims.expiry_time().map(|end| end.saturating_add(self.leeway))
    }

    /// Whether there may be several issuers, whose subjects may have equal names.
    pub(crate) fn tells_issuers_apart(&self) -> bool {
        self.issuers.len() != 1
    }
}

/// Whether a `token_type` is one for whoever bears the token: `Bearer` (RFC 6750), or a name for access tokens as such, which
/// several issuers tell instead. Not `DPoP` (RFC 9449), `mac`, `refresh_token` or `N_A` (RFC 8693).
fn is_bearer(kind: &str) -> bool {
    let kind = kind.strip_prefix("urn:ietf:params:oauth:token-type:").unwrap_or(kind);
    ["bearer", "access", "access_token", "jwt", "at+jwt"].iter().any(|bearer| kind.eq_ignore_ascii_case(bearer))
}

/// Whether an issuer's own word for a token's use is that of one which is shown to nobody but issuer or client. Other words
/// mean nothing here: there is no list of them.
fn is_another_use(kind: &str) -> bool {
    let letters = kind.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase());
    let kind: String = letters.take(16).collect();
    let others = ["refresh", "offline", "logout", "dpop"];
    others.iter().any(|other| kind.starts_with(other)) || matches!(kind.as_str(), "id" | "idtoken" | "idjwt")
}

/// A `NumericDate` may have a fraction, and be anything that a JSON number is.
fn since_1970(seconds: f64) -> Duration {
    match Duration::try_from_secs_f64(seconds.max(0.0)) {
        Ok(time) => time,
        Err(_) => Duration::MAX,
    }
}

/// The claim that can't be read, where one of ours it is.
fn culprit_claim(json: &str, error: &serde_json::Error) -> &'static str {
    if !error.is_data() {
        return "set";
    }
    let Ok(object) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json) else { return "set" };
    let is_text = |value: &serde_json::Value| value.is_string() || value.is_null();
    let are_texts = |value: &serde_json::Value| {
        is_text(value) || value.as_array().is_some_and(|list| list.iter().all(serde_json::Value::is_string))
    };
    for name in ["iss", "sub", "client_id", "azp", "token_type", "typ", "token_use"] {
        if object.get(name).is_some_and(|value| !is_text(value)) {
            return name;
        }
    }
    for name in ["aud", "scope", "scp"] {
        if object.get(name).is_some_and(|value| !are_texts(value)) {
            return name;
        }
    }
    for name in ["exp", "nbf"] {
        if object.get(name).is_some_and(|value| !value.is_number() && !value.is_null()) {
            return name;
        }
    }
    "set"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands() -> Demands {
        Demands {
            issuers: vec!["https://id".to_owned(), "https://id2".to_owned()],
            audiences: vec!["https://mcp/mcp".to_owned()],
            leeway: Duration::from_secs(10),
            needs_expiry: true,
        }
    }

    fn check(json: &str, now: u64) -> Result<(), TokenRefusal> {
        Claims::read_claims(json).and_then(|claims| demands().check_claims(&claims, Duration::from_secs(now)))
    }

    fn with(more: &str) -> String {
        format!(r#"{{"iss":"https://id","aud":"https://mcp/mcp","exp":1000{more}}}"#)
    }

    #[test]
    fn times_hold_with_leeway_both_ways() {
        assert_eq!(check(&with(""), 1009), Ok(()));
        assert_eq!(check(&with(""), 1010), Err(TokenRefusal::Expired));
        assert_eq!(check(&with(r#","nbf":500"#), 490), Ok(()));
        assert_eq!(check(&with(r#","nbf":500.5"#), 490), Err(TokenRefusal::NotYet));
        assert_eq!(check(&with("").replace("1000", "1e300"), u64::MAX / 2), Ok(()));
        assert_eq!(check(&with("").replace("1000", "-1"), 100), Err(TokenRefusal::Expired));
    }

    #[test]
    fn issuer_and_audience_must_be_ours() {
        assert_eq!(check(&with("").replace("https://id", "https://id2"), 1), Ok(()));
        assert_eq!(check(&with("").replace("https://id", "https://id/"), 1), Err(TokenRefusal::Issuer));
        assert_eq!(check(&with("").replace(r#""iss":"https://id","#, ""), 1), Err(TokenRefusal::Issuer));
        let many = with("").replace(r#""https://mcp/mcp""#, r#"["https://other","https://mcp/mcp"]"#);
        assert_eq!(check(&many, 1), Ok(()));
        assert_eq!(check(&with("").replace("https://mcp/mcp", "https://mcp/mcp2"), 1), Err(TokenRefusal::Audience));
        assert_eq!(check(&with("").replace(r#""aud":"https://mcp/mcp","#, ""), 1), Err(TokenRefusal::Audience));
        assert_eq!(check(&with("").replace(r#""https://mcp/mcp""#, "[]"), 1), Err(TokenRefusal::Audience));
    }

    #[test]
    fn a_claim_of_the_wrong_type_is_not_a_missing_one() {
        for (claim, json) in [
            ("exp", with("").replace("1000", r#""1000""#)),
            ("nbf", with(r#","nbf":"5""#)),
            ("aud", with("").replace(r#""https://mcp/mcp""#, r#"{"a":1}"#)),
            ("aud", with("").replace(r#""https://mcp/mcp""#, "[1]")),
            ("iss", with("").replace(r#""https://id""#, r#"["https://id"]"#)),
            ("sub", with(r#","sub":7"#)),
            ("scope", with(r#","scope":{}"#)),
            ("token_type", with(r#","token_type":1"#)),
            ("typ", with(r#","typ":["ID"]"#)),
            ("set", with(r#","exp":5000"#)),
            ("set", "[]".to_owned()),
            ("set", r#"["https://id",null,"https://mcp/mcp",1000]"#.to_owned()),
            ("set", "no JSON".to_owned()),
            ("exp", with("").replace(r#","exp":1000"#, "")),
        ] {
            assert_eq!(check(&json, 1), Err(TokenRefusal::Claim(claim)), "{json}");
        }
    }

    #[test]
    fn tokens_of_another_use_and_those_bound_to_a_key_are_refused() {
        for more in [
            r#","token_type":"Bearer""#,
            r#","token_type":"bearer","typ":"Bearer""#,
            r#","token_type":"access_token","token_use":"access""#,
            r#","typ":"JWT""#,
            r#","typ":"identity-provider""#,
            r#","cnf":null,"token_type":null"#,
        ] {
            assert_eq!(check(&with(more), 1), Ok(()), "{more}");
        }
        for more in [
            r#","token_type":"refresh_token""#,
            r#","token_type":"Refresh""#,
            r#","token_type":"N_A""#,
            r#","token_type":"DPoP""#,
            r#","token_type":"""#,
            r#","typ":"Refresh""#,
            r#","typ":"ID""#,
            r#","typ":"Offline""#,
            r#","typ":"id_token""#,
            r#","token_use":"id""#,
            r#","token_use":"refresh_token""#,
        ] {
            assert_eq!(check(&with(more), 1), Err(TokenRefusal::Type), "{more}");
        }
        for more in [r#","cnf":{"jkt":"x"}"#, r#","cnf":{}"#, r#","cnf":false"#] {
            assert_eq!(check(&with(more), 1), Err(TokenRefusal::KeyBound), "{more}");
        }
    }

    #[test]
    fn claims_that_nest_beyond_use_are_refused() {
        let nested = |depth: usize| with(&format!(r#","x":{}{}"#, "[".repeat(depth), "]".repeat(depth)));
        assert_eq!(check(&nested(NESTING - 1), 1), Ok(()));
        for depth in [NESTING, 5_000] {
            assert_eq!(check(&nested(depth), 1), Err(TokenRefusal::Nesting { limit: NESTING }), "{depth}");
        }
        assert_eq!(check(&with(&format!(r#","x":"{}""#, "[".repeat(99))), 1), Ok(()));
    }

    #[test]
    fn scopes_are_read_as_issuers_write_them() {
        let scopes = |json: &str| Claims::read_claims(json).unwrap().scope_list().join(",");
        assert_eq!(scopes(r#"{"scope":"a  b"}"#), "a,b");
        assert_eq!(scopes(r#"{"scope":["a","b c"],"scp":"x"}"#), "a,b c");
        assert_eq!(scopes(r#"{"scp":["a","b"]}"#), "a,b");
        assert_eq!(scopes(r#"{"scp":"a b"}"#), "a,b");
        assert_eq!(scopes("{}"), "");
    }
}
