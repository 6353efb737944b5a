//! Session keys: the random number that a session id stands for.
//!
//! Constraint: a key can't be guessed. All its bits are random, so a key needs no hash.

use std::hash::Hasher;

use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::store::SessionName;

/// 128 bits that nobody can guess. On the wire: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionKey(u128);

/// Neither among the bits that choose a shard nor among those that are the hash.
const MEMBER_SHIFT: u32 = 64;

impl SessionKey {
    /// From the system's randomness. `None` if it has none to give.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        OsRng.try_fill_bytes(&mut bytes).ok()?;
        Some(SessionKey(u128::from_ne_bytes(bytes)))
    }

    /// With the number of the process that has the session in it: 120 bits are left to be guessed.
    pub(super) fn of_member(self, member: u8) -> Self {
        SessionKey(self.0 & !(0xff << MEMBER_SHIFT) | u128::from(member) << MEMBER_SHIFT)
    }

    /// The session's name in a store.
    pub(super) fn store_name(self) -> SessionName {
        SessionName::of(&self.to_string())
    }

    /// The number of the process that has the session, where it is one of several.
    pub(super) fn process_number(self) -> u8 {
        (self.0 >> MEMBER_SHIFT) as u8
    }

    /// One of so many shards: the key is random, any of its bits are as good as a hash. A table itself uses the low ones.
    pub(super) fn shard_index(self, shards: usize) -> usize {
        (self.0 >> 124) as usize % shards
    }

    pub(super) fn parse_id(id: &str) -> Option<Self> {
        let is_ours = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // Signs and upper case, which the parser would take, are out by now.
        if is_ours { u128::from_str_radix(id, 16).ok().map(SessionKey) } else { None }
    }
}

impl std::fmt::Display for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Hashes random keys by taking them as they are. Clients choose what is looked up, never what is in the table.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_ne_bytes(word);
        }
    }

    fn write_u128(&mut self, key: u128) {
        // The low half is what is wanted.
        self.0 = key as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::SessionKey;

    #[test]
    fn an_id_is_32_digits_in_lower_case_and_nothing_else() {
        let key = SessionKey::random().unwrap();
        let text = key.to_string();
        assert!(SessionKey::parse_id(&text) == Some(key));
        let short = &text[1..];
        for bad in [short.to_owned(), format!("{text}0"), format!("+{short}"), "A".repeat(32), format!("-{short}")] {
            assert!(SessionKey::parse_id(&bad).is_none(), "{bad}");
        }
    }

    /// No test shows that nobody can guess an id; this one shows that all of it is drawn anew.
    #[test]
    fn no_bit_of_an_id_is_the_same_in_all() {
        let ids = (0..128).map(|_| SessionKey::random().unwrap().0);
        let (ones, zeros) = ids.fold((0, 0), |(ones, zeros), id| (ones | id, zeros | !id));
        assert_eq!((ones, zeros), (u128::MAX, u128::MAX));
    }
}
