//! Names of operations and tools. There are few, and a million ledgers that have them.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A name, shared by all that have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// The names that were needed so far.
#[derive(Default)]
pub(crate) struct Names<'a>(HashMap<&'a str, Name>);

impl<'a> Names<'a> {
    pub(crate) fn name_of(&mut self, text: &'a str) -> Name {
        self.0.entry(text).or_insert_with(|| Name(text.into())).clone()
    }
}
