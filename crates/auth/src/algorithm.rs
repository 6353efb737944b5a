//! How tokens may be signed (RFC 7518 §3.1, RFC 8037). `none` is not among them, and can't be.

use std::fmt;
use std::str::FromStr;

use crate::AuthError;

/// A signature algorithm, by its name in JOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "they are the names of the registry")]
pub enum Algorithm {
    Hs256,
    Hs384,
    Hs512,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

use Algorithm::{EdDsa, Es256, Es384, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 12] = [Hs256, Hs384, Hs512, Rs256, Rs384, Rs512, Ps256, Ps384, Ps512, Es256, Es384, EdDsa];

    /// The name in `alg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Hs256 => "HS256",
            Hs384 => "HS384",
            Hs512 => "HS512",
            Rs256 => "RS256",
            Rs384 => "RS384",
            Rs512 => "RS512",
            Ps256 => "PS256",
            Ps384 => "PS384",
            Ps512 => "PS512",
            Es256 => "ES256",
            Es384 => "ES384",
            EdDsa => "EdDSA",
        }
    }

    /// Whether who can verify can also sign: with a shared secret.
    #[must_use]
    pub fn is_symmetric(self) -> bool {
        matches!(self, Hs256 | Hs384 | Hs512)
    }

    /// `None` for what the library knows and this crate doesn't.
    pub(crate) fn of(known: jsonwebtoken::Algorithm) -> Option<Self> {
        use jsonwebtoken::Algorithm as Known;
        Some(match known {
            Known::HS256 => Hs256,
            Known::HS384 => Hs384,
            Known::HS512 => Hs512,
            Known::RS256 => Rs256,
            Known::RS384 => Rs384,
            Known::RS512 => Rs512,
            Known::PS256 => Ps256,
            Known::PS384 => Ps384,
            Known::PS512 => Ps512,
            Known::ES256 => Es256,
            Known::ES384 => Es384,
            Known::EdDSA => EdDsa,
            _ => return None,
        })
    }
}

impl FromStr for Algorithm {
    type Err = AuthError;

    fn from_str(name: &str) -> Result<Self, AuthError> {
        Self::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| AuthError::Option {
            option: "the algorithm",
            value: format!("{name:?}"),
            reason: "one of HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA",
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_none_is_not_one() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
        }
        for name in ["none", "None", "", "rs256", "HS1", "RS256 "] {
            assert!(name.parse::<Algorithm>().is_err(), "{name}");
        }
    }
}
