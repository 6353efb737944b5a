//! Spans that programs report about their own work (OpenTelemetry Specification, "Trace").

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Characters of a span's name, and of the value of an attribute, that are kept.
const LONGEST_TEXT: usize = 1024;

/// Attributes of a span that are kept.
const MOST_ATTRIBUTES: usize = 64;

/// Role of a span (OpenTelemetry Specification, "SpanKind").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpanKind {
    /// Work within the program.
    #[default]
    Internal,
    /// A request that the program serves.
    Server,
    /// A request that the program makes and waits for.
    Client,
    /// A message that the program sends for later work.
    Producer,
    /// A message that the program works on.
    Consumer,
}

/// One piece of work that a program reported. Its end is the time of its event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The trace that it belongs to: 32 hexadecimal digits.
    pub trace: String,
    /// Its own id: 16 hexadecimal digits.
    pub span: String,
    /// Id of the span that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// Its role.
    pub kind: SpanKind,
    /// When it began.
    pub began: Nanos,
    /// The library that reported it: `opentelemetry.instrumentation.httpx`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub library: String,
    /// The program that reported it, by the name of its service: `weather`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// Redacted attributes, values as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

impl Span {
    /// Adds an attribute, redacted already ([`Redactor::attribute`](crate::Redactor::attribute)); long texts are cut.
    pub fn add_attribute(&mut self, (name, value): (&str, &str)) {
        if self.attributes.len() < MOST_ATTRIBUTES {
            self.attributes.push((cut_text(name), cut_text(value)));
        }
    }

    /// Value of an attribute, by the first of `names` that it has.
    #[must_use]
    pub fn attribute(&self, names: &[&str]) -> Option<&str> {
        let value = |name: &&str| self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        names.iter().find_map(value)
    }

    pub(crate) fn memory_size(&self) -> usize {
        let attributes: usize =
            self.attributes.iter().map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len()).sum();
        size_of::<Self>()
            + self.trace.len()
            + self.span.len()
            + self.name.len()
            + self.library.len()
            + self.service.len()
            + attributes
    }
}

/// The longest beginning of `text` that is kept.
fn cut_text(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_bounded() {
        let mut span = Span::default();
        span.add_attribute(("long", &"é".repeat(5000)));
        (0..100).for_each(|_| span.add_attribute(("more", "1")));
        assert_eq!((span.attributes.len(), span.attributes[0].1.chars().count()), (MOST_ATTRIBUTES, LONGEST_TEXT));
        assert_eq!(span.attribute(&["none", "more"]), Some("1"));
    }
}
