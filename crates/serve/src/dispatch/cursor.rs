//! Cursors of lists that differ by caller: a position that nobody can read, make up or take to another list.
//!
//! Constraint: nothing is kept here, so any server with the same key and the same list takes it. A position tells how many
//! entries come before, hidden ones among them; therefore it is sealed (the synthetic initialization vector of RFC 5297, on
//! HMAC-SHA256): eight bytes of a digest of list and position, and the position under a mask that comes of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac::{self, Key};

/// The cursor of the entry at `position`, of the list as it is in this generation.
pub(super) fn seal_cursor(key: &Key, list: &str, generation: u64, position: usize) -> String {
    let position = position as u64;
    let digest = cursor_digest(key, list, generation, position);
    let masked = position ^ cursor_mask(key, digest);
    URL_SAFE_NO_PAD.encode([digest.to_be_bytes(), masked.to_be_bytes()].concat())
}

/// The position; nothing where the cursor is of another list, another generation, or of nobody's.
pub(super) fn open_cursor(key: &Key, list: &str, generation: u64, cursor: &str) -> Option<usize> {
    // Longer than sixteen bytes can be.
    if cursor.len() > 24 {
        return None;
    }
    let bytes: [u8; 16] = URL_SAFE_NO_PAD.decode(cursor).ok()?.try_into().ok()?;
    let both = u128::from_be_bytes(bytes);
    let (told, masked) = ((both >> 64) as u64, both as u64);
    let position = masked ^ cursor_mask(key, told);
    let is_ours = told == cursor_digest(key, list, generation, position);
    is_ours.then(|| usize::try_from(position).ok()).flatten()
}

fn cursor_digest(key: &Key, list: &str, generation: u64, position: u64) -> u64 {
    let mut context = hmac::Context::with_key(key);
    // Nothing else that is signed with the key begins so.
    context.update(b"cursor of ");
    context.update(list.as_bytes());
    context.update(&[0]);
    context.update(&generation.to_be_bytes());
    context.update(&position.to_be_bytes());
    first_eight(&context.sign())
}

fn cursor_mask(key: &Key, digest: u64) -> u64 {
    let mut context = hmac::Context::with_key(key);
    context.update(b"mask of a cursor\0");
    context.update(&digest.to_be_bytes());
    first_eight(&context.sign())
}

fn first_eight(tag: &hmac::Tag) -> u64 {
    tag.as_ref().iter().take(8).fold(0, |all, &byte| all << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use ring::hmac::{HMAC_SHA256, Key};

    use super::{open_cursor, seal_cursor};

    #[test]
    fn a_cursor_is_of_one_list_and_nobody_elses_making() {
        let (key, other) = (Key::new(HMAC_SHA256, b"one"), Key::new(HMAC_SHA256, b"other"));
        for position in [0, 1, 7, 1_000, usize::MAX] {
            let cursor = seal_cursor(&key, "tools", 3, position);
            assert_eq!(open_cursor(&key, "tools", 3, &cursor), Some(position));
            assert_eq!(open_cursor(&key, "prompts", 3, &cursor), None);
            assert_eq!(open_cursor(&key, "tools", 4, &cursor), None);
            assert_eq!(open_cursor(&other, "tools", 3, &cursor), None);
            for at in 0..cursor.len() {
                let mut changed = cursor.clone().into_bytes();
                changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
                assert_eq!(open_cursor(&key, "tools", 3, &String::from_utf8_lossy(&changed)), None);
            }
        }
        assert_eq!(open_cursor(&key, "tools", 3, ""), None);
        assert_eq!(open_cursor(&key, "tools", 3, &"A".repeat(1_000)), None);
    }
}
