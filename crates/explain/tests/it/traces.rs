//! Spans that are joined to calls by their traces, and traces without a recording.

use mcpace_explain::{Explained, ToolTime, explain_recording, explain_spans, explain_with_spans};
use mcpace_record::{EventKind, Nanos, Recording, Span, SpanKind, TraceContext};
use proptest::prelude::*;

use crate::script::{Post, Reply, Script, call_tool, ms};

/// The span that the request of call `call` was sent from. All calls are of one trace.
const FIRST_REQUEST: u64 = 100;

/// A span of the server `weather`, in milliseconds.
fn span(id: u64, parent: u64, kind: SpanKind, from: f64) -> Span {
    Span {
        trace: format!("{:032x}", 7),
        span: format!("{id:016x}"),
        parent: (parent != 0).then(|| format!("{parent:016x}")),
        name: "GET".to_owned(),
        kind,
        began: ms(from),
        service: "weather".to_owned(),
        ..Span::default()
    }
}

fn request_to(host: &str, id: u64, parent: u64, from: f64) -> Span {
    let mut span = span(id, parent, SpanKind::Client, from);
    span.add_attribute(("http.request.method", "GET"));
    span.add_attribute(("url.full", &format!("http://{host}/now")));
    span
}

fn traced_call(at: f64, id: u64, context: u64, to: f64) -> Post {
    let traceparent = Some(TraceContext { trace: 7, span: context }.to_string());
    Post { traceparent, conn: id + 1, sending: 0.0, ..call_tool(at, id, Reply::Json(to, to)) }
}

/// Three calls from 0 to 100 ms at once, recorded by the recorder.
fn overlapping(spans: &[(f64, Span)]) -> Recording {
    let mut script = Script::recorder();
    for id in 0..3 {
        script.accept(id + 1, 0.1);
        script.connect(id + 101, 0.2, 0.3, Some(id + 1));
    }
    for id in 0..3 {
        script.post(traced_call(10.0 + id as f64, id, FIRST_REQUEST + id, 110.0 + id as f64));
    }
    for (ended, span) in spans {
        script.event(*ended, EventKind::Span(Box::new(span.clone())));
    }
    script.recording()
}

