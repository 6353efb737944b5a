//! Which way a server held requests up while others ran: the one place where causes that look alike are told apart.
//!
//! | at a time | what else was asked meanwhile | named | looks the same |
//! |---|---|---|---|
//! | 1 | held, other sessions' too | blocked-event-loop | – |
//! | 1 | held, the same session's | blocked-event-loop | serial-session |
//! | 1 | nothing, heads came | serial-session | completion-waves |
//! | 1 | nothing, one session | blocked-event-loop | serial-session |
//! | 1 | nothing, several sessions | blocked-event-loop | completion-waves |
//! | 1 | answered | completion-waves | serial-session, of one session |
//! | 1 a session, more in all | – | serial-session | – |
//! | N | held, or heads came late | thread-pool-saturation | – |
//! | N | answered, or heads came early | completion-waves | – |
//! | N | nothing | completion-waves | thread-pool-saturation |

use std::collections::{HashMap, HashSet};

use mcpace_record::Nanos;

use super::BEGUN;
use super::batches::{CallBatch, find_batches};
use super::full_buffer::behind_buffer;
use super::held_reply;
use super::queue_model::find_queue;
use super::reply_order::{ToolEnds, behind_earlier};
use super::served::{Owner, Served, served_requests};
use super::stalls::{CROSSING, Stall, Stalls, ToolWork, find_stalls};
use crate::findings::chance::exceeds_chance;
use crate::findings::{Alternative, Code, Level, Reason};
use crate::view::{Stamp, View};

/// Requests that must be held before it is no chance.
const FEWEST_HELD: usize = 2;

/// One request in this many may get through by chance while the others are held.
const ONE_IN: usize = 4;

/// Replies whose heads come this long before their results have heads of their own.
const HEAD_APART: Nanos = Nanos::from_millis(5);

/// A head that is waited for longer waits for something.
const LATE_HEAD: Nanos = Nanos::from_millis(50);

/// From here on several tools ran at a time. The estimate is the shorter the more a tool's time varies.
const AT_A_TIME: f64 = 1.3;

/// Shortest time from an end to a late head that counts against chance.
const CLOSE: Nanos = Nanos::from_micros(200);

/// Waits for a head that prove a pool's size.
const FEWEST_LATE: usize = 3;

/// One time that requests were held up, and how.
#[derive(Clone)]
pub(in crate::findings) struct Episode {
    pub(super) code: Code,
    /// Tools that ran at a time.
    pub(super) at_a_time: usize,
    pub(super) waits: Vec<HeldWait>,
    pub(super) level: Level,
    pub(super) reason: Reason,
    /// The cause that would look alike, and the experiment that would decide between the two.
    pub(super) other: Option<Alternative>,
}

/// One request that had to wait for another.
#[derive(Clone, Copy)]
pub(super) struct HeldWait {
    /// Position in [`View::exchanges`].
    pub(super) request: usize,
    pub(super) asked: Stamp,
    /// The end of the one before it, which released it.
    pub(super) released: Stamp,
    pub(super) answered: Stamp,
    /// The time that it waited, less what it needed itself.
    pub(super) time: Nanos,
}

/// All episodes of a recording.
pub(in crate::findings) fn find_episodes(view: &View<'_>) -> Vec<Episode> {
    let served = served_requests(view);
    let tools: Vec<&Served<'_>> = served.iter().filter(|one| one.tool.is_some() && !one.failed).collect();
    let stalls = find_stalls(&served);
    let late_heads = late_heads(&served, &tools);
    let (blocked, pool) = match late_heads {
        Some(episode) if episode.code == Code::BlockedEventLoop => (Some(episode), None),
        other => (None, other),
    };
    let batches = find_batches(&tools);
    let (of_sessions, of_all) = match find_queue(&tools, shortest_way(&served)) {
        Some(queue) if queue.by_session => (Some(queue.batch), None),
        queue => (None, queue.map(|queue| queue.batch)),
    };
    let mut found: Vec<Episode> = of_sessions.iter().map(of_session_queue).collect();
    if found.is_empty() {
        found.extend(pool);
    }
    // Where sessions have their calls take turns, those of N sessions end in waves of N.
    let explained = |batch: &&CallBatch<'_, '_>| !found.is_empty() && one_of_each_owner(batch);
    let mut others: Vec<&CallBatch<'_, '_>> = batches.iter().filter(|batch| !explained(batch)).collect();
    let is_open = found.is_empty() && others.is_empty() && behind_buffer(view).len() < held_reply::FEWEST_HELD;
    others.extend(of_all.iter().filter(|_| is_open));
    let pools: Vec<&str> = others.iter().filter(|b| b.at_a_time > 1).filter_map(|b| b.calls[0].tool).collect();
    let is_serial = found.iter().any(|episode| episode.code == Code::SerialSession);
    found.extend(others.iter().map(|batch| of_batch(batch, stalls_of(batch, &stalls))));
    let mut by_name: Vec<_> = stalls.iter().collect();
    by_name.sort_by_key(|(tool, _)| **tool);
    // Replies that leave in order hold pings up as well.
    let in_order = found.is_empty() && !behind_earlier(view, &served).is_empty();
    let held = by_name.iter().filter(|(tool, _)| !pools.contains(tool) && !is_serial && !in_order);
    found.extend(held.filter_map(|(_, stalls)| of_stalls(stalls, &served, &tools)));
    if found.is_empty() && !in_order {
        found.extend(blocked);
    }
    found
}

