//! Scene of all rules: the joined recording, the repeats, and the time that is explained already.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use mcpace_record::{CallId, ExchangeId, Nanos};

use super::concurrency::{Episode, find_episodes};
use super::groups::{Groups, group_exchanges};
use super::{Confidence, Level, Reason, Severity, Stalls, proven_stalls};
use crate::duplicates::{Duplicate, find_duplicates};
use crate::inside::{WarmCalls, split_tool_calls};
use crate::view::{Call, Exchange, View};

pub(super) struct Scene<'s, 'a> {
    pub(super) view: &'s View<'a>,
    /// Recording from behind a gateway, if this recording is the one before the gateway.
    pub(super) behind: Option<&'s View<'a>>,
    pub(super) duplicates: Vec<Duplicate>,
    repeats: HashSet<ExchangeId>,
    /// Pauses of replies that waited for an acknowledgement.
    pub(super) stalls: Stalls,
    claims: HashMap<CallId, Claims>,
    /// Worked out by the first rule that asks.
    episodes: OnceCell<Vec<Episode>>,
    /// The messages and standalone streams of each client; shared, since rules walk through them while they claim time.
    pub(super) groups: Rc<Groups<'s, 'a>>,
    /// The calls of tools whose inside is known; shared for the same reason.
    pub(super) warm_calls: Rc<Vec<WarmCalls<'s, 'a>>>,
}

impl<'s, 'a> Scene<'s, 'a> {
    pub(super) fn new(view: &'s View<'a>, behind: Option<&'s View<'a>>) -> Self {
        let duplicates = find_duplicates(view);
        let mut warm_calls = WarmCalls::of_tools(view, split_tool_calls(view).calls);
        warm_calls.retain(WarmCalls::are_enough);
        let repeats = duplicates.iter().map(|d| view.exchanges[d.repeat].id);
        Self {
            view,
            behind,
            repeats: repeats.collect(),
            stalls: proven_stalls(view),
            duplicates,
            claims: HashMap::new(),
            episodes: OnceCell::new(),
            groups: Rc::new(group_exchanges(view)),
            warm_calls: Rc::new(warm_calls),
        }
    }

    /// The times that requests were held up by others.
    pub(super) fn episodes(&self) -> &[Episode] {
        self.episodes.get_or_init(|| find_episodes(self.view))
    }

    /// The operation of the call that `exchange` belongs to.
    pub(super) fn operation_of(&self, exchange: &Exchange<'a>) -> Option<&'a str> {
        self.view.call(exchange.call?).map(|call| call.operation)
    }

    /// Whether `exchange` repeats another one that succeeded.
    pub(super) fn is_repeat(&self, exchange: &Exchange<'_>) -> bool {
        self.repeats.contains(&exchange.id)
    }

    /// The exchanges of a call, in order of their start.
    pub(super) fn exchanges_of(&self, call: &Call<'a>) -> Vec<&'s Exchange<'a>> {
        let ids = call.exchanges.iter();
        ids.filter_map(|id| self.view.exchange(*id)).collect()
    }

    /// Explains a stretch of a call and returns how much of it no earlier finding explained.
    pub(super) fn claim_stretch(&mut self, call: Option<CallId>, from: Nanos, to: Nanos) -> Nanos {
        let Some(call) = call else {
            return to.since(from);
        };
        let Some(window) = self.view.call(call) else {
            return Nanos::ZERO;
        };
        let (from, to) = (from.max(window.start.at), to.min(self.view.end_of(window)));
        self.claims.entry(call).or_default().claim_stretch(from, to)
    }

    /// How much of a stretch of a call no finding explains so far.
    pub(super) fn unclaimed_time(&self, call: CallId, from: Nanos, to: Nanos) -> Nanos {
        match self.claims.get(&call) {
            Some(claims) => claims.unclaimed_time(from, to),
            None => to.since(from),
        }
    }

    /// How much of a stretch no finding explains so far; all of it outside calls.
    pub(super) fn unclaimed_in(&self, call: Option<CallId>, from: Nanos, to: Nanos) -> Nanos {
        call.map_or(to.since(from), |call| self.unclaimed_time(call, from, to))
    }

    /// Confidence, unless what is missing from the recording may hold another explanation.
    pub(super) fn confidence_for(&self, level: Level, reason: Reason) -> Confidence {
        if self.view.incomplete && level > Level::Low {
            let reason = Reason::RecordingIncomplete;
            return Confidence { level: Level::Medium, reason };
        }
        Confidence { level, reason }
    }
}

/// Severity by the time that a typical call loses.
pub(super) fn severity_of(time: Nanos) -> Severity {
    match time {
        _ if time >= Nanos::from_millis(1_000) => Severity::High,
        _ if time >= Nanos::from_millis(100) => Severity::Medium,
        _ => Severity::Low,
    }
}

/// Disjoint stretches by their start.
#[derive(Default)]
struct Claims(BTreeMap<Nanos, Nanos>);

impl Claims {
    fn claim_stretch(&mut self, from: Nanos, to: Nanos) -> Nanos {
        let fresh = self.unclaimed_time(from, to);
        if to <= from {
            return fresh;
        }
        let (mut start, mut end) = (from, to);
        let touching: Vec<Nanos> = self.touching_claims(from, to).map(|(from, _)| from).collect();
        for from in touching {
            if let Some(to) = self.0.remove(&from) {
                (start, end) = (start.min(from), end.max(to));
            }
        }
        self.0.insert(start, end);
        fresh
    }

    fn unclaimed_time(&self, from: Nanos, to: Nanos) -> Nanos {
        let taken = self.touching_claims(from, to);
        let taken = taken.map(|(start, end)| end.min(to).since(start.max(from)));
        taken.fold(to.since(from), |free, taken| free - taken)
    }

    fn touching_claims(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
        let before = self.0.range(..from).next_back();
        let before = before.filter(|(_, end)| **end > from);
        let inside = (from < to).then(|| self.0.range(from..to));
        before.into_iter().chain(inside.into_iter().flatten()).map(|(from, to)| (*from, *to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_charged_once() {
        let mut claims = Claims::default();
        assert_eq!(claims.claim_stretch(Nanos(10), Nanos(20)), Nanos(10));
        assert_eq!(claims.claim_stretch(Nanos(15), Nanos(30)), Nanos(10));
        assert_eq!(claims.claim_stretch(Nanos(0), Nanos(40)), Nanos(20));
        assert_eq!(claims.claim_stretch(Nanos(5), Nanos(6)), Nanos(0));
        assert_eq!(claims.claim_stretch(Nanos(50), Nanos(45)), Nanos(0));
        assert_eq!(claims.unclaimed_time(Nanos(35), Nanos(45)), Nanos(5));
    }
}
