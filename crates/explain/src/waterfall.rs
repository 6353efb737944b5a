//! One call as a picture: what lay on the wire when, relative to the call's start.

use std::collections::{BTreeSet, HashMap};

use mcpace_record::{CallId, Closer, ConnectionId, ExchangeId, MessageKind, Nanos, Recording, Side};
use serde::Serialize;

use crate::DependencyKind;
use crate::closed::closed;
use crate::duplicates::find_duplicates;
use crate::view::{
    Call, Connection, Exchange, Note, ProgramSpan, SpanOwner, Stamp, StreamEvent, Texts, View, join_events,
};

/// One call's connections and exchanges. Times are nanoseconds after the call's start, negative before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waterfall {
    /// The call.
    pub call: CallId,
    /// Its operation.
    pub operation: String,
    /// Its tool.
    pub tool: Option<String>,
    /// Always 0: the call's start.
    #[serde(rename = "start_ns")]
    pub start: i64,
    /// Its return, or the recording's end.
    #[serde(rename = "end_ns")]
    pub end: i64,
    /// Connections that its exchanges used, both sides.
    pub connections: Vec<ConnectionRow>,
    /// Its exchanges and those still open when it started, by their start.
    pub exchanges: Vec<ExchangeRow>,
    /// Requests that the server's programs made within the call, by dependency, in the order of the first request to each.
    /// Where another call overlaps this one, only the requests whose trace leads to this call.
    pub dependencies: Vec<DependencyLane>,
}

/// The requests to one dependency in a [`Waterfall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DependencyLane {
    /// Kind of the dependency.
    pub kind: DependencyKind,
    /// Its name: `api.example.org:8080`, `postgresql shop`.
    pub name: String,
    /// Its first requests, by their beginning.
    pub spans: Vec<DependencySpan>,
    /// How many more requests there were.
    pub left_out: u64,
}

/// A request to a dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DependencySpan {
    /// The request, without the parts that differ from one to the next: `GET /users/{}`.
    pub pattern: String,
    /// From.
    #[serde(rename = "from_ns")]
    pub from: i64,
    /// To.
    #[serde(rename = "to_ns")]
    pub to: i64,
}

/// A connection in a [`Waterfall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionRow {
    /// Its id.
    pub conn: ConnectionId,
    /// Its side.
    pub side: Side,
    /// The peer's address.
    pub address: String,
    /// Start of connecting or accepting.
    #[serde(rename = "opened_ns")]
    pub opened: Option<i64>,
    /// Ready for a request.
    #[serde(rename = "ready_ns")]
    pub ready: Option<i64>,
    /// Its end.
    #[serde(rename = "closed_ns")]
    pub closed: Option<i64>,
    /// Side that closed the connection.
    pub closed_by: Option<Closer>,
}

/// An exchange in a [`Waterfall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExchangeRow {
    /// Its id.
    pub ex: ExchangeId,
    /// The client's connection, or the only one.
    pub conn: Option<ConnectionId>,
    /// HTTP method; empty on stdio.
    pub method: String,
    /// HTTP target; empty on stdio.
    pub target: String,
    /// Method of the (first) JSON-RPC message.
    pub rpc_method: Option<String>,
    /// Id of the (first) JSON-RPC message.
    pub rpc_id: Option<String>,
    /// Tool, prompt or resource.
    pub rpc_name: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Phases of the exchange; phases of the two sides may overlap.
    pub phases: Vec<PhaseRow>,
    /// Events of the exchange, each at one moment.
    pub events: Vec<Moment>,
    /// The exchange that this one repeats, see the finding `duplicate-request`.
    pub duplicate_of: Option<ExchangeId>,
    /// Whether it started before the call.
    pub in_flight: bool,
}

closed! {
    /// Stages of an exchange.
    pub enum Phase {
        /// A connection is made for it.
        Connect,
        /// The request is being sent.
        Request,
        /// The server works.
        Server,
        /// The result's message arrives.
        Response,
        /// The result is there, the reply goes on.
        StreamOpen,
    }
}

/// A stretch of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseRow {
    /// Which.
    pub phase: Phase,
    /// From.
    #[serde(rename = "from_ns")]
    pub from: i64,
    /// To; the recording's end where its end was not seen.
    #[serde(rename = "to_ns")]
    pub to: i64,
}

