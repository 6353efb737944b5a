//! Spans joined to the calls that they belong to: by their traces where these lead to a call, else by time.
//!
//! A trace is believed only where its time fits: the official Python SDK 1.x runs tools in a task of the session, whose spans
//! carry the trace of the request that opened the session.

use std::collections::{HashMap, HashSet};

use mcpace_record::{ExchangeId, Nanos, Span, SpanKind, TraceContext};
use serde::Serialize;

use super::call_name::call_name;
use super::program_span::{ProgramSpan, SpanOwner, program_span};
use super::span_clock::{SpanClock, SpanClocks, shift_time};
use super::span_tree::{Lead, SpanNode, SpanTree};
use super::texts::Keeper;
use super::traced_calls::{TracedCalls, traced_calls};
use super::{Exchange, Stamp};

/// Spans that are kept at most; later ones are counted as left out.
const MOST_SPANS: usize = 2_000_000;

/// A span's times come from the wall clock, and may be wrong by this much against the recording's clock.
pub(crate) const CLOCK_TOLERANCE: Nanos = Nanos::from_millis(1);

/// How the spans were joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpanFacts {
    /// Spans of any kind.
    pub spans: u64,
    /// Requests that programs made.
    pub requests: u64,
    /// Requests whose trace leads to a call.
    pub traced: u64,
    /// Requests of other programs: of the servers that the calls asked.
    pub remote: u64,
    /// Spans whose id was there already.
    pub duplicates: u64,
    /// Spans that begin outside the span that began them, as one program tells it.
    pub misplaced: u64,
    /// Spans for which there was no room.
    pub left_out: u64,
    /// Clocks of the programs whose spans come from a file, where calls tell of them.
    pub clocks: Vec<SpanClock>,
}

/// Spans, as far as rules ask for them.
#[derive(Debug, Default)]
pub(crate) struct JoinedSpans<'a> {
    /// Requests that the programs made, by their beginning.
    pub(crate) requests: Vec<ProgramSpan<'a>>,
    /// Positions of the requests whose trace leads to each exchange.
    pub(crate) by_exchange: HashMap<ExchangeId, Vec<u32>>,
    /// Exchanges that traces lead to.
    pub(crate) traced: HashSet<ExchangeId>,
    /// Programs that served each exchange, where only spans tell of it.
    pub(crate) services: HashMap<ExchangeId, &'a str>,
    /// Programs that served any exchange, where the traffic was recorded.
    pub(crate) servers: HashSet<&'a str>,
    pub(crate) facts: SpanFacts,
}

impl<'a> JoinedSpans<'a> {
    /// Whether a request may belong to an exchange by its time.
    pub(crate) fn may_serve(&self, exchange: ExchangeId, span: &ProgramSpan<'a>) -> bool {
        if span.owner != SpanOwner::Unknown {
            return false;
        }
        match self.services.get(&exchange) {
            Some(service) => *service == span.service,
            None => self.servers.is_empty() || span.service.is_empty() || self.servers.contains(span.service),
        }
    }
}

#[derive(Default)]
pub(super) struct SpanJoin<'a> {
    tree: SpanTree<'a>,
    /// Requests with the positions of their nodes.
    requests: Vec<(u32, ProgramSpan<'a>)>,
    facts: SpanFacts,
    /// Nanoseconds from the times of a file's spans to the recording's clock.
    pub(super) file_offset: i64,
}

/// Traces that exchanges belong to, with the positions of the exchanges.
type Anchors = HashMap<TraceContext, u32>;

impl<'a> SpanJoin<'a> {
    /// Adds a span that ended at `ended`. `from_file`: its times are those of a clock that may be another machine's.
    pub(super) fn join_span(&mut self, keeper: &mut Keeper<'a>, ended: Stamp, span: &Span, from_file: bool) {
        if self.tree.nodes.len() >= MOST_SPANS {
            self.facts.left_out += 1;
            return;
        }
        let parent = span.parent.as_deref().and_then(|parent| TraceContext::of_ids(&span.trace, parent));
        let node = SpanNode {
            id: TraceContext::of_ids(&span.trace, &span.span),
            parent: parent.map_or(0, |parent| parent.span),
            kind: span.kind,
            began: span.began.min(ended.at),
            ended,
            service: keeper.keep_text(&span.service),
            call: call_name(keeper, span),
            failed: span.failed,
            from_file,
        };
        let Some(number) = self.tree.add_node(node) else {
            self.facts.duplicates += 1;
            return;
        };
        if span.kind == SpanKind::Client {
            self.requests.push((number, program_span(keeper, ended, span)));
        }
    }

