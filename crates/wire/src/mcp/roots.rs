//! The folders that a client lets a server work in.

use super::shapes::shapes;

shapes! {
    /// The result of `roots/list`; in 2026-07-28 an input response.
    #[derive(Default)]
    pub struct ListRootsResult with _meta {
        /// The roots.
        roots: Vec<Root>,
    }

    /// One of them.
    #[derive(Default)]
    pub struct Root with _meta {
        /// A `file:` URI.
        uri: String,
        /// For people.
        name?: String,
    }
}