fn one_of_each_owner(batch: &CallBatch<'_, '_>) -> bool {
    let first: HashSet<Owner<'_>> = batch.calls[..batch.prompt].iter().map(|call| call.owner).collect();
    let all: HashSet<Owner<'_>> = batch.calls.iter().map(|call| call.owner).collect();
    first.len() == batch.prompt && all.len() == first.len()
}

fn stalls_of<'e, 'v, 'a>(
    batch: &CallBatch<'_, 'a>,
    stalls: &'e HashMap<&'a str, Stalls<'v, 'a>>,
) -> Option<&'e Stalls<'v, 'a>> {
    stalls.get(batch.calls[0].tool?)
}

/// Fate of the requests that needed no tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    NothingAsked,
    Answered,
    Held,
    HeldAfterHead,
}

fn tools_meanwhile(stalls: Option<&Stalls<'_, '_>>) -> Meanwhile {
    let Some(stalls) = stalls else { return Meanwhile::NothingAsked };
    match (stalls.held.len(), stalls.held_after_head.len(), stalls.passed) {
        (held, _, passed) if held >= FEWEST_HELD && passed * ONE_IN <= held => Meanwhile::Held,
        (_, held, passed) if held >= FEWEST_HELD && passed * ONE_IN <= held => Meanwhile::HeldAfterHead,
        (_, _, passed) if passed > 0 => Meanwhile::Answered,
        _ => Meanwhile::NothingAsked,
    }
}

fn of_batch(batch: &CallBatch<'_, '_>, stalls: Option<&Stalls<'_, '_>>) -> Episode {
    let meanwhile = tools_meanwhile(stalls);
    let (code, other) = match batch.at_a_time {
        1 => one_at_a_time(batch, meanwhile),
        _ => several_at_a_time(batch, meanwhile),
    };
    let level = match (other, meanwhile) {
        (None, _) => Level::High,
        (Some(_), Meanwhile::NothingAsked) => Level::Low,
        (Some(_), _) => Level::Medium,
    };
    let reason = if other.is_some() { Reason::AnotherLooksAlike } else { Reason::NothingPassed };
    let reason = if code == Code::CompletionWaves && other.is_none() { Reason::EndedInWaves } else { reason };
    Episode { code, at_a_time: batch.at_a_time, waits: batch_waits(batch), level, reason, other }
}

fn one_at_a_time(batch: &CallBatch<'_, '_>, meanwhile: Meanwhile) -> (Code, Option<Alternative>) {
    let first = batch.calls[0];
    let one_owner = batch.calls.iter().all(|call| call.same_owner(first));
    match (meanwhile, one_owner) {
        (Meanwhile::Held, true) => (Code::BlockedEventLoop, Some(one_session_or_all(first))),
        (Meanwhile::Held, false) => (Code::BlockedEventLoop, None),
        (Meanwhile::HeldAfterHead, true) => (Code::SerialSession, None),
        (Meanwhile::Answered, true) => (Code::CompletionWaves, Some(Alternative::SERIAL_SESSION_BY_SESSION)),
        (Meanwhile::Answered | Meanwhile::HeldAfterHead, false) => (Code::CompletionWaves, None),
        (Meanwhile::NothingAsked, true) if heads_came(batch) => {
            (Code::SerialSession, Some(Alternative::COMPLETION_WAVES_BY_SESSION))
        }
        (Meanwhile::NothingAsked, true) => (Code::BlockedEventLoop, Some(one_session_or_all(first))),
        (Meanwhile::NothingAsked, false) => (Code::BlockedEventLoop, Some(Alternative::COMPLETION_WAVES_BY_PING)),
    }
}

