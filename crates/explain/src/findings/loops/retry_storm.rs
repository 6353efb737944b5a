//! `retry-storm`: a client that is refused asks again at a steady pace, or many clients try again at the same moments
//! (LibreChat #12162, open-webui #27795).
//!
//! Trying again is right; doing so without waiting longer each time, or in step with everybody else, keeps down a server
//! that comes back. Pauses that grow acquit a client, and so does an equal request that succeeds in between. 401 and 403 belong to
//! authentication.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use mcpace_record::{ConnectionId, Digest, Nanos, ReplyEnding};

use super::rhythm::{median_span, steady_period};
use crate::findings::groups::Group;
use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, RetryStorm, Severity, Storm};
use crate::view::Exchange;

/// Refusals in a row below which nothing is concluded.
const FEWEST: usize = 5;

/// From here on chance is excluded.
const MANY: u64 = 10;

/// Without session ids, requests on several connections that follow each other sooner may be many clients that ask once each.
const SLOWEST_CROWD: Nanos = Nanos::from_millis(200);

/// Clients at one moment, and moments, below which it is chance.
const IN_STEP: (usize, usize) = (5, 3);

/// How close tries are that count as one moment.
const MOMENT: Nanos = Nanos::from_millis(100);

/// How much longer than a moment the pauses between them must be.
const TIMES_MOMENT: u64 = 5;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let in_step = in_step(scene);
    // Clients that retry in step with others often retry steadily too: this is one storm.
    if !in_step.is_empty() {
        return in_step;
    }
    steady_storms(scene)
}

/// Kind of request: its HTTP method, its JSON-RPC method, and the identity of its parameters.
type RequestKind<'a> = (&'a str, Option<&'a str>, Option<Digest>);

/// Requests of one kind that got the same status, one after another.
struct Row<'e, 'a> {
    status: Option<u16>,
    requests: Vec<&'e Exchange<'a>>,
}

fn steady_storms(scene: &Scene<'_, '_>) -> Vec<Finding> {
    let mut by_status: BTreeMap<Option<u16>, (Tally, RetryStorm, Vec<Nanos>)> = BTreeMap::new();
    for (group, used) in Rc::clone(&scene.groups).iter() {
        for run in refusal_runs(used) {
            let Some(beat) = steady_period(&run.iter().map(|e| e.sent().at).collect::<Vec<_>>()) else { continue };
            let one_client = !matches!(group, Group::Epoch(_)) || client_count(&run) == 1;
            if !one_client && beat < SLOWEST_CROWD {
                continue;
            }
            let status = run[0].status;
            let (tally, storm, beats) = by_status.entry(status).or_insert_with(|| {
                let storm = RetryStorm { requests: 0, pattern: Storm::Steady, status, clients: 0, period: beat };
                (Tally::default(), storm, Vec::new())
            });
            beats.push(beat);
            storm.requests += run.len() as u64;
            storm.clients += 1;
            charge_run(&run, tally);
        }
    }
    let found = by_status.into_values().map(|(tally, storm, beats)| {
        let storm = RetryStorm { period: median_span(beats), ..storm };
        let level = if storm.requests >= MANY { Level::High } else { Level::Medium };
        let confidence = scene.confidence_for(level, Reason::FixedPeriod);
        tally.into_finding(Cause::RetryStorm(storm), None, Severity::Medium, confidence, Disproof::BackOff)
    });
    found.collect()
}

/// Requests of one kind that were refused one after another, with no success of that kind in between.
fn refusal_runs<'e, 'a>(used: &[&'e Exchange<'a>]) -> Vec<Vec<&'e Exchange<'a>>> {
    let mut open: BTreeMap<RequestKind<'_>, Row<'_, '_>> = BTreeMap::new();
    let mut found = Vec::new();
    for exchange in used {
        let message = exchange.messages.first();
        let content = message.and_then(|message| message.content);
        let kind = (exchange.method(), message.and_then(|message| message.method()), content);
        let refused = is_refused(exchange);
        let same = open.get(&kind).is_some_and(|row| refused && row.status == exchange.status);
        if !same {
            found.extend(open.remove(&kind).map(|row| row.requests));
        }
        if refused {
            let row = open.entry(kind).or_insert_with(|| Row { status: exchange.status, requests: Vec::new() });
            row.requests.push(exchange);
        }
    }
    found.extend(open.into_values().map(|row| row.requests));
    found.retain(|run| run.len() >= FEWEST);
    found.sort_by_key(|run| run[0].start.event);
    found
}

