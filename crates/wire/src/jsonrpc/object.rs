//! A JSON object's members in one pass: those with known names by position, the rest in order, all values raw.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Members;

/// Members that [`read_object`] found.
pub(crate) struct Object<'a, const N: usize> {
    /// The values of the known names, in the order of the names.
    pub(crate) known: [Option<&'a RawValue>; N],
    /// The first known name that came twice. Its first value is the one kept.
    pub(crate) duplicate: Option<&'static str>,
    /// All others.
    pub(crate) extra: Members<'a>,
}

/// Reads the object in `text`, and nothing but it.
pub(crate) fn read_object<'a, const N: usize>(
    text: &'a str,
    names: &'static [&'static str; N],
) -> serde_json::Result<Object<'a, N>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let object = deserializer.deserialize_map(ObjectVisitor { names })?;
    deserializer.end()?;
    Ok(object)
}

/// Reads the array in `text`, and nothing but it. Past `limit` values are checked, not kept; `None` says that there were
/// more.
pub(crate) fn read_array(text: &str, limit: usize) -> serde_json::Result<Option<Vec<&RawValue>>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let values = deserializer.deserialize_seq(ArrayVisitor { limit })?;
    deserializer.end()?;
    Ok(values)
}

struct ObjectVisitor<const N: usize> {
    names: &'static [&'static str; N],
}

impl<'a, const N: usize> Visitor<'a> for ObjectVisitor<N> {
    type Value = Object<'a, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Object { known: [None; N], duplicate: None, extra: Vec::new() };
        while let Some(key) = map.next_key_seed(KeySeed { names: self.names })? {
            let value = map.next_value()?;
            match key {
                NameKey::Known(at) if object.known[at].is_none() => object.known[at] = Some(value),
                NameKey::Known(at) => object.duplicate = object.duplicate.or(Some(self.names[at])),
                NameKey::Other(name) => object.extra.push((name, value)),
            }
        }
        Ok(object)
    }
}

enum NameKey<'a> {
    Known(usize),
    Other(Cow<'a, str>),
}

struct KeySeed {
    names: &'static [&'static str],
}

impl KeySeed {
    fn name_position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }
}

impl<'a> DeserializeSeed<'a> for KeySeed {
    type Value = NameKey<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<NameKey<'a>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for KeySeed {
    type Value = NameKey<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'a str) -> Result<NameKey<'a>, E> {
        Ok(self.name_position(name).map_or(NameKey::Other(Cow::Borrowed(name)), NameKey::Known))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<NameKey<'a>, E> {
        Ok(self.name_position(name).map_or_else(|| NameKey::Other(Cow::Owned(name.to_owned())), NameKey::Known))
    }
}

struct ArrayVisitor {
    limit: usize,
}

impl<'a> Visitor<'a> for ArrayVisitor {
    type Value = Option<Vec<&'a RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.limit {
            match values.next_element()? {
                Some(value) => kept.push(value),
                None => return Ok(Some(kept)),
            }
        }
        let mut more = false;
        while values.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok((!more).then_some(kept))
    }
}
