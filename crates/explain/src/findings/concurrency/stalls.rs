//! Requests that need no tool and yet waited for one: what tells a server that does nothing else meanwhile from one that
//! only has its tools take turns.

use std::collections::HashMap;

use mcpace_record::Nanos;

use super::BEGUN;
use super::served::Served;

/// A tool that is under way for less holds nobody up that anybody would notice.
const SHORTEST: Nanos = Nanos::from_millis(50);

/// How soon after the tool's end a request that it held must be answered.
const RELEASE: Nanos = Nanos::from_millis(20);

/// A request that takes at most this much longer than usual, or a quarter, was not held.
const NOTABLE: Nanos = Nanos::from_millis(10);

/// Requests from which the usual time is known. The first one of a server may take long by itself.
const FEWEST_ALONE: usize = 2;

/// One part in so many of its wait by which a reply may come before the answer of the tool that held it.
const LATE_PART: u64 = 50;

/// Tools that end within [`RELEASE`]: past so many, any of them speaks for all.
const TOGETHER: usize = 64;

/// Stamps of two replies, or of two requests, may cross by this much.
pub(super) const CROSSING: Nanos = Nanos::from_millis(2);

/// Requests that needed no tool while one ran, by that tool's name.
#[derive(Default)]
pub(super) struct Stalls<'v, 'a> {
    /// Those whose reply began late, with the end of this tool or of one before it.
    pub(super) held: Vec<Stall<'v, 'a>>,
    /// Those whose reply's head came at once, and whose answer came only with the tool's end.
    pub(super) held_after_head: Vec<Stall<'v, 'a>>,
    /// How many were answered meanwhile.
    pub(super) passed: usize,
}

/// A request that waited.
#[derive(Clone, Copy)]
pub(super) struct Stall<'v, 'a> {
    pub(super) request: &'v Served<'a>,
    pub(super) behind: &'v Served<'a>,
}

/// All of them, for each tool that was at work long enough.
pub(super) fn find_stalls<'v, 'a>(served: &'v [Served<'a>]) -> HashMap<&'a str, Stalls<'v, 'a>> {
    let mut found: HashMap<&str, Stalls<'_, '_>> = HashMap::new();
    let Some(work) = ToolWork::longest_work(served) else { return found };
    let usual = work.usual_time(served);
    for request in served.iter().filter(|one| one.tool.is_none()) {
        // A request that takes as long without any tool beside it was not held by one.
        let slow = request.server_time() >= usual + NOTABLE.max(Nanos(usual.0 / 4));
        // The tool's own answer may be written last: after replies that its end let go.
        let slack = Nanos((request.server_time().0 / LATE_PART).clamp(CROSSING.0, RELEASE.0));
        let held_up = |answered: Nanos| work.held_up(request, answered, slack).filter(|_| slow);
        if let Some(behind) = held_up(request.begun.at) {
            found.entry(behind.tool.unwrap_or_default()).or_default().held.push(Stall { request, behind });
        } else if let Some(behind) = held_up(request.answered.at) {
            let stalls = found.entry(behind.tool.unwrap_or_default()).or_default();
            // An event loop that is free for a moment between two tools sends the heads of all requests that wait.
            let late_head = request.begun.at.since(request.asked.at) >= SHORTEST;
            if late_head { &mut stalls.held } else { &mut stalls.held_after_head }.push(Stall { request, behind });
        } else if let Some(meanwhile) = work.tool_passed(request) {
            found.entry(meanwhile.tool.unwrap_or_default()).or_default().passed += 1;
        }
    }
    found
}

/// Tools that were at work for long.
pub(super) struct ToolWork<'v, 'a> {
    by_end: Vec<&'v Served<'a>>,
    by_asking: Vec<&'v Served<'a>>,
    /// For each of `by_asking`, who of those up to it ends last.
    lasting: Vec<&'v Served<'a>>,
}

impl<'v, 'a> ToolWork<'v, 'a> {
    /// `None` where there was none.
    pub(super) fn longest_work(served: &'v [Served<'a>]) -> Option<Self> {
        let by_asking: Vec<&Served<'_>> =
            served.iter().filter(|one| one.tool.is_some() && one.server_time() >= SHORTEST).collect();
        let mut lasting = Vec::with_capacity(by_asking.len());
        let mut last = *by_asking.first()?;
        for tool in &by_asking {
            if tool.answered.at > last.answered.at {
                last = tool;
            }
            lasting.push(last);
        }
        let mut by_end = by_asking.clone();
        by_end.sort_by_key(|tool| tool.answered.at);
        Some(Self { by_end, by_asking, lasting })
    }

    /// The tool with whose end `request`, which came while it ran, was answered at `answered`, or up to `slack` before: of
    /// several that ended together, one of the same session, and the one that was asked first.
    pub(super) fn held_up(&self, request: &Served<'a>, answered: Nanos, slack: Nanos) -> Option<&'v Served<'a>> {
        let ended = self.by_end.partition_point(|tool| tool.answered.at <= answered + slack);
        let together = self.by_end[..ended].iter().rev().take(TOGETHER);
        let together = together.take_while(|tool| answered.since(tool.answered.at) <= RELEASE);
        let held = together.filter(|tool| {
            let waited = tool.answered.at.since(request.asked.at) >= SHORTEST;
            // Which of two that come at once the server has first, nobody knows.
            tool.at != request.at && tool.asked.at <= request.asked.at + CROSSING && waited
        });
        held.min_by_key(|tool| (!tool.same_owner(request), tool.asked.at)).copied()
    }

    /// The shortest time of a request without a tool, while no tool was at work; zero where there are fewer than
    /// [`FEWEST_ALONE`].
    fn usual_time(&self, served: &[Served<'_>]) -> Nanos {
        let alone = served.iter().filter(|one| {
            let before = self.by_asking.partition_point(|tool| tool.asked.at <= one.answered.at);
            one.tool.is_none() && before.checked_sub(1).is_none_or(|last| self.lasting[last].answered.at < one.asked.at)
        });
        let times: Vec<Nanos> = alone.map(Served::server_time).collect();
        if times.len() < FEWEST_ALONE { Nanos::ZERO } else { times.into_iter().min().unwrap_or_default() }
    }

    /// Tools that ended while `request` was held.
    pub(super) fn ends_while_held(&self, request: &Served<'a>) -> usize {
        let ended = |at: Nanos| self.by_end.partition_point(|tool| tool.answered.at <= at);
        ended(request.answered.at + CROSSING) - ended(request.asked.at)
    }

    /// Whether the head of the reply to `call` came in less than `late` while a tool was at work that had begun before.
    pub(super) fn head_passed(&self, call: &Served<'a>, late: Nanos) -> bool {
        let before = self.by_asking.partition_point(|tool| tool.asked.at + BEGUN <= call.asked.at);
        let longest = before.checked_sub(1).map(|last| self.lasting[last]);
        let beside = longest.is_some_and(|tool| tool.answered.at > call.begun.at + BEGUN);
        beside && call.begun.at.since(call.asked.at) < late
    }

    /// A tool that was at work while `request` was asked and answered, without any tool's end between.
    fn tool_passed(&self, request: &Served<'a>) -> Option<&'v Served<'a>> {
        let before = self.by_asking.partition_point(|tool| tool.asked.at + BEGUN <= request.asked.at);
        let tool = self.lasting[before.checked_sub(1)?];
        let ended = |at: Nanos| self.by_end.partition_point(|tool| tool.answered.at <= at);
        let meanwhile = ended(request.answered.at) != ended(request.asked.at);
        (!meanwhile && tool.answered.at > request.answered.at + CROSSING).then_some(tool)
    }
}
