//! `constant-cost-per-request`: the same extra time on every request, whatever it asks, notifications included: a token that
//! is looked up elsewhere, or session ids that are costly to open (fastmcp #3285; envoy ai-gateway #1598).
//!
//! A distant server looks just the same, so that a floor under all requests proves nothing. The proof is a control in
//! the same recording: requests to the same server without a token, or without a session, that come back much sooner. Where
//! every request has both, connecting is the control: it takes one way to the server and back, and no server code. Only
//! messages that found no other one at the server count there.
//!
//! Processor time needs no control: the way to the server has no part in it, and no request is served without some.
//! A beginning does not count, because programs load code then.

use std::collections::{BTreeMap, HashSet};

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{
    Alternative, Cause, ConstantCostPerRequest, Disproof, Finding, Follows, Level, ProofRole, Reason,
};
use crate::view::{Exchange, Stamp, Transport, View};

/// Requests, and kinds of them, below which nothing is concluded.
const FEWEST: (usize, usize) = (8, 3);

/// Requests without the token or session, from which on the comparison is sure. A single one may be quick by chance.
const SURE_CONTROLS: usize = 3;

/// Requests and kinds of them that are enough where the time to connect is known.
const FEWEST_BESIDE_CONNECT: (usize, usize) = (3, 2);

/// Requests with which sessions begin.
const BEGINNINGS: [&str; 2] = ["initialize", "server/discover"];

/// Requests whose processor time is known. Each is a measurement of its own, so that few are enough.
const FEWEST_TIMED: usize = 4;

/// Kinds of requests whose processor time is compared: with a ping or with equal times, and without.
const FEW_KINDS: usize = 2;
const MANY_KINDS: usize = 3;

/// A difference below this is the server's usual unevenness.
const SHORTEST: Nanos = Nanos::from_millis(5);

/// How many times the control's time it must be.
const TIMES_CONTROL: u64 = 3;

/// One request's wait for the server.
struct ServerWait<'s, 'a> {
    exchange: &'s Exchange<'a>,
    received: Stamp,
    head: Stamp,
}

impl ServerWait<'_, '_> {
    fn wait_time(&self) -> Nanos {
        self.head.at.since(self.received.at)
    }

    fn method(&self) -> Option<&str> {
        self.exchange.messages.first()?.method()
    }
}

struct Cost<'w, 's, 'a> {
    follows: Follows,
    floor: Nanos,
    control: Nanos,
    kinds: usize,
    dear: Vec<&'w ServerWait<'s, 'a>>,
    /// Begin and end of the control, where there is one.
    quick: Option<[(ProofRole, Stamp); 2]>,
    level: Level,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let waits: Vec<ServerWait<'_, '_>> = scene.view.exchanges.iter().filter_map(server_wait).collect();
    let session = |e: &Exchange<'_>| e.is_message().then_some(e.session_sent().is_some());
    let token = |e: &Exchange<'_>| Some(e.authorization().is_some());
    // A session's beginning has the token already: if it is quick, the token costs nothing.
    let cost = compare_waits(scene.view, &waits, Follows::Session, session)
        .or_else(|| compare_waits(scene.view, &waits, Follows::Token, token))
        .or_else(|| compare_connects(scene.view, &waits));
    if let Some(cost) = cost {
        return make_findings(scene, &cost);
    }
    let timed: Vec<ServerWait<'_, '_>> = scene.view.exchanges.iter().filter_map(timed_wait).collect();
    processor_cost(scene.view, &timed).map_or_else(Vec::new, |cost| make_findings(scene, &cost))
}

fn server_wait<'s, 'a>(exchange: &'s Exchange<'a>) -> Option<ServerWait<'s, 'a>> {
    // The standalone stream's head may come late, and an OAuth endpoint has work of its own.
    let other = exchange.is_standalone_stream() || exchange.sends_form() || exchange.transport != Transport::Http;
    let leg = exchange.back().filter(|_| !other)?;
    // A head that comes before its result says nothing of the time that the server takes.
    let head = if exchange.asks() { leg.result_start.or(leg.reply_head)? } else { leg.reply_head? };
    Some(ServerWait { exchange, received: leg.request_end?, head })
}

/// The wait of a request that was answered, over HTTP or stdio, and that does not begin a session.
fn timed_wait<'s, 'a>(exchange: &'s Exchange<'a>) -> Option<ServerWait<'s, 'a>> {
    let begins = BEGINNINGS.iter().any(|method| exchange.requests(method));
    let leg = exchange.back().filter(|_| exchange.asks() && exchange.succeeded() && !begins)?;
    Some(ServerWait { exchange, received: leg.request_end?, head: leg.result_start? })
}

