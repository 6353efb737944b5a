//! Digests of bodies: equal bytes have equal digests.

use std::num::NonZeroU64;

/// Identity of a byte string inside one recording: XXH3-64. Tells equal bodies from different ones; proves nothing else.
#[must_use]
pub fn digest_bytes(bytes: &[u8]) -> Digest {
    Digest::new(xxhash_rust::xxh3::xxh3_64(bytes))
}

/// Incremental form of [`digest_bytes`], for bodies that pass in pieces.
#[derive(Default)]
pub struct Digester(xxhash_rust::xxh3::Xxh3Default);

impl Digester {
    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces so far.
    #[must_use]
    pub fn finish(&self) -> Digest {
        Digest::new(self.0.digest())
    }
}

/// Identity of a byte string, as [`digest_bytes`] makes it. Written as 16 hexadecimal digits. Never zero, so that an absent one
/// takes no memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(NonZeroU64);

impl Digest {
    /// Digest of a hash. A hash of zero becomes the largest value.
    #[must_use]
    pub fn new(hash: u64) -> Self {
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MAX))
    }

    /// The hash.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0.get()
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Digest::new).map_err(serde::de::Error::custom)
    }
}
