//! URI templates (RFC 6570, level 1, and `{+name}` of level 2), read backwards: which values make this URI?
//!
//! Constraint: linear in the URI, which is the peer's.

use std::collections::BTreeMap;

use crate::builder::BuildError;

/// A template to match URIs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// One that may be `reserved` also stands for slashes and the like.
    Variable {
        name: String,
        reserved: bool,
    },
}

impl UriTemplate {
    pub(crate) fn parse(template: &str) -> Result<Self, BuildError> {
        let wrong = |reason| BuildError::Template { template: template.to_owned(), reason };
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = template;
        while let Some(open) = rest.find(['{', '}']) {
            let (literal, expression) = rest.split_at(open);
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let inner = expression.strip_prefix('{').ok_or_else(|| wrong("a brace closes that didn't open"))?;
            let (inner, after) = inner.split_once('}').ok_or_else(|| wrong("a brace doesn't close"))?;
            let variable = variable(inner).ok_or_else(|| wrong("an expression is not {name} or {+name}"))?;
            if matches!(parts.last(), Some(Part::Variable { .. })) {
                return Err(wrong("two variables touch, so that nobody knows where one ends"));
            }
            if parts.iter().any(|part| matches!((part, &variable), (Part::Variable { name: a, .. }, Part::Variable { name: b, .. }) if a == b)) {
                return Err(wrong("a variable is there twice"));
            }
            parts.push(variable);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        if parts.is_empty() {
            return Err(wrong("it is empty"));
        }
        Ok(Self { parts })
    }

    pub(crate) fn has_variable(&self, wanted: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable { name, .. } if name == wanted))
    }

    /// What the variables stand for, decoded; `None` where the URI is not of this family. A variable ends where the
    /// literal after it first begins.
    pub(crate) fn variables(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let mut values = BTreeMap::new();
        let mut rest = uri;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Variable { name, reserved } => {
                    let value = match parts.next() {
                        None => std::mem::take(&mut rest),
                        Some(Part::Literal(literal)) if parts.peek().is_none() => {
                            let value = rest.strip_suffix(literal.as_str())?;
                            rest = "";
                            value
                        }
                        Some(Part::Literal(literal)) => {
                            // From the second character on: a variable stands for at least one.
                            let from = rest.chars().next()?.len_utf8();
                            let end = from + rest[from..].find(literal.as_str())?;
                            let value = &rest[..end];
                            rest = &rest[end + literal.len()..];
                            value
                        }
                        Some(Part::Variable { .. }) => return None,
                    };
                    if value.is_empty() || (!reserved && value.contains(['/', '?', '#'])) {
                        return None;
                    }
                    values.insert(name.clone(), decoded(value)?);
                }
            }
        }
        rest.is_empty().then_some(values)
    }
}

fn variable(expression: &str) -> Option<Part> {
    let (reserved, name) = match expression.strip_prefix('+') {
        Some(name) => (true, name),
        None => (false, expression),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    (!name.is_empty() && name.bytes().all(allowed)).then(|| Part::Variable { name: name.to_owned(), reserved })
}

/// RFC 3986 §2.1; `None` where the result is not UTF-8 or an escape is cut off.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::UriTemplate;

    fn values(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        UriTemplate::parse(template).unwrap().variables(uri).map(|map| map.into_iter().collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn reads_variables_back() {
        assert_eq!(values("a://{x}", "a://1"), pairs(&[("x", "1")]));
        assert_eq!(values("a://{x}/b/{y}.txt", "a://1/b/2.txt.txt"), pairs(&[("x", "1"), ("y", "2.txt")]));
        assert_eq!(values("a://{x}-{y}", "a://1-2-3"), pairs(&[("x", "1"), ("y", "2-3")]));
        assert_eq!(values("a://{x}", "a://caf%C3%A9%20x"), pairs(&[("x", "café x")]));
        assert_eq!(values("a://{+path}", "a://b/c?d"), pairs(&[("path", "b/c?d")]));
        assert_eq!(values("a://b", "a://b"), pairs(&[]));
    }

    #[test]
    fn knows_its_family() {
        for uri in ["a://", "a://1/2", "b://1", "a://1?x", "a://%", "a://%zz", "a://%ff", ""] {
            assert_eq!(values("a://{x}", uri), None, "{uri}");
        }
        assert_eq!(values("a://{x}é{y}", "a://é"), None);
        assert_eq!(values("a://{x}/b", "a:///b"), None);
    }

    #[test]
    fn refuses_what_is_no_template() {
        for template in ["", "a{", "a}", "a{}", "a{x}{y}", "a{x}b{x}", "a{?q}", "a{x*}", "a{x y}"] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}