fn rows(tool: &ToolTime) -> Vec<(String, u64, u64)> {
    let rows = tool.dependencies.iter().map(|row| (row.name.clone(), row.requests, (row.time.0 + 500_000) / 1_000_000));
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

fn assert_adds_up(explained: &Explained) {
    for tool in &explained.tool_times {
        let rows = tool.dependencies.iter().map(|row| row.time.0).chain(tool.packages.iter().map(|row| row.time.0));
        assert_eq!(rows.sum::<u64>() + tool.waiting.0 + tool.rest.0, tool.server.0, "{tool:?}");
    }
}

#[test]
fn calls_that_overlap_are_told_apart_by_their_traces() {
    let mut spans = Vec::new();
    for call in 0..3 {
        let server = 10 + call;
        spans.push((105.0, span(server, FIRST_REQUEST + call, SpanKind::Server, 15.0)));
        // Call 0 waits for 10 ms, call 1 for 20 ms, call 2 for 30 ms.
        let wait = 10.0 * (call + 1) as f64;
        spans.push((20.0 + wait, request_to(&format!("api-{call}"), 20 + call, server, 20.0)));
    }
    let explained = explain_recording(&overlapping(&spans), None);
    assert_adds_up(&explained);
    let [tool] = explained.tool_times.as_slice() else { panic!("{:?}", explained.tool_times) };
    assert_eq!((tool.calls, tool.traced, tool.overlapping, tool.traced_spans), (3, 3, 0, 3));
    let row = |name: &str, time| (name.to_owned(), 1, time);
    assert_eq!(rows(tool), [row("api-0", 10), row("api-1", 20), row("api-2", 30)]);
    assert_eq!(explained.spans.traced, 3);
}

#[test]
fn a_call_that_no_span_leads_to_is_left_out_where_it_overlaps_others() {
    let spans = [(105.0, span(10, FIRST_REQUEST, SpanKind::Server, 15.0)), (40.0, request_to("api", 20, 10, 20.0))];
    let explained = explain_recording(&overlapping(&spans), None);
    let tool = &explained.tool_times[0];
    assert_eq!((tool.calls, tool.traced, tool.overlapping), (1, 1, 2));
    assert_adds_up(&explained);
}

#[test]
fn the_requests_of_the_servers_that_a_call_asks_are_none_of_the_call() {
    let mut remote = span(30, 20, SpanKind::Server, 21.0);
    remote.service = "api".to_owned();
    let mut database = request_to("database", 31, 30, 22.0);
    database.service = "api".to_owned();
    let spans = [
        (105.0, span(10, FIRST_REQUEST, SpanKind::Server, 15.0)),
        (60.0, request_to("api", 20, 10, 20.0)),
        (59.0, remote),
        (58.0, database),
    ];
    let explained = explain_recording(&overlapping(&spans), None);
    assert_eq!(rows(&explained.tool_times[0]), [("api".to_owned(), 1, 40)]);
    assert_eq!((explained.spans.traced, explained.spans.remote), (1, 1));
}

/// Two calls in a row. Spans of both have the trace of the first, as a task of the session has.
#[test]
fn a_trace_that_leads_to_a_request_of_another_time_is_not_believed() {
    let mut script = Script::recorder();
    script.accept(1, 0.1);
    script.connect(101, 0.2, 0.3, Some(1));
    for call in 0..2 {
        let at = 10.0 + 100.0 * call as f64;
        let post = Post { conn: 1, ..traced_call(at, call, FIRST_REQUEST + call, at + 50.0) };
        script.post(post);
        let span = request_to(&format!("api-{call}"), 20 + call, FIRST_REQUEST, at + 10.0);
        script.event(at + 40.0, EventKind::Span(Box::new(span)));
    }
    let explained = explain_recording(&script.recording(), None);
    let tool = &explained.tool_times[0];
    assert_eq!(rows(tool), [("api-0".to_owned(), 1, 30), ("api-1".to_owned(), 1, 30)]);
    assert_eq!((tool.calls, tool.spans, tool.traced_spans), (2, 2, 1));
    assert_adds_up(&explained);
}

/// The spans of a file whose clock is an hour ahead.
#[test]
fn the_clock_of_another_machine_is_shifted_into_the_calls() {
    let hour = 3_600_000.0;
    let spans = [
        (ms(hour + 105.0), span(10, FIRST_REQUEST, SpanKind::Server, hour + 15.0)),
        (ms(hour + 60.0), request_to("api", 20, 10, hour + 20.0)),
        // Another program, whose clock no call tells of, at a time of no call.
        (ms(60.0), Span { service: "other".to_owned(), trace: "1".repeat(32), ..request_to("x", 21, 0, 500.0) }),
    ];
    let recording = overlapping(&[]);
    let read = |take: &mut mcpace_explain::TakeSpan<'_>| {
        spans.iter().for_each(|(ended, span)| take(*ended, span));
        Ok::<(), ()>(())
    };
    let explained = explain_with_spans(&recording, None, 0, read).unwrap();
    assert_eq!(rows(&explained.tool_times[0]), [("api".to_owned(), 1, 40)]);
    let [clock] = explained.spans.clocks.as_slice() else { panic!("{:?}", explained.spans.clocks) };
    assert_eq!((clock.service.as_str(), clock.is_contradictory), ("weather", false));
    let error = i64::try_from(clock.error.unwrap()).unwrap();
    assert!((clock.shift + 3_600_000_000_000).abs() <= error && error < 10_000_000, "{clock:?}");
    assert_adds_up(&explained);
}