fn several_at_a_time(batch: &CallBatch<'_, '_>, meanwhile: Meanwhile) -> (Code, Option<Alternative>) {
    let heads_apart = batch.calls.iter().all(|call| call.begun.at + HEAD_APART <= call.answered.at);
    let first_end = batch.calls[0].answered.at;
    let late = heads_apart && batch.waiting_calls().iter().all(|call| call.begun.at + HEAD_APART >= first_end);
    match meanwhile {
        Meanwhile::Held => (Code::ThreadPoolSaturation, None),
        _ if late => (Code::ThreadPoolSaturation, None),
        Meanwhile::NothingAsked if !heads_apart => {
            (Code::CompletionWaves, Some(Alternative::THREAD_POOL_SATURATION_BY_PING))
        }
        _ => (Code::CompletionWaves, None),
    }
}

/// The alternative that only the session was held. A process has one session only: there, a tool that waits without
/// blocking decides.
fn one_session_or_all(call: &Served<'_>) -> Alternative {
    if call.owner == Owner::Pipe {
        Alternative::SERIAL_SESSION_BY_WAITING_TOOL
    } else {
        Alternative::SERIAL_SESSION_BY_SESSION
    }
}

/// Whether the head of a later call's reply came while the first one surely was at work. A blocked event loop sends
/// heads too, in the moment between two tools, so a head counts only within half the time of a tool.
fn heads_came(batch: &CallBatch<'_, '_>) -> bool {
    let first = batch.calls[0];
    batch.waiting_calls().iter().any(|call| {
        let begun_later = call.asked.at >= first.asked.at + BEGUN && call.begun.at + BEGUN <= first.answered.at;
        call.http && begun_later && call.begun.at.since(call.asked.at) < Nanos(batch.time.0 / 2)
    })
}

fn batch_waits(batch: &CallBatch<'_, '_>) -> Vec<HeldWait> {
    let by_end = batch.by_end();
    let waited = batch.waiting_calls().iter().filter_map(|call| {
        // The end that let it begin: it took its own time from there.
        let begun = Nanos(call.answered.at.0 - batch.time.0.min(call.server_time().0) / 2);
        let before = by_end.partition_point(|other| other.answered.at <= begun).checked_sub(1)?;
        Some(HeldWait {
            request: call.at,
            asked: call.asked,
            released: by_end[before].answered,
            answered: call.answered,
            time: call.server_time().since(batch.time),
        })
    });
    waited.collect()
}

/// Requests that needed no tool, held while one ran.
fn of_stalls(stalls: &Stalls<'_, '_>, served: &[Served<'_>], tools: &[&Served<'_>]) -> Option<Episode> {
    let (held, code) = match tools_meanwhile(Some(stalls)) {
        Meanwhile::Held => (&stalls.held, Code::BlockedEventLoop),
        Meanwhile::HeldAfterHead => (&stalls.held_after_head, Code::SerialSession),
        Meanwhile::NothingAsked | Meanwhile::Answered => return None,
    };
    let at_a_time = tools_at_a_time(held, served, tools);
    if code == Code::BlockedEventLoop && at_a_time > 1 {
        let waits = held.iter().map(stall_wait).collect();
        let (code, level, reason) = (Code::ThreadPoolSaturation, Level::Medium, Reason::NothingPassed);
        return Some(Episode { code, at_a_time, waits, level, reason, other: None });
    }
    let same_owner = held.iter().all(|stall| stall.request.same_owner(stall.behind));
    let other = match code {
        Code::SerialSession if !same_owner => return None,
        Code::BlockedEventLoop if same_owner => Some(one_session_or_all(held[0].behind)),
        _ => None,
    };
    let (level, reason) = match other {
        Some(_) => (Level::Medium, Reason::AnotherLooksAlike),
        None => (Level::High, Reason::NothingPassed),
    };
    Some(Episode { code, at_a_time: 1, waits: held.iter().map(stall_wait).collect(), level, reason, other })
}

/// Tools that the server ran at a time while requests were held: by the number that ended meanwhile, each of which took as
/// long as the tool takes by itself.
fn tools_at_a_time(held: &[Stall<'_, '_>], served: &[Served<'_>], tools: &[&Served<'_>]) -> usize {
    let tool = held[0].behind.tool;
    let own = tools.iter().filter(|one| one.tool == tool).map(|one| one.server_time()).min().unwrap_or_default();
    let Some(work) = ToolWork::longest_work(served) else { return 1 };
    let ended: usize = held.iter().map(|stall| work.ends_while_held(stall.request)).sum();
    let waited: f64 = held.iter().map(|stall| stall.request.server_time().0 as f64).sum();
    // At most one call began before the wait, and counts with a part of its time.
    let at_a_time = (ended.saturating_sub(held.len())) as f64 * own.0 as f64 / waited.max(1.0);
    if at_a_time < AT_A_TIME { 1 } else { at_a_time.round().max(2.0) as usize }
}

