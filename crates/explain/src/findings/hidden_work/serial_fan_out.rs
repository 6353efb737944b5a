//! `serial-fan-out`: a gateway asks the servers behind it one after another, so that its answer takes the sum of theirs
//! (decocms/studio #6777).
//!
//! Needs two recordings, before and behind the gateway. Only the same question to several servers counts: of different ones
//! the second may need the first one's answer.

use mcpace_record::Nanos;

use crate::findings::behind::{Passage, gateway_passages};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, SerialFanOut};
use crate::view::Exchange;

/// Less is hardly worth asking at the same time.
const SHORTEST: Nanos = Nanos::from_millis(10);

/// Stamps of two exchanges may cross by this much.
const CROSSING: Nanos = Nanos::from_millis(1);

/// One server's part of a request: from the first sending to the last answer.
struct ServerTurn {
    from: Nanos,
    to: Nanos,
}

#[derive(Default)]
struct Fans {
    tally: Tally,
    requests: u64,
    servers: u64,
    longest: Nanos,
    at_once: Nanos,
    methods: std::collections::BTreeSet<String>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Fans> = ByOperation::new();
    for passage in gateway_passages(scene, None) {
        let Some((turns, method)) = server_turns(scene, &passage) else { continue };
        let sum = turns.iter().fold(Nanos::ZERO, |sum, turn| sum + turn.to.since(turn.from));
        let most = turns.iter().map(|turn| turn.to.since(turn.from)).max().unwrap_or(Nanos::ZERO);
        let whole = passage.answered.at.since(passage.received.at);
        let saved = sum.since(most);
        if saved < SHORTEST || sum.0 < whole.0 / 2 {
            continue;
        }
        let fans = operations.value_of(scene.operation_of(passage.before));
        // All turns but the slowest could have run in parallel with it. Their time is charged at the end of the call.
        let from = Nanos(passage.answered.at.0.saturating_sub(saved.0));
        let time = scene.claim_stretch(passage.before.call, from, passage.answered.at);
        fans.tally.add_cost(passage.before.call, time, 0, 0);
        fans.tally.prove_events(&[
            (ProofRole::RequestReceived, Some(passage.received)),
            (ProofRole::Answered, Some(passage.answered)),
        ]);
        fans.tally.prove_behind(passage.behind.iter().map(|exchange| (ProofRole::SentOn, exchange.sent())));
        fans.requests += 1;
        fans.servers = fans.servers.max(turns.len() as u64);
        if whole > fans.longest {
            (fans.longest, fans.at_once) = (whole, whole.since(saved));
        }
        fans.methods.insert(method);
    }
    operations
        .into_iter()
        .filter(|(_, fans)| fans.requests > 1 || fans.servers > 2)
        .map(|(operation, fans)| make_finding(scene, operation, fans))
        .collect()
}

/// The servers' turns where they asked the same of each and no two overlap.
fn server_turns(scene: &Scene<'_, '_>, passage: &Passage<'_, '_>) -> Option<(Vec<ServerTurn>, String)> {
    let servers = passage.by_server(scene);
    if servers.len() < 2 {
        return None;
    }
    let mut turns = Vec::new();
    let mut asked: Option<Vec<&str>> = None;
    for exchanges in servers.values() {
        let methods: Vec<&str> = exchanges.iter().filter_map(|e| request_method(e)).collect();
        if methods.is_empty() || asked.as_ref().is_some_and(|asked| *asked != methods) {
            return None;
        }
        let from = exchanges.iter().map(|e| e.sent().at).min()?;
        let to = exchanges.iter().filter(|e| e.asks()).map(|e| e.completed().map(|s| s.at)).max()??;
        turns.push(ServerTurn { from, to });
        asked = Some(methods);
    }
    turns.sort_by_key(|turn| turn.from);
    let serial = turns.windows(2).all(|two| two[1].from + CROSSING >= two[0].to);
    let method = (*asked?.last()?).to_owned();
    serial.then_some((turns, method))
}

fn request_method<'e>(exchange: &&'e Exchange<'_>) -> Option<&'e str> {
    exchange.messages.first()?.method()
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, fans: Fans) -> Finding {
    let severity = fans.tally.median_severity();
    let context = SerialFanOut {
        requests: fans.requests,
        servers: fans.servers,
        methods: fans.methods.into_iter().collect(),
        longest: fans.longest,
        at_once: fans.at_once,
    };
    let confidence = scene.confidence_for(Level::High, Reason::AloneAtGateway);
    fans.tally.into_finding(Cause::SerialFanOut(context), operation, severity, confidence, Disproof::DelayEveryServer)
}
