//! A plain value of JSON, however a program writes it: 64-bit numbers come as texts and as numbers, enumerations as names and as
//! numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A plain value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Scalar {
    /// None, `null`, a list or a map.
    #[default]
    Absent,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
}

impl Scalar {
    /// As text; `None` where there is none.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Bool(value) => Some(value.to_string()),
            Self::Integer(value) => Some(value.to_string()),
            Self::Float(value) => Some(value.to_string()),
            Self::Text(text) => Some(text),
        }
    }

    /// As a whole number; 0 of anything else.
    pub(crate) fn to_number(&self) -> u64 {
        match self {
            Self::Integer(value) => u64::try_from(*value).unwrap_or(0),
            // Casts of floats saturate.
            Self::Float(value) => *value as u64,
            Self::Text(text) => text.parse().unwrap_or(0),
            Self::Absent | Self::Bool(_) => 0,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Scalar, E> {
        Ok(Scalar::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Absent)
    }
}
