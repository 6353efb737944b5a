//! How many calls a server runs at a time: by the queue that explains the ends of the calls best.
//!
//! Each model says when a call began: when it was asked, or when the call before it let it begin. The time from there to its
//! end is the tool's own. Under the right model these times scatter by what the tool varies. Under a wrong one they have the
//! waits in them, or parts of other calls. The likelihood of each model follows from the times, as Laplace distributed
//! logarithms; a model must be far more likely than calls that run beside each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use mcpace_record::Nanos;

use super::batches::CallBatch;
use super::served::{Owner, Served};
use crate::findings::chance::FAR_LIKELIER;

/// Calls that are looked at: the first ones of a larger recording.
const MOST_CALLS: usize = 4_096;

/// The largest limit that is tried.
const LARGEST: usize = 32;

/// Part of the calls' time that they must have waited.
const WAITED: f64 = 0.1;

/// A typical call must take so long by itself.
const SHORTEST: Nanos = Nanos::from_millis(5);

/// Scatter of stamps, and the shortest time that a call takes.
const NOISE: Nanos = Nanos::from_micros(300);

/// Requests that come so close to each other may be taken in another order.
const TOLERANCE: Nanos = Nanos::from_millis(2);

/// The least sum of the deviations of the logarithms: few calls may take equal times by chance.
const LEAST_SCATTER: f64 = 1.2;

/// Calls below which nothing is concluded.
const FEWEST: usize = 6;

/// Advantage that a queue for each session may lack: hardly any other queue serves sessions in turns.
const SESSIONS: f64 = 3.0;

/// Probability with which a call is seen in an order that the queue doesn't have.
const DISORDER: f64 = 0.01;

/// A queue that explains the ends of calls.
pub(super) struct Queue<'v, 'a> {
    pub(super) batch: CallBatch<'v, 'a>,
    /// Whether each session has a queue of its own.
    pub(super) by_session: bool,
}

/// The queue of the calls; `None` where they run beside each other. `way` is the time to the server and back.
pub(super) fn find_queue<'v, 'a>(tools: &[&'v Served<'a>], way: Nanos) -> Option<Queue<'v, 'a>> {
    let tools = &tools[..tools.len().min(MOST_CALLS)];
    let beside = starts_beside(tools, way);
    let at_once = if tools.len() < FEWEST { 0 } else { most_at_once(tools) };
    let sessions: HashSet<Owner<'_>> = tools.iter().map(|call| call.owner).collect();
    let has_sessions =
        at_once > 1 && sessions.len() > 1 && sessions.iter().all(|owner| matches!(owner, Owner::Session(_)));
    let limits = (1..at_once.min(LARGEST + 1)).map(|limit| {
        let starts = if limit == 1 { starts_in_turn(tools, false, way) } else { starts_in_order(tools, limit, way) };
        (limit, false, starts)
    });
    let of_sessions = has_sessions.then(|| (1, true, starts_in_turn(tools, true, way)));
    let least = likelihood(tools, &beside) + FAR_LIKELIER;
    let models = limits.chain(of_sessions).map(|(limit, by_session, starts)| {
        let found = likelihood(tools, &starts);
        (limit, by_session, starts, found + if by_session { SESSIONS } else { 0.0 })
    });
    let (limit, by_session, starts, found) = models.max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    if found < least.max(likelihood_of_ordered_replies(tools, has_sessions, way)) {
        return None;
    }
    let batch = divide_calls(tools, &beside, &starts, limit)?;
    Some(Queue { batch, by_session })
}

/// When each call began, and the logarithm of the probability of the order.
struct Starts {
    begun: Vec<Nanos>,
    order: f64,
}

