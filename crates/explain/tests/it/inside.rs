//! Servers that were looked into: the spans of their requests, and samples of their stacks.

use mcpace_explain::{Cause, CodeOrigin, FlameGraph, ToolTime, call_waterfall, explain_recording};
use mcpace_record::{
    CallId, EventKind, EvidenceSource, LineFrom, PauseCause, Recording, Redactor, Span, SpanKind, StackFrame, StackId,
};
use proptest::prelude::*;

use crate::script::{PASS, Reply, Script, call_tool, ms};
use crate::{codes, found};

/// Milliseconds between two samples.
const PERIOD: f64 = 5.0;

/// A request that a tool makes, in milliseconds from the call's request.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Attributes of the span.
    pub(crate) attributes: &'static [(&'static str, &'static str)],
}

/// Work of the event loop's thread, in milliseconds from the call's request.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) running: bool,
    /// Function and file, the innermost first.
    pub(crate) stack: &'static [(&'static str, &'static str)],
}

pub(crate) const HTTP: &[(&str, &str)] = &[("http.request.method", "GET"), ("url.full", "http://api:80/now?token=x")];
const ITEM: &[(&str, &str)] = &[("http.method", "GET"), ("http.url", "http://api:80/items/12")];
const OTHER: &[(&str, &str)] = &[("http.method", "GET"), ("http.url", "http://api:80/other")];
const THIRD: &[(&str, &str)] = &[("http.method", "GET"), ("http.url", "http://api:80/third")];
const SQL: &[(&str, &str)] =
    &[("db.system", "postgresql"), ("db.name", "shop"), ("db.statement", "SELECT * FROM t WHERE id = 12")];

pub(crate) const OWN: (&str, &str) = ("forecast", "/srv/weather.py");
pub(crate) const LOOP: (&str, &str) = ("BaseEventLoop.run_forever", "/usr/lib/python3.11/asyncio/base_events.py");
const CERTIFICATES: (&str, &str) = ("create_default_context", "/usr/lib/python3.11/ssl.py");
const CLIENT: (&str, &str) = ("AsyncClient.__init__", "/v/lib/python3.11/site-packages/httpx/_client.py");
const SELECT: (&str, &str) = ("EpollSelector.select", "/usr/lib/python3.11/selectors.py");
const SPANS_THREAD: (&str, &str) = ("export", "/v/site-packages/opentelemetry/sdk/trace/export.py");

const MAPPER: (&str, &str) = ("Session.get", "/v/site-packages/sqlalchemy/orm/session.py");
const DRIVER: (&str, &str) = ("execute", "/v/site-packages/opentelemetry/instrumentation/psycopg/__init__.py");
const PANDAS: (&str, &str) = ("DataFrame.merge", "/v/site-packages/pandas/core/frame.py");

const BUILDS: &[(&str, &str)] = &[CERTIFICATES, CLIENT, OWN, LOOP];
const COMPUTES: &[(&str, &str)] = &[OWN, LOOP];
const BLOCKS: &[(&str, &str)] = &[OWN, LOOP];
const IDLE: &[(&str, &str)] = &[SELECT, LOOP];
const SPANS_STACK: &[(&str, &str)] = &[SPANS_THREAD];

/// When a timer is set and goes off, and the stack that sets it.
type Timer = (f64, f64, &'static [(&'static str, &'static str)]);

/// Five calls of 100 ms each over stdio, and what the server's program did in each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Inside<'i> {
    pub(crate) requests: &'i [Request],
    pub(crate) works: &'i [Work],
    /// Work of the first call; that of the others where it is empty.
    pub(crate) first_works: &'i [Work],
    /// Pauses of the runtime: beginning and end, in milliseconds from the call's request.
    pub(crate) pauses: &'i [(f64, f64)],
    /// Timers, in milliseconds from the call's request.
    pub(crate) timers: &'i [Timer],
}