/// Whether requests of all kinds cost the server's process processor time.
fn processor_cost<'w, 's, 'a>(view: &View<'a>, waits: &'w [ServerWait<'s, 'a>]) -> Option<Cost<'w, 's, 'a>> {
    let timed = waits.iter().filter_map(|wait| Some((wait, view.processor_time(wait.exchange)?)));
    let timed: Vec<(&ServerWait<'_, '_>, Nanos)> = timed.collect();
    let mut floors: BTreeMap<&str, Nanos> = BTreeMap::new();
    for (wait, time) in &timed {
        let floor = floors.entry(wait.method()?).or_insert(*time);
        *floor = (*floor).min(*time);
    }
    let (floor, kinds) = (*floors.values().min()?, floors.len());
    let is_level = floors.values().all(|time| is_near(*time, floor));
    let level = match (floors.contains_key("ping"), kinds) {
        (true, FEW_KINDS..) => Level::High,
        (false, MANY_KINDS..) => Level::Medium,
        (false, FEW_KINDS) if is_level => Level::Low,
        _ => return None,
    };
    let proven = timed.len() >= FEWEST_TIMED && floor >= SHORTEST;
    proven.then(|| Cost {
        follows: Follows::ProcessorTime,
        floor,
        control: Nanos::ZERO,
        kinds,
        dear: timed.into_iter().map(|(wait, _)| wait).collect(),
        quick: None,
        level,
    })
}

/// Whether messages that have something take a time that those without don't.
fn compare_waits<'w, 's, 'a>(
    view: &View<'a>,
    waits: &'w [ServerWait<'s, 'a>],
    follows: Follows,
    has: impl Fn(&Exchange<'a>) -> Option<bool> + Copy,
) -> Option<Cost<'w, 's, 'a>> {
    let with = |has_it: bool| waits.iter().filter(move |w| has(w.exchange) == Some(has_it));
    let dear: Vec<_> = with(true).filter(|wait| is_served(wait)).collect();
    let mut controls: Vec<_> = with(false).collect();
    if dear.len() < FEWEST.0 || controls.is_empty() {
        return None;
    }
    controls.sort_by_key(|w| w.wait_time());
    let quick = controls[controls.len() / 2];
    let CommonFloor { floor, kinds, level_kinds, notifies } = common_floor(&dear)?;
    let addresses: HashSet<&str> =
        dear.iter().filter_map(|w| Some(view.connection(w.exchange.back()?.conn?)?.address)).collect();
    // Another address is another server, or another way to it.
    let compared = quick.exchange.back().and_then(|leg| view.connection(leg.conn?));
    let same = compared.is_none_or(|connection| addresses.is_empty() || addresses.contains(connection.address));
    let level = match controls.len() {
        1 => Level::Low,
        number if same && number >= SURE_CONTROLS => Level::High,
        _ => Level::Medium,
    };
    let control = quick.wait_time();
    let quick = Some([(ProofRole::ControlReceived, quick.received), (ProofRole::ControlReplyHead, quick.head)]);
    let proven = level_kinds >= FEWEST.1 && notifies && is_dearer(floor, control);
    proven.then_some(Cost { follows, floor, control, kinds, dear, quick, level })
}

/// Whether all messages take a time that connecting to the server doesn't.
fn compare_connects<'w, 's, 'a>(view: &View<'a>, waits: &'w [ServerWait<'s, 'a>]) -> Option<Cost<'w, 's, 'a>> {
    let dear: Vec<_> = waits.iter().filter(|wait| wait.exchange.is_message() && is_served(wait)).collect();
    let connects = dear.iter().filter_map(|wait| {
        let connection = view.connection(wait.exchange.back()?.conn?)?;
        Some((connection.connecting?, connection.opened?))
    });
    let (connecting, opened) = connects.min_by_key(|(connecting, opened)| opened.at.since(connecting.at))?;
    let control = opened.at.since(connecting.at);
    let alone = waits_alone(&dear);
    let CommonFloor { floor, kinds, level_kinds, notifies } = common_floor(&alone)?;
    let many = alone.len() >= FEWEST_BESIDE_CONNECT.0 && level_kinds >= FEWEST_BESIDE_CONNECT.1;
    let quick = Some([(ProofRole::ConnectTried, connecting), (ProofRole::ConnectionOpened, opened)]);
    let (follows, level) = (Follows::Everything, Level::Medium);
    let proven = many && notifies && is_dearer(floor, control);
    proven.then_some(Cost { follows, floor, control, kinds, dear, quick, level })
}

