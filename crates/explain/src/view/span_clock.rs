//! The clocks of programs whose spans come from a file.
//!
//! The wall clock of the recording's machine maps their times. Another machine's clock may differ. Where a trace leads to a
//! recorded call, the call bounds the difference: a span cannot begin before its request was sent, and the span of the
//! server cannot end after the reply did.

use std::collections::HashMap;

use mcpace_record::Nanos;
use serde::Serialize;

/// The clock of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanClock {
    /// The program, by the name of its service; empty where it has none.
    pub service: String,
    /// Nanoseconds that were added to its times.
    #[serde(rename = "shift_ns")]
    pub shift: i64,
    /// Its times are wrong by at most this much against the recording; `None` where no trace leads to a call on both sides.
    #[serde(rename = "error_ns")]
    pub error: Option<u64>,
    /// Whether no single difference fits all calls: the clock drifts, or was set.
    pub is_contradictory: bool,
}

/// Bounds of the difference between a program's clock and that of the recording.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    least: Option<i128>,
    most: Option<i128>,
}

/// Bounds that the calls set to the clocks.
#[derive(Debug)]
pub(super) struct SpanClocks<'a> {
    /// Nanoseconds from the times of spans to the recording's clock, by the wall clock.
    offset: i64,
    bounds: HashMap<&'a str, Bounds>,
}

impl<'a> SpanClocks<'a> {
    pub(super) fn new(offset: i64) -> Self {
        Self { offset, bounds: HashMap::new() }
    }

    /// Notes a span that leads to a call, which was sent at `sent`.
    pub(super) fn note_begin(&mut self, service: &'a str, began: Nanos, sent: Nanos) {
        let bound = i128::from(sent.0) - i128::from(began.0) - i128::from(self.offset);
        let least = &mut self.bounds.entry(service).or_default().least;
        *least = Some(least.map_or(bound, |least| least.max(bound)));
    }

    /// Notes the span of a call itself, whose reply ended at `replied`.
    pub(super) fn note_end(&mut self, service: &'a str, ended: Nanos, replied: Nanos) {
        let bound = i128::from(replied.0) - i128::from(ended.0) - i128::from(self.offset);
        let most = &mut self.bounds.entry(service).or_default().most;
        *most = Some(most.map_or(bound, |most| most.min(bound)));
    }

    /// The clocks of all programs of which the calls tell something.
    pub(super) fn find_clocks(&self) -> HashMap<&'a str, SpanClock> {
        self.bounds.iter().map(|(service, bounds)| (*service, bounds.to_clock(service))).collect()
    }
}

impl Bounds {
    fn to_clock(self, service: &str) -> SpanClock {
        let (shift, error) = match (self.least, self.most) {
            (Some(least), Some(most)) if least <= 0 && most >= 0 => (0, Some(most.max(-least))),
            (Some(least), Some(most)) => ((least + most) / 2, Some((most - least).abs() / 2)),
            (Some(least), None) => (least.max(0), None),
            (None, Some(most)) => (most.min(0), None),
            (None, None) => (0, None),
        };
        SpanClock {
            service: service.to_owned(),
            shift: i64::try_from(shift).unwrap_or(0),
            error: error.map(|error| u64::try_from(error).unwrap_or(u64::MAX)),
            is_contradictory: self.least.zip(self.most).is_some_and(|(least, most)| least > most),
        }
    }
}

/// A time moved by `offset` nanoseconds.
pub(super) fn shift_time(time: Nanos, offset: i64) -> Nanos {
    Nanos(time.0.saturating_add_signed(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(begins: &[(u64, u64)], ends: &[(u64, u64)]) -> SpanClock {
        let mut clocks = SpanClocks::new(0);
        begins.iter().for_each(|(began, sent)| clocks.note_begin("s", Nanos(*began), Nanos(*sent)));
        ends.iter().for_each(|(ended, replied)| clocks.note_end("s", Nanos(*ended), Nanos(*replied)));
        clocks.find_clocks().remove("s").unwrap()
    }

    #[test]
    fn a_clock_that_fits_is_left_and_another_machines_is_shifted_into_the_calls() {
        let told = |clock: SpanClock| (clock.shift, clock.error, clock.is_contradictory);
        assert_eq!(told(clock(&[(105, 100), (215, 200)], &[(190, 200)])), (0, Some(10), false));
        // Five thousand ahead.
        assert_eq!(told(clock(&[(5_105, 100)], &[(5_190, 200)])), (-4_997, Some(7), false));
        assert_eq!(told(clock(&[(90, 100)], &[])), (10, None, false));
        assert_eq!(told(clock(&[], &[(250, 200)])), (-50, None, false));
        // The first call puts the clock behind, the second one ahead.
        assert_eq!(told(clock(&[(90, 100)], &[(260, 200)])), (-25, Some(35), true));
        assert_eq!(shift_time(Nanos(5_105), -4_997), Nanos(108));
    }

    #[test]
    fn hostile_times_do_no_harm() {
        let clock = clock(&[(0, u64::MAX)], &[(u64::MAX, 0)]);
        assert_eq!((clock.shift, clock.is_contradictory), (0, true));
        assert_eq!(shift_time(Nanos(5), i64::MIN), Nanos(0));
    }
}
