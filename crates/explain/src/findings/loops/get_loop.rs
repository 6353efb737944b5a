//! `get-loop`: the standalone GET is opened again and again at a fixed period, each stream ending soon and bringing nothing
//! (python-sdk #3257; typescript-sdk 1.23.0 where the server answers 200 with a body that is no event stream).
//!
//! A server may end its streams, and clients that then ask it to go on after an event are `resume-loop`'s or healthy.
//! Streams that live long belong to a time-out somewhere.

use std::collections::BTreeMap;

use mcpace_record::{Nanos, ReplyEnding};

use super::rhythm::{median_span, steady_period};
use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, GetLoop, Level, ProofRole, Reason, Severity};
use crate::view::{Exchange, ReplyShape};

/// Openings below which nothing is concluded.
const FEWEST: usize = 4;

/// Openings from which on chance is excluded.
const MANY: u64 = 8;

/// A stream that lived longer was one.
const LONGEST_LIFE: Nanos = Nanos::from_millis(5_000);

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut by_session: BTreeMap<Option<&str>, Vec<&Exchange<'_>>> = BTreeMap::new();
    for stream in scene.view.exchanges.iter().filter(|e| e.is_standalone_stream() && e.last_event_id().is_none()) {
        by_session.entry(stream.session_sent()).or_default().push(stream);
    }
    let (mut tally, mut periods, mut lives) = (Tally::default(), Vec::new(), Vec::new());
    let (mut streams, mut sessions, mut not_a_stream) = (0, 0, true);
    for run in by_session.values().flat_map(|gets| short_get_runs(gets)) {
        let Some(beat) = steady_period(&run.iter().map(|get| get.sent().at).collect::<Vec<_>>()) else {
            continue;
        };
        sessions += 1;
        streams += run.len() as u64;
        periods.push(beat);
        lives.extend(run.iter().filter_map(|get| stream_life(get)));
        not_a_stream &= run.iter().all(|get| get.shape != ReplyShape::Events);
        for get in &run[1..] {
            // In whose window a beat falls is chance: it is no call's own.
            tally.add_cost(None, Nanos::ZERO, 1, get.bytes());
        }
        for get in run.iter().take(FEWEST) {
            tally.prove_events(&[(ProofRole::StreamRequest, Some(get.sent())), (ProofRole::StreamEnded, get.ended())]);
        }
    }
    if streams == 0 {
        return Vec::new();
    }
    let level = if streams >= MANY { Level::High } else { Level::Medium };
    let cause = Cause::GetLoop(GetLoop {
        streams,
        sessions,
        period: median_span(periods),
        life: median_span(lives),
        not_a_stream,
    });
    let confidence = scene.confidence_for(level, Reason::FixedPeriod);
    vec![tally.into_finding(cause, None, Severity::Medium, confidence, Disproof::HoldStreamOpen)]
}

/// Stretches of one session's GETs that ended soon and brought nothing.
fn short_get_runs<'e, 'a>(gets: &[&'e Exchange<'a>]) -> Vec<Vec<&'e Exchange<'a>>> {
    let mut runs: Vec<Vec<&Exchange<'_>>> = vec![Vec::new()];
    for get in gets {
        if is_vain(get) {
            if let Some(run) = runs.last_mut() {
                run.push(get);
            }
        } else {
            runs.push(Vec::new());
        }
    }
    runs.retain(|run| run.len() >= FEWEST);
    runs
}

fn is_vain(get: &Exchange<'_>) -> bool {
    let ended = matches!(get.ending, Some(ReplyEnding::Complete | ReplyEnding::ServerBroke));
    let accepted = matches!(get.status, Some(200..=299));
    let brief = stream_life(get).is_some_and(|life| life <= LONGEST_LIFE);
    accepted && ended && brief && get.events.iter().all(|event| event.messages.is_empty())
}

fn stream_life(get: &Exchange<'_>) -> Option<Nanos> {
    Some(get.ended()?.at.since(get.sent().at))
}