/// The waits of messages that found no other message at the server: one that waits for another takes no cost of its own.
fn waits_alone<'w, 's, 'a>(waits: &[&'w ServerWait<'s, 'a>]) -> Vec<&'w ServerWait<'s, 'a>> {
    let mut waits = waits.to_vec();
    waits.sort_by_key(|wait| (wait.received.at, wait.received.event));
    let mut busy_until = Nanos::ZERO;
    waits.retain(|wait| {
        let is_alone = busy_until <= wait.received.at;
        busy_until = busy_until.max(wait.head.at);
        is_alone
    });
    waits
}

/// Whether a message was served. An answer to what the server asked has no method, and is of no kind.
fn is_served(wait: &ServerWait<'_, '_>) -> bool {
    wait.method().is_some() && matches!(wait.exchange.status, Some(200..=299))
}

fn is_dearer(floor: Nanos, control: Nanos) -> bool {
    floor.since(control) >= SHORTEST && floor.0 >= control.0.saturating_mul(TIMES_CONTROL)
}

/// Whether a time is near the shortest one.
fn is_near(time: Nanos, floor: Nanos) -> bool {
    time.0 <= floor.0.saturating_add(floor.0 / 2)
}

/// Shortest time of any message.
struct CommonFloor {
    floor: Nanos,
    kinds: usize,
    /// Kinds of message near the floor: methods that do more take longer, but several kinds do hardly anything else.
    level_kinds: usize,
    /// Whether a notification or a ping is among them, which do nothing else.
    notifies: bool,
}

fn common_floor(waits: &[&ServerWait<'_, '_>]) -> Option<CommonFloor> {
    let mut floors: BTreeMap<&str, (Nanos, bool)> = BTreeMap::new();
    for wait in waits {
        let does_nothing = !wait.exchange.asks() || wait.method() == Some("ping");
        let floor = floors.entry(wait.method()?).or_insert((wait.wait_time(), does_nothing));
        floor.0 = floor.0.min(wait.wait_time());
    }
    let floor = floors.values().map(|(floor, _)| *floor).min()?;
    let level_kinds = floors.values().filter(|(time, _)| is_near(*time, floor)).count();
    let notifies = floors.values().any(|(time, does_nothing)| *does_nothing && is_near(*time, floor));
    Some(CommonFloor { floor, kinds: floors.len(), level_kinds, notifies })
}

fn make_findings(scene: &mut Scene<'_, '_>, cost: &Cost<'_, '_, '_>) -> Vec<Finding> {
    let extra = cost.floor.since(cost.control);
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for wait in &cost.dear {
        let time = scene.claim_stretch(wait.exchange.call, wait.received.at, wait.received.at + extra);
        let tally = operations.value_of(scene.operation_of(wait.exchange));
        tally.add_cost(wait.exchange.call, time, 0, 0);
        tally.prove_events(&[
            (ProofRole::RequestReceived, Some(wait.received)),
            (ProofRole::ReplyHead, Some(wait.head)),
        ]);
    }
    let context = ConstantCostPerRequest {
        follows: cost.follows,
        requests: cost.dear.len() as u64,
        kinds: cost.kinds as u64,
        floor: cost.floor,
        without: cost.control,
    };
    let (disproof, reason) = match cost.follows {
        Follows::Token => (Disproof::CallWithoutToken, Reason::ControlIsQuick),
        Follows::Session => (Disproof::CallWithoutSession, Reason::ControlIsQuick),
        Follows::Everything => (Disproof::AskForAnotherPath, Reason::ConnectsQuickly),
        Follows::ProcessorTime => (Disproof::ProfileServer, Reason::ProcessorTimeRead),
    };
    operations
        .into_iter()
        .map(|(operation, mut tally)| {
            for (role, stamp) in cost.quick.into_iter().flatten() {
                tally.prove_events(&[(role, Some(stamp))]);
            }
            let severity = tally.median_severity();
            let confidence = scene.confidence_for(cost.level, reason);
            let cause = Cause::ConstantCostPerRequest(context.clone());
            let finding = tally.into_finding(cause, operation, severity, confidence, disproof);
            // One recording has one catalogue: whether the cost grows with it, another one would show.
            match cost.follows {
                Follows::ProcessorTime => finding.or_alternative(Alternative::REBUILT_PER_REQUEST_BY_TOOLS),
                Follows::Token | Follows::Session | Follows::Everything => finding,
            }
        })
        .collect()
}