impl Inside<'_> {
    pub(crate) fn recording(&self) -> Recording {
        let mut script = Script::stdio();
        script.spawn(0.0, 42, "python");
        let mut known = KnownStacks::default();
        for id in 0..5 {
            let at = 1_000.0 + 200.0 * id as f64;
            script.call("call", at - 1.0, at + 101.0);
            script.line(at, LineFrom::Client, Some(call_tool(0.0, id, Reply::Silence)));
            for request in self.requests {
                let mut span = Span { kind: SpanKind::Client, began: ms(at + request.from), ..Span::default() };
                for (name, value) in request.attributes {
                    span.add_attribute((name, &Redactor::new(1).attribute(name, value)));
                }
                script.event(at + request.to, EventKind::Span(Box::new(span)));
            }
            for (began, ended) in self.pauses {
                let (cause, began) = (PauseCause::GarbageCollection, ms(at + began));
                script.event(at + ended, EventKind::RuntimePause { pid: 42, cause, began });
            }
            for (began, ended, setter) in self.timers {
                let (stack, began) = (known.stack_id(&mut script, at, setter), ms(at + began));
                script.event(at + ended, EventKind::TimerFired { pid: 42, stack, began });
            }
            let works = if id == 0 && !self.first_works.is_empty() { self.first_works } else { self.works };
            let mut moment = 0.5;
            while moment < 100.0 {
                let work = works.iter().find(|work| work.from <= moment && moment < work.to);
                let (stack, running) = work.map_or((IDLE, false), |work| (work.stack, work.running));
                for (thread, (stack, running)) in [(1, (stack, running)), (2, (SPANS_STACK, true))] {
                    let stack = known.stack_id(&mut script, at, stack);
                    script.event(at + moment, EventKind::StackSample { pid: 42, thread, stack, running, lock: None });
                }
                moment += PERIOD;
            }
            script.line(at + 100.0, LineFrom::Server, Some(call_tool(0.0, id, Reply::Silence)));
        }
        script.recording()
    }
}

/// Stacks that are part of a recording.
#[derive(Default)]
struct KnownStacks(Vec<&'static [(&'static str, &'static str)]>);

impl KnownStacks {
    fn stack_id(&mut self, script: &mut Script, at: f64, stack: &'static [(&'static str, &'static str)]) -> StackId {
        let number = self.0.iter().position(|known| *known == stack).unwrap_or(self.0.len());
        let id = StackId(number as u64);
        if number == self.0.len() {
            self.0.push(stack);
            let frame = |(function, file): &(&str, &str)| StackFrame {
                function: (*function).to_owned(),
                file: (*file).to_owned(),
                line: 14,
            };
            script.event(at, EventKind::StackSeen { stack: id, frames: stack.iter().map(frame).collect() });
        }
        id
    }
}

/// Five calls, all alike.
pub(crate) fn looked_into(requests: &[Request], works: &[Work]) -> Recording {
    Inside { requests, works, ..Inside::default() }.recording()
}

pub(crate) fn request(from: f64, to: f64, attributes: &'static [(&'static str, &'static str)]) -> Request {
    Request { from, to, attributes }
}

pub(crate) fn running(from: f64, to: f64, stack: &'static [(&'static str, &'static str)]) -> Work {
    Work { from, to, running: true, stack }
}

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![building(), serial(), repeated(SQL), blocked(), slow()]
}

fn building() -> Recording {
    let requests = [request(30.0, 35.0, HTTP), request(60.0, 65.0, OTHER)];
    looked_into(&requests, &[running(0.0, 30.0, BUILDS), running(40.0, 60.0, BUILDS)])
}

fn serial() -> Recording {
    looked_into(&[request(0.0, 30.0, HTTP), request(31.0, 60.0, OTHER), request(60.0, 99.0, THIRD)], &[])
}

fn repeated(attributes: &'static [(&'static str, &'static str)]) -> Recording {
    let requests: Vec<Request> =
        (0..6).map(|number| request(15.0 * number as f64, 15.0 * number as f64 + 14.0, attributes)).collect();
    looked_into(&requests, &[])
}

