//! Arguments that differ from call to call: templates in strings, compiled once to pieces, rendered without allocating.
//!
//! `{{counter}}` counts the calls of the operation: of N threads, each has every Nth number · `{{random(1,100)}}` is a whole
//! number, both ends included · `{{uuid}}` · `{{user}}` is the number of the virtual user · `{{choice:NAME}}` is one of the
//! words of that name. A string that is one numeric template and nothing else becomes a number. Everything that is put in is
//! escaped beforehand, so a rendered call is always valid JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::plan::error::PlanError;
use crate::random::Random;

/// JSON with holes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template(Vec<TemplatePiece>);

#[derive(Clone, Debug)]
enum TemplatePiece {
    Text(Vec<u8>),
    Counter,
    Random { from: i64, count: u64 },
    Uuid,
    User,
    Choice(Vec<Vec<u8>>),
}

/// Values that the holes of a template are filled with.
#[derive(Debug)]
pub(crate) struct Fill<'a> {
    pub(crate) counter: u64,
    pub(crate) user: u64,
    pub(crate) random: &'a mut Random,
}

/// The lists that `{{choice:NAME}}` chooses from.
pub(crate) type ChoiceLists = BTreeMap<String, Vec<String>>;

impl Template {
    /// JSON as it is, no holes.
    pub(crate) fn add_verbatim(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(TemplatePiece::Text(last)) => last.extend_from_slice(text),
            _ => self.0.push(TemplatePiece::Text(text.to_vec())),
        }
    }

    /// A value whose strings may have templates.
    pub(crate) fn add_value(&mut self, value: &Value, data: &ChoiceLists) -> Result<(), PlanError> {
        match value {
            Value::Object(members) => {
                for (at, (name, member)) in members.iter().enumerate() {
                    self.add_verbatim(if at == 0 { b"{" } else { b"," });
                    self.add_verbatim(Value::String(name.clone()).to_string().as_bytes());
                    self.add_verbatim(b":");
                    self.add_value(member, data)?;
                }
                self.add_verbatim(if members.is_empty() { b"{}" } else { b"}" });
            }
            Value::Array(elements) => {
                for (at, element) in elements.iter().enumerate() {
                    self.add_verbatim(if at == 0 { b"[" } else { b"," });
                    self.add_value(element, data)?;
                }
                self.add_verbatim(if elements.is_empty() { b"[]" } else { b"]" });
            }
            Value::String(text) => self.add_string(text, data)?,
            plain => self.add_verbatim(plain.to_string().as_bytes()),
        }
        Ok(())
    }

    /// Appends the JSON with all holes filled.
    pub(crate) fn render_json(&self, fill: &mut Fill<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => out.extend_from_slice(text),
                TemplatePiece::Counter => write_number(fill.counter, out),
                TemplatePiece::User => write_number(fill.user, out),
                TemplatePiece::Random { from, count } => {
                    let value = from.wrapping_add_unsigned(fill.random.below_end(*count));
                    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
                }
                TemplatePiece::Uuid => write_uuid(fill.random, out),
                TemplatePiece::Choice(words) => {
                    out.extend_from_slice(&words[fill.random.below_end(words.len() as u64) as usize])
                }
            }
        }
    }

    fn add_string(&mut self, text: &str, data: &ChoiceLists) -> Result<(), PlanError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let Some(length) = rest[start..].find("}}") else {
                return Err(PlanError::Impossible(format!("a template is not closed in {text:?}: }}}} is missing")));
            };
            pieces.push(TemplatePiece::Text(escaped_json(&rest[..start])));
            pieces.push(parse_hole(rest[start + 2..start + length].trim(), data)?);
            rest = &rest[start + length + 2..];
        }
        pieces.push(TemplatePiece::Text(escaped_json(rest)));
        pieces.retain(|piece| !matches!(piece, TemplatePiece::Text(text) if text.is_empty()));
        let is_number =
            matches!(pieces.as_slice(), [TemplatePiece::Counter | TemplatePiece::User | TemplatePiece::Random { .. }]);
        if !is_number {
            self.add_verbatim(b"\"");
        }
        for piece in pieces {
            match piece {
                TemplatePiece::Text(text) => self.add_verbatim(&text),
                hole => self.0.push(hole),
            }
        }
        if !is_number {
            self.add_verbatim(b"\"");
        }
        Ok(())
    }
}

