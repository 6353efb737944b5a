//! Growth told from noise.
//!
//! The figures after the warm-up are cut into thirds. Growth is when the median of the last is above the median of the first
//! by more than an allowance: a fixed one for what allocators and chance do, a share of the first, and twice the spread
//! (from the lower to the upper quartile) within the first. A leak grows with time and passes any of them; noise doesn't.
//! A figure that follows the load (sessions that nobody ended, which wait for their idle limit) may grow
//! as the load itself did: a machine that gets less to do beside lets it.

/// One figure over time.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// Divisor of the figures that are shown.
    pub(crate) unit: f64,
    /// More than this, and more than a tenth, is growth.
    pub(crate) allowance: f64,
    /// Whether there is more of it where more is done at a time.
    pub(crate) follows_load: bool,
    /// Seconds and figures.
    pub(crate) points: Vec<(f64, f64)>,
}

/// How a figure went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Course {
    pub(crate) first: f64,
    pub(crate) last: f64,
    /// By Theil and Sen: the median of the slopes between all pairs, which a few outliers don't move.
    pub(crate) per_hour: f64,
    pub(crate) grew: bool,
}

impl Series {
    pub(crate) fn new(name: &'static str, unit: f64, allowance: f64) -> Self {
        Self { name, unit, allowance, follows_load: false, points: Vec::new() }
    }

    pub(crate) fn following_load(self) -> Self {
        Self { follows_load: true, ..self }
    }

    /// How it went beside the load. `None` while there is too little to say.
    pub(crate) fn course(&self, load: &Series) -> Option<Course> {
        let load = load.course_alone(1.0).filter(|load| self.follows_load && load.first > 0.0);
        self.course_alone(load.map_or(1.0, |load| (load.last / load.first).max(1.0)))
    }

    /// `grown` is how many times the first figure the last may be.
    fn course_alone(&self, grown: f64) -> Option<Course> {
        let third = self.points.len() / 3;
        if third < 3 {
            return None;
        }
        let values = |points: &[(f64, f64)]| sorted(points.iter().map(|point| point.1).collect());
        let early = values(&self.points[..third]);
        let (first, last) = (middle(&early), middle(&values(&self.points[self.points.len() - third..])));
        let spread = early[third * 3 / 4] - early[third / 4];
        let allowed = self.allowance.max(first / 10.0).max(2.0 * spread);
        Some(Course { first, last, per_hour: 3_600.0 * slope(&self.points), grew: last - first * grown > allowed })
    }
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (index, from) in points.iter().enumerate() {
        let later = points[index + 1..].iter().filter(|to| to.0 > from.0);
        slopes.extend(later.map(|to| (to.1 - from.1) / (to.0 - from.0)));
    }
    middle(&sorted(slopes))
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Series;

    fn series(figure: impl Fn(u32) -> f64) -> Series {
        let mut series = Series::new("test", 1.0, 5.0);
        series.points = (0..120).map(|second| (f64::from(second), figure(second))).collect();
        series
    }

    /// Some noise that is the same each time: -3 to 3.
    fn noise(second: u32) -> f64 {
        f64::from(second * 7919 % 7) - 3.0
    }

    #[test]
    fn noise_is_no_growth_and_a_leak_is() {
        let calm = series(|second| 50.0 + noise(second)).course(&series(|_| 100.0)).unwrap();
        assert!(!calm.grew && calm.per_hour.abs() < 100.0, "{calm:?}");
        let leak = series(|second| 50.0 + noise(second) + f64::from(second) / 4.0).course(&series(|_| 100.0)).unwrap();
        assert!(leak.grew, "{leak:?}");
        assert!((800.0..1_000.0).contains(&leak.per_hour), "{leak:?}");
    }

    #[test]
    fn a_peak_is_no_growth_and_neither_is_falling() {
        assert!(!series(|second| if second == 100 { 1e6 } else { 50.0 }).course(&series(|_| 100.0)).unwrap().grew);
        assert!(!series(|second| 500.0 - f64::from(second)).course(&series(|_| 100.0)).unwrap().grew);
    }

    #[test]
    fn what_follows_the_load_may_grow_as_the_load_does_and_no_more() {
        let load = series(|second| 100.0 + f64::from(second));
        let as_much = series(|second| 50.0 + f64::from(second) / 2.0);
        assert!(as_much.course(&load).unwrap().grew);
        assert!(!as_much.following_load().course(&load).unwrap().grew);
        let more = series(|second| if second < 60 { 50.0 } else { 200.0 }).following_load();
        assert!(more.course(&load).unwrap().grew);
        let steady = series(|_| 100.0);
        assert!(more.course(&steady).unwrap().grew);
    }

    #[test]
    fn a_few_looks_say_nothing() {
        let mut short = series(noise);
        short.points.truncate(8);
        assert_eq!(short.course(&series(noise)), None);
    }
}
