//! Time-outs of clients: requests that their client gave up before the answer came, and the time that these have in common.
//!
//! A client gives a request up when it sends `notifications/cancelled` for it, closes its reply or its connection, sends the same
//! call again, or lets its own call fail. One request that is given up is a person who cancels. A time-out is a timer: the
//! requests end at nearly the same age, counted from the request or from the last data of its reply. Requests that end at one
//! moment count once, since a client that exits or cancels everything ends them together.
//!
//! Requests whose event stream is closed in silence, after 5 seconds or later, belong to `clustered-stream-lifetime`.

use std::collections::{HashMap, HashSet};

use mcpace_record::{CallId, ExchangeId, Nanos, ReplyEnding};

use super::{GiveUpLayer, GiveUpSign};
use crate::findings::CountedFrom;
use crate::findings::equal_ages::largest_cluster;
use crate::findings::hidden_work::retried_execution::{given_up_requests, is_round};
use crate::findings::scene::Scene;
use crate::view::{Exchange, PackedOutcome, ReplyShape, Stamp, Transport, View};

/// Nobody gives a request up sooner.
const SHORTEST: Nanos = Nanos::from_millis(900);

/// Streams that are closed in silence at this age belong to another rule.
const STREAM_AGE: Nanos = Nanos::from_millis(5_000);

/// The least and the largest difference of ages that one timer explains, whatever its time.
const SPREAD: (Nanos, Nanos) = (Nanos::from_millis(50), Nanos::from_millis(250));

/// Requests that end within this time of each other ended at one moment.
const MOMENT: Nanos = Nanos::from_millis(50);

/// Moments that are no chance, and those that are none where the age is one that people choose.
const FEWEST: (usize, usize) = (3, 2);

/// The signs of one time-out follow each other within this time.
const TOGETHER: Nanos = Nanos::from_millis(1_000);

/// Progress notifications of one request that are kept: a hostile recording may name one request for all.
const PROGRESS_LIMIT: usize = 1_000;

/// A request that was given up.
#[derive(Debug)]
pub(in crate::findings) struct GiveUp<'s, 'a> {
    pub(in crate::findings) exchange: &'s Exchange<'a>,
    pub(in crate::findings) at: Stamp,
    pub(in crate::findings) sign: GiveUpSign,
    pub(in crate::findings) layer: GiveUpLayer,
    /// When progress came before that, at most [`PROGRESS_LIMIT`] times.
    pub(in crate::findings) progress: Vec<Stamp>,
    /// The time without data before the request was given up.
    pub(in crate::findings) silence: Nanos,
    /// The longest time without data that the client had waited through before.
    longest_gap: Nanos,
}

impl GiveUp<'_, '_> {
    /// Age of the request when it was given up.
    pub(in crate::findings) fn age(&self) -> Nanos {
        self.at.at.since(self.exchange.sent().at)
    }

    /// Whether progress came, and again until the last half of the wait.
    pub(in crate::findings) fn has_progress(&self) -> bool {
        let last = self.progress.last().map(|last| self.at.at.since(last.at));
        self.progress.len() >= 2 && last.is_some_and(|silence| silence.0 * 2 <= self.age().0)
    }

    /// When the answer came afterwards.
    pub(in crate::findings) fn later_answer(&self) -> Option<Stamp> {
        let answered = self.exchange.completed().filter(|_| self.exchange.answer.is_some());
        answered.filter(|answered| answered.at >= self.at.at)
    }
}

/// A time-out with the requests that it ended, in the order of their start.
#[derive(Debug)]
pub(in crate::findings) struct TimeOut<'s, 'a> {
    pub(in crate::findings) give_ups: Vec<GiveUp<'s, 'a>>,
    /// The median age, or the median silence.
    pub(in crate::findings) time: Nanos,
    pub(in crate::findings) counted_from: CountedFrom,
    /// Whether there are as few requests as chance might bring.
    pub(in crate::findings) is_rare: bool,
}

impl TimeOut<'_, '_> {
    pub(in crate::findings) fn exchange_ids(&self) -> impl Iterator<Item = ExchangeId> + '_ {
        self.give_ups.iter().map(|give_up| give_up.exchange.id)
    }
}

