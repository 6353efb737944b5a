//! When calls are due, and how many users there are: the load over time as pure functions.
//!
//! Constraint: no clock. Time comes in, and goes out, as nanoseconds since the run's start.
//!
//! A rate that changes is handled by counting in calls instead of in seconds: if `N(t)` calls are due until `t`, the call
//! number `k` is due at `N⁻¹(k)`. For constant arrivals `k` are the whole numbers; for Poisson arrivals they are exponentially
//! far apart, which makes, through the same `N⁻¹`, an inhomogeneous Poisson process (Cinlar 1975).

use crate::plan::{Arrivals, LoadModel, Plan};
use crate::random::Random;

/// A level (users, or calls a second) over time: straight lines, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Profile(Vec<RateLine>);

#[derive(Clone, Copy, Debug)]
struct RateLine {
    /// Its beginning, in seconds.
    at: f64,
    duration: f64,
    from: f64,
    to: f64,
    /// The area under all lines before it.
    before: f64,
}

impl RateLine {
    fn line_slope(&self) -> f64 {
        (self.to - self.from) / self.duration
    }

    fn line_area(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.duration
    }

    /// Where the area from the line's beginning is `area`.
    fn inverse_area(&self, area: f64) -> f64 {
        // The root of slope/2·x² + from·x = area, in the form that doesn't cancel when the slope is small.
        let root = (self.from * self.from + 2.0 * self.line_slope() * area).max(0.0).sqrt();
        if self.from + root > 0.0 { (2.0 * area / (self.from + root)).min(self.duration) } else { 0.0 }
    }
}

impl Profile {
    /// The plan's load: the warm-up at the model's own figure, then the stages or the same figure to the end.
    pub(crate) fn from_plan(plan: &Plan) -> Self {
        let own = match plan.model {
            LoadModel::Closed { vus } => f64::from(vus),
            LoadModel::Open { rate, .. } => rate,
        };
        let mut profile = Self(Vec::new());
        profile.add_line(plan.warm_up_s, own, own);
        if let Some(duration) = plan.duration_s {
            profile.add_line(duration, own, own);
        }
        let mut from = own;
        for stage in &plan.stages {
            profile.add_line(stage.duration_s, from, stage.to);
            from = stage.to;
        }
        profile
    }

    fn add_line(&mut self, duration: f64, from: f64, to: f64) {
        if duration > 0.0 {
            let (at, before) =
                self.0.last().map_or((0.0, 0.0), |line| (line.at + line.duration, line.before + line.line_area()));
            self.0.push(RateLine { at, duration, from, to, before });
        }
    }

    /// The level at a time. At the end of a stage without length it is already the next one's.
    pub(crate) fn level_at(&self, ns: u64) -> f64 {
        let t = ns as f64 / 1e9;
        match self.0.iter().rev().find(|line| line.at <= t) {
            Some(line) => line.from + line.line_slope() * (t - line.at).min(line.duration),
            None => 0.0,
        }
    }

    /// Whether the level is the same all the time.
    pub(crate) fn is_flat(&self) -> bool {
        self.0.windows(2).all(|pair| (pair[0].from - pair[1].from).abs() < f64::EPSILON)
            && self.0.iter().all(|line| (line.from - line.to).abs() < f64::EPSILON)
    }

    /// The highest level.
    pub(crate) fn peak_level(&self) -> f64 {
        self.0.iter().fold(0.0, |peak, line| peak.max(line.from).max(line.to))
    }
}

/// One thread's part of all arrivals, in order.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    profile: Profile,
    /// The line that the last arrival was on.
    line: usize,
    kind: ScheduleKind,
}

#[derive(Clone, Debug)]
enum ScheduleKind {
    /// Each `step`th call, the next one being number `next`.
    Constant { next: u64, step: u64 },
    /// `count` is where the last one was; a thread has `1/threads` of the rate, since independent processes add up.
    Poisson { count: f64, threads: f64, random: Random },
}

impl Schedule {
    /// The part of the thread number `thread` of `threads`.
    pub(crate) fn new(profile: Profile, arrivals: Arrivals, thread: usize, threads: usize, seed: u64) -> Self {
        let kind = match arrivals {
            Arrivals::Constant => ScheduleKind::Constant { next: thread as u64, step: threads as u64 },
            Arrivals::Poisson => {
                let random = Random::new(seed ^ (thread as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95));
                ScheduleKind::Poisson { count: 0.0, threads: threads as f64, random }
            }
        };
        Self { profile, line: 0, kind }
    }