fn parse_hole(name: &str, data: &ChoiceLists) -> Result<TemplatePiece, PlanError> {
    let impossible = |why: String| Err(PlanError::Impossible(why));
    if let Some(list) = name.strip_prefix("choice:") {
        return match data.get(list.trim()) {
            Some(words) if !words.is_empty() => {
                Ok(TemplatePiece::Choice(words.iter().map(|word| escaped_json(word)).collect()))
            }
            Some(_) => impossible(format!("{{{{{name}}}}} has nothing to choose from: the list is empty")),
            None => impossible(format!("{{{{{name}}}}} has nothing to choose from: there is no such list")),
        };
    }
    if let Some(range) = name.strip_prefix("random(").and_then(|rest| rest.strip_suffix(')')) {
        let ends: Vec<Option<i64>> = range.split(',').map(|end| end.trim().parse().ok()).collect();
        return match ends.as_slice() {
            [Some(from), Some(to)] if from <= to && from.abs_diff(*to) < u64::MAX => {
                Ok(TemplatePiece::Random { from: *from, count: from.abs_diff(*to) + 1 })
            }
            _ => impossible(format!("{{{{{name}}}}} needs two whole numbers, the smaller one first")),
        };
    }
    match name {
        "counter" => Ok(TemplatePiece::Counter),
        "uuid" => Ok(TemplatePiece::Uuid),
        "user" => Ok(TemplatePiece::User),
        _ => impossible(format!(
            "there is no template {{{{{name}}}}}: there are counter, random(1,100), uuid, user and choice:NAME"
        )),
    }
}

/// As it stands between the quotes of a JSON string.
fn escaped_json(text: &str) -> Vec<u8> {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
}

pub(crate) fn write_number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A random UUID (RFC 9562, version 4).
fn write_uuid(random: &mut Random, out: &mut Vec<u8>) {
    let high = (random.next_bits() & !0xF000) | 0x4000;
    let low = (random.next_bits() >> 2) | (1 << 63);
    let digits = (u128::from(high) << 64) | u128::from(low);
    for at in 0..32 {
        if matches!(at, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(b"0123456789abcdef"[(digits >> (124 - 4 * at)) as usize & 0xF]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{ChoiceLists, Fill, Template};
    use crate::random::Random;

    fn rendered(value: &Value, data: &ChoiceLists) -> Value {
        let mut template = Template::default();
        template.add_value(value, data).unwrap();
        let mut out = Vec::new();
        template.render_json(&mut Fill { counter: 7, user: 3, random: &mut Random::new(1) }, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn numbers_alone_become_numbers_and_others_text() {
        let found = rendered(
            &json!({"a": "{{counter}}", "b": "no {{user}}!", "c": ["{{ random(5,5) }}"]}),
            &ChoiceLists::new(),
        );
        assert_eq!(found, json!({"a": 7, "b": "no 3!", "c": [5]}));
    }

    #[test]
    fn choices_are_escaped() {
        let data = ChoiceLists::from([("w".to_owned(), vec!["a\"b\n".to_owned()])]);
        assert_eq!(rendered(&json!({"a": "{{choice:w}}"}), &data), json!({"a": "a\"b\n"}));
    }

    #[test]
    fn a_uuid_is_one() {
        let found = rendered(&json!("{{uuid}}"), &ChoiceLists::new());
        let text = found.as_str().unwrap();
        assert_eq!(text.len(), 36);
        assert!(text.as_bytes()[14] == b'4' && b"89ab".contains(&text.as_bytes()[19]), "{text}");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in ["{{nonsense}}", "{{random(2,1)}}", "{{random(1)}}", "{{choice:none}}", "{{counter"] {
            assert!(Template::default().add_value(&json!(text), &ChoiceLists::new()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_without_templates_comes_out_as_it_is(text in "[^{]*") {
            prop_assert_eq!(rendered(&json!({ &text: &text }), &ChoiceLists::new()), json!({ &text: &text }));
        }

        #[test]
        fn random_stays_within_its_ends(seed: u64, from in -1000i64..1000, more in 0i64..1000) {
            let mut template = Template::default();
            template.add_value(&json!(format!("{{{{random({from},{})}}}}", from + more)), &ChoiceLists::new()).unwrap();
            let mut out = Vec::new();
            template.render_json(&mut Fill { counter: 0, user: 0, random: &mut Random::new(seed) }, &mut out);
            let value: i64 = serde_json::from_slice(&out).unwrap();
            prop_assert!((from..=from + more).contains(&value));
        }
    }
}