fn blocked() -> Recording {
    looked_into(&[], &[Work { from: 10.0, to: 90.0, running: false, stack: BLOCKS }])
}

fn slow() -> Recording {
    looked_into(&[request(5.0, 95.0, HTTP)], &[])
}

pub(crate) fn only_tool(recording: &Recording) -> ToolTime {
    explain_recording(recording, None).tool_times.pop().unwrap()
}

#[test]
fn a_client_that_each_call_builds_is_named_with_its_line_and_its_gain() {
    let found = found(&building());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ClientBuiltPerCall(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.client.as_str(), context.built), ("httpx.AsyncClient", 2));
    assert_eq!((context.line.file.as_str(), context.line.line), ("/srv/weather.py", 14));
    assert_eq!(context.slowest_function, "create_default_context");
    assert!((ms(45.0)..=ms(55.0)).contains(&context.times.gain), "{context:?}");
}

#[test]
fn certificates_and_the_client_of_the_jdk_are_one_build_on_several_lines() {
    const OWN: (&str, &str) = ("Weather.secureClient", "com/example/Weather.java");
    const KEYS: (&str, &str) = ("KeyStore.getInstance", "jrt:/java.base/java/security/KeyStore.java");
    const TRUST: (&str, &str) = ("TrustManagerFactory.init", "jrt:/java.base/javax/net/ssl/TrustManagerFactory.java");
    const JAVA_CLIENT: (&str, &str) =
        ("HttpClientBuilderImpl.build", "jrt:/java.net.http/jdk/internal/net/http/HttpClientBuilderImpl.java");
    // Each part alone takes less than a tenth of the call.
    let works =
        [running(0.0, 5.0, &[KEYS, OWN]), running(5.0, 10.0, &[TRUST, OWN]), running(10.0, 15.0, &[JAVA_CLIENT, OWN])];
    let found = found(&looked_into(&[], &works));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ClientBuiltPerCall(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.line.function.as_str(), context.built), ("Weather.secureClient", 1));
    assert!((ms(11.0)..=ms(17.0)).contains(&context.times.gain), "{context:?}");
    assert_eq!(codes(&looked_into(&[], &works[..1])), [""; 0]);
}

#[test]
fn requests_one_after_another_are_named_with_what_all_but_the_longest_take() {
    let found = found(&serial());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::SerialDependencies(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.requests, context.longest), (3, ms(39.0)));
    assert_eq!((context.times.cause, context.times.gain), (ms(98.0 - PASS), ms(59.0 - PASS)));
}

#[test]
fn requests_that_overlap_are_no_cause() {
    let together = [request(0.0, 30.0, HTTP), request(1.0, 32.0, OTHER), request(2.0, 35.0, THIRD)];
    assert_eq!(codes(&looked_into(&together, &[])), [""; 0]);
}

#[test]
fn one_pattern_many_times_in_a_call_is_named_once() {
    for attributes in [SQL, ITEM] {
        let found = found(&repeated(attributes));
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let Cause::RepeatedDependencyCall(context) = &finding.cause else { panic!("{finding:?}") };
        assert_eq!((context.requests, context.times.cause), (6, ms(84.0 - PASS)));
        assert!(["SELECT * FROM t WHERE id = ?", "GET /items/{}"].contains(&context.pattern.as_str()), "{context:?}");
    }
}

