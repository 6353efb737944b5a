//! Secrets: made from the system's randomness, compared in constant time, never shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};

/// A text that must not be printed. `Debug` hides it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes the text as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the texts are equal, in a time that tells nothing about where they differ: what is
    /// compared are digests of one length, whole.
    pub(crate) fn equals(&self, given: &str) -> bool {
        let (own, given) = (Sha256::digest(&self.0), Sha256::digest(given));
        own.iter().zip(&given).fold(0, |different, (own, given)| different | (own ^ given)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(hidden)")
    }
}

/// 256 random bits in characters that are safe in URLs and headers (43 of them).
pub(crate) fn random_text() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_equal() {
        let secret = Secret::new("abc");
        assert!(secret.equals("abc"));
        for other in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!secret.equals(other), "{other}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("abc")), "Secret(hidden)");
    }
}
