//! The values of a configuration text with their places, so that an editor can change one value and leave every other
//! byte alone.
//!
//! Design constraint: pure. The text is JSON with comments and trailing commas, or TOML. Places are offsets in bytes.
//! Both parsers limit the depth of nesting.

mod json;
mod toml;

use std::borrow::Cow;
use std::ops::Range;

/// The language of a configuration text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
}

/// A value and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Bytes of the value. Empty for a TOML table that has no brackets of its own around its members.
    pub range: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value of a configuration. Numbers, booleans, dates and null have a place only.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, without quotes and escapes.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object, or a table of TOML.
    Table {
        /// Its members in the order of the text.
        members: Vec<Member>,
        /// Whether the members stand on lines of their own, as those of a TOML table, and not between braces.
        has_lines: bool,
    },
    /// Any other value.
    Other,
}

/// A member of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Bytes of its name with the quotes, without the names of the tables before it.
    pub name_range: Range<usize>,
    /// Its value.
    pub node: Node,
}

/// The text is not of its format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Parses a configuration.
///
/// # Errors
/// The text is not of this format, or too deeply nested. The message names the line.
pub fn parse_config(text: &str, format: Format) -> Result<Node, ConfigError> {
    // A byte order mark takes as many bytes as three spaces.
    let text = text.strip_prefix('\u{feff}').map_or(Cow::Borrowed(text), |rest| Cow::Owned(format!("   {rest}")));
    match format {
        Format::Json => json::parse_json(&text),
        Format::Toml => toml::parse_toml(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_moves_no_place() {
        for (text, format) in [("\u{feff}{\"a\": \"b\"}", Format::Json), ("\u{feff}\"a\" = \"b\"", Format::Toml)] {
            let node = parse_config(text, format).unwrap();
            let Value::Table { members, .. } = &node.value else { panic!("{node:?}") };
            assert_eq!(
                (&text[members[0].name_range.clone()], &text[members[0].node.range.clone()]),
                ("\"a\"", "\"b\"")
            );
        }
    }
}
