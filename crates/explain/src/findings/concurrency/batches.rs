//! Calls of one tool that were at the server together, and how many of them it ran at a time.
//!
//! Equal calls that a server runs together end together; under a limit of N they end in waves of N, one call's time apart.
//! Only batches that begin on an idle server count: in one that follows on another the waves have long run into each other.

use mcpace_record::Nanos;

use super::served::Served;

/// Shorter calls than this say nothing: their ends scatter by as much.
const SHORTEST: Nanos = Nanos::from_millis(20);

/// Equal calls that prove one at a time. With other arguments each, chance could bring as many.
const FEWEST_ALONE: usize = 3;
const FEWEST_ALONE_UNLIKE: usize = 5;

/// The smallest cap that two waves prove, and not three.
const LEAST_CAP: usize = 4;

/// Ends of one wave may scatter so much beyond their share of a call's time.
const SCATTER: Nanos = Nanos::from_millis(5);

/// Calls of one tool, some of which waited for others.
pub(super) struct CallBatch<'v, 'a> {
    /// Those that did not wait, and those that did, each in the order of their ends.
    pub(super) calls: Vec<&'v Served<'a>>,
    /// Calls that did not wait.
    pub(super) prompt: usize,
    /// Calls that the server ran at a time.
    pub(super) at_a_time: usize,
    /// One call's own time.
    pub(super) time: Nanos,
}

impl<'v, 'a> CallBatch<'v, 'a> {
    /// The calls that had to wait.
    pub(super) fn waiting_calls(&self) -> &[&'v Served<'a>] {
        &self.calls[self.prompt..]
    }

    /// Calls in the order of their ends.
    pub(super) fn by_end(&self) -> Vec<&'v Served<'a>> {
        let mut calls = self.calls.clone();
        calls.sort_by_key(|call| call.answered.at);
        calls
    }
}

/// The batches among `tools`, which are in the order of their asking.
pub(super) fn find_batches<'v, 'a>(tools: &[&'v Served<'a>]) -> Vec<CallBatch<'v, 'a>> {
    let (mut found, mut busy_until, mut at) = (Vec::new(), Nanos::ZERO, 0);
    while at < tools.len() {
        let first = tools[at];
        let idle = busy_until <= first.asked.at;
        let (mut end, mut first_done) = (at + 1, first.answered.at);
        while idle && end < tools.len() && tools[end].asked.at < first_done {
            first_done = first_done.min(tools[end].answered.at);
            end += 1;
        }
        busy_until = tools[at..end].iter().fold(busy_until, |until, tool| until.max(tool.answered.at));
        if idle {
            found.extend(wave_batch(&tools[at..end]));
        }
        at = end;
    }
    found
}

/// The batch, where its calls are of one kind and ended in waves of one size.
fn wave_batch<'v, 'a>(calls: &[&'v Served<'a>]) -> Option<CallBatch<'v, 'a>> {
    let first = calls.first()?;
    if calls.len() < FEWEST_ALONE || calls.iter().any(|call| call.tool != first.tool) {
        return None;
    }
    let alike = first.content.is_some() && calls.iter().all(|call| call.content == first.content);
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.answered.at);
    let time = calls[0].server_time();
    if time < SHORTEST {
        return None;
    }
    let sizes = wave_sizes(&calls, time)?;
    let (last, whole) = sizes.split_last()?;
    let size = *whole.first()?;
    let even = whole.iter().all(|wave| *wave == size) && *last <= size;
    let enough = match (size, alike) {
        (1, true) => true,
        (1, false) => calls.len() >= FEWEST_ALONE_UNLIKE,
        // A single late call is a straggler, no wave, and of few calls half may end late by chance.
        (_, true) => sizes.len() > 2 || (size >= LEAST_CAP && *last > 1 && last * 5 >= size),
        (_, false) => sizes.len() > 2,
    };
    (even && enough).then_some(CallBatch { calls, prompt: size, at_a_time: size, time })
}

/// The sizes of the waves; `None` where the ends don't come in waves one call's time apart.
fn wave_sizes(calls: &[&Served<'_>], time: Nanos) -> Option<Vec<usize>> {
    let mut sizes = vec![1];
    let mut begin = calls[0].answered.at;
    for pair in calls.windows(2) {
        let end = pair[1].answered.at;
        if end.since(pair[0].answered.at).0 < time.0 / 2 {
            if end.since(begin).0 > time.0 / 3 + SCATTER.0 {
                return None;
            }
            *sizes.last_mut()? += 1;
        } else {
            let apart = end.since(begin).0;
            let usual = time.0.saturating_mul(7) / 10..=time.0.saturating_mul(3) / 2;
            if !usual.contains(&apart) {
                return None;
            }
            begin = end;
            sizes.push(1);
        }
    }
    (sizes.len() > 1).then_some(sizes)
}