    /// When `count` calls have become due, in nanoseconds. `None` when that is not before the end.
    fn due_time(&mut self, count: f64) -> Option<u64> {
        // Counts rise, so that earlier lines are never needed again. The allowance is for sums of lines' areas, whose rounding
        // must not make one call too many.
        let lines = &self.profile.0;
        while lines
            .get(self.line)
            .is_some_and(|line| count >= line.before + line.line_area() - 1e-9 * (1.0 + count * 1e-6))
        {
            self.line += 1;
        }
        let line = lines.get(self.line)?;
        Some(((line.at + line.inverse_area((count - line.before).max(0.0))) * 1e9).round() as u64)
    }
}

impl Iterator for Schedule {
    /// When the next call is due, in nanoseconds since the start.
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let count = match &mut self.kind {
            ScheduleKind::Constant { next, step } => {
                let count = *next as f64;
                *next += *step;
                count
            }
            ScheduleKind::Poisson { count, threads, random } => {
                *count += random.exponential_one() * *threads;
                *count
            }
        };
        self.due_time(count)
    }
}

/// One thread's share of `total`: the shares differ by at most one and add up.
pub(crate) fn thread_share(total: u64, thread: usize, threads: usize) -> u64 {
    let (thread, threads) = (thread as u64, threads as u64);
    total / threads + u64::from(thread < total % threads)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Profile, Schedule, thread_share};
    use crate::plan::Arrivals;

    fn profile(lines: &[(f64, f64, f64)]) -> Profile {
        let mut profile = Profile(Vec::new());
        lines.iter().for_each(|(duration, from, to)| profile.add_line(*duration, *from, *to));
        profile
    }

    fn times(profile: &Profile, arrivals: Arrivals, threads: usize) -> Vec<u64> {
        let part = |thread| Schedule::new(profile.clone(), arrivals, thread, threads, 1);
        let mut all: Vec<u64> = (0..threads).flat_map(part).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_constant_rate_is_exact() {
        let times = times(&profile(&[(2.0, 1000.0, 1000.0)]), Arrivals::Constant, 1);
        assert_eq!(times.len(), 2000);
        assert!(times.iter().enumerate().all(|(k, ns)| *ns == k as u64 * 1_000_000));
    }

    #[test]
    fn a_ramp_has_the_area_under_it_and_ends_in_its_level() {
        let ramp = profile(&[(10.0, 0.0, 100.0), (1.0, 100.0, 100.0)]);
        let times = times(&ramp, Arrivals::Constant, 1);
        assert_eq!(times.len(), 600);
        // Half of the time is a quarter of the area.
        assert_eq!(times.iter().filter(|ns| **ns < 5_000_000_000).count(), 125);
        assert!((ramp.level_at(5_000_000_000) - 50.0).abs() < 1e-9);
        assert!((ramp.level_at(10_500_000_000) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_due_while_the_rate_is_zero() {
        let times = times(&profile(&[(1.0, 0.0, 0.0), (1.0, 10.0, 10.0)]), Arrivals::Constant, 1);
        assert_eq!((times.len(), times[0]), (10, 1_000_000_000));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_their_kind() {
        let times = times(&profile(&[(100.0, 1000.0, 1000.0)]), Arrivals::Poisson, 2);
        let count = times.len() as f64;
        // Five standard deviations of a Poisson count.
        assert!((count - 100_000.0).abs() < 5.0 * 100_000f64.sqrt(), "{count}");
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    proptest! {
        #[test]
        fn threads_share_constant_arrivals_without_loss(
            lines in prop::collection::vec((0.1f64..3.0, 0.0f64..500.0, 0.0f64..500.0), 1..4), threads in 1usize..5,
        ) {
            let profile = profile(&lines);
            let alone = times(&profile, Arrivals::Constant, 1);
            prop_assert!(times(&profile, Arrivals::Constant, threads) == alone);
            let area: f64 = lines.iter().map(|(duration, from, to)| duration * (from + to) / 2.0).sum();
            prop_assert!((alone.len() as f64 - area).abs() <= 1.0);
        }

        #[test]
        fn shares_add_up(total in 0u64..100_000, threads in 1usize..64) {
            let shares: Vec<u64> = (0..threads).map(|thread| thread_share(total, thread, threads)).collect();
            prop_assert_eq!(shares.iter().sum::<u64>(), total);
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