#[test]
fn the_library_that_sends_each_statement_counts_as_a_part_of_the_requests() {
    let requests: Vec<Request> =
        (0..5).map(|number| request(20.0 * number as f64, 20.0 * number as f64 + 5.0, SQL)).collect();
    // Between two statements a library runs for 10 ms; the driver was once seen below the mapper.
    let sending: &[(&str, &str)] = &[DRIVER, MAPPER, OWN, LOOP];
    let gain = |between: &'static [(&'static str, &'static str)]| {
        let from = |number| 20.0 * f64::from(number) + 5.0;
        let mut works: Vec<Work> = (0..5).map(|number| running(from(number), from(number) + 10.0, between)).collect();
        works.push(running(15.0, 20.0, sending));
        let found = found(&looked_into(&requests, &works));
        let causes = found.iter().find_map(|finding| match &finding.cause {
            Cause::RepeatedDependencyCall(context) => Some(context.times.gain),
            _ => None,
        });
        causes.unwrap()
    };
    let statements = ms(20.0);
    assert!(gain(&[MAPPER, OWN, LOOP]) > statements + ms(40.0), "{:?}", gain(&[MAPPER, OWN, LOOP]));
    assert!(gain(&[PANDAS, OWN, LOOP]) < statements + ms(10.0), "{:?}", gain(&[PANDAS, OWN, LOOP]));
}

#[test]
fn a_wait_on_the_event_loops_thread_is_named_also_below_a_span() {
    for requests in [&[][..], &[request(10.0, 90.0, HTTP)]] {
        let recording = looked_into(requests, &[Work { from: 10.0, to: 90.0, running: false, stack: BLOCKS }]);
        let codes = codes(&recording);
        assert!(codes.contains(&"blocking-call-in-event-loop"), "{codes:?}");
    }
}

#[test]
fn one_request_that_takes_most_of_a_call_is_a_slow_dependency() {
    assert_eq!(codes(&slow()), ["slow-dependency"]);
    assert_eq!(codes(&looked_into(&[request(5.0, 40.0, HTTP)], &[])), [""; 0]);
}

#[test]
fn the_parts_of_a_tools_time_add_up_and_leave_the_instrumentation_out() {
    for recording in cases() {
        let tool = only_tool(&recording);
        let rows = tool.dependencies.iter().map(|row| row.time.0).chain(tool.packages.iter().map(|row| row.time.0));
        assert_eq!(rows.sum::<u64>() + tool.waiting.0 + tool.rest.0, tool.server.0);
        assert_eq!((tool.calls, tool.first_calls, tool.overlapping), (4, 1, 0));
        assert!(tool.packages.iter().all(|row| row.package.as_deref() != Some("opentelemetry")), "{tool:?}");
    }
    let tool = only_tool(&looked_into(&[request(50.0, 60.0, HTTP)], &[running(0.0, 50.0, COMPUTES)]));
    assert_eq!(tool.dependencies[0].time, ms(40.0));
    assert_eq!((tool.dependencies[0].name.as_str(), tool.dependencies[0].requests), ("api:80", 4));
    assert_eq!(tool.packages[0].package, None);
    assert_eq!(tool.lines[0].line.function, "forecast");
}

/// Running and waiting time of the outermost calls. Panics where a call takes less time than the calls within it.
fn outermost_times(flame: &FlameGraph) -> (u64, u64) {
    let mut within = vec![(0, 0); flame.nodes.len() + 1];
    for (number, node) in flame.nodes.iter().enumerate() {
        assert!((node.parent as usize) <= number, "{node:?} stands before its parent");
        let sums: &mut (u64, u64) = &mut within[node.parent as usize];
        *sums = (sums.0 + node.running.0, sums.1 + node.waiting.0);
    }
    for (node, sums) in flame.nodes.iter().zip(&within[1..]) {
        assert!(sums.0 <= node.running.0 && sums.1 <= node.waiting.0, "{node:?} is shorter than its calls: {sums:?}");
    }
    within[0]
}

fn running_and_waiting(tool: &ToolTime) -> (u64, u64) {
    (tool.packages.iter().map(|row| row.time.0).sum(), tool.waiting.0)
}

