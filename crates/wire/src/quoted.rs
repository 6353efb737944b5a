//! A peer's words in a message of ours.

/// The words as they may stand there: one line, printable, at most 300 characters.
#[must_use]
pub fn quote_printable(words: &str) -> String {
    const LONGEST: usize = 300;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = words.trim().chars().take(LONGEST).map(plain).collect();
    if words.trim().chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::quote_printable;

    #[test]
    fn a_peers_words_are_one_printable_line_and_short() {
        assert_eq!(quote_printable(" a\nb\u{1b}[31m "), "a b [31m");
        assert_eq!(quote_printable(&"é".repeat(400)).chars().count(), 301);
    }
}