/// The time-outs of requests without and with progress; one where these are the same.
pub(in crate::findings) fn find_time_outs<'s, 'a>(scene: &Scene<'s, 'a>) -> Vec<TimeOut<'s, 'a>> {
    let progress = progress_by_token(scene.view);
    let give_ups = find_give_ups(scene, &progress);
    if give_ups.is_empty() {
        return Vec::new();
    }
    let facts =
        Facts { view: scene.view, given_up: give_ups.iter().map(|give_up| give_up.exchange.id).collect(), progress };
    let (progressing, silent): (Vec<_>, Vec<_>) = give_ups.into_iter().partition(GiveUp::has_progress);
    let ages = |give_ups: &[GiveUp<'_, '_>]| time_of(&facts, give_ups).filter(|t| t.from == CountedFrom::Beginning);
    let alike = match (ages(&progressing), ages(&silent)) {
        (Some(one), Some(other)) => one.time.0.abs_diff(other.time.0) <= spread(one.time.min(other.time)).0,
        // Too few of one kind may be explained by the time-out of the other.
        (Some(one), None) | (None, Some(one)) => {
            let others = if one.progressing { &silent } else { &progressing };
            let near = |g: &GiveUp<'_, '_>| g.age().0.abs_diff(one.time.0) <= spread(one.time).0;
            !others.is_empty() && others.iter().all(near)
        }
        (None, None) => true,
    };
    let groups = if alike {
        let mut all: Vec<_> = progressing.into_iter().chain(silent).collect();
        all.sort_by_key(|give_up| give_up.exchange.start.event);
        vec![all]
    } else {
        vec![silent, progressing]
    };
    groups.into_iter().filter_map(|group| make_time_out(&facts, group)).collect()
}

/// The recording by which time-outs are checked.
struct Facts<'v, 'a> {
    view: &'v View<'a>,
    given_up: HashSet<ExchangeId>,
    progress: ProgressByToken<'a>,
}

/// A time that requests have in common.
struct CommonTime {
    time: Nanos,
    from: CountedFrom,
    /// Positions of the requests among those that were given up.
    members: Vec<usize>,
    is_rare: bool,
    progressing: bool,
}

fn make_time_out<'s, 'a>(facts: &Facts<'_, '_>, give_ups: Vec<GiveUp<'s, 'a>>) -> Option<TimeOut<'s, 'a>> {
    let mut common = time_of(facts, &give_ups)?;
    common.members.sort_unstable();
    let give_ups = give_ups.into_iter().enumerate();
    let members = give_ups.filter(|(at, _)| common.members.binary_search(at).is_ok());
    Some(TimeOut {
        give_ups: members.map(|(_, give_up)| give_up).collect(),
        time: common.time,
        counted_from: common.from,
        is_rare: common.is_rare,
    })
}

fn time_of(facts: &Facts<'_, '_>, give_ups: &[GiveUp<'_, '_>]) -> Option<CommonTime> {
    let ages = give_ups.iter().enumerate().map(|(at, give_up)| (at, give_up.age()));
    // A client that waited through a longer silence before does not count silence.
    let idle = give_ups.iter().enumerate().filter(|(_, g)| g.silence.0 > g.longest_gap.0 + SPREAD.0.0);
    let silences = idle.map(|(at, give_up)| (at, give_up.silence));
    let from_beginning = largest_cluster(ages.filter(|(_, age)| *age >= SHORTEST), spread);
    let from_last = largest_cluster(silences.filter(|(_, age)| *age >= SHORTEST), spread);
    let best = [(CountedFrom::Beginning, from_beginning), (CountedFrom::LastEvent, from_last)];
    // The first of equal clusters: silence from the beginning is both.
    let (from, members) = best.into_iter().rev().max_by_key(|(_, members)| members.len())?;
    let time = members.get(members.len() / 2)?.1;
    let of = |at: &usize| &give_ups[*at];
    let members: Vec<usize> = members.into_iter().map(|(at, _)| at).collect();
    let mut ends: Vec<Nanos> = members.iter().map(|at| of(at).at.at).collect();
    ends.sort_unstable();
    let moments = ends.chunk_by(|one, next| next.since(*one) <= MOMENT).count();
    let is_rare = moments < FEWEST.0;
    let (least, last) = (members.iter().map(|at| of(at).age()).min()?, members.iter().map(|at| of(at).age()).max()?);
    let is_exact = last.since(least) <= SPREAD.0 && is_round(time);
    // Among many requests that a person cancelled, a few are alike by chance.
    let is_most = members.len() * 5 >= facts.given_up.len() * 3;
    if is_rare && !(moments >= FEWEST.1 && is_exact && is_most) {
        return None;
    }
    let progressing = members.iter().any(|at| of(at).has_progress());
    let common = CommonTime { time, from, members, is_rare, progressing };
    (!is_contradicted(facts, give_ups, &common)).then_some(common)
}

