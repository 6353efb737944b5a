//! Event ids: the number of a stream in its session and the position in it, in hexadecimal.

use std::fmt::Write as _;

/// The id of the event at `position` of stream `number`.
pub(super) fn event_id(number: u64, position: u64) -> String {
    let mut id = String::with_capacity(16);
    // Writing to a string can't fail.
    let _ = write!(id, "{number:x}-{position:x}");
    id
}

/// Which event comes next, out of a `Last-Event-ID`: the stream's number and the position after the one seen.
pub(in crate::http) fn position_after(event_id: &str) -> Option<(u64, u64)> {
    let (number, position) = event_id.split_once('-')?;
    let number = u64::from_str_radix(number, 16).ok()?;
    let position = u64::from_str_radix(position, 16).ok()?;
    Some((number, position.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_two_hexadecimal_numbers() {
        assert_eq!(position_after(&event_id(31, 10)), Some((31, 11)));
        assert_eq!(position_after("1f-a"), Some((31, 11)));
        for bad in ["", "1", "-", "1-", "-1", "g-1", "1-2-3", "1-ffffffffffffffff", "10000000000000000-0"] {
            assert_eq!(position_after(bad), None, "{bad}");
        }
    }
}
