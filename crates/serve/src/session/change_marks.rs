//! The resources that a session's client watches.
//!
//! Constraint: bounded in number and in bytes, since clients choose the names.

use std::collections::BTreeSet;

/// The longest URI that can be watched.
pub(crate) const WATCHED_URI: usize = 2 << 10;
/// Total size of the URIs that one session or subscription watches, in bytes.
pub(crate) const WATCHED_BYTES: usize = 128 << 10;

/// Resources that a client watches. Allocates nothing while empty.
#[derive(Default)]
pub(super) struct Watched {
    uris: BTreeSet<Box<str>>,
    bytes: usize,
}

impl Watched {
    /// Adds a resource. Returns false when the limit is reached.
    pub(super) fn add(&mut self, uri: &str, limit: usize) -> bool {
        if self.uris.contains(uri) {
            return true;
        }
        let bytes = self.bytes + uri.len();
        if self.uris.len() >= limit || uri.len() > WATCHED_URI || bytes > WATCHED_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.uris.insert(uri.into())
    }

    /// Removes a resource. Returns whether it was watched.
    pub(super) fn remove(&mut self, uri: &str) -> bool {
        let was_watched = self.uris.remove(uri);
        if was_watched {
            self.bytes -= uri.len();
        }
        was_watched
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.uris.contains(uri)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(|uri| &**uri)
    }
}

#[cfg(test)]
mod tests {
    use super::{WATCHED_BYTES, WATCHED_URI, Watched};

    const LIMIT: usize = 4;

    #[test]
    fn what_is_watched_is_bounded_in_number_and_in_bytes() {
        let mut watched = Watched::default();
        assert!(!watched.add(&"x".repeat(WATCHED_URI + 1), LIMIT));
        for number in 0..LIMIT {
            assert!(watched.add(&number.to_string(), LIMIT));
        }
        assert!(watched.add("0", LIMIT) && !watched.add("another", LIMIT));
        let many = WATCHED_BYTES / WATCHED_URI;
        let long = |number| format!("{number:0>width$}", width = WATCHED_URI);
        let taken = (0..2 * many).filter(|number| watched.add(&long(*number), 10 * many)).count();
        assert_eq!(taken, many - 1, "what was watched before takes a little");
        // A removed resource makes room.
        assert!(watched.remove(&long(0)));
        assert!(watched.add(&long(many), 10 * many));
    }
}