fn tool_span(id: u64, parent: u64, tool: &str, from: f64) -> Span {
    let mut span = span(id, parent, SpanKind::Server, from);
    span.name = format!("tools/call {tool}");
    span.add_attribute(("mcp.method.name", "tools/call"));
    span.add_attribute(("gen_ai.tool.name", tool));
    span
}

fn explain_traces(spans: &[(f64, Span)]) -> Explained {
    let read = |take: &mut mcpace_explain::TakeSpan<'_>| {
        spans.iter().for_each(|(ended, span)| take(ms(*ended), span));
        Ok::<(), ()>(())
    };
    let explained = explain_spans(read).unwrap();
    assert_adds_up(&explained);
    explained
}

fn tools(explained: &Explained) -> Vec<(&str, u64, u64)> {
    explained.tool_times.iter().map(|tool| (tool.tool.as_str(), tool.calls, tool.server.0 / 1_000_000)).collect()
}

#[test]
fn the_calls_of_traces_alone_have_ledgers_and_causes() {
    let mut spans = Vec::new();
    for call in 0..5 {
        let (base, at) = (100 * (call + 1), 1_000.0 * call as f64);
        // The HTTP framework's span, the SDK's, and the framework's for authors stand for one call.
        let mut http = span(base, 0, SpanKind::Server, at - 1.0);
        http.add_attribute(("http.request.method", "POST"));
        http.add_attribute(("url.path", "/mcp"));
        spans.push((at + 101.0, http));
        spans.push((at + 100.0, tool_span(base + 1, base, "forecast", at)));
        spans.push((at + 99.0, tool_span(base + 2, base + 1, "forecast", at + 1.0)));
        for (number, host) in (0..).zip(["a", "b", "c"]) {
            let from = at + 2.0 + 32.0 * number as f64;
            spans.push((from + 30.0, request_to(host, base + 10 + number, base + 2, from)));
        }
    }
    // A listing of the same server is no call.
    let mut listing = span(9, 0, SpanKind::Server, 10_000.0);
    listing.add_attribute(("mcp.method.name", "tools/list"));
    spans.push((10_100.0, listing));
    let explained = explain_traces(&spans);
    assert_eq!(tools(&explained), [("forecast", 5, 500)]);
    let codes: Vec<&str> = explained.findings.iter().map(|finding| finding.cause.code()).collect();
    assert_eq!(codes, ["serial-dependencies"]);
    assert_eq!(explained.accounts.len(), 5);
    let account = explained.accounts.iter().next().unwrap();
    assert_eq!((account.end.since(account.start), account.parts.server), (ms(100.0), ms(100.0)));
    assert_eq!(explained.accounts.tool(account), Some("forecast"));
}

#[test]
fn a_server_without_spans_of_mcp_has_the_requests_of_its_http_framework() {
    let http = |id, path: &str, method: &str, from| {
        let mut span = span(id, 0, SpanKind::Server, from);
        span.add_attribute(("http.method", method));
        span.add_attribute(("http.target", path));
        span
    };
    let spans = [
        (110.0, http(1, "/mcp?x=1", "POST", 10.0)),
        (90.0, request_to("api", 2, 1, 20.0)),
        (210.0, http(3, "/mcp", "GET", 120.0)),
        (310.0, http(4, "/health", "POST", 220.0)),
    ];
    assert_eq!(tools(&explain_traces(&spans)), [("POST /mcp", 1, 100)]);
}

#[test]
fn a_gateways_call_and_the_call_behind_it_are_two() {
    let mut behind = tool_span(3, 2, "inner", 20.0);
    behind.service = "backend".to_owned();
    let mut database = request_to("database", 4, 3, 25.0);
    database.service = "backend".to_owned();
    let spans = [
        (110.0, tool_span(1, 0, "outer", 10.0)),
        (100.0, request_to("backend", 2, 1, 15.0)),
        (90.0, behind),
        (85.0, database),
    ];
    let explained = explain_traces(&spans);
    assert_eq!(tools(&explained), [("outer", 1, 100), ("inner", 1, 70)]);
    assert_eq!(rows(&explained.tool_times[0]), [("backend".to_owned(), 1, 85)]);
    assert_eq!(rows(&explained.tool_times[1]), [("database".to_owned(), 1, 60)]);
}

