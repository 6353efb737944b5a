//! The nearest of a few known names, for messages about unknown ones.

/// The candidate that differs least from `given`, if any is near enough to be what was meant.
pub(crate) fn nearest_name<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: Vec<char> = given.chars().take(LONGEST).collect();
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&given, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 2).max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A text for a message: short, and without control characters that a terminal would obey.
pub(crate) fn printable_name(given: &str) -> String {
    given.chars().take(LONGEST).map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

const LONGEST: usize = 64;

/// Levenshtein's edit distance, without regard to ASCII case.
fn edit_distance(given: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=given.len()).collect();
    for (line, wanted) in candidate.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, found) in given.iter().enumerate() {
            let substituted = diagonal + usize::from(!wanted.eq_ignore_ascii_case(found));
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[given.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_slip_finds_its_name_and_nonsense_finds_none() {
        let names = ["simple", "notion", "github"];
        assert_eq!(nearest_name("notoin", names), Some("notion"));
        assert_eq!(nearest_name("GitHub", names), Some("github"));
        assert_eq!(nearest_name("simpel", names), Some("simple"));
        assert_eq!(nearest_name("postgresql", names), None);
        assert_eq!(nearest_name("", names), None);
    }

    #[test]
    fn a_shown_text_is_short_and_harmless() {
        assert_eq!(printable_name("a\u{1b}[31m"), "a\u{fffd}[31m");
        assert_eq!(printable_name(&"x".repeat(1000)).len(), LONGEST);
    }
}
