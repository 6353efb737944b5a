//! Request ids: a string or a number, kept so that the answer carries exactly the token that was asked with.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::token;

/// The id of a request. Two ids are equal when a peer must take them for the same: strings by their characters (not by
/// how they were escaped), numbers by their token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id<'a> {
    /// An integer in its only JSON spelling: what nearly everybody sends.
    Integer(i64),
    /// Any other number, as its JSON token: out of range, fractional (`1.5`, `1.0`), with an exponent, or `-0`. The
    /// specification allows integers only; we keep the others so that a reply can echo them to the letter.
    Number(Cow<'a, str>),
    /// A string, unescaped.
    String(Cow<'a, str>),
}

impl<'a> Id<'a> {
    /// Reads a JSON token that is already known to be well-formed. `None` if it is neither string nor number.
    pub(crate) fn from_token(token: &'a str) -> Option<Id<'a>> {
        match token.as_bytes().first()? {
            b'"' => token::decode_string(token).map(Id::String),
            b'-' | b'0'..=b'9' => Some(Id::number(token)),
            _ => None,
        }
    }

    fn number(token: &'a str) -> Id<'a> {
        match token.parse::<i64>() {
            // JSON has no leading zeros, so `-0` is the only integer token that would change when written again.
            Ok(value) if token != "-0" => Id::Integer(value),
            _ => Id::Number(Cow::Borrowed(token)),
        }
    }

    /// Converts the id to one that does not borrow from the message.
    #[must_use]
    pub fn into_owned(self) -> Id<'static> {
        match self {
            Id::Integer(value) => Id::Integer(value),
            Id::Number(token) => Id::Number(Cow::Owned(token.into_owned())),
            Id::String(text) => Id::String(Cow::Owned(text.into_owned())),
        }
    }

    /// Appends the JSON token.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Id::Integer(value) => token::write_integer(*value, out),
            Id::Number(token) => out.extend_from_slice(token.as_bytes()),
            Id::String(text) => token::write_string(text, out),
        }
    }
}

/// The JSON token: `7`, `"a"`.
impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Integer(value) => write!(f, "{value}"),
            Id::Number(token) => f.write_str(token),
            Id::String(text) => {
                let mut quoted = Vec::with_capacity(text.len() + 2);
                token::write_string(text, &mut quoted);
                f.write_str(&String::from_utf8_lossy(&quoted))
            }
        }
    }
}

impl From<i64> for Id<'_> {
    fn from(value: i64) -> Self {
        Id::Integer(value)
    }
}

impl From<u32> for Id<'_> {
    fn from(value: u32) -> Self {
        Id::Integer(i64::from(value))
    }
}

impl From<u64> for Id<'_> {
    fn from(value: u64) -> Self {
        match i64::try_from(value) {
            Ok(value) => Id::Integer(value),
            Err(_) => Id::Number(Cow::Owned(value.to_string())),
        }
    }
}

impl<'a> From<&'a str> for Id<'a> {
    fn from(text: &'a str) -> Self {
        Id::String(Cow::Borrowed(text))
    }
}

impl From<String> for Id<'_> {
    fn from(text: String) -> Self {
        Id::String(Cow::Owned(text))
    }
}

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Integer(value) => serializer.serialize_i64(*value),
            Id::String(text) => serializer.serialize_str(text),
            Id::Number(token) => {
                let raw: &RawValue = serde_json::from_str(token).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    }
}

/// From JSON text only ([`serde_json`]'s raw values carry the token); borrows nothing.
impl<'de> Deserialize<'de> for Id<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Id::from_token(raw.get())
            .map(Id::into_owned)
            .ok_or_else(|| serde::de::Error::custom("an id is a string or a number"))
    }
}
