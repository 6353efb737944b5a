//! Whether a process's memory rises with a count of something, all the time and for good.
//!
//! Memory rises for many reasons: caches fill, garbage waits for its collection. So a rise counts only where its slope is
//! certain and where it goes on in the second half as in the first. The slope is that of a line by least squares. Its interval
//! takes into account that neighbouring samples err alike (a first-order autoregression; Chatfield, The Analysis of Time
//! Series): a curve that a line doesn't fit has errors of the same sign for long, and so a wide interval.

use mcpace_record::Nanos;

use crate::findings::Level;
use crate::view::{Look, Usage};

/// Looks below which no line can be drawn.
const FEWEST_LOOKS: usize = 8;

/// Counted things below which nothing is concluded.
const FEWEST: u64 = 50;

/// Counted things below which a rise that is not large is a process that warms up.
const FEWEST_OF_SMALL: u64 = 100;

/// A rise below this is never growth: allocators take memory from the system in pieces of that size.
const SMALLEST: u64 = 1024 * 1024;

/// From here on a rise is more than garbage that waits for its collection: so many bytes, and one part in so many of what the
/// process had before.
const LARGE: u64 = 32 * 1024 * 1024;
const PART_OF_BEFORE: u64 = 4;

/// Standard errors on either side of a slope in its interval: of a healthy process, one in some ten thousand is beyond.
const STANDARD_ERRORS: f64 = 4.0;

/// The interval's lower end must be this part of the slope at least; less of it where the rise is large, because a runtime that
/// takes memory in steps has a wide interval and still never rises that far without a cause.
const NARROW: f64 = 0.7;
const NARROW_OF_LARGE: f64 = 0.1;

/// A higher correlation of neighbouring errors can't be told from 1 with so few samples.
const HIGHEST_CORRELATION: f64 = 0.9;

/// How steep the second half must be against the first.
const GOES_ON: f64 = 0.5;

/// A rise of memory with a count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) first: Look,
    pub(super) last: Look,
    /// Things that were counted in between.
    pub(super) count: u64,
    /// Bytes for each of them.
    pub(super) bytes_each: u64,
    /// The interval of the slope, in bytes for each.
    pub(super) bytes_each_range: (u64, u64),
    /// Threads that came in between.
    pub(super) threads: u32,
}

impl Growth {
    pub(super) fn total_bytes(&self) -> u64 {
        self.last.resident.saturating_sub(self.first.resident)
    }

    /// How sure it is that the rise stays.
    pub(super) fn level(&self) -> Level {
        if self.is_large() { Level::Medium } else { Level::Low }
    }

    fn is_large(&self) -> bool {
        self.total_bytes() >= LARGE && self.total_bytes() >= self.first.resident / PART_OF_BEFORE
    }
}

/// The growth of one process with the `moments` at which something was counted up; sorted.
pub(super) fn process_growth(usage: &Usage, moments: &[Nanos]) -> Option<Growth> {
    let counted = |at: Nanos| moments.partition_point(|moment| *moment <= at);
    let points: Vec<(u64, &Look)> = usage.looks.iter().map(|look| (counted(look.at.at) as u64, look)).collect();
    // From the last look before anything was counted to the first after everything was.
    let from = points.iter().rposition(|(count, _)| *count == 0).unwrap_or(0);
    let to = points.iter().position(|(count, _)| *count == moments.len() as u64);
    let points = points.get(from..=to.unwrap_or(points.len().checked_sub(1)?))?;
    let ((_, first), (count, last)) = (points.first()?, points.last()?);
    let count = count - points[0].0;
    let bytes = last.resident.checked_sub(first.resident)?;
    let fewest = if bytes < LARGE { FEWEST_OF_SMALL } else { FEWEST };
    if points.len() < FEWEST_LOOKS || count < fewest || bytes < SMALLEST {
        return None;
    }
    let slope = Slope::fit_line(points);
    let middle = points.len() / 2;
    let (before, after) = (Slope::fit_line(&points[..=middle]).each, Slope::fit_line(&points[middle..]).each);
    let goes_on = before > 0.0 && after >= before * GOES_ON;
    let growth = Growth {
        first: **first,
        last: **last,
        count,
        bytes_each: bytes / count,
        bytes_each_range: slope.byte_range(),
        threads: last.threads.saturating_sub(first.threads),
    };
    let narrow = if growth.is_large() { NARROW_OF_LARGE } else { NARROW };
    (slope.is_certain(narrow) && goes_on).then_some(growth)
}

/// Bytes for each counted thing, and half the width of its interval.
struct Slope {
    each: f64,
    margin: f64,
}

