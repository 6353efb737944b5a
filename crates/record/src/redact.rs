//! Takes secrets out of headers, request targets and bodies before an event is made of them.
//!
//! A secret becomes `[redacted 1f2e3d4c]`: eight digits of a seeded hash, so that the same token can be recognised within
//! one recording and nowhere else. The seed is handed in (this crate has no randomness) and never written.
//!
//! What counts as a secret is told by names: see `secret_names`. OAuth's are RFC 6749's, RFC 7636's and RFC 7591's.

use std::borrow::Cow;

use mcpace_wire::http::MediaType;
use serde_json::Value;

use crate::Body;
use crate::secret_names::{is_secret_header, is_secret_name, is_secret_parameter, names_a_secret};

/// Redacts with one recording's seed.
#[derive(Clone, Copy, Debug)]
pub struct Redactor {
    seed: u64,
}

impl Redactor {
    /// `seed` should be random for each recording and kept nowhere.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A header's value as it may be recorded. The scheme of an `authorization` header stays readable.
    #[must_use]
    pub fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if name.eq_ignore_ascii_case("location") || name.eq_ignore_ascii_case("referer") {
            return self.target(value);
        }
        if !is_secret_header(name) {
            return Cow::Borrowed(value);
        }
        match value.split_once(' ') {
            Some((scheme, rest)) if name.to_ascii_lowercase().ends_with("authorization") => {
                Cow::Owned(format!("{scheme} {}", self.mask(rest)))
            }
            _ => Cow::Owned(self.mask(value)),
        }
    }

    /// A request target or URL with its secret query parameters and any user information masked.
    #[must_use]
    pub fn target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        let target = self.user_information(target);
        let Some(at) = target.find(['?', '#']) else {
            return target;
        };
        let (path, rest) = target.split_at(at);
        // A fragment may hold a token as well (RFC 6749 §4.2.2).
        let masked = rest.split_inclusive(['?', '#']).map(|piece| {
            let parameters = piece.trim_end_matches(['?', '#']);
            format!("{}{}", self.parameters(parameters), &piece[parameters.len()..])
        });
        Cow::Owned(format!("{path}{}", masked.collect::<String>()))
    }

    /// A body's text as it may be recorded, at most `limit` bytes of it. `None` where it is no UTF-8 text or `limit` is 0.
    ///
    /// A body that names a secret but is neither a form nor whole JSON is withheld, not guessed at.
    #[must_use]
    pub fn body(&self, content_type: &str, bytes: &[u8], limit: usize) -> Option<Body> {
        if limit == 0 || bytes.is_empty() {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?;
        let text = match MediaType::of(content_type) {
            MediaType::Form => Cow::Owned(self.parameters(text)),
            _ => self.json(text),
        };
        Some(cut(&text, limit))
    }

    fn json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let names = names_a_secret(text);
        // JSON may spell any letter of a name as an escape.
        if !names && !text.contains("\\u00") {
            return Cow::Borrowed(text);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(mut value) => match self.mask_members(&mut value) {
                true => Cow::Owned(value.to_string()),
                false => Cow::Borrowed(text),
            },
            Err(_) if names => Cow::Owned(self.mask(text)),
            Err(_) => Cow::Borrowed(text),
        }
    }

    /// Returns whether there was something to mask.
    fn mask_members(&self, value: &mut Value) -> bool {
        let mut masked = false;
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    masked |= match member {
                        Value::Object(_) | Value::Array(_) => self.mask_members(member),
                        _ if !is_secret_name(name) => self.mask_members(member),
                        Value::String(text) => {
                            *text = self.mask(text);
                            true
                        }
                        _ => {
                            *member = Value::String(self.mask(&member.to_string()));
                            true
                        }
                    };
                }
            }
            Value::Array(items) => {
                for item in items {
                    masked |= self.mask_members(item);
                }
            }
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                if let Cow::Owned(changed) = self.json(text) {
                    *text = changed;
                    masked = true;
                }
            }
            _ => {}
        }
        masked
    }

    fn parameters(&self, text: &str) -> String {
        let masked = text.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if is_secret_parameter(name) => format!("{name}={}", self.mask(value)),
            _ => pair.to_owned(),
        });
        masked.collect::<Vec<_>>().join("&")
    }

    fn user_information<'a>(&self, target: &'a str) -> Cow<'a, str> {
        let Some((scheme, rest)) = target.split_once("://") else {
            return Cow::Borrowed(target);
        };
        let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        match rest[..authority_end].rfind('@') {
            Some(at) => Cow::Owned(format!("{scheme}://{}{}", self.mask(&rest[..at]), &rest[at..])),
            None => Cow::Borrowed(target),
        }
    }

    fn mask(&self, secret: &str) -> String {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(secret.as_bytes(), self.seed);
        format!("[redacted {:08x}]", hash >> 32)
    }
}

