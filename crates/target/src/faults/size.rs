//! The sizes of faults: delays, counts and bytes, read from text within bounds.

use std::time::Duration;

/// A fault's size, as its form read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Delay(Duration),
    Count(u64),
    Bytes(u64),
    None,
}

/// Form of a kind's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Delay,
    Count,
    Bytes,
    Switch,
}

/// No fault waits longer.
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// No fault adds more bytes to a reply.
const MOST_BYTES: u64 = 64 << 20;

impl Form {
    /// Reads a size of this form; `None` where it is missing, malformed, or out of bounds.
    pub(super) fn read_size(self, size: Option<&str>) -> Option<Size> {
        match (self, size) {
            (Self::Switch, None) => Some(Size::None),
            (Self::Delay, Some(size)) => parse_delay(size).map(Size::Delay),
            (Self::Count, Some(size)) => {
                let count = size.parse().ok()?;
                (count > 0).then_some(Size::Count(count))
            }
            (Self::Bytes, Some(size)) => parse_bytes(size).map(Size::Bytes),
            _ => None,
        }
    }

    /// The form in words.
    pub(super) fn form_rule(self) -> &'static str {
        match self {
            Self::Delay => "a number and `us`, `ms`, `s` or `m`, more than nothing, at most 10m",
            Self::Count => "a whole number from 1",
            Self::Bytes => "a whole number and `B`, `KiB` or `MiB`, at most 64MiB",
            Self::Switch => "it is on when named and has no size",
        }
    }
}

fn parse_delay(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let seconds_per_unit = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    let delay = Duration::try_from_secs_f64(number * seconds_per_unit).ok()?;
    (delay > Duration::ZERO && delay <= LONGEST_DELAY).then_some(delay)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let bytes_per_unit: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(bytes_per_unit)?;
    (bytes > 0 && bytes <= MOST_BYTES).then_some(bytes)
}

fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.')?;
    Some(text.split_at(end))
}