const FRAMES: [(&str, &str); 8] = [
    OWN,
    LOOP,
    CERTIFICATES,
    CLIENT,
    SELECT,
    ("helper", "/srv/weather.py"),
    ("<module>", "/srv/weather.py"),
    ("call_tool", "/v/site-packages/mcp/server.py"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_widths_of_a_flame_graph_add_up_to_the_times_of_the_table(
        works in prop::collection::vec((prop::collection::vec(0..FRAMES.len(), 1..9), any::<bool>(), 1..30_u8), 1..6),
        request_from in 0..100_u8,
    ) {
        let mut at = 0.0;
        let works: Vec<Work> = works
            .into_iter()
            .map(|(stack, running, length)| {
                let stack: Vec<(&str, &str)> = stack.into_iter().map(|frame| FRAMES[frame]).collect();
                let from = at;
                at += f64::from(length);
                Work { from, to: at, running, stack: stack.leak() }
            })
            .collect();
        let from = f64::from(request_from);
        let tool = only_tool(&looked_into(&[request(from, from + 20.0, HTTP)], &works));
        prop_assert_eq!(outermost_times(&tool.flame), running_and_waiting(&tool));
    }
}

#[test]
fn a_flame_graph_is_bounded_and_joins_what_is_small() {
    let stack = |number: usize| -> &'static [(&'static str, &'static str)] {
        let mut calls: Vec<(&str, &str)> = (0..150)
            .map(|depth| (&*format!("f{number}_{depth}").leak(), "/v/lib/python3.11/site-packages/deep/deep.py"))
            .collect();
        calls.extend([OWN, LOOP]);
        calls.leak()
    };
    let works: Vec<Work> =
        (0..20).map(|number| running(5.0 * number as f64, 5.0 * number as f64 + 5.0, stack(number))).collect();
    let tool = only_tool(&looked_into(&[], &works));
    assert!((1_000..=2_000).contains(&tool.flame.nodes.len()), "{}", tool.flame.nodes.len());
    assert!(tool.flame.nodes.iter().any(|node| node.frame.is_none()));
    assert_eq!(outermost_times(&tool.flame), running_and_waiting(&tool));
    assert!(tool.flame.frames.iter().all(|frame| !frame.file.starts_with("/v/")));
}

#[test]
fn a_flame_graph_begins_at_the_tool_and_sets_its_own_lines_apart() {
    let flame = only_tool(&building()).flame;
    let frames: Vec<_> = flame.nodes.iter().map(|node| &flame.frames[node.frame.unwrap() as usize]).collect();
    let told: Vec<_> = frames.iter().map(|frame| (frame.function.as_str(), frame.line, frame.origin)).collect();
    let expected = [
        ("forecast", Some(14), CodeOrigin::Own),
        ("AsyncClient.__init__", None, CodeOrigin::Library),
        ("create_default_context", None, CodeOrigin::Interpreter),
    ];
    assert_eq!(told, expected);
    assert_eq!(frames[1].file, "httpx/_client.py");
    let waits = only_tool(&blocked()).flame.nodes[0];
    assert_eq!((waits.running, waits.waiting), (ms(0.0), only_tool(&blocked()).waiting));
}

#[test]
fn a_calls_waterfall_has_a_lane_for_each_dependency() {
    let recording = looked_into(&[request(0.0, 30.0, HTTP), request(31.0, 60.0, OTHER), request(60.0, 90.0, SQL)], &[]);
    let lanes = call_waterfall(&recording, CallId(3)).unwrap().dependencies;
    let told: Vec<_> = lanes.iter().map(|lane| (lane.name.as_str(), lane.spans.len(), lane.left_out)).collect();
    assert_eq!(told, [("api:80", 2, 0), ("postgresql shop", 1, 0)]);
    let span = &lanes[0].spans[1];
    // The call begins one millisecond before its request.
    assert_eq!((span.pattern.as_str(), span.from, span.to), ("GET /other", 32_000_000, 61_000_000));
}