/// The client's own spans stand above the call, where client and server are one program.
#[test]
fn spans_above_a_call_are_none_of_its_requests() {
    let spans = [
        (112.0, request_to("server", 1, 0, 9.0)),
        (111.0, request_to("sending", 2, 1, 9.9)),
        (110.0, tool_span(3, 2, "forecast", 10.0)),
        (60.0, request_to("api", 4, 3, 20.0)),
        // The span that began this request was not reported.
        (90.0, request_to("broken", 5, 99, 70.0)),
    ];
    let explained = explain_traces(&spans);
    assert_eq!(rows(&explained.tool_times[0]), [("api".to_owned(), 1, 40), ("broken".to_owned(), 1, 20)]);
}

/// Spans whose trace is lost belong to the call by their time, if the same program reported them.
#[test]
fn a_lost_trace_is_replaced_by_time_within_one_program() {
    let lost = |id, service: &str, host: &str, from| Span {
        trace: "1".repeat(32),
        service: service.to_owned(),
        ..request_to(host, id, 0, from)
    };
    let spans = [
        (110.0, tool_span(1, 0, "forecast", 10.0)),
        (60.0, lost(2, "weather", "api", 20.0)),
        (90.0, lost(3, "other", "elsewhere", 70.0)),
    ];
    let explained = explain_traces(&spans);
    assert_eq!(rows(&explained.tool_times[0]), [("api".to_owned(), 1, 40)]);
    assert_eq!((explained.tool_times[0].spans, explained.tool_times[0].traced_spans), (1, 0));
}

#[test]
fn spans_that_contradict_each_other_are_counted() {
    let spans = [
        (110.0, tool_span(1, 0, "forecast", 10.0)),
        (110.0, tool_span(1, 0, "forecast", 10.0)),
        (9.0, request_to("early", 2, 1, 1.0)),
        (300.0, request_to("late", 3, 1, 200.0)),
        (200.0, request_to("long", 4, 1, 50.0)),
    ];
    let explained = explain_traces(&spans);
    assert_eq!((explained.spans.duplicates, explained.spans.misplaced), (1, 2));
    // A request that goes on after its call counts up to the call's end.
    assert_eq!(rows(&explained.tool_times[0]), [("long".to_owned(), 1, 60)]);
}

fn any_span() -> impl Strategy<Value = (f64, Span)> {
    let kinds = [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
    let times = (0.0..200.0_f64, 0.0..200.0_f64);
    (0..9_u64, 0..12_u64, prop::sample::select(kinds.to_vec()), times, 0..4_u8).prop_map(
        |(id, parent, kind, (from, to), shape)| {
            let parent = if parent > 9 { FIRST_REQUEST + parent - 10 } else { parent };
            let mut span = match (kind, shape) {
                (SpanKind::Client, _) => request_to("api", id, parent, from),
                (_, 0) => Span { kind, ..tool_span(id, parent, "forecast", from) },
                _ => span(id, parent, kind, from),
            };
            if shape == 1 {
                span.service = "other".to_owned();
            }
            (to, span)
        },
    )
}

proptest! {
    #[test]
    fn whatever_spans_tell_the_parts_of_a_tool_add_up(spans in prop::collection::vec(any_span(), 0..40)) {
        assert_adds_up(&explain_recording(&overlapping(&spans), None));
        explain_traces(&spans);
        let recording = overlapping(&[]);
        let read = |take: &mut mcpace_explain::TakeSpan<'_>| {
            spans.iter().for_each(|(ended, span)| take(Nanos(ms(*ended).0 + 5_000_000_000), span));
            Ok::<(), ()>(())
        };
        assert_adds_up(&explain_with_spans(&recording, None, 0, read).unwrap());
    }
}