/// Whether the client waited longer for as many of the same requests.
fn is_contradicted(facts: &Facts<'_, '_>, give_ups: &[GiveUp<'_, '_>], common: &CommonTime) -> bool {
    if common.from == CountedFrom::LastEvent {
        return false;
    }
    let mut asked: Vec<_> = common.members.iter().map(|at| subject_of(give_ups[*at].exchange)).collect();
    asked.sort_unstable();
    asked.dedup();
    let longer = facts.view.exchanges.iter().filter(|exchange| {
        let waited = exchange.completed().map(|stamp| stamp.at.since(exchange.sent().at));
        exchange.answer.is_some()
            && waited.is_some_and(|waited| waited > common.time + spread(common.time))
            && asked.binary_search(&subject_of(exchange)).is_ok()
            && !facts.given_up.contains(&exchange.id)
            // Progress may extend a time-out.
            && (common.progressing || progress_of(exchange, facts.view.end, &facts.progress).is_empty())
    });
    longer.count() >= common.members.len()
}

fn spread(time: Nanos) -> Nanos {
    Nanos(time.0 / 20).clamp(SPREAD.0, SPREAD.1).max(Nanos(time.0 / 50))
}

/// The method and the name that a request asks for.
pub(in crate::findings) fn subject_of<'a>(exchange: &Exchange<'a>) -> (Option<&'a str>, Option<&'a str>) {
    exchange.messages.first().map_or((None, None), |message| (message.method(), message.name()))
}

/// Progress over stdio by its token: all messages share one pipe. SDKs make the token of the request's id.
type ProgressByToken<'a> = HashMap<&'a str, Vec<Stamp>>;

fn progress_by_token<'a>(view: &View<'a>) -> ProgressByToken<'a> {
    let mut stamps: ProgressByToken<'_> = HashMap::new();
    for line in &view.notifying {
        for message in line.messages.iter().filter(|message| message.notifies("notifications/progress")) {
            if let Some(token) = message.id {
                stamps.entry(token).or_default().push(line.read);
            }
        }
    }
    stamps
}

/// The first progress notifications of a request until `to`.
fn progress_of(exchange: &Exchange<'_>, to: Nanos, on_pipe: &ProgressByToken<'_>) -> Vec<Stamp> {
    if exchange.transport == Transport::Stdio {
        let id = exchange.messages.first().and_then(|message| message.id);
        let lines = id.and_then(|id| on_pipe.get(id)).map_or(&[] as &[Stamp], Vec::as_slice);
        let first = lines.partition_point(|line| line.at < exchange.sent().at);
        return lines[first..].iter().take_while(|line| line.at <= to).take(PROGRESS_LIMIT).copied().collect();
    }
    let events = exchange
        .events
        .iter()
        .filter(|event| event.messages.iter().any(|message| message.notifies("notifications/progress")));
    let stamps = events.filter_map(|event| event.passed().or(event.read()));
    stamps.filter(|stamp| stamp.at <= to).take(PROGRESS_LIMIT).collect()
}

/// All requests that were given up, in the order of their start.
fn find_give_ups<'s, 'a>(scene: &Scene<'s, 'a>, on_pipe: &ProgressByToken<'_>) -> Vec<GiveUp<'s, 'a>> {
    let view = scene.view;
    let cancels = cancel_stamps(view);
    let repeated: HashMap<ExchangeId, Stamp> = given_up_requests(scene).into_iter().collect();
    let failed: HashMap<CallId, Stamp> = view
        .calls
        .iter()
        .filter(|call| matches!(call.outcome, Some(PackedOutcome::Failed(_))))
        .filter_map(|call| Some((call.id, call.end?)))
        .collect();
    let mut exits: Vec<Nanos> = view.processes.iter().filter_map(|process| Some(process.exited?.at)).collect();
    exits.sort_unstable();
    let mut found = Vec::new();
    for exchange in view.exchanges.iter().filter(|exchange| is_awaited(exchange)) {
        let sent = exchange.sent().at;
        let cancelled = cancels.get(&cancel_key(exchange, exchange.messages[0].id));
        let cancelled =
            cancelled.and_then(|stamps| stamps.get(stamps.partition_point(|stamp| stamp.at < sent))).copied();
        let closed = exchange.ended().filter(|_| exchange.ending == Some(ReplyEnding::ClientLeft));
        let repeated = repeated.get(&exchange.id).copied();
        let failed = exchange.call.and_then(|call| failed.get(&call)).copied();
        let signs = [
            (GiveUpSign::Cancelled, cancelled),
            (GiveUpSign::Closed, closed),
            (GiveUpSign::Repeated, repeated),
            (GiveUpSign::CallFailed, failed.filter(|failed| is_open_at(exchange, failed.at))),
        ];
        let Some(at) = signs.iter().filter_map(|(_, stamp)| *stamp).min_by_key(|stamp| stamp.at) else { continue };
        // The clearest sign that came with the first one.
        let clear = signs.iter().find(|(_, stamp)| stamp.is_some_and(|stamp| stamp.at <= at.at + TOGETHER));
        let sign = clear.map_or(GiveUpSign::Closed, |(sign, _)| *sign);
        let answered = exchange.answer.is_some() && exchange.completed().is_none_or(|done| done.at < at.at);
        let died = exchange.transport == Transport::Stdio
            && exits.get(exits.partition_point(|exit| *exit < sent)).is_some_and(|exit| *exit <= at.at);
        if answered || died {
            continue;
        }
        found.extend(Some(make_give_up(exchange, at, sign, on_pipe)).filter(|give_up| !is_silent_stream(give_up)));
    }
    found
}

