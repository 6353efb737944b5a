//! Takes secrets out of headers, request targets and bodies before an event is made of them.
//!
//! A secret becomes `[redacted 1f2e3d4c]`: eight digits of a seeded hash, so that the same token can be recognised within
//! one recording and nowhere else. The seed is handed in (this crate has no randomness) and never written.
//!
//! Names decide what counts as a secret: see `secret_names`. OAuth's are RFC 6749's, RFC 7636's and RFC 7591's.

mod json;
mod statement;
mod url;

use std::borrow::Cow;

use mcpace_wire::http::MediaType;
use serde_json::Value;

use self::json::Names;
use self::statement::without_literals;
use crate::secret_names::{is_secret_header, may_hold_secret, names_a_secret};
use crate::{Body, MessageNote};

/// Schemes of an `authorization` header, which stay readable. Anything else in their place may be the secret itself.
const SCHEMES: [&str; 14] = [
    "Bearer",
    "Basic",
    "Digest",
    "DPoP",
    "Negotiate",
    "NTLM",
    "Token",
    "ApiKey",
    "Api-Key",
    "Key",
    "AWS4-HMAC-SHA256",
    "Hawk",
    "HOBA",
    "Mutual",
];

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
        if !is_secret_header(name) {
            return self.redact_text(value);
        }
        match value.split_once(' ') {
            Some((scheme, rest))
                if name.to_ascii_lowercase().ends_with("authorization")
                    && SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)) =>
            {
                Cow::Owned(format!("{scheme} {}", self.mask_secret(rest)))
            }
            _ => Cow::Owned(self.mask_secret(value)),
        }
    }

    /// The value of a span's attribute as it may be recorded: like a header's, and a statement without its literals.
    #[must_use]
    pub fn attribute<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        match name {
            "db.statement" | "db.query.text" => Cow::Owned(without_literals(value)),
            _ => self.header(name, value),
        }
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
            MediaType::Form => Cow::Owned(self.redact_form(text)),
            _ => self.redact_json(text),
        };
        Some(cut_body(&text, limit))
    }

    /// The outlines of all messages in one JSON text, as [`MessageNote::of`], without the secrets of the URIs in them.
    #[must_use]
    pub fn messages(&self, json: &[u8]) -> Vec<MessageNote> {
        let mut notes = MessageNote::of(json);
        for name in notes.iter_mut().filter_map(|note| note.name.as_mut()) {
            if let Cow::Owned(masked) = self.target(name) {
                *name = masked;
            }
        }
        notes
    }

    /// JSON with its secrets masked; any other text as [`Redactor::redact_text`] has it, or withheld.
    fn redact_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.trim_start().starts_with(['{', '[', '"']) {
            // JSON may spell any letter of a name as an escape.
            if !may_hold_secret(text) && !text.contains("\\u00") {
                return Cow::Borrowed(text);
            }
            if let Ok(mut value) = serde_json::from_str::<Value>(text) {
                return match self.mask_value(&mut value, Names::Members) {
                    true => Cow::Owned(value.to_string()),
                    false => Cow::Borrowed(text),
                };
            }
        }
        match names_a_secret(text) {
            true => Cow::Owned(self.mask_secret(text)),
            false => self.redact_text(text),
        }
    }

    fn mask_secret(&self, secret: &str) -> String {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(secret.as_bytes(), self.seed);
        format!("[redacted {:08x}]", hash >> 32)
    }
}

