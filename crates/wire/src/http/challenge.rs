//! `WWW-Authenticate` (RFC 9110 §11.6.1, RFC 6750 §3, RFC 9728 §5.1): reading and writing.

use std::fmt;

use super::param::{is_token, is_token_byte};

/// Longer headers are refused.
const MAX_LENGTH: usize = 16 * 1024;

/// One challenge: how to prove who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Such as `Bearer`, as it was spelled.
    pub scheme: String,
    /// Credentials of schemes that have no parameters.
    pub token68: Option<String>,
    /// Names, as they were spelled, and values, unquoted.
    pub params: Vec<(String, String)>,
}

/// Why a header holds no challenges. The peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// Longer than we read.
    #[error("WWW-Authenticate is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// Not of RFC 9110's grammar.
    #[error("WWW-Authenticate is malformed at byte {at}")]
    Malformed {
        /// Where.
        at: usize,
    },
}

impl Challenge {
    /// A bearer challenge without parameters.
    #[must_use]
    pub fn bearer() -> Self {
        Self { scheme: "Bearer".to_owned(), ..Self::default() }
    }

    /// Adds a parameter. A name that is no token is left out (our misuse); characters that no quoted string may have
    /// become spaces.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if is_token(name) {
            let value = value.chars().map(|c| if c.is_ascii_control() { ' ' } else { c }).collect();
            self.params.push((name.to_owned(), value));
        }
        self
    }

    /// All challenges of one header. Two more things than RFC 9110 allows are taken, since servers send them: parameters
    /// without a comma between them, and a comma at the end.
    ///
    /// # Errors
    /// [`ChallengeError`].
    pub fn parse_all(header: &str) -> Result<Vec<Challenge>, ChallengeError> {
        if header.len() > MAX_LENGTH {
            return Err(ChallengeError::TooLong);
        }
        let mut reader = ChallengeReader { text: header, at: 0 };
        let mut challenges = Vec::new();
        reader.skip_separators();
        while !reader.is_done() {
            challenges.push(reader.read_challenge()?);
            reader.skip_separators();
        }
        Ok(challenges)
    }

    /// Whether the scheme is `Bearer`, however it is spelled.
    #[must_use]
    pub fn is_bearer(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("Bearer")
    }

    /// The parameter of this name, upper and lower case taken for the same; the first, if there are more.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Where the protected resource's metadata is (RFC 9728).
    #[must_use]
    pub fn resource_metadata(&self) -> Option<&str> {
        self.param("resource_metadata")
    }

    /// The scopes needed (RFC 6750).
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.param("scope").unwrap_or_default().split_ascii_whitespace()
    }

    /// Error code for the token sent: `invalid_token`, `insufficient_scope`, … (RFC 6750 §3.1).
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.param("error")
    }
}

/// The header's value; values are always quoted.
impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        if let Some(token) = &self.token68 {
            return write!(f, " {token}");
        }
        for (index, (name, value)) in self.params.iter().enumerate() {
            let separator = if index == 0 { " " } else { ", " };
            write!(f, "{separator}{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))?;
        }
        Ok(())
    }
}

struct ChallengeReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ChallengeReader<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    fn malformed_error(&self) -> ChallengeError {
        ChallengeError::Malformed { at: self.at }
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest().iter().take_while(|&&byte| wanted(byte)).count();
        let start = self.at;
        self.at += length;
        // All callers want ASCII bytes, so both ends are character boundaries.
        &self.text[start..self.at]
    }

    fn skip_spaces(&mut self) {
        self.skip_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn skip_separators(&mut self) {
        self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b','));
    }

    fn read_challenge(&mut self) -> Result<Challenge, ChallengeError> {
        let scheme = self.skip_while(is_token_byte);
        if scheme.is_empty() || !matches!(self.rest().first(), None | Some(b' ' | b'\t' | b',')) {
            return Err(self.malformed_error());
        }
        let mut challenge = Challenge { scheme: scheme.to_owned(), ..Challenge::default() };
        self.skip_spaces();
        if let Some(token) = self.read_token68() {
            challenge.token68 = Some(token.to_owned());
            return Ok(challenge);
        }
        loop {
            let before = self.at;
            self.skip_separators();
            let Some(name) = self.param_name() else {
                self.at = before;
                return Ok(challenge);
            };
            let value = self.param_value()?;
            challenge.params.push((name.to_owned(), value));
        }
    }

    /// A token68, which must be all that follows the scheme. Otherwise nothing is read.
    fn read_token68(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        let has_letters = self.at > start;
        self.skip_while(|byte| byte == b'=');
        let end = self.at;
        self.skip_spaces();
        if has_letters && matches!(self.rest().first(), None | Some(b',')) {
            return Some(&self.text[start..end]);
        }
        self.at = start;
        None
    }

    /// A parameter's name and its equals sign; `None` where something else follows, such as the next scheme.
    fn param_name(&mut self) -> Option<&'a str> {
        let start = self.at;
        let name = self.skip_while(is_token_byte);
        self.skip_spaces();
        if !name.is_empty() && self.rest().first() == Some(&b'=') {
            self.at += 1;
            self.skip_spaces();
            return Some(name);
        }
        self.at = start;
        None
    }

    fn param_value(&mut self) -> Result<String, ChallengeError> {
        if self.rest().first() != Some(&b'"') {
            let token = self.skip_while(is_token_byte);
            return if token.is_empty() { Err(self.malformed_error()) } else { Ok(token.to_owned()) };
        }
        self.at += 1;
        let mut value = String::new();
        let mut escaped = false;
        for (offset, c) in self.text[self.at..].char_indices() {
            match c {
                _ if escaped => {
                    value.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    self.at += offset + 1;
                    return Ok(value);
                }
                _ => value.push(c),
            }
        }
        Err(self.malformed_error())
    }
}