/// Whether an answer is due to one request, which no server keeps open by design.
fn is_awaited(exchange: &Exchange<'_>) -> bool {
    exchange.messages.len() == 1 && exchange.asks() && !exchange.requests("subscriptions/listen")
}

/// Whether the request's reply had not ended at `at`, and was not refused before.
fn is_open_at(exchange: &Exchange<'_>, at: Nanos) -> bool {
    let accepted = exchange.transport == Transport::Stdio || matches!(exchange.status, None | Some(200..=299));
    accepted && exchange.ended().is_none_or(|end| end.at >= at || exchange.ending == Some(ReplyEnding::ClientLeft))
}

/// A session and the id of a request in it.
type CancelKey<'a> = (Option<&'a str>, Option<&'a str>);

fn cancel_key<'a>(exchange: &Exchange<'a>, id: Option<&'a str>) -> CancelKey<'a> {
    (exchange.session_sent(), id)
}

/// When clients said that they no longer wait for a request.
fn cancel_stamps<'a>(view: &View<'a>) -> HashMap<CancelKey<'a>, Vec<Stamp>> {
    let mut stamps: HashMap<CancelKey<'_>, Vec<Stamp>> = HashMap::new();
    for exchange in &view.exchanges {
        for message in exchange.messages.iter().filter(|m| m.notifies("notifications/cancelled") && m.id.is_some()) {
            stamps.entry(cancel_key(exchange, message.id)).or_default().push(exchange.sent());
        }
    }
    for stamps in stamps.values_mut() {
        stamps.sort_by_key(|stamp| stamp.at);
    }
    stamps
}

fn make_give_up<'s, 'a>(
    exchange: &'s Exchange<'a>,
    at: Stamp,
    sign: GiveUpSign,
    on_pipe: &ProgressByToken<'_>,
) -> GiveUp<'s, 'a> {
    let sent = exchange.sent();
    let head = exchange.near().and_then(|near| near.reply_head).filter(|head| head.at <= at.at);
    let progress = progress_of(exchange, at.at, on_pipe);
    let on_stream = exchange.events.iter().filter_map(|event| event.passed().or(event.read()));
    let mut heard: Vec<Nanos> = on_stream.map(|stamp| stamp.at).filter(|heard| *heard <= at.at).collect();
    heard.extend(head.iter().chain(&progress).map(|stamp| stamp.at));
    heard.sort_unstable();
    let (mut last, mut longest_gap) = (sent.at, Nanos::ZERO);
    for heard in heard {
        longest_gap = longest_gap.max(heard.since(last));
        last = last.max(heard);
    }
    let layer = match (sign, exchange.transport, head) {
        (GiveUpSign::Closed, Transport::Http, None) => GiveUpLayer::Head,
        (GiveUpSign::Closed, Transport::Http, Some(_)) => GiveUpLayer::Body,
        _ => GiveUpLayer::Call,
    };
    GiveUp { exchange, at, sign, layer, progress, silence: at.at.since(last), longest_gap }
}

/// Whether only the end of an old, silent stream tells that the request was given up.
fn is_silent_stream(give_up: &GiveUp<'_, '_>) -> bool {
    give_up.sign == GiveUpSign::Closed
        && give_up.layer == GiveUpLayer::Body
        && give_up.exchange.shape == ReplyShape::Events
        && give_up.silence >= STREAM_AGE
}
