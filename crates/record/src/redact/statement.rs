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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_no_literals() {
        let cases = [
            ("SELECT a1 FROM t2 WHERE b = 'it''s' AND c > 12.5", "SELECT a1 FROM t2 WHERE b = ? AND c > ?"),
            ("SELECT $1, ?, x'ff'", "SELECT $1, ?, x?"),
            ("SELECT 'unended", "SELECT ?"),
            ("", ""),
        ];
        for (statement, expected) in cases {
            assert_eq!(without_literals(statement), expected);
        }
    }
}
