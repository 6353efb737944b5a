//! Names of sessions and their streams in a store.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A session's name in a store: a hash of its id, which is a secret of its client's. On the wire: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SessionName(u128);

impl SessionName {
    /// Name for a session id, or for another secret that must not be readable in a store.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        let hash = Sha256::digest(secret.as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        Self(u128::from_be_bytes(half))
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// It is no such name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no name of a session or stream")]
pub struct NoName;

impl FromStr for SessionName {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        if text.len() != 32 {
            return Err(NoName);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| NoName)
    }
}

/// One stream of a session. Number 0 is the standalone one, which has many writers; any other has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogId {
    /// Whose.
    pub session: SessionName,
    /// Which: the writer's number in the upper 32 bits.
    pub number: u64,
}

impl LogId {
    /// The stream for what belongs to no request.
    #[must_use]
    pub fn standalone(session: SessionName) -> Self {
        Self { session, number: 0 }
    }

    /// Whether it is that one.
    #[must_use]
    pub fn is_standalone(self) -> bool {
        self.number == 0
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:x}", self.session, self.number)
    }
}

impl FromStr for LogId {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let (session, number) = text.split_once('.').ok_or(NoName)?;
        Ok(Self { session: session.parse()?, number: u64::from_str_radix(number, 16).map_err(|_| NoName)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_nothing_of_the_id_and_is_read_again() {
        let id = "0123456789abcdef0123456789abcdef";
        let name = SessionName::of(id);
        assert_ne!(name.to_string(), id);
        assert_eq!(name.to_string().parse(), Ok(name));
        let log = LogId { session: name, number: 0xf_0000_0001 };
        assert_eq!(log.to_string().parse(), Ok(log));
        for bad in ["", ".", "1.1", &format!("{name}"), &format!("{name}."), &format!("{name}.g")] {
            assert_eq!(bad.parse::<LogId>(), Err(NoName), "{bad}");
        }
    }
}