fn is_refused(exchange: &Exchange<'_>) -> bool {
    match exchange.status {
        Some(401 | 403) => false,
        Some(status) => status >= 400,
        None => exchange.ending == Some(ReplyEnding::NoReply),
    }
}

fn charge_run(run: &[&Exchange<'_>], tally: &mut Tally) {
    for exchange in &run[1..] {
        tally.add_cost(None, Nanos::ZERO, 1, exchange.bytes());
    }
    for exchange in run.iter().take(FEWEST) {
        let head = exchange.near().and_then(|near| near.reply_head.or(near.end));
        tally.prove_events(&[(ProofRole::RefusedRequest, Some(exchange.sent())), (ProofRole::Refused, head)]);
    }
}

/// Tries that failed, as moments at which several clients tried.
fn in_step(scene: &Scene<'_, '_>) -> Vec<Finding> {
    let mut failed: Vec<&Exchange<'_>> = scene.view.exchanges.iter().filter(|e| is_refused(e)).collect();
    failed.sort_by_key(|exchange| exchange.sent().at);
    let mut moments: Vec<Vec<&Exchange<'_>>> = Vec::new();
    for exchange in &failed {
        let near = moments
            .last()
            .and_then(|moment| moment.last())
            .is_some_and(|last| exchange.sent().at.since(last.sent().at) <= MOMENT);
        match moments.last_mut() {
            Some(moment) if near => moment.push(exchange),
            _ => moments.push(vec![exchange]),
        }
    }
    moments.retain(|moment| client_count(moment) >= IN_STEP.0);
    let tries: usize = moments.iter().map(Vec::len).sum();
    let pauses: Vec<Nanos> =
        moments.windows(2).map(|two| two[1][0].sent().at.since(two[0][two[0].len() - 1].sent().at)).collect();
    let apart = pauses.iter().all(|pause| pause.0 >= MOMENT.0 * TIMES_MOMENT);
    if moments.len() < IN_STEP.1 || !apart || tries * 5 < failed.len() * 4 {
        return Vec::new();
    }
    let mut tally = Tally::default();
    for (at, moment) in moments.iter().enumerate() {
        for exchange in moment {
            // The first try of each is due; those at the later moments needn't all be then.
            tally.add_cost(None, Nanos::ZERO, u64::from(at > 0), if at > 0 { exchange.bytes() } else { 0 });
        }
        let (first, last) = (moment[0], moment[moment.len() - 1]);
        tally.prove_events(&[
            (ProofRole::RefusedRequest, Some(first.sent())),
            (ProofRole::RefusedRequest, Some(last.sent())),
        ]);
    }
    let storm = RetryStorm {
        requests: tries as u64,
        pattern: Storm::InStep,
        status: moments[0][0].status,
        clients: moments.iter().map(|moment| client_count(moment)).max().unwrap_or(0) as u64,
        period: median_span(pauses),
    };
    let confidence = scene.confidence_for(Level::Medium, Reason::SameMoments);
    vec![tally.into_finding(Cause::RetryStorm(storm), None, Severity::Medium, confidence, Disproof::BackOff)]
}

/// Clients, as their connections or sessions tell them apart.
fn client_count(moment: &[&Exchange<'_>]) -> usize {
    let known: HashSet<(Option<&str>, Option<ConnectionId>)> = moment
        .iter()
        .map(|exchange| match exchange.session_sent() {
            Some(session) => (Some(session), None),
            None => (None, exchange.near().and_then(|near| near.conn)),
        })
        .collect();
    known.len()
}
