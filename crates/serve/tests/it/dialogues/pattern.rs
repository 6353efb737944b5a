//! JSON with holes: what a dialogue expects, and what it remembers of it.
//!
//! `"$any"` stands for any value; `"$name"` for any value the first time and for the same one after that; `"..."` among
//! an object's members or at an array's end allows more than is shown.

use std::collections::BTreeMap;

use serde_json::Value;

const MORE: &str = "...";

/// The values of the `$name` holes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    values: BTreeMap<String, Value>,
}

impl Memory {
    /// Puts remembered values into a text that is to be sent.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // Longer names first: `$session2` is not `$session` and a 2.
        let mut names: Vec<_> = self.values.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for name in names {
            let value = &self.values[name];
            match value.as_str() {
                Some(string) => text = text.replace(&format!("${name}"), string),
                None => text = text.replace(&format!("\"${name}\""), &value.to_string()),
            }
        }
        text
    }

    /// Compares a plain text, such as a header, which is a hole as a whole or none.
    pub(crate) fn matches_text(&mut self, expected: &str, actual: &str) -> bool {
        match hole(expected) {
            Some(name) => self.remember(name, &Value::from(actual)),
            None => expected == actual,
        }
    }

    /// Compares; remembers what is new, also where the whole doesn't match.
    pub(crate) fn matches(&mut self, expected: &Value, actual: &Value) -> bool {
        match (expected, actual) {
            (Value::String(text), _) if hole(text).is_some() => {
                hole(text).is_some_and(|name| self.remember(name, actual))
            }
            (Value::Object(expected), Value::Object(actual)) => {
                let open = expected.contains_key(MORE);
                let known = expected.iter().filter(|(name, _)| *name != MORE);
                let mut all = open || expected.len() == actual.len();
                for (name, value) in known {
                    all &= actual.get(name).is_some_and(|actual| self.matches(value, actual));
                }
                all
            }
            (Value::Array(expected), Value::Array(actual)) => {
                let open = expected.last().is_some_and(|last| last == MORE);
                let shown = if open { &expected[..expected.len() - 1] } else { &expected[..] };
                let fits = if open { shown.len() <= actual.len() } else { shown.len() == actual.len() };
                fits && shown.iter().zip(actual).all(|(expected, actual)| self.matches(expected, actual))
            }
            _ => expected == actual,
        }
    }

    fn remember(&mut self, name: &str, actual: &Value) -> bool {
        if name == "any" {
            return true;
        }
        self.values.entry(name.to_owned()).or_insert_with(|| actual.clone()) == actual
    }
}

fn hole(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
    is_name.then_some(name)
}

/// The new expectation: the actual value, with the holes of the old one where they still fit.
pub(crate) fn renewed(expected: Option<&Value>, actual: &Value) -> Value {
    match (expected, actual) {
        (Some(Value::String(text)), _) if hole(text).is_some() => Value::from(text.as_str()),
        (Some(Value::Object(expected)), Value::Object(actual)) => {
            let open = expected.contains_key(MORE);
            let shown = actual.iter().filter(|(name, _)| !open || expected.contains_key(*name));
            let mut members: serde_json::Map<_, _> =
                shown.map(|(name, value)| (name.clone(), renewed(expected.get(name), value))).collect();
            if open {
                members.insert(MORE.to_owned(), Value::from(MORE));
            }
            Value::Object(members)
        }
        (Some(Value::Array(expected)), Value::Array(actual)) => {
            let open = expected.last().is_some_and(|last| last == MORE);
            let count = if open { expected.len() - 1 } else { actual.len() };
            let mut values: Vec<_> =
                actual.iter().take(count).enumerate().map(|(at, value)| renewed(expected.get(at), value)).collect();
            if open {
                values.push(Value::from(MORE));
            }
            Value::Array(values)
        }
        _ => actual.clone(),
    }
}

/// One line, with the members that everybody looks for first in front.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            const FIRST: [&str; 9] = ["jsonrpc", "id", "method", "params", "result", "error", "code", "type", "name"];
            let rank = |name: &str| match FIRST.iter().position(|first| *first == name) {
                Some(at) => at,
                None if name == MORE => usize::MAX,
                None => FIRST.len(),
            };
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| rank(name));
            let texts: Vec<_> = members
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), written(value)))
                .collect();
            format!("{{{}}}", texts.join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