fn stall_wait(stall: &Stall<'_, '_>) -> HeldWait {
    let (request, released) = (stall.request, stall.behind.answered);
    let time = released.at.since(request.asked.at);
    HeldWait { request: request.at, asked: request.asked, released, answered: request.answered, time }
}

/// Calls whose reply's head comes only when another call ends, with the same number at work nearly each time: a blocked
/// event loop where it is one, a pool of threads where it is more.
fn late_heads(served: &[Served<'_>], tools: &[&Served<'_>]) -> Option<Episode> {
    let work = ToolWork::longest_work(served)?;
    let mut begins: Vec<Nanos> = tools.iter().map(|tool| tool.begun.at).collect();
    let mut ends: Vec<Nanos> = tools.iter().map(|tool| tool.answered.at).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let at_work = |at: Nanos| {
        let begun = begins.partition_point(|begun| *begun < at);
        begun.saturating_sub(ends.partition_point(|end| *end < at))
    };
    let late = |tool: &&&Served<'_>| {
        let waited = tool.begun.at.since(tool.asked.at) >= LATE_HEAD;
        tool.http && waited && tool.begun.at + HEAD_APART <= tool.answered.at
    };
    let all_ends = ToolEnds::of_calls(served);
    let (mut waits, mut unheld, mut by_chance) = (Vec::new(), Vec::new(), 0.0);
    for call in tools.iter().filter(late) {
        let Some(behind) = work.held_up(call, call.begun.at, CROSSING) else {
            unheld.push(call.begun.at);
            continue;
        };
        // Where calls end all the time, an end just before a late head is chance.
        by_chance += all_ends.expected_within(call.begun.at, call.begun.at.since(behind.answered.at).max(CLOSE));
        // Just before: the stamps of the end and of the head that it let go may cross.
        let size = at_work(behind.answered.at.min(call.begun.at).since(CROSSING));
        let time = behind.answered.at.since(call.asked.at);
        let (request, asked, released, answered) = (call.at, call.asked, behind.answered, call.answered);
        waits.push((size, HeldWait { request, asked, released, answered, time }));
    }
    let mut sizes: Vec<usize> = waits.iter().map(|(size, _)| *size).collect();
    sizes.sort_unstable();
    let size = *sizes.get(sizes.len() / 2)?;
    let all = waits.len();
    if !exceeds_chance(all, by_chance) {
        return None;
    }
    waits.retain(|(one, _)| *one == size);
    let waits: Vec<HeldWait> = waits.into_iter().map(|(_, wait)| wait).collect();
    let others = all - waits.len();
    let (level, reason, other, code, fewest, others) = match size {
        1 => {
            // A loop that is free for a moment sends several heads. A session that has its requests take turns sends
            // the heads at once.
            unheld.sort_unstable();
            let alone = unheld.chunk_by(|one, next| next.since(*one) <= HEAD_APART).filter(|heads| heads.len() == 1);
            let alone = alone.count();
            let passed = tools.iter().filter(|call| call.http && work.head_passed(call, LATE_HEAD)).count();
            let other = Some(Alternative::SERIAL_SESSION_BY_SESSION);
            let (code, reason) = (Code::BlockedEventLoop, Reason::AnotherLooksAlike);
            (Level::Medium, reason, other, code, FEWEST_HELD, others + alone + passed)
        }
        _ => {
            // Calls that come while the pool is full wait, most of them.
            let mut asked: Vec<Nanos> = tools.iter().map(|tool| tool.asked.at).collect();
            asked.sort_unstable();
            let under_way = |at: Nanos| asked.partition_point(|one| *one < at) - ends.partition_point(|end| *end < at);
            let crowded = tools.iter().filter(|tool| under_way(tool.asked.at) >= size).count();
            if crowded > waits.len() * ONE_IN {
                return None;
            }
            let (code, reason) = (Code::ThreadPoolSaturation, Reason::NothingPassed);
            (Level::High, reason, None, code, FEWEST_LATE, others + unheld.len())
        }
    };
    let plateau = waits.len() >= fewest && others * ONE_IN <= waits.len();
    plateau.then_some(Episode { code, at_a_time: size, waits, level, reason, other })
}

/// Calls of sessions that each had their calls take turns.
fn of_session_queue(batch: &CallBatch<'_, '_>) -> Episode {
    let (level, reason) = (Level::High, Reason::NothingPassed);
    Episode { code: Code::SerialSession, at_a_time: 1, waits: batch_waits(batch), level, reason, other: None }
}

/// The time to the server and back: requests that need no tool take about that.
fn shortest_way(served: &[Served<'_>]) -> Nanos {
    served.iter().filter(|one| one.tool.is_none()).map(Served::server_time).min().unwrap_or_default()
}
