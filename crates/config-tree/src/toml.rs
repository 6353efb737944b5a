//! TOML.

use toml_edit::{Document, InlineTable, Item, Table};

use crate::{ConfigError, Member, Node, Value};

pub(crate) fn parse_toml(text: &str) -> Result<Node, ConfigError> {
    let document = Document::parse(text).map_err(|error| ConfigError(error.to_string().trim().replace('\n', " ")))?;
    Ok(Node { range: 0..0, value: table_value(document.as_table()) })
}

fn table_value(table: &Table) -> Value {
    let members = table.iter().filter_map(|(name, item)| {
        let name_range = table.key(name)?.span().unwrap_or_default();
        Some(Member { name: name.to_owned(), name_range, node: item_node(item)? })
    });
    Value::Table { members: members.collect(), has_lines: true }
}

fn item_node(item: &Item) -> Option<Node> {
    match item {
        Item::None => None,
        Item::Value(value) => Some(value_node(value)),
        Item::Table(table) => Some(Node { range: 0..0, value: table_value(table) }),
        Item::ArrayOfTables(_) => Some(Node { range: 0..0, value: Value::Other }),
    }
}

fn value_node(value: &toml_edit::Value) -> Node {
    let range = value.span().unwrap_or_default();
    let value = match value {
        toml_edit::Value::String(text) => Value::Text(text.value().clone()),
        toml_edit::Value::Array(array) => Value::List(array.iter().map(value_node).collect()),
        toml_edit::Value::InlineTable(table) => inline_value(table),
        _ => Value::Other,
    };
    Node { range, value }
}

fn inline_value(table: &InlineTable) -> Value {
    let members = table.iter().filter_map(|(name, value)| {
        let name_range = table.key(name)?.span().unwrap_or_default();
        Some(Member { name: name.to_owned(), name_range, node: value_node(value) })
    });
    Value::Table { members: members.collect(), has_lines: false }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member<'a>(node: &'a Node, name: &str) -> &'a Member {
        let Value::Table { members, .. } = &node.value else { panic!("{node:?}") };
        members.iter().find(|member| member.name == name).unwrap()
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "# first\n[servers.\"ä\"] # last\ncommand = 'npx'\nargs = [\n  \"a\\n\", # one\n  1,\n]\n";
        let node = parse_toml(text).unwrap();
        let server = &member(&member(&node, "servers").node, "ä").node;
        let (command, args) = (member(server, "command"), member(server, "args"));
        assert_eq!((&text[command.name_range.clone()], &text[command.node.range.clone()]), ("command", "'npx'"));
        let Value::List(items) = &args.node.value else { panic!("{args:?}") };
        assert_eq!((&text[items[0].range.clone()], &items[0].value), ("\"a\\n\"", &Value::Text("a\n".to_owned())));
        assert_eq!((&text[args.node.range.clone()][..1], &items[1].value), ("[", &Value::Other));
    }

    #[test]
    fn tables_between_braces_are_told_from_tables_on_lines() {
        let node = parse_toml("a.b = { c = 1 }\n").unwrap();
        assert!(matches!(member(&node, "a").node.value, Value::Table { has_lines: true, .. }));
        let inline = &member(&member(&node, "a").node, "b").node;
        assert!(matches!(inline.value, Value::Table { has_lines: false, .. }), "{inline:?}");
    }

    #[test]
    fn text_that_is_no_toml_is_refused() {
        for text in ["a", "a = ", "a = 1\na = 2", "[a]\n[a]", &format!("a = {}", "[".repeat(100_000))] {
            assert!(parse_toml(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"[\[\]{}"'=.#a-c0-9 \n\\u]{0,60}"#) {
            let _ = parse_toml(&text);
        }
    }
}