impl Slope {
    fn fit_line(points: &[(u64, &Look)]) -> Self {
        let number = points.len() as f64;
        let (x, y) = (|point: &(u64, &Look)| point.0 as f64, |point: &(u64, &Look)| point.1.resident as f64);
        let mean_x = points.iter().map(x).sum::<f64>() / number;
        let mean_y = points.iter().map(y).sum::<f64>() / number;
        let xx: f64 = points.iter().map(|point| (x(point) - mean_x).powi(2)).sum();
        if xx <= 0.0 {
            return Self { each: 0.0, margin: f64::INFINITY };
        }
        let each = points.iter().map(|point| (x(point) - mean_x) * (y(point) - mean_y)).sum::<f64>() / xx;
        let errors: Vec<f64> = points.iter().map(|point| y(point) - mean_y - each * (x(point) - mean_x)).collect();
        let squares: f64 = errors.iter().map(|error| error * error).sum();
        let neighbours: f64 = errors.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let correlation = if squares > 0.0 { (neighbours / squares).clamp(0.0, HIGHEST_CORRELATION) } else { 0.0 };
        let independent = (number * (1.0 - correlation) / (1.0 + correlation) - 2.0).max(1.0);
        Self { each, margin: STANDARD_ERRORS * (squares / number / independent / (xx / number)).sqrt() }
    }

    fn is_certain(&self, narrow: f64) -> bool {
        self.each - self.margin >= self.each * narrow && self.each > 0.0
    }

    fn byte_range(&self) -> (u64, u64) {
        (((self.each - self.margin).max(0.0)) as u64, (self.each + self.margin) as u64)
    }
}

#[cfg(test)]
mod tests {
    use mcpace_record::Peer;

    use super::*;
    use crate::view::{EventIndex, Stamp};

    /// A look each second, with so many MiB; ten things are counted a second.
    fn grown(mebibytes: &[u64]) -> Option<Growth> {
        let looks = mebibytes.iter().enumerate().map(|(second, resident)| Look {
            at: Stamp { at: Nanos::from_millis(second as u64 * 1000), event: EventIndex::new(second) },
            cpu: Nanos::ZERO,
            resident: resident * 1024 * 1024,
            threads: 1,
        });
        let usage = Usage { of: Peer::Server, pid: 1, looks: looks.collect() };
        let moments: Vec<Nanos> =
            (0..10 * (mebibytes.len() as u64 - 1)).map(|number| Nanos::from_millis(number * 100 + 50)).collect();
        process_growth(&usage, &moments)
    }

    #[test]
    fn a_line_is_growth_and_tells_what_each_takes() {
        let growth = grown(&[50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150]).unwrap();
        assert_eq!((growth.count, growth.bytes_each), (100, 1024 * 1024));
        assert_eq!(growth.bytes_each_range, (1024 * 1024, 1024 * 1024));
    }

    #[test]
    fn the_interval_of_an_uneven_rise_contains_its_slope() {
        let growth = grown(&[50, 59, 72, 79, 91, 99, 111, 120, 128, 141, 149]).unwrap();
        let (low, high) = growth.bytes_each_range;
        assert!(low < 1024 * 1024 && 1024 * 1024 < high && high < 2 * low, "{low} {high}");
    }

    #[test]
    fn a_small_line_is_growth_that_is_less_sure() {
        let level = |mebibytes: &[u64]| grown(mebibytes).unwrap().level();
        assert_eq!(level(&[50, 54, 58, 62, 66, 70, 74, 78, 82, 86, 90]), Level::Medium);
        assert_eq!(level(&[50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60]), Level::Low);
    }

    /// As a server in Node rises (typescript-sdk #2559): in steps, and more steeply while it warms up.
    #[test]
    fn a_large_rise_in_steps_is_growth() {
        let leak = [72, 94, 116, 129, 137, 137, 151, 173, 189, 189, 189, 201, 224, 248, 251, 251, 251];
        assert_eq!(grown(&leak).unwrap().level(), Level::Medium);
        let warm_up = [72, 90, 116, 125, 118, 119, 136, 130, 130, 146, 133, 133, 158, 134, 143, 135, 138];
        assert!(grown(&warm_up).is_none());
    }

    #[test]
    fn a_cache_that_fills_is_none() {
        assert!(grown(&[50, 80, 110, 130, 145, 150, 151, 151, 151, 152, 152, 152]).is_none());
    }

    #[test]
    fn a_rise_that_slows_down_is_none_though_a_line_fits_it() {
        assert!(grown(&[50, 80, 105, 127, 146, 162, 175, 186, 195, 202, 207]).is_none());
    }

    #[test]
    fn a_rise_that_no_line_fits_is_none_though_it_goes_on() {
        assert!(grown(&[50, 110, 60, 120, 80, 130, 90, 150, 110, 160, 130, 190]).is_none());
    }

    #[test]
    fn garbage_that_is_collected_is_none() {
        assert!(grown(&[50, 70, 90, 110, 60, 80, 100, 120, 60, 80, 100, 120]).is_none());
    }

    #[test]
    fn a_small_or_a_short_rise_is_none() {
        assert!(grown(&[50, 50, 50, 50, 50, 50, 51, 51, 51, 51, 51]).is_none());
        assert!(grown(&[50, 80, 110, 140, 170]).is_none());
    }
}
