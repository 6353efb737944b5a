//! Arguments that differ from call to call: templates in strings, compiled once to pieces, rendered without allocating.
//!
//! `{{counter}}` counts this engine thread's calls of the operation, apart from the other threads' · `{{random(1,100)}}` is a
//! whole number, both ends included · `{{uuid}}` · `{{user}}` is the number of the virtual user · `{{choice:NAME}}` is one of the
//! words of that name. A string that is one numeric template and nothing else becomes a number. Everything that is put in is
//! escaped beforehand, so a rendered call is always valid JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::plan::error::PlanError;
use crate::random::Random;

/// JSON with holes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
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
pub(crate) type Data = BTreeMap<String, Vec<String>>;

impl Template {
    /// JSON as it is, no holes.
    pub(crate) fn verbatim(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(Piece::Text(last)) => last.extend_from_slice(text),
            _ => self.0.push(Piece::Text(text.to_vec())),
        }
    }

    /// A value whose strings may have templates.
    pub(crate) fn value(&mut self, value: &Value, data: &Data) -> Result<(), PlanError> {
        match value {
            Value::Object(members) => {
                for (at, (name, member)) in members.iter().enumerate() {
                    self.verbatim(if at == 0 { b"{" } else { b"," });
                    self.verbatim(Value::String(name.clone()).to_string().as_bytes());
                    self.verbatim(b":");
                    self.value(member, data)?;
                }
                self.verbatim(if members.is_empty() { b"{}" } else { b"}" });
            }
            Value::Array(elements) => {
                for (at, element) in elements.iter().enumerate() {
                    self.verbatim(if at == 0 { b"[" } else { b"," });
                    self.value(element, data)?;
                }
                self.verbatim(if elements.is_empty() { b"[]" } else { b"]" });
            }
            Value::String(text) => self.string(text, data)?,
            plain => self.verbatim(plain.to_string().as_bytes()),
        }
        Ok(())
    }

    /// Appends the JSON with all holes filled.
    pub(crate) fn render(&self, fill: &mut Fill<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Counter => number(fill.counter, out),
                Piece::User => number(fill.user, out),
                Piece::Random { from, count } => {
                    let value = from.wrapping_add_unsigned(fill.random.below(*count));
                    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
                }
                Piece::Uuid => uuid(fill.random, out),
                Piece::Choice(words) => out.extend_from_slice(&words[fill.random.below(words.len() as u64) as usize]),
            }
        }
    }

    fn string(&mut self, text: &str, data: &Data) -> Result<(), PlanError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let Some(length) = rest[start..].find("}}") else {
                return Err(PlanError::Impossible(format!("a template is not closed in {text:?}: }}}} is missing")));
            };
            pieces.push(Piece::Text(escaped(&rest[..start])));
            pieces.push(hole(rest[start + 2..start + length].trim(), data)?);
            rest = &rest[start + length + 2..];
        }
        pieces.push(Piece::Text(escaped(rest)));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        let is_number = matches!(pieces.as_slice(), [Piece::Counter | Piece::User | Piece::Random { .. }]);
        if !is_number {
            self.verbatim(b"\"");
        }
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.verbatim(&text),
                hole => self.0.push(hole),
            }
        }
        if !is_number {
            self.verbatim(b"\"");
        }
        Ok(())
    }
}

fn hole(name: &str, data: &Data) -> Result<Piece, PlanError> {
    let impossible = |why: String| Err(PlanError::Impossible(why));
    if let Some(list) = name.strip_prefix("choice:") {
        return match data.get(list.trim()) {
            Some(words) if !words.is_empty() => Ok(Piece::Choice(words.iter().map(|word| escaped(word)).collect())),
            Some(_) => impossible(format!("{{{{{name}}}}} has nothing to choose from: the list is empty")),
            None => impossible(format!("{{{{{name}}}}} has nothing to choose from: there is no such list")),
        };
    }
    if let Some(range) = name.strip_prefix("random(").and_then(|rest| rest.strip_suffix(')')) {
        let ends: Vec<Option<i64>> = range.split(',').map(|end| end.trim().parse().ok()).collect();
        return match ends.as_slice() {
            [Some(from), Some(to)] if from <= to && from.abs_diff(*to) < u64::MAX => {
                Ok(Piece::Random { from: *from, count: from.abs_diff(*to) + 1 })
            }
            _ => impossible(format!("{{{{{name}}}}} needs two whole numbers, the smaller one first")),
        };
    }
    match name {
        "counter" => Ok(Piece::Counter),
        "uuid" => Ok(Piece::Uuid),
        "user" => Ok(Piece::User),
        _ => impossible(format!(
            "there is no template {{{{{name}}}}}: there are counter, random(1,100), uuid, user and choice:NAME"
        )),
    }
}

/// As it stands between the quotes of a JSON string.
fn escaped(text: &str) -> Vec<u8> {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
}

pub(crate) fn number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A random UUID (RFC 9562, version 4).
fn uuid(random: &mut Random, out: &mut Vec<u8>) {
    let high = (random.next() & !0xF000) | 0x4000;
    let low = (random.next() >> 2) | (1 << 63);
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

    use super::{Data, Fill, Template};
    use crate::random::Random;

    fn rendered(value: &Value, data: &Data) -> Value {
        let mut template = Template::default();
        template.value(value, data).unwrap();
        let mut out = Vec::new();
        template.render(&mut Fill { counter: 7, user: 3, random: &mut Random::new(1) }, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn numbers_alone_become_numbers_and_others_text() {
        let found =
            rendered(&json!({"a": "{{counter}}", "b": "no {{user}}!", "c": ["{{ random(5,5) }}"]}), &Data::new());
        assert_eq!(found, json!({"a": 7, "b": "no 3!", "c": [5]}));
    }

    #[test]
    fn choices_are_escaped() {
        let data = Data::from([("w".to_owned(), vec!["a\"b\n".to_owned()])]);
        assert_eq!(rendered(&json!({"a": "{{choice:w}}"}), &data), json!({"a": "a\"b\n"}));
    }

    #[test]
    fn a_uuid_is_one() {
        let found = rendered(&json!("{{uuid}}"), &Data::new());
        let text = found.as_str().unwrap();
        assert_eq!(text.len(), 36);
        assert!(text.as_bytes()[14] == b'4' && b"89ab".contains(&text.as_bytes()[19]), "{text}");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in ["{{nonsense}}", "{{random(2,1)}}", "{{random(1)}}", "{{choice:none}}", "{{counter"] {
            assert!(Template::default().value(&json!(text), &Data::new()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_without_templates_comes_out_as_it_is(text in "[^{]*") {
            prop_assert_eq!(rendered(&json!({ &text: &text }), &Data::new()), json!({ &text: &text }));
        }

        #[test]
        fn random_stays_within_its_ends(seed: u64, from in -1000i64..1000, more in 0i64..1000) {
            let mut template = Template::default();
            template.value(&json!(format!("{{{{random({from},{})}}}}", from + more)), &Data::new()).unwrap();
            let mut out = Vec::new();
            template.render(&mut Fill { counter: 0, user: 0, random: &mut Random::new(seed) }, &mut out);
            let value: i64 = serde_json::from_slice(&out).unwrap();
            prop_assert!((from..=from + more).contains(&value));
        }
    }
}
