//! JSON with comments and trailing commas.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::{ConfigError, Member, Node, Value};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(crate) fn parse_json(text: &str) -> Result<Node, ConfigError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(|error| ConfigError(error.to_string()))?;
    parsed.value.map(node_of).ok_or_else(|| ConfigError("the text has no value".to_owned()))
}

fn node_of(value: ast::Value<'_>) -> Node {
    let range = value.start()..value.end();
    let value = match value {
        ast::Value::StringLit(text) => Value::Text(text.value.into_owned()),
        ast::Value::Array(array) => Value::List(array.elements.into_iter().map(node_of).collect()),
        ast::Value::Object(object) => {
            Value::Table { members: object.properties.into_iter().map(member_of).collect(), has_lines: false }
        }
        ast::Value::NumberLit(_) | ast::Value::BooleanLit(_) | ast::Value::NullKeyword(_) => Value::Other,
    };
    Node { range, value }
}

fn member_of(member: ast::ObjectProp<'_>) -> Member {
    let name_range = member.name.start()..member.name.end();
    Member { name: member.name.into_string(), name_range, node: node_of(member.value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_those_of_the_text() {
        let text = "// first\n{ \"ä\": [\"a\\n\", 1,], /* last */ }";
        let node = parse_json(text).unwrap();
        let Value::Table { members, has_lines: false } = &node.value else { panic!("{node:?}") };
        assert_eq!((&text[members[0].name_range.clone()], members[0].name.as_str()), ("\"ä\"", "ä"));
        let Value::List(items) = &members[0].node.value else { panic!("{members:?}") };
        assert_eq!((&text[items[0].range.clone()], &items[0].value), ("\"a\\n\"", &Value::Text("a\n".to_owned())));
        assert_eq!((&text[items[1].range.clone()], &items[1].value), ("1", &Value::Other));
    }

    #[test]
    fn text_that_hosts_refuse_is_refused() {
        for text in ["", "{", "{a: 1}", "{'a': 1}", "{\"a\": 1 \"b\": 2}", "{} {}", "[0x1]", &"[".repeat(100_000)] {
            assert!(parse_json(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"[\[\]{}",:/*a\\u0-9 \n]{0,60}"#) {
            let _ = parse_json(&text);
        }
    }
}
