//! Secrets in JSON: below a secret name everything is one, however deep; and names also stand in pairs and in headers that
//! were printed as JSON.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Redactor;
use crate::secret_names::{holds_headers, is_secret_header, is_secret_member};

/// Members by which objects give a name, and those by which they give its value: HAR, environments of containers.
const PAIR_NAMES: [&str; 5] = ["name", "key", "header", "Name", "Key"];
const PAIR_VALUES: [&str; 4] = ["value", "values", "Value", "Values"];

/// Members of a JSON Schema that describe a value and hold none.
const DESCRIPTIONS: [&str; 14] = [
    "type",
    "title",
    "description",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "$ref",
    "writeOnly",
    "readOnly",
];

/// Kind of the names of an object's members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Members,
    /// Names of HTTP headers.
    Headers,
    /// Names of the properties that a JSON Schema describes.
    Properties,
}

impl Names {
    fn below_name(name: &str) -> Self {
        match name {
            "properties" => Self::Properties,
            _ if holds_headers(name) => Self::Headers,
            _ => Self::Members,
        }
    }

    fn is_secret(self, name: &str) -> bool {
        is_secret_member(name) || (self == Self::Headers && is_secret_header(name))
    }
}

impl Redactor {
    /// Masks every secret in `value`. Returns whether there was one.
    pub(super) fn mask_value(&self, value: &mut Value, names: Names) -> bool {
        match value {
            Value::Object(members) => self.mask_members(members, names),
            Value::Array(items) => self.mask_items(items, names),
            Value::String(text) => self.mask_string(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn mask_members(&self, members: &mut Map<String, Value>, names: Names) -> bool {
        let is_pair = members.iter().any(|(name, member)| {
            PAIR_NAMES.contains(&name.as_str()) && member.as_str().is_some_and(|name| names.is_secret(name))
        });
        let mut masked = false;
        for (name, member) in members {
            let is_secret = names.is_secret(name) || (is_pair && PAIR_VALUES.contains(&name.as_str()));
            masked |= if !is_secret {
                self.mask_value(member, Names::below_name(name))
            } else if names == Names::Properties && is_schema(member) {
                self.mask_schema(member)
            } else {
                self.mask_everything(member)
            };
        }
        masked
    }

    fn mask_items(&self, items: &mut [Value], names: Names) -> bool {
        let mut masked = false;
        // Headers in one list: a name, its value, the next name.
        if names == Names::Headers && items.len().is_multiple_of(2) && items.iter().all(Value::is_string) {
            for pair in items.chunks_exact_mut(2) {
                masked |= self.mask_pair(pair, names);
            }
        }
        for item in items {
            let is_secret = match item {
                Value::Array(pair) if pair.len() == 2 => self.mask_pair(pair, names),
                _ => false,
            };
            masked |= is_secret || self.mask_value(item, names);
        }
        masked
    }

    /// Masks the second of two values where the first is a secret's name.
    fn mask_pair(&self, pair: &mut [Value], names: Names) -> bool {
        match pair {
            [Value::String(name), value] if names.is_secret(name) => self.mask_everything(value),
            _ => false,
        }
    }

    /// A secret's schema: only what describes it stays readable.
    fn mask_schema(&self, schema: &mut Value) -> bool {
        let Value::Object(members) = schema else { return self.mask_everything(schema) };
        let mut masked = false;
        for (name, member) in members {
            masked |= match (name.as_str(), member) {
                (name, member) if DESCRIPTIONS.contains(&name) => self.mask_value(member, Names::Members),
                ("properties", member) => self.mask_value(member, Names::Properties),
                ("items" | "additionalProperties", member) => self.mask_schema(member),
                ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    schemas.iter_mut().fold(false, |masked, schema| self.mask_schema(schema) | masked)
                }
                (_, member) => self.mask_everything(member),
            };
        }
        masked
    }

    /// Masks every text and every number, at any depth.
    fn mask_everything(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::String(text) => {
                *text = self.mask_secret(text);
                true
            }
            Value::Number(number) => {
                *value = Value::String(self.mask_secret(&number.to_string()));
                true
            }
            Value::Array(items) => items.iter_mut().fold(false, |masked, item| self.mask_everything(item) | masked),
            Value::Object(members) => {
                members.values_mut().fold(false, |masked, member| self.mask_everything(member) | masked)
            }
        }
    }

    /// A text that may be JSON, an assignment (`TOKEN=…`) or hold URLs.
    fn mask_string(&self, text: &mut String) -> bool {
        let changed = match text.trim_start().starts_with(['{', '[']) {
            true => self.redact_json(text),
            false => self.redact_text(text),
        };
        match changed {
            Cow::Borrowed(_) => false,
            Cow::Owned(changed) => {
                *text = changed;
                true
            }
        }
    }
}

fn is_schema(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    match members.get("type") {
        Some(Value::String(_) | Value::Array(_)) => true,
        Some(_) => false,
        None => ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|name| members.contains_key(*name)),
    }
}