#[test]
fn lanes_are_bounded_and_left_out_where_calls_overlap() {
    let requests: Vec<Request> = (0..120).map(|_| request(1.0, 2.0, HTTP)).collect();
    let lanes = call_waterfall(&looked_into(&requests, &[]), CallId(3)).unwrap().dependencies;
    assert_eq!((lanes[0].spans.len(), lanes[0].left_out), (100, 20));
    let mut script = Script::stdio();
    let [first, second] = [(10.0, 50.0), (20.0, 60.0)].map(|(from, to)| script.call("call", from, to));
    script.event(45.0, EventKind::Span(Box::new(Span { kind: SpanKind::Client, began: ms(30.0), ..Span::default() })));
    let recording = script.recording();
    for call in [first, second] {
        assert_eq!(call_waterfall(&recording, call).unwrap().dependencies, []);
    }
}

#[test]
fn calls_that_overlap_are_told_and_left_out() {
    let mut script = Script::stdio();
    script.spawn(0.0, 42, "python");
    for id in 0..3 {
        script.line(10.0 + id as f64, LineFrom::Client, Some(call_tool(0.0, id, Reply::Silence)));
    }
    script.event(50.0, EventKind::Span(Box::new(Span { kind: SpanKind::Client, began: ms(20.0), ..Span::default() })));
    for id in 0..3 {
        script.line(100.0 + id as f64, LineFrom::Server, Some(call_tool(0.0, id, Reply::Silence)));
    }
    let tool = only_tool(&script.recording());
    assert_eq!((tool.calls, tool.overlapping), (0, 3));
}

#[test]
fn requests_that_overlap_cost_no_more_than_their_call() {
    let together: Vec<Request> = (0..20).map(|_| request(10.0, 60.0, ITEM)).collect();
    // One request for all would take as long as these.
    assert_eq!(codes(&looked_into(&together, &[])), [""; 0]);
    let endless: Vec<Request> = (0..6).map(|number| request(10.0 * f64::from(number), 1e6, SQL)).collect();
    let found = found(&looked_into(&endless, &[]));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::RepeatedDependencyCall(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.times.server, context.times.cause), (ms(100.0 - PASS), ms(100.0 - PASS)));
}

/// Looking for the innermost of the open spans anew at each moment would take minutes.
#[test]
fn many_spans_at_once_are_walked_once() {
    let mut script = Script::stdio();
    for id in 0..3 {
        let at = 100.0 * id as f64;
        script.line(at, LineFrom::Client, Some(call_tool(0.0, id, Reply::Silence)));
        for number in 0..60_000 {
            let began = ms(at + 1e-4 * f64::from(number));
            let mut span = Span { kind: SpanKind::Client, began, ..Span::default() };
            span.add_attribute(("db.system", "postgresql"));
            span.add_attribute(("db.statement", &format!("SELECT {number}")));
            span.name = format!("query {number}");
            script.event(at + 80.0, EventKind::Span(Box::new(span)));
        }
        script.line(at + 90.0, LineFrom::Server, Some(call_tool(0.0, id, Reply::Silence)));
    }
    assert_eq!(only_tool(&script.recording()).spans, 180_000);
}

#[test]
fn hostile_events_do_no_harm() {
    let mut script = Script::stdio();
    let at = 5.0;
    script.event(at, EventKind::StackSample { pid: 0, thread: 0, stack: StackId(u64::MAX), running: true, lock: None });
    script.event(at, EventKind::StackSeen { stack: StackId(7), frames: Vec::new() });
    script.event(at, EventKind::StackSample { pid: 0, thread: 0, stack: StackId(7), running: true, lock: None });
    let late = Span { kind: SpanKind::Client, began: ms(1e9), ..Span::default() };
    script.event(at, EventKind::Span(Box::new(late)));
    let reason = "x".repeat(100_000);
    script.event(at, EventKind::SourceMissing { source: EvidenceSource::Stacks, pid: None, reason });
    script.line(1.0, LineFrom::Client, Some(call_tool(0.0, 1, Reply::Silence)));
    script.line(9.0, LineFrom::Server, Some(call_tool(0.0, 1, Reply::Silence)));
    let explained = explain_recording(&script.recording(), None);
    assert_eq!(explained.tool_times[0].calls, 1);
    assert_eq!(explained.missing_sources.len(), 1);
}