/// A moment of an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// When.
    #[serde(rename = "at_ns")]
    pub at: i64,
    /// `reply-head`, `result`, `error`, `priming`, `reply-end`, the method of a message from the server, or how many more events
    /// there were.
    pub label: String,
}

/// The picture of `call`; `None` where the recording has no such call.
#[must_use]
pub fn call_waterfall(recording: &Recording, call: CallId) -> Option<Waterfall> {
    let texts = Texts::default();
    waterfall_of(&join_events(recording, &texts), call)
}

pub(crate) fn waterfall_of(view: &View<'_>, call: CallId) -> Option<Waterfall> {
    let found = view.call(call)?;
    let clock = RelativeClock { start: found.start.at, end: view.end };
    let originals: HashMap<ExchangeId, ExchangeId> =
        find_duplicates(view).iter().map(|d| (view.exchanges[d.repeat].id, view.exchanges[d.original].id)).collect();
    let ids: Vec<ExchangeId> = [found.in_flight, found.exchanges].concat();
    let rows = ids.iter().filter_map(|id| view.exchange(*id)).map(|e| {
        let mut row = exchange_row(view, e, &clock);
        row.duplicate_of = originals.get(&e.id).copied();
        row.in_flight = found.in_flight.contains(&e.id);
        row
    });
    Some(Waterfall {
        call,
        operation: found.operation.to_owned(),
        tool: found.tool.map(str::to_owned),
        start: 0,
        end: clock.relative_time(found.end.map_or(view.end, |end| end.at)),
        exchanges: rows.collect(),
        connections: connection_rows(view, &ids, &clock),
        dependencies: dependency_lanes(view, found, &clock),
    })
}

/// Dependencies that have a lane, and requests in one lane.
const LANES: usize = 12;
const LANE_SPANS: usize = 100;

fn dependency_lanes(view: &View<'_>, call: &Call<'_>, clock: &RelativeClock) -> Vec<DependencyLane> {
    let (from, to) = (call.start.at, call.end.map_or(view.end, |end| end.at));
    let spans = &view.inside.spans;
    let overlaps = |other: &Call<'_>| {
        other.id != call.id && other.start.at < to && other.end.map_or(view.end, |end| end.at) > from
    };
    let is_alone = !view.calls.iter().any(overlaps);
    let belongs = |span: &&ProgramSpan<'_>| match span.owner {
        SpanOwner::Exchange(exchange) => call.exchanges.contains(&exchange),
        SpanOwner::Unknown => is_alone && call.exchanges.iter().any(|exchange| spans.may_serve(*exchange, span)),
        SpanOwner::OtherProgram => false,
    };
    let first = spans.requests.partition_point(|span| span.began < from);
    let within = spans.requests[first..].iter().take_while(|span| span.began < to).filter(belongs);
    let mut lanes: Vec<DependencyLane> = Vec::new();
    for span in within {
        let known = lanes.iter().position(|lane| lane.name == span.dependency);
        if known.is_none() && lanes.len() == LANES {
            continue;
        }
        let at = known.unwrap_or_else(|| {
            let name = span.dependency.to_owned();
            lanes.push(DependencyLane { kind: span.kind, name, spans: Vec::new(), left_out: 0 });
            lanes.len() - 1
        });
        let lane = &mut lanes[at];
        if lane.spans.len() == LANE_SPANS {
            lane.left_out += 1;
            continue;
        }
        let (from, to) = (clock.relative_time(span.began), clock.relative_time(span.ended.at));
        lane.spans.push(DependencySpan { pattern: span.pattern.to_owned(), from, to });
    }
    lanes
}

/// Makes times relative to the call.
struct RelativeClock {
    start: Nanos,
    end: Nanos,
}

impl RelativeClock {
    fn relative_time(&self, at: Nanos) -> i64 {
        let distance = i128::from(at.0) - i128::from(self.start.0);
        i64::try_from(distance).unwrap_or(if distance < 0 { i64::MIN } else { i64::MAX })
    }

    fn relative_stamp(&self, stamp: Option<Stamp>) -> Option<i64> {
        stamp.map(|stamp| self.relative_time(stamp.at))
    }

    fn phase_row(&self, phase: Phase, from: Option<Stamp>, to: Option<Stamp>) -> Option<PhaseRow> {
        let from = self.relative_stamp(from)?;
        let to = self.relative_stamp(to).unwrap_or(self.relative_time(self.end));
        (to > from).then_some(PhaseRow { phase, from, to })
    }
}