    /// The last end of all spans.
    pub(super) fn end(&self) -> Nanos {
        self.tree.nodes.iter().map(|node| node.ended.at).max().unwrap_or(Nanos::ZERO)
    }

    /// Joins the spans to recorded exchanges, which belong to the traces in `contexts`.
    pub(super) fn finish_recorded(
        mut self,
        exchanges: &[Exchange<'a>],
        contexts: &[(ExchangeId, TraceContext)],
    ) -> JoinedSpans<'a> {
        let positions: HashMap<ExchangeId, u32> =
            (0..).zip(exchanges).map(|(at, exchange)| (exchange.id, at)).collect();
        let mut anchors = Anchors::new();
        let mut repeated = HashSet::new();
        for (exchange, context) in contexts {
            let Some(position) = positions.get(exchange) else { continue };
            if anchors.insert(*context, *position).is_some_and(|known| known != *position) {
                repeated.insert(*context);
            }
        }
        // A caller that sends one context with many requests does not tell them apart.
        anchors.retain(|context, _| !repeated.contains(context));
        let leads = self.tree.find_leads(&anchors);
        self.shift_clocks(exchanges, &leads);
        let mut joined = self.join_leads(exchanges, &anchors, &leads);
        for (node, lead) in self.tree.nodes.iter().zip(&leads) {
            let serves = lead.exchange.is_some() && !lead.is_remote && node.kind != SpanKind::Client;
            joined.servers.extend(Some(node.service).filter(|service| serves && !service.is_empty()));
        }
        self.finish_join(joined)
    }

    /// Joins the spans to the calls that they tell of themselves.
    pub(super) fn finish_traces(mut self, keeper: &mut Keeper<'a>) -> (TracedCalls<'a>, JoinedSpans<'a>) {
        let traced = traced_calls(keeper, &self.tree);
        let spans = (0..).zip(&traced.spans);
        let anchors: Anchors = spans.filter_map(|(at, (context, _))| Some(((*context)?, at))).collect();
        let leads = self.tree.find_leads(&anchors);
        let mut joined = self.join_leads(&traced.exchanges, &anchors, &leads);
        joined.services = traced
            .exchanges
            .iter()
            .zip(&traced.spans)
            .map(|(exchange, (_, service))| (exchange.id, *service))
            .collect();
        (traced, self.finish_join(joined))
    }

