//! Session ids of the legacy revisions.

use std::fmt;
use std::str::FromStr;

/// Longer ones are refused: a session id is a name, not a store.
const MAX_LENGTH: usize = 1024;

/// A session id: visible ASCII, 0x21 to 0x7E (2025-03-26 and later, basic/transports, "Session Management"). A client
/// that knows the id can act in the session, so debug output hides it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

/// A string that is no session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id is 1 to {MAX_LENGTH} visible ASCII characters")]
pub struct InvalidSessionId;

impl SessionId {
    /// Takes a header's value.
    ///
    /// # Errors
    /// When it is empty, too long, or has another byte than visible ASCII.
    pub fn from_bytes(value: &[u8]) -> Result<Self, InvalidSessionId> {
        std::str::from_utf8(value).map_err(|_| InvalidSessionId)?.parse()
    }

    /// The id itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(SessionId(text.to_owned())) } else { Err(InvalidSessionId) }
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({} characters)", self.0.len())
    }
}
