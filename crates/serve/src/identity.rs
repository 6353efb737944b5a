//! Subject of a token, as one name that sessions are bound to and that limits count by.
//!
//! Constraint: callers of different kinds never share a name. Where clients choose their id, a client that takes the name of a
//! user must not become that user (RFC 9068 §5, RFC 9700 §4.15). The name of a user stays as it is, because nearly all callers
//! are users of one issuer.

use std::sync::Arc;

/// Subject of a token: a user, a client, or the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// Somebody, by the token's `sub`.
    User {
        /// Whose `sub` that is, where there may be several issuers.
        issuer: Option<&'a str>,
        /// The `sub`.
        subject: &'a str,
    },
    /// A program that acts for itself, by its client id.
    Client {
        /// Whose client it is, where there may be several issuers.
        issuer: Option<&'a str>,
        /// The client id.
        id: &'a str,
    },
    /// Holder of a token that names no subject: a part of the token that identifies it and is not secret.
    Token(&'a str),
}

impl Identity<'_> {
    /// Its [`crate::Principal::subject`].
    #[must_use]
    pub fn subject(&self) -> Arc<str> {
        match *self {
            // A colon at the beginning is what tells all others from a user's own name.
            Identity::User { issuer: None, subject } if !subject.starts_with(':') => subject.into(),
            Identity::User { issuer: None, subject } => format!(":{subject}").into(),
            Identity::User { issuer: Some(issuer), subject } => of_issuer("user", Some(issuer), subject),
            Identity::Client { issuer, id } => of_issuer("client", issuer, id),
            Identity::Token(token) => format!(":token:{token}").into(),
        }
    }
}

/// The length tells where the issuer ends, whatever is in it.
fn of_issuer(kind: &str, issuer: Option<&str>, name: &str) -> Arc<str> {
    match issuer {
        Some(issuer) => format!(":{kind}:{}:{issuer}:{name}", issuer.len()).into(),
        None => format!(":{kind}::{name}").into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::Identity;

    #[test]
    fn a_users_own_name_stays_and_others_are_marked() {
        let user = |issuer, subject| Identity::User { issuer, subject }.subject();
        assert_eq!(&*user(None, "ada"), "ada");
        assert_eq!(&*user(Some("https://id"), "ada"), ":user:10:https://id:ada");
        assert_eq!(&*Identity::Client { issuer: None, id: "ada" }.subject(), ":client::ada");
        assert_ne!(&*user(None, ":client::ada"), ":client::ada");
        assert_ne!(user(None, "https://a b"), user(Some("https://a"), "b"));
    }

    proptest! {
        #[test]
        fn no_two_callers_have_one_name(
            names in prop::collection::vec("[:a1]{0,4}|:(user|client|token):[:a1]{0,4}", 2..6),
        ) {
            let mut known = HashMap::new();
            for one in &names {
                let mut callers = vec![
                    Identity::User { issuer: None, subject: one },
                    Identity::Client { issuer: None, id: one },
                    Identity::Token(one),
                ];
                for issuer in &names {
                    callers.push(Identity::User { issuer: Some(issuer), subject: one });
                    callers.push(Identity::Client { issuer: Some(issuer), id: one });
                }
                for caller in callers {
                    let before = known.insert(caller.subject(), caller);
                    prop_assert!(before.is_none_or(|before| before == caller), "{before:?} and {caller:?}");
                }
            }
        }
    }
}