/// Each call begins as soon as it is there.
fn starts_beside(tools: &[&Served<'_>], way: Nanos) -> Starts {
    Starts { begun: tools.iter().map(|call| call.asked.at + way).collect(), order: 0.0 }
}

/// One call after another, in any order, of the server or of each session: each begins when the one before it ends.
fn starts_in_turn(tools: &[&Served<'_>], by_session: bool, way: Nanos) -> Starts {
    let mut queues: HashMap<Option<Owner<'_>>, Vec<usize>> = HashMap::new();
    for (number, call) in tools.iter().enumerate() {
        queues.entry(by_session.then_some(call.owner)).or_default().push(number);
    }
    let mut starts = starts_beside(tools, way);
    queues.values().for_each(|numbers| serve_in_turn(tools, numbers, &mut starts));
    starts
}

/// Has the calls of these numbers, which are in the order of their asking, begin one after another.
fn serve_in_turn(tools: &[&Served<'_>], numbers: &[usize], starts: &mut Starts) {
    let mut by_end = numbers.to_vec();
    by_end.sort_by_key(|number| (tools[*number].answered.at, tools[*number].answered.event));
    let mut is_done = vec![false; tools.len()];
    let (mut oldest, mut free) = (0, Nanos::ZERO);
    // How often the oldest call is next, by those before.
    let (mut choices, mut oldest_chosen) = (2.0, 1.0);
    for (done, number) in by_end.into_iter().enumerate() {
        let asked = tools[number].asked.at;
        let known = numbers.partition_point(|other| tools[*other].asked.at <= free + TOLERANCE);
        let waiting = known.saturating_sub(done);
        while oldest < numbers.len() && is_done[numbers[oldest]] {
            oldest += 1;
        }
        let is_oldest = numbers.get(oldest) == Some(&number);
        starts.order += match waiting {
            0 => 0.0,
            _ if asked > free + TOLERANCE => DISORDER.ln(),
            1 => 0.0,
            _ => {
                let in_order = oldest_chosen / choices;
                let chosen = f64::from(u8::from(is_oldest));
                (choices, oldest_chosen) = (choices + 1.0, oldest_chosen + chosen);
                (in_order * chosen + (1.0 - in_order) / waiting as f64).ln()
            }
        };
        starts.begun[number] = starts.begun[number].max(free);
        free = tools[number].answered.at;
        is_done[number] = true;
    }
}

/// A limit of calls at a time, in the order of their asking: each begins when fewer of those before it are unanswered.
fn starts_in_order(tools: &[&Served<'_>], limit: usize, way: Nanos) -> Starts {
    let mut starts = starts_beside(tools, way);
    // The latest ends of the calls before.
    let mut last: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
    for (number, call) in tools.iter().enumerate() {
        let free = last.peek().filter(|_| last.len() == limit).map_or(Nanos::ZERO, |Reverse(end)| *end);
        if free < call.answered.at {
            starts.begun[number] = starts.begun[number].max(free);
        } else {
            starts.order += DISORDER.ln();
        }
        last.push(Reverse(call.answered.at));
        if last.len() > limit {
            last.pop();
        }
    }
    starts
}

/// Logarithm of the likelihood of the calls' ends, if they began then.
fn likelihood(tools: &[&Served<'_>], starts: &Starts) -> f64 {
    let times = own_times(tools, starts);
    starts.order
        + likelihood_of_times(tools.iter().zip(times).map(|(call, time)| (call.tool.unwrap_or_default(), time)))
}

/// This likelihood, if the calls run beside each other and their replies leave in the order of the requests: a reply that was
/// ready leaves right after the one that held it.
fn likelihood_of_ordered_replies(tools: &[&Served<'_>], by_session: bool, way: Nanos) -> f64 {
    let mut latest: HashMap<Option<Owner<'_>>, Nanos> = HashMap::new();
    let (mut own, mut held, mut disorder) = (Vec::new(), 0.0, 0.0);
    for call in tools {
        let before = latest.entry(by_session.then_some(call.owner)).or_default();
        let end = call.answered.at;
        if call.asked.at < *before && end + TOLERANCE >= *before && end <= *before + TOLERANCE {
            held += 1.0;
        } else {
            own.push((call.tool.unwrap_or_default(), call.server_time().since(way).max(NOISE)));
        }
        disorder += f64::from(u8::from(end + TOLERANCE < *before));
        *before = end.max(*before);
    }
    let window = 2.0 * TOLERANCE.0 as f64;
    likelihood_of_times(own.into_iter()) + disorder * DISORDER.ln() - held * window.ln()
}

/// Logarithm of the likelihood of tools' own times.
fn likelihood_of_times<'a>(times: impl Iterator<Item = (&'a str, Nanos)>) -> f64 {
    let mut by_tool: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (tool, time) in times {
        by_tool.entry(tool).or_default().push((time.0 as f64).ln());
    }
    let (mut number, mut sum, mut scatter) = (0.0, 0.0, 0.0);
    for logarithms in by_tool.values_mut() {
        logarithms.sort_by(f64::total_cmp);
        let usual = logarithms[logarithms.len() / 2];
        number += logarithms.len() as f64;
        sum += logarithms.iter().sum::<f64>();
        scatter += logarithms.iter().map(|one| (one - usual).abs().max(NOISE.0 as f64 / usual.exp())).sum::<f64>();
    }
    let scale = scatter.max(LEAST_SCATTER) / f64::max(number, 1.0);
    -sum - number * (2.0 * scale).ln() - scatter / scale
}

fn own_times(tools: &[&Served<'_>], starts: &Starts) -> Vec<Nanos> {
    tools.iter().zip(&starts.begun).map(|(call, begun)| call.answered.at.since(*begun).max(NOISE)).collect()
}

fn most_at_once(tools: &[&Served<'_>]) -> usize {
    let mut ends: Vec<Nanos> = tools.iter().map(|call| call.answered.at).collect();
    ends.sort_unstable();
    let at_once = tools
        .iter()
        .enumerate()
        .map(|(number, call)| (number + 1).saturating_sub(ends.partition_point(|end| *end <= call.asked.at)));
    at_once.max().unwrap_or_default()
}

/// The calls that waited and those that did not; `None` where waits don't matter.
fn divide_calls<'v, 'a>(
    tools: &[&'v Served<'a>],
    beside: &Starts,
    starts: &Starts,
    limit: usize,
) -> Option<CallBatch<'v, 'a>> {
    let waits: Vec<Nanos> = starts.begun.iter().zip(&beside.begun).map(|(begun, ready)| begun.since(*ready)).collect();
    let waited: u64 = waits.iter().map(|wait| wait.0).sum();
    let whole: u64 = tools.iter().map(|call| call.server_time().0).sum();
    let mut times = own_times(tools, starts);
    times.sort_unstable();
    let time = times[times.len() / 2];
    if time < SHORTEST || (waited as f64) < WAITED * whole as f64 {
        return None;
    }
    let (mut calls, mut waiting) = (Vec::new(), Vec::new());
    for (call, wait) in tools.iter().zip(waits) {
        if wait.0 >= time.0 / 4 { waiting.push(*call) } else { calls.push(*call) }
    }
    calls.sort_by_key(|call| call.answered.at);
    waiting.sort_by_key(|call| call.answered.at);
    let prompt = calls.len();
    calls.extend(waiting);
    Some(CallBatch { calls, prompt, at_a_time: limit, time })
}