fn connection_rows(view: &View<'_>, ids: &[ExchangeId], clock: &RelativeClock) -> Vec<ConnectionRow> {
    let legs = ids.iter().filter_map(|id| view.exchange(*id));
    let legs = legs.flat_map(|e| [e.front(), e.back()]).flatten();
    let used: BTreeSet<ConnectionId> = legs.filter_map(|leg| leg.conn).collect();
    let rows = used.into_iter().filter_map(|id| view.connection(id));
    rows.map(|connection| connection_row(connection, clock)).collect()
}

fn connection_row(connection: &Connection<'_>, clock: &RelativeClock) -> ConnectionRow {
    ConnectionRow {
        conn: connection.id,
        side: connection.side,
        address: connection.address.to_owned(),
        opened: clock.relative_stamp(connection.begun()),
        ready: clock.relative_stamp(connection.ready()),
        closed: clock.relative_stamp(connection.closed),
        closed_by: connection.closed_by,
    }
}

fn exchange_row(view: &View<'_>, exchange: &Exchange<'_>, clock: &RelativeClock) -> ExchangeRow {
    let first = exchange.messages.first();
    let text = |of: fn(&Note<'_>) -> Option<String>| first.and_then(of);
    ExchangeRow {
        ex: exchange.id,
        conn: exchange.near().and_then(|leg| leg.conn),
        method: exchange.method().to_owned(),
        target: exchange.target().to_owned(),
        rpc_method: text(|message| message.method().map(str::to_owned)),
        rpc_id: text(|message| message.id.map(str::to_owned)),
        rpc_name: text(|message| message.name().map(str::to_owned)),
        status: exchange.status,
        phases: phase_rows(view, exchange, clock),
        events: exchange_moments(exchange, clock),
        duplicate_of: None,
        in_flight: false,
    }
}

fn phase_rows(view: &View<'_>, exchange: &Exchange<'_>, clock: &RelativeClock) -> Vec<PhaseRow> {
    let near = exchange.near().unwrap_or_default();
    let back = exchange.back().unwrap_or_default();
    let connection = view.opened_for(exchange);
    let connect = connection.and_then(|c| {
        let done = c.ready().or(c.failed);
        done.and_then(|_| clock.phase_row(Phase::Connect, c.begun(), done))
    });
    let answered = back.result_start.or(back.end).or(near.end);
    let open = near.result_end.filter(|result| {
        // An answer that came on another stream leaves this reply's end behind it.
        near.end.is_none_or(|end| end.at > result.at)
    });
    [
        connect,
        clock.phase_row(Phase::Request, near.request_start, near.request_end.or(near.request_start)),
        clock.phase_row(Phase::Server, back.request_end, answered),
        back.result_end.and_then(|_| clock.phase_row(Phase::Response, back.result_start, back.result_end)),
        clock.phase_row(Phase::StreamOpen, open, near.end),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Events of a stream that are shown one by one; a stream of a million would make a picture that nobody can load.
const EVENTS: usize = 500;

fn exchange_moments(exchange: &Exchange<'_>, clock: &RelativeClock) -> Vec<Moment> {
    let near = exchange.near();
    let moment =
        |stamp: Option<Stamp>, label: String| stamp.map(|stamp| Moment { at: clock.relative_time(stamp.at), label });
    let seen = |event: &StreamEvent<'_>| event.passed().or(event.read());
    let head = moment(near.and_then(|near| near.reply_head), "reply-head".to_owned());
    let (shown, rest) = exchange.events.split_at(exchange.events.len().min(EVENTS));
    let events = shown.iter().filter_map(|event| moment(seen(event), event_label(event).to_owned()));
    let more = rest.first().and_then(|first| moment(seen(first), format!("{} more events", rest.len())));
    let end = moment(exchange.ended(), "reply-end".to_owned());
    head.into_iter().chain(events).chain(more).chain(end).collect()
}

fn event_label<'a>(event: &StreamEvent<'a>) -> &'a str {
    let Some(message) = event.messages.last() else {
        return event.event.unwrap_or("priming");
    };
    match message.kind() {
        MessageKind::Result => "result",
        MessageKind::Error => "error",
        MessageKind::Request | MessageKind::Notification => message.method().unwrap_or("message"),
    }
}
