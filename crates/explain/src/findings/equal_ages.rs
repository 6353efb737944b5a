//! The largest group of times that are alike: the sign of a timer.

use mcpace_record::Nanos;

/// The items whose ages are alike, the youngest first, with their ages: of all such groups the largest. Ages are alike where they
/// differ by `spread` of the youngest at most. Empty where most of the items belong to no such group.
pub(super) fn largest_cluster<T: Copy>(
    ages: impl Iterator<Item = (T, Nanos)>,
    spread: impl Fn(Nanos) -> Nanos,
) -> Vec<(T, Nanos)> {
    let mut ages: Vec<(T, Nanos)> = ages.collect();
    // Stable: equal ages stay in their order.
    ages.sort_by_key(|(_, age)| *age);
    let (mut best, mut from) = (0..0, 0);
    for to in 0..ages.len() {
        while ages[to].1.since(ages[from].1) > spread(ages[from].1) {
            from += 1;
        }
        if to + 1 - from > best.len() {
            best = from..to + 1;
        }
    }
    if best.len() * 5 < ages.len() * 3 { Vec::new() } else { ages[best].to_vec() }
}