fn cut_body(text: &str, limit: usize) -> Body {
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
    use crate::secret_names::secret_member_names;

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
    fn attributes_of_spans_lose_their_secrets() {
        for (name, value) in [
            ("http.url", "http://u:PLANTED@h/a?token=PLANTED&b=1"),
            ("db.statement", "SELECT 'PLANTED'"),
            ("http.request.header.authorization", "Bearer PLANTED"),
        ] {
            let recorded = REDACTOR.attribute(name, value);
            assert!(!recorded.contains("PLANTED"), "{name}: {recorded}");
        }
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

    /// JSON's ways of giving a secret, below and beside a name.
    fn given(name: &str, way: usize, deep: usize) -> Value {
        use serde_json::json;
        let mut secret = match way % 4 {
            0 => json!("PLANTED"),
            1 => json!(["PLANTED", 1]),
            2 => json!({ "value": "PLANTED" }),
            _ => json!([{ "a": [null, "PLANTED"] }]),
        };
        for level in 0..deep {
            secret = if level % 2 == 0 { json!({ "type": secret }) } else { json!([secret, true]) };
        }
        match way / 4 {
            0 => json!({ name: secret }),
            1 => json!([[name, secret]]),
            2 => json!({ "name": name, "value": secret }),
            3 => json!({ "headers": { "X-Pin": secret, "mcp-session-id": "PLANTED" } }),
            4 => json!({ "rawHeaders": ["accept", "*/*", name, "PLANTED"] }),
            5 => json!({ "headers": [{ "name": "x-linear-session", "value": secret }] }),
            6 => json!([format!("{name}=PLANTED")]),
            7 => json!({ "properties": { name: { "type": "string", "default": secret } } }),
            8 => json!(format!("see https://u:PLANTED@h/x and http://h/?a=1;{name}=PLANTED#code=PLANTED.")),
            _ => json!(format!("/messages?{name}=PLANTED&b=postgres://u:PLANTED@h/db")),
        }
    }

    proptest! {
        #[test]
        fn a_planted_secret_is_never_recorded(
            other in "\\PC{0,20}",
            name in proptest::sample::select(secret_member_names()),
            upper: bool,
            way in 0..40_usize,
            below in 0..4_usize,
            above in 0..6_usize,
            escaped: bool,
        ) {
            let name = if upper { name.to_ascii_uppercase() } else { name.to_owned() };
            let mut value = given(&name, way, below);
            for level in 0..above {
                value = match level % 3 {
                    0 => serde_json::json!([value, other.as_str()]),
                    1 => serde_json::json!({ other.as_str(): 1, "b": value }),
                    _ => Value::String(value.to_string()),
                };
            }
            let mut text = serde_json::json!([value]).to_string();
            if escaped {
                // As Go's encoder writes it, and as others may.
                text = text.replace('&', "\\u0026").replace("to", "\\u0074o").replace("://", ":\\/\\/");
            }
            let recorded = body("application/json", &text);
            prop_assert!(!recorded.contains("PLANTED"), "{text}\n{recorded}");
            prop_assert!(serde_json::from_str::<Value>(&recorded).is_ok());
        }

        #[test]
        fn a_cut_or_quoted_secret_is_never_recorded(
            name in proptest::sample::select(secret_member_names()),
            before in "[a-z ]{0,9}",
            way in 0..8_usize,
        ) {
            let text = match way {
                0 => format!(r#"{{"{before}": 1, "{name}": "PLANTED"#),
                1 => format!("{before}\n{name}: PLANTED PLANTED"),
                2 => format!("{before} {name}=PLANTED"),
                3 => format!("<{name}>PLANTED</{name}>"),
                4 => format!("{before} {{'{name}': 'PLANTED'}}"),
                5 => format!("{before} connecting to redis://:PLANTED@h:1/0"),
                6 => format!("{before} GET /mcp?a=b&{name}=PLANTED HTTP/1.1"),
                _ => format!("X-Pin: PLANTED\r\n{before}"),
            };
            let recorded = body("text/plain", &text);
            prop_assert!(!recorded.contains("PLANTED"), "{recorded}");
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,60}", signs in "[?&;#=:/@%'\"a{} ]{0,30}") {
            for text in [text, signs] {
                let _ = (REDACTOR.target(&text), REDACTOR.header("link", &text), REDACTOR.body("", text.as_bytes(), 99));
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_secret_stays_to_the_byte() {
        for text in [
            r#"{ "_meta": {"progressToken": "a-1"}, "maxTokens": 5, "nextPageToken": "p", "usage": {"total_tokens": 7} }"#,
            r#"{ "token_endpoint": "https://as/token", "token_type": "bearer", "key": "C major", "signature": "f(a, b)" }"#,
            r#"{ "inputSchema": {"type": "object", "required": ["password", "token"], "properties": {"password":
                {"type": "string", "description": "The user's password", "minLength": 8}}} }"#,
            r#"{ "password": null, "secret": true, "cookies": [] }"#,
            r#"{ "text": "me@example.org, https://h/@scope/p?page=2#top, a=b; token refreshed" }"#,
            "Token refreshed for 5 users at 12:30, see http://h/a?b=1",
        ] {
            assert_eq!(body("application/json", text), text);
        }
    }

    #[test]
    fn a_secrets_schema_keeps_what_describes_it() {
        let text = r#"{"properties":{"token":{"anyOf":[{"type":"string","const":"PLANTED"}],"title":"Token"}}}"#;
        let masked = body("application/json", text);
        assert!(!masked.contains("PLANTED") && masked.contains(r#""type":"string""#));
        assert!(masked.contains(r#""title":"Token""#), "{masked}");
    }

    #[test]
    fn headers_lose_the_secrets_of_their_urls_and_of_unknown_schemes() {
        for (name, value) in [
            ("link", r#"<https://h/mcp?page=2&token=PLANTED>; rel="next""#),
            ("x-original-url", "/mcp?a=1;token=PLANTED"),
            ("x-forwarded-uri", "//u:PLANTED@h/"),
            ("location", "/cb;sig=PLANTED?x#code=PLANTED;PLANTED"),
            ("authorization", "PLANTED PLANTED"),
            ("x-pin", "PLANTED"),
            ("X-Passcode", "PLANTED"),
            ("X-PAT", "PLANTED"),
            ("X-Bearer", "PLANTED"),
            ("dpop", "PLANTED"),
        ] {
            assert!(!REDACTOR.header(name, value).contains("PLANTED"), "{name}: {value}");
        }
        assert!(REDACTOR.header("proxy-authorization", "basic PLANTED").starts_with("basic [redacted "));
        for (name, value) in [
            ("accept", "application/json;q=0.9, text/event-stream"),
            ("content-type", "multipart/form-data; boundary=x?y=1"),
            ("link", r#"<https://h/mcp?page=2>; rel="next""#),
            ("from", "me@example.org"),
        ] {
            assert_eq!(REDACTOR.header(name, value), value);
        }
    }

    #[test]
    fn a_resources_uri_loses_its_secrets_in_the_outline_too() {
        let text =
            br#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"db://u:PLANTED@h/?key=PLANTED"}}"#;
        let notes = REDACTOR.messages(text);
        assert!(notes[0].name.as_ref().is_some_and(|name| !name.contains("PLANTED") && name.starts_with("db://")));
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
