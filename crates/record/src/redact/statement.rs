//! Statements of SQL without the data in them.

/// A statement of SQL with `?` in place of its strings and numbers, so that it holds no data and one statement reads
/// the same each time.
pub(super) fn without_literals(statement: &str) -> String {
    let mut result = String::with_capacity(statement.len());
    let mut characters = statement.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        let in_word = before.is_alphanumeric() || matches!(before, '_' | '$' | '?');
        match character {
            '\'' => {
                // A doubled quote is part of the string: the second one begins the next part of the same literal.
                while characters.next().is_some_and(|next| next != '\'') {}
                if before != '?' {
                    result.push('?');
                }
                before = '?';
                continue;
            }
            // A string of PostgreSQL in dollar quotes: `$$…$$`, `$tag$…$tag$`.
            '$' if !in_word && dollar_tag(characters.clone()).is_some() => {
                let tag = dollar_tag(characters.clone()).unwrap_or_default();
                characters.nth(tag);
                while let Some(next) = characters.next() {
                    if next == '$' && dollar_tag(characters.clone()) == Some(tag) {
                        characters.nth(tag);
                        break;
                    }
                }
                result.push('?');
                before = '?';
                continue;
            }
            // A string of MySQL. In standard SQL, double quotes are around names, which stand after no comparison alone.
            '"' if matches!(last_sign(&result), '=' | '<' | '>') => {
                let quoted: String = characters.by_ref().take_while(|next| *next != '"').collect();
                if characters.peek() == Some(&'.') {
                    result.push('"');
                    result.push_str(&quoted);
                    result.push('"');
                    before = '"';
                } else {
                    result.push('?');
                    before = '?';
                }
                continue;
            }
            digit if digit.is_ascii_digit() && !in_word => {
                while characters.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '.') {
                    characters.next();
                }
                result.push('?');
                before = '?';
                continue;
            }
            other => result.push(other),
        }
        before = character;
    }
    result
}

/// Length of the tag after a `$` that begins a string in dollar quotes.
fn dollar_tag(rest: impl Iterator<Item = char>) -> Option<usize> {
    let mut length = 0;
    for next in rest {
        match next {
            '$' => return Some(length),
            letter if letter == '_' || letter.is_alphabetic() || (length > 0 && letter.is_alphanumeric()) => {
                length += 1
            }
            _ => return None,
        }
    }
    None
}

/// The last character that is no space.
fn last_sign(text: &str) -> char {
    text.chars().rev().find(|character| !character.is_whitespace()).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_no_literals() {
        let cases = [
            ("SELECT a1 FROM t2 WHERE b = 'it''s' AND c > 12.5", "SELECT a1 FROM t2 WHERE b = ? AND c > ?"),
            ("SELECT $1, ?, x'ff'", "SELECT $1, ?, x?"),
            ("SELECT 'unended", "SELECT ?"),
            ("SELECT $$a$$, $tag$b $$ c$tag$, $1", "SELECT ?, ?, $1"),
            ("SELECT $$unended", "SELECT ?"),
            (r#"UPDATE t SET a = "b" WHERE c > "d""#, "UPDATE t SET a = ? WHERE c > ?"),
            (
                r#"SELECT "a"."b" FROM "a" WHERE "a"."b" = "c"."d""#,
                r#"SELECT "a"."b" FROM "a" WHERE "a"."b" = "c"."d""#,
            ),
            ("", ""),
        ];
        for (statement, expected) in cases {
            assert_eq!(without_literals(statement), expected);
        }
    }
}