fn cut(text: &str, limit: usize) -> Body {
    if text.len() <= limit {
        return Body { text: text.to_owned(), cut: false };
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Body { text: text[..end].to_owned(), cut: true }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret_names::SECRET_NAMES;

    const REDACTOR: Redactor = Redactor::new(42);

    fn body(content_type: &str, text: &str) -> String {
        REDACTOR.body(content_type, text.as_bytes(), 10_000).unwrap().text
    }

    #[test]
    fn secret_headers_lose_their_value_and_keep_their_scheme() {
        let masked = REDACTOR.header("Authorization", "Bearer abc.def");
        assert!(masked.starts_with("Bearer [redacted ") && !masked.contains("abc"));
        assert!(!REDACTOR.header("Set-Cookie", "sid=abc; Path=/").contains("abc"));
        assert!(!REDACTOR.header("mcp-session-id", "abc").contains("abc"));
        assert_eq!(REDACTOR.header("accept", "text/html"), "text/html");
    }

    #[test]
    fn whatever_a_header_or_a_parameter_calls_its_secret_it_is_masked() {
        for name in [
            "X-Goog-Api-Key",
            "CONTEXT7_API_KEY",
            "x-access-token",
            "X-Amz-Security-Token",
            "X-Amz-Signature",
            "sig",
            "jwt",
            "Ocp-Apim-Subscription-Key",
            "x-functions-key",
            "X-Client-Secret",
            "Private-Token",
            "DD-API-KEY",
            "X-Auth-Key",
            "apikey",
            "accessToken",
            "client-secret",
            "X-Password",
            "token",
            "key",
            "auth",
            "githubToken",
        ] {
            assert!(!REDACTOR.header(name, "PLANTED").contains("PLANTED"), "{name}");
            assert!(!REDACTOR.target(&format!("/mcp?a=1&{name}=PLANTED")).contains("PLANTED"), "{name}");
        }
        assert!(!REDACTOR.header("x-linear-session", "PLANTED").contains("PLANTED"));
        for name in ["www-authenticate", "content-type", "monkey", "author", "mcp-protocol-version", "x-signal"] {
            assert_eq!(REDACTOR.header(name, "stays"), "stays");
            assert_eq!(REDACTOR.target(&format!("/mcp?{name}=stays")), format!("/mcp?{name}=stays"));
        }
    }

    #[test]
    fn members_are_masked_however_their_words_are_parted_and_whatever_stands_before() {
        for name in ["accessToken", "access-token", "clientSecret", "GITHUB_ACCESS_TOKEN", "db_password", "privateKey"]
        {
            assert!(!body("application/json", &format!(r#"{{"{name}":"PLANTED"}}"#)).contains("PLANTED"), "{name}");
        }
        for name in ["progressToken", "maxTokens", "token_endpoint", "passwordless", "author"] {
            let text = format!(r#"{{ "{name}": "stays" }}"#);
            assert_eq!(body("application/json", &text), text);
        }
    }

    #[test]
    fn one_secret_is_recognised_again_and_two_differ() {
        assert_eq!(REDACTOR.header("cookie", "a"), REDACTOR.header("cookie", "a"));
        assert_ne!(REDACTOR.header("cookie", "a"), REDACTOR.header("cookie", "b"));
        assert_ne!(REDACTOR.header("cookie", "a"), Redactor::new(43).header("cookie", "a"));
    }

    #[test]
    fn queries_and_forms_lose_oauth_parameters() {
        let masked = REDACTOR.target("/callback?code=SECRET1&state=SECRET2&scope=read");
        assert!(!masked.contains("SECRET") && masked.ends_with("scope=read"));
        let form = body("application/x-www-form-urlencoded", "grant_type=refresh_token&refresh_token=SECRET");
        assert!(form.starts_with("grant_type=refresh_token&refresh_token=[redacted"));
        assert!(!REDACTOR.header("location", "http://u:SECRET@h/cb?code=SECRET").contains("SECRET"));
    }

    #[test]
    fn json_loses_secret_members_at_any_depth_even_inside_text() {
        let text = r#"{"a":[{"Access_Token":"SECRET"}],"b":"{\"client_secret\":\"SECRET\"}","password":12345}"#;
        let masked = body("application/json", text);
        assert!(!masked.contains("SECRET") && !masked.contains("12345"), "{masked}");
    }

    #[test]
    fn no_spelling_hides_a_secret() {
        for target in ["/cb#access_token=SECRET&x=1", "/cb?x=1#y?code=SECRET", "/cb?%63ode=SECRET", "/cb?CODE=SECRET"] {
            assert!(!REDACTOR.target(target).contains("SECRET"), "{target}");
        }
        assert_eq!(REDACTOR.target("/a?b=1#c"), "/a?b=1#c");
        assert!(!body("Application/X-WWW-Form-URLEncoded; charset=utf-8", "code=SECRET").contains("SECRET"));
        for text in [r#"{"access\u005ftoken":"SECRET"}"#, r#"{"a":" {\"p\\u0061ssword\":\"SECRET\"}"}"#] {
            assert!(!body("application/json", text).contains("SECRET"), "{text}");
        }
    }

    #[test]
    fn a_text_without_secrets_keeps_every_byte() {
        for text in
            [r#"{ "b": "\u00e9",  "a": 1e2 }"#, "plain \\u00e9", r#"{"z":"no password","a":1}"#, "a summarization"]
        {
            assert_eq!(body("application/json", text), text);
        }
    }

    proptest! {
        #[test]
        fn a_secret_member_is_never_recorded(
            before in "\\PC{0,20}",
            name in proptest::sample::select(SECRET_NAMES.as_slice()),
            upper: bool,
            depth in 0..6_usize,
        ) {
            let name = if upper { name.to_ascii_uppercase() } else { name.to_owned() };
            let mut value = serde_json::json!({ before.as_str(): 1, name: "PLANTED" });
            for level in 0..depth {
                value = match level % 3 {
                    0 => serde_json::json!([value]),
                    1 => serde_json::json!({ before.as_str(): value }),
                    _ => Value::String(value.to_string()),
                };
            }
            let recorded = body("application/json", &serde_json::json!([value]).to_string());
            prop_assert!(!recorded.contains("PLANTED"), "{recorded}");
        }

        #[test]
        fn no_target_panics(target in "\\PC{0,60}") {
            let _ = REDACTOR.target(&target);
        }
    }

    #[test]
    fn a_tools_argument_called_code_stays() {
        assert!(body("application/json", r#"{"params":{"arguments":{"code":"print(1)"}}}"#).contains("print(1)"));
    }

    #[test]
    fn text_that_names_a_secret_and_is_no_json_is_withheld() {
        assert!(!body("text/plain", "access_token: SECRET").contains("SECRET"));
        assert!(!body("application/json", r#"{"access_token":"SECRET"#).contains("SECRET"));
    }

    #[test]
    fn bodies_are_cut_at_a_character_and_say_so() {
        let cut = REDACTOR.body("text/plain", "aé".as_bytes(), 2).unwrap();
        assert_eq!((cut.text.as_str(), cut.cut), ("a", true));
        assert_eq!(REDACTOR.body("text/plain", &[0xff], 10), None);
    }
}
