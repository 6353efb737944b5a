//! Secrets in URLs, queries and forms, alone and within other text.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Redactor;
use crate::secret_names::{is_secret_member, is_secret_parameter, may_hold_secret};

impl Redactor {
    /// A request target or URL with its secret parameters and any user information masked.
    #[must_use]
    pub fn target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        let target = self.user_information(target);
        let Some(at) = target.find(['?', '#', ';']) else {
            return target;
        };
        let (path, rest) = target.split_at(at);
        let mut masked = path.to_owned();
        // A fragment may hold a token as well (RFC 6749 §4.2.2).
        for piece in rest.split_inclusive(['?', '#']) {
            let parameters = piece.trim_end_matches(['?', '#']);
            masked.push_str(&self.mask_parameters(parameters, is_secret_parameter));
            masked.push_str(&piece[parameters.len()..]);
        }
        if masked == *target { target } else { Cow::Owned(masked) }
    }

    /// A form's text. Parameters are separated by `&`, or by `;` as of old.
    pub(super) fn redact_form(&self, text: &str) -> String {
        self.mask_parameters(text, is_secret_parameter)
    }

    /// Any text, with the secrets of its URLs and assignments masked.
    pub(super) fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !may_hold_secret(text) {
            return Cow::Borrowed(text);
        }
        let is_end = |character: char| character.is_whitespace() || matches!(character, '"' | '\'' | '`' | '<' | '>');
        let mut masked = String::with_capacity(text.len());
        for piece in text.split_inclusive(is_end) {
            let word = piece.strip_suffix(is_end).unwrap_or(piece);
            match word.contains("//") || word.contains(['?', '#']) {
                true => masked.push_str(&self.target(word)),
                false => masked.push_str(&self.mask_parameters(word, is_secret_member)),
            }
            masked.push_str(&piece[word.len()..]);
        }
        if masked == text { Cow::Borrowed(text) } else { Cow::Owned(masked) }
    }

    /// A secret reaches up to the next `&`, or up to a `;` with another name after it.
    fn mask_parameters(&self, text: &str, is_secret: fn(&str) -> bool) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut secret: Option<String> = None;
        let mut separator = "";
        for piece in text.split_inclusive(['&', ';']) {
            let word = piece.trim_end_matches(['&', ';']);
            let after = &piece[word.len()..];
            match (&mut secret, word.split_once('=')) {
                (Some(value), None) if separator == ";" => {
                    value.push(';');
                    value.push_str(word);
                }
                (before, pair) => {
                    if let Some(value) = before.take() {
                        let _ = write!(masked, "{}{separator}", self.mask_secret(&value));
                    }
                    match pair {
                        Some((name, value)) if is_secret(name) => {
                            let _ = write!(masked, "{name}=");
                            secret = Some(value.to_owned());
                        }
                        _ => masked.push_str(word),
                    }
                    if secret.is_none() {
                        masked.push_str(after);
                    }
                }
            }
            separator = after;
        }
        if let Some(value) = secret {
            let _ = write!(masked, "{}{separator}", self.mask_secret(&value));
        }
        masked
    }

    /// Masks the user information of every URL in a word: one may stand in the query of another.
    fn user_information<'a>(&self, word: &'a str) -> Cow<'a, str> {
        let mut masked = String::new();
        let mut rest = word;
        while let Some(at) = rest.find("//") {
            let (before, after) = rest.split_at(at + 2);
            masked.push_str(before);
            let end = after.find(['/', '?', '#']).unwrap_or(after.len());
            match after[..end].rfind('@').filter(|at| *at > 0) {
                Some(at) => {
                    masked.push_str(&self.mask_secret(&after[..at]));
                    masked.push_str(&after[at..end]);
                }
                None => masked.push_str(&after[..end]),
            }
            rest = &after[end..];
        }
        masked.push_str(rest);
        if masked == word { Cow::Borrowed(word) } else { Cow::Owned(masked) }
    }
}
