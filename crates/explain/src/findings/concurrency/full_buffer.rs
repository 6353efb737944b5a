//! Replies over stdio that waited until a buffer of the server's stdout was full.
//!
//! The evidence is sizes alone: bursts of lines end where a block ends, more often than lines of their length do by chance,
//! while requests are open whose replies lie in the part that didn't fit. Lines that are long in comparison with a block prove
//! nothing. Replies to all open requests prove nothing either: they come together because they were requested together.

use mcpace_record::Nanos;

use super::held_reply::{FEWEST_HELD, HeldReply, SHORTEST_HOLD};
use crate::view::{Burst, Transport, View};

/// Sizes that C libraries and runtimes buffer a pipe's output in: glibc and Go, Python and Java, others.
const BLOCKS: [u64; 4] = [4096, 8192, 16_384, 32_768];

/// Bits of evidence required: by chance, one recording in about 250 has as many.
const SURE: f64 = 8.0;

/// Replies that were held in a buffer.
pub(super) fn behind_buffer(view: &View<'_>) -> Vec<HeldReply> {
    let open = OpenRequests::from_view(view);
    let bursts: Vec<&Burst> = view.bursts.iter().filter(|burst| open.any_after(burst.at.at)).collect();
    let Some(block) = BLOCKS.into_iter().find(|block| fills_blocks(&bursts, *block)) else {
        return Vec::new();
    };
    let full = bursts.iter().filter(|burst| at_block(burst, block));
    full.flat_map(|burst| held_replies(view, burst)).collect()
}

fn at_block(burst: &Burst, block: u64) -> bool {
    burst.block_edge(block).is_some_and(|edge| edge.at_block)
}

/// Whether bursts end where blocks of this size end.
fn fills_blocks(bursts: &[&Burst], block: u64) -> bool {
    let full = bursts.iter().filter(|burst| at_block(burst, block)).count();
    // Each burst costs one bit, since it may belong to either group.
    let bits = bursts.iter().filter_map(|burst| burst.block_edge(block)).map(|edge| {
        let bits = if edge.at_block { -edge.chance.log2() } else { 0.0 };
        bits - 1.0
    });
    full >= FEWEST_HELD && full * 3 >= bursts.len() * 2 && bits.sum::<f64>() >= SURE
}

/// Replies of a burst that had to wait for it. The recording doesn't show when each was ready: they are assumed to have become
/// ready one after another since the burst before.
fn held_replies(view: &View<'_>, burst: &Burst) -> Vec<HeldReply> {
    let replies = burst.exchanges.len() as u64;
    let late = (1..).zip(&burst.exchanges).filter_map(|(place, id)| {
        let asked = view.exchange(*id)?.back()?.request_end?;
        let from = burst.since.map_or(asked.at, |since| since.max(asked.at));
        let ready = from + Nanos(burst.at.at.since(from).0.saturating_mul(place) / replies);
        let held = burst.at.at.since(ready) >= SHORTEST_HOLD;
        held.then_some(HeldReply { exchange: *id, asked, ready, released: burst.at, answered: burst.at })
    });
    late.collect()
}

/// When requests over stdio were asked, and when they were answered.
struct OpenRequests {
    asked: Vec<Nanos>,
    answered: Vec<Nanos>,
}

impl OpenRequests {
    fn from_view(view: &View<'_>) -> Self {
        let requests = || view.exchanges.iter().filter(|one| one.transport == Transport::Stdio && one.asks());
        let legs = || requests().filter_map(|request| request.back());
        let mut asked: Vec<Nanos> = legs().filter_map(|leg| Some(leg.request_end?.at)).collect();
        let mut answered: Vec<Nanos> = legs().filter_map(|leg| Some(leg.result_end?.at)).collect();
        asked.sort_unstable();
        answered.sort_unstable();
        Self { asked, answered }
    }

    /// Whether something that had been asked wasn't answered yet.
    fn any_after(&self, at: Nanos) -> bool {
        self.asked.partition_point(|asked| *asked <= at) > self.answered.partition_point(|answered| *answered <= at)
    }
}