    /// Moves the times of programs whose clock differs from the recording's.
    fn shift_clocks(&mut self, exchanges: &[Exchange<'a>], leads: &[Lead]) {
        let mut clocks = SpanClocks::new(self.file_offset);
        for (node, lead) in self.tree.nodes.iter().zip(leads).filter(|(node, _)| node.from_file) {
            let Some(position) = lead.exchange.filter(|_| !lead.is_remote) else { continue };
            let (sent, replied) = exchange_window(&exchanges[position as usize]);
            clocks.note_begin(node.service, node.began, sent);
            if lead.is_direct && node.kind == SpanKind::Server && replied != Nanos(u64::MAX) {
                clocks.note_end(node.service, node.ended.at, replied);
            }
        }
        let clocks = clocks.find_clocks();
        for node in self.tree.nodes.iter_mut().filter(|node| node.from_file) {
            let shift = clocks.get(node.service).map_or(0, |clock| clock.shift);
            let offset = self.file_offset.saturating_add(shift);
            node.began = shift_time(node.began, offset);
            node.ended.at = shift_time(node.ended.at, offset);
        }
        for (node, request) in &mut self.requests {
            let node = &self.tree.nodes[*node as usize];
            (request.began, request.ended) = (node.began, node.ended);
        }
        self.facts.clocks = clocks.into_values().collect();
        self.facts.clocks.sort_by(|a, b| a.service.cmp(&b.service));
    }

    fn join_leads(&mut self, exchanges: &[Exchange<'a>], anchors: &Anchors, leads: &[Lead]) -> JoinedSpans<'a> {
        let mut joined = JoinedSpans::default();
        // Exchanges that have a trace of their own; `None` of a trace that several share.
        let mut alone: HashMap<u128, Option<u32>> = HashMap::new();
        for (context, position) in anchors {
            let known = alone.entry(context.trace).or_insert(Some(*position));
            if *known != Some(*position) {
                *known = None;
            }
        }
        let fits = |position: u32, node: &SpanNode<'_>| {
            let (from, to) = exchange_window(&exchanges[position as usize]);
            node.began + CLOCK_TOLERANCE >= from && node.began <= to + CLOCK_TOLERANCE
        };
        for (node, lead) in self.tree.nodes.iter().zip(leads) {
            let traced = lead.exchange.filter(|position| !lead.is_remote && fits(*position, node));
            joined.traced.extend(traced.map(|position| exchanges[position as usize].id));
        }
        let above = self.tree.mark_above(anchors.keys());
        for (number, request) in &mut self.requests {
            let (node, lead) = (&self.tree.nodes[*number as usize], leads[*number as usize]);
            let by_trace = match lead.exchange {
                Some(position) => Some(position),
                // Spans whose way up ends at a root stand above the call, or beside it.
                None => node.id.filter(|_| lead.is_broken).and_then(|id| alone.get(&id.trace).copied().flatten()),
            };
            request.owner = match by_trace.filter(|position| fits(*position, node)) {
                Some(_) if lead.is_remote => SpanOwner::OtherProgram,
                Some(position) => SpanOwner::Exchange(exchanges[position as usize].id),
                // The client's own span, where client and server are one program.
                None if above[*number as usize] => SpanOwner::OtherProgram,
                None => SpanOwner::Unknown,
            };
            match request.owner {
                SpanOwner::Exchange(exchange) => {
                    joined.traced.insert(exchange);
                    self.facts.traced += 1;
                }
                SpanOwner::OtherProgram => self.facts.remote += 1,
                SpanOwner::Unknown => {}
            }
        }
        joined
    }

    fn finish_join(mut self, mut joined: JoinedSpans<'a>) -> JoinedSpans<'a> {
        self.facts.spans = self.tree.nodes.len() as u64;
        self.facts.requests = self.requests.len() as u64;
        self.facts.misplaced = self.count_misplaced();
        joined.requests = self.requests.into_iter().map(|(_, request)| request).collect();
        joined.requests.sort_by_key(|request| request.began);
        for (number, request) in (0..).zip(&joined.requests) {
            if let SpanOwner::Exchange(exchange) = request.owner {
                joined.by_exchange.entry(exchange).or_default().push(number);
            }
        }
        joined.facts = self.facts;
        joined
    }

    /// Spans that contradict the span that began them. Work that goes on after its parent is usual.
    fn count_misplaced(&self) -> u64 {
        let nodes = &self.tree.nodes;
        let is_misplaced = |number: u32| {
            let Some(parent) = self.tree.parent_of(number) else { return false };
            let (node, parent) = (&nodes[number as usize], &nodes[parent as usize]);
            let is_before = node.began + CLOCK_TOLERANCE < parent.began;
            let is_after = node.began > parent.ended.at + CLOCK_TOLERANCE;
            node.service == parent.service && (is_before || is_after)
        };
        (0..nodes.len() as u32).filter(|number| is_misplaced(*number)).count() as u64
    }
}

/// The time of an exchange at the side of the server: from the first byte of the request to the end of the reply.
fn exchange_window(exchange: &Exchange<'_>) -> (Nanos, Nanos) {
    let leg = exchange.back().or_else(|| exchange.front());
    let from = leg.and_then(|leg| leg.request_start).unwrap_or(exchange.start).at;
    let to = leg.and_then(|leg| leg.end.or(leg.result_end)).map_or(Nanos(u64::MAX), |end| end.at);
    (from, to.max(from))
}
