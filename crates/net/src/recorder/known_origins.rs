//! Which other servers may be reached through the recorder: those that the upstream's own metadata names, no others.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::Origin;
use crate::lock::lock_mutex;

/// More than any honest deployment has; past it nothing new is learned.
const ORIGINS: usize = 16;
const ENDPOINTS: usize = 64;

/// Purpose of an endpoint, where it changes how requests are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OriginRole {
    /// A metadata document at a path of its own (RFC 9728 §5.1).
    Metadata,
    /// Where a person's browser goes.
    Authorization,
    /// Answers with URLs of its own (RFC 7592 §3).
    Registration,
}

/// Origins and endpoints learned so far.
#[derive(Default)]
pub(super) struct KnownOrigins {
    learned: Mutex<Learned>,
}

#[derive(Default)]
struct Learned {
    origins: Vec<Origin>,
    endpoints: HashMap<(Origin, String), OriginRole>,
}

impl KnownOrigins {
    /// A document of the upstream, or of a server that it named, names this one.
    pub(super) fn learn_origin(&self, origin: Origin) {
        let mut learned = lock_mutex(&self.learned);
        if learned.origins.len() < ORIGINS && !learned.origins.contains(&origin) {
            learned.origins.push(origin);
        }
    }

    /// The role of one path at an origin.
    pub(super) fn learn_endpoint(&self, origin: Origin, path: &str, role: OriginRole) {
        let mut learned = lock_mutex(&self.learned);
        if learned.endpoints.len() < ENDPOINTS {
            learned.endpoints.insert((origin, path.to_owned()), role);
        }
    }

    /// Whether requests may go there.
    pub(super) fn allows(&self, origin: &Origin) -> bool {
        lock_mutex(&self.learned).origins.contains(origin)
    }

    /// Role of a path, as far as a document named it.
    pub(super) fn path_role(&self, origin: &Origin, path: &str) -> Option<OriginRole> {
        let learned = lock_mutex(&self.learned);
        if learned.endpoints.is_empty() {
            return None;
        }
        learned.endpoints.get(&(origin.clone(), path.to_owned())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_until_it_is_named_and_only_so_many() {
        let known = KnownOrigins::default();
        let origin = |port| Origin { tls: false, host: "a".to_owned(), port };
        assert!(!known.allows(&origin(1)));
        (1..=100).for_each(|port| known.learn_origin(origin(port)));
        assert!(known.allows(&origin(1)) && known.allows(&origin(16)) && !known.allows(&origin(17)));
    }

    #[test]
    fn a_role_belongs_to_one_path_of_one_origin() {
        let known = KnownOrigins::default();
        let origin = Origin { tls: false, host: "a".to_owned(), port: 1 };
        known.learn_endpoint(origin.clone(), "/register", OriginRole::Registration);
        assert_eq!(known.path_role(&origin, "/register"), Some(OriginRole::Registration));
        assert_eq!(known.path_role(&origin, "/other"), None);
    }
}
