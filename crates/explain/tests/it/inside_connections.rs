//! Servers whose connections were watched: new connections in each call, and dependencies that only connections show.

use mcpace_explain::{Cause, DependencyConnectionPerCall, DependencyKind, explain_recording};
use mcpace_record::{
    Event, EventKind, Instrument, LineFrom, Nanos, Recording, RecordingHead, SocketCloser, SocketId, SocketTraffic,
    Span, SpanKind, StackFrame, StackId, TcpInfo,
};

use crate::script::{Reply, Script, call_tool, ms};
use crate::{codes, found};

const ADDRESS: &str = "10.0.0.5:5432";

/// Milliseconds between two looks at the connections, and between two samples.
const PERIOD: f64 = 4.0;

/// A connection of one call, in milliseconds from the call's request.
#[derive(Clone, Copy)]
struct Connection {
    opened: f64,
    closed: Option<f64>,
    by: SocketCloser,
    established: bool,
    /// Whether it was seen while it was open.
    seen_open: bool,
    /// Milliseconds from the last look before it to its opening.
    after_look: f64,
    /// When a request was sent on it, and when the answer came.
    traffic: Option<(f64, f64)>,
}

const SHORT: Connection = Connection {
    opened: 10.0,
    closed: Some(90.0),
    by: SocketCloser::Program,
    established: true,
    seen_open: true,
    after_look: PERIOD / 2.0,
    traffic: Some((40.0, 80.0)),
};

/// A thread that waits at these times of each call, in functions with these files, the innermost first.
type Waits = (f64, f64, &'static [(&'static str, &'static str)]);

const CONNECTS: &[(&str, &str)] = &[
    ("Connection.connect", "/v/lib/python3.11/site-packages/psycopg/connection.py"),
    ("lookup", "/srv/orders.py"),
    ("Thread.run", "/usr/lib/python3.11/threading.py"),
];

/// Calls of 100 ms each over stdio. `of_call` tells the connections of each.
fn recording(
    calls: usize,
    of_call: impl Fn(usize) -> Vec<Connection>,
    waits: Option<Waits>,
    spans: &[(f64, f64)],
) -> Recording {
    let mut script = Script::stdio();
    script.spawn(0.0, 42, "python");
    let mut next = 0;
    if let Some((_, _, stack)) = waits {
        let frame = |(function, file): &(&str, &str)| StackFrame {
            function: (*function).to_owned(),
            file: (*file).to_owned(),
            line: 7,
        };
        let frames = stack.iter().map(frame).collect();
        script.event(1.0, EventKind::StackSeen { stack: StackId(0), frames });
    }
    for id in 0..calls {
        let at = 1_000.0 + 200.0 * id as f64;
        script.call("call", at - 1.0, at + 101.0);
        script.line(at, LineFrom::Client, Some(call_tool(0.0, id as u64, Reply::Silence)));
        for connection in of_call(id) {
            let socket = SocketId(next);
            next += 1;
            add_connection(&mut script, at, socket, connection);
        }
        for (from, to) in spans {
            let mut span = Span { kind: SpanKind::Client, began: ms(at + from), ..Span::default() };
            span.add_attribute(("db.system", "postgresql"));
            script.event(at + to, EventKind::Span(Box::new(span)));
        }
        let mut moment = 0.5;
        while let Some((from, to, _)) = waits.filter(|_| moment < 100.0) {
            if from <= moment && moment < to {
                let (stack, running, lock) = (StackId(0), false, None);
                script.event(at + moment, EventKind::StackSample { pid: 42, thread: 1, stack, running, lock });
            }
            moment += PERIOD;
        }
        script.line(at + 100.0, LineFrom::Server, Some(call_tool(0.0, id as u64, Reply::Silence)));
    }
    script.recording()
}

fn add_connection(script: &mut Script, at: f64, socket: SocketId, connection: Connection) {
    let Connection { opened, closed, by, established, seen_open, after_look, traffic } = connection;
    let info = Some(TcpInfo { min_rtt: ms(0.4), ..TcpInfo::default() });
    let address = ADDRESS.to_owned();
    let (pid, seen) = if seen_open { (Some(42), opened + PERIOD / 2.0) } else { (None, closed.unwrap_or(opened)) };
    let absent = Some(ms(at + opened - after_look));
    script.event(at + seen, EventKind::SocketOpened { socket, pid, address, absent });
    if let Some((sent, received)) = traffic {
        let asked = SocketTraffic { sent: 10, last_sent: ms(at + sent), ..SocketTraffic::default() };
        script.event(at + sent, EventKind::SocketTraffic { socket, traffic: asked });
        let answered = SocketTraffic { received: 99, last_received: ms(at + received), ..asked };
        script.event(at + received, EventKind::SocketTraffic { socket, traffic: answered });
    }
    if let Some(closed) = closed {
        script.event(at + closed, EventKind::SocketClosed { socket, established, by: Some(by), info });
    }
}

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![recording(5, |_| vec![SHORT], Some((10.0, 38.0, CONNECTS)), &[(40.0, 80.0)])]
}

fn connection_found(recording: &Recording) -> Option<DependencyConnectionPerCall> {
    found(recording).into_iter().find_map(|finding| match finding.cause {
        Cause::DependencyConnectionPerCall(context) => Some(context),
        _ => None,
    })
}

#[test]
fn a_connection_that_each_call_opens_is_named_with_the_time_that_it_takes() {
    let context = connection_found(&cases()[0]).unwrap();
    assert_eq!((context.address.as_str(), context.connections), (ADDRESS, 1));
    assert_eq!((context.line.file.as_str(), context.line.function.as_str()), ("/srv/orders.py", "lookup"));
    assert_eq!((context.dependency_closes, context.handshake, context.round_trip), (false, false, ms(0.4)));
    // From the opening, or from a sample before it, to the statement.
    assert!((ms(28.0)..=ms(34.0)).contains(&context.times.gain), "{context:?}");
}

#[test]
fn without_samples_and_spans_connecting_lasts_until_data_is_sent() {
    let context = connection_found(&recording(5, |_| vec![SHORT], None, &[])).unwrap();
    assert_eq!((context.times.cause, context.line.file.as_str()), (ms(30.0), ""));
}

#[test]
fn a_short_connection_belongs_to_the_call_in_which_it_ended_where_looks_are_rarer_than_calls() {
    let short = Connection { closed: Some(60.0), seen_open: false, after_look: 500.0, traffic: None, ..SHORT };
    let context = connection_found(&recording(6, |_| vec![short], Some((10.0, 38.0, CONNECTS)), &[])).unwrap();
    assert_eq!(context.connections, 1);
}

#[test]
fn connections_that_were_too_short_to_be_seen_count_as_well() {
    let short = Connection { closed: Some(12.0), seen_open: false, traffic: None, ..SHORT };
    let recording = recording(
        6,
        |_| vec![short, Connection { opened: 20.0, closed: Some(22.0), ..short }],
        Some((8.0, 26.0, CONNECTS)),
        &[],
    );
    let context = connection_found(&recording).unwrap();
    assert_eq!((context.connections, context.handshake), (2, false));
}

#[test]
fn a_dependency_that_closes_its_connections_is_told() {
    let closed = Connection { by: SocketCloser::Peer, ..SHORT };
    let context = connection_found(&recording(5, |_| vec![closed], Some((10.0, 38.0, CONNECTS)), &[])).unwrap();
    assert!(context.dependency_closes);
}

#[test]
fn connections_that_no_earlier_one_could_replace_are_no_cause() {
    let waits = Some((10.0, 38.0, CONNECTS));
    let kept = Connection { closed: None, ..SHORT };
    let refused = Connection { established: false, ..SHORT };
    // A client that keeps its connection, and a pool that opens one more in some of the calls.
    let first_only = recording(6, |id| if id == 0 { vec![kept] } else { Vec::new() }, waits, &[]);
    let some = recording(6, |id| if id % 2 == 0 { vec![kept] } else { Vec::new() }, waits, &[]);
    // The earlier connections wait for answers that come much later.
    let busy = recording(6, |_| vec![Connection { traffic: Some((40.0, 5_000.0)), ..kept }], waits, &[]);
    for recording in [first_only, some, busy, recording(6, |_| vec![refused], waits, &[])] {
        assert!(!codes(&recording).contains(&"dependency-connection-per-call"), "{:?}", found(&recording));
    }
    // Connecting takes a small part of a call.
    let quick = Connection { opened: 39.5, ..SHORT };
    assert_eq!(connection_found(&recording(6, |_| vec![quick], None, &[])), None);
}

#[test]
fn a_dependency_without_spans_is_named_by_its_connection() {
    // The first call of the process is left out.
    let kept = |id| if id == 1 { vec![Connection { closed: None, ..SHORT }] } else { Vec::new() };
    let explained = explain_recording(&recording(4, kept, None, &[]), None);
    let [tool] = explained.tool_times.as_slice() else { panic!("{:?}", explained.tool_times) };
    let [dependency] = tool.dependencies.as_slice() else { panic!("{tool:?}") };
    assert_eq!((dependency.kind, dependency.name.as_str()), (DependencyKind::Connection, ADDRESS));
    assert_eq!((dependency.time, dependency.requests), (ms(40.0), 0));
    assert_eq!(dependency.time + tool.rest, tool.server);
    // A thread that waits meanwhile keeps its line; a span says more than a connection.
    let explained = explain_recording(&recording(4, kept, Some((30.0, 90.0, CONNECTS)), &[]), None);
    assert_eq!(explained.tool_times[0].dependencies[0].time, ms(40.0));
    assert_eq!(explained.tool_times[0].lines[0].line.function, "lookup");
    let explained = explain_recording(&recording(4, kept, None, &[(40.0, 80.0)]), None);
    assert_eq!(explained.tool_times[0].dependencies[0].kind, DependencyKind::Database);
}

/// A scene of two calls of 100 ms with a sampled thread that waits in `lookup`, and these times of other processes.
fn with_programs(runs: &[(u32, &[u32], f64, f64)]) -> Recording {
    let mut events = recording(2, |_| Vec::new(), Some((0.0, 100.0, CONNECTS)), &[]).events().to_vec();
    for id in 0..2 {
        let at = 1_000.0 + 200.0 * f64::from(id);
        for &(pid, ancestors, from, to) in runs {
            let (program, began) = ("git".to_owned(), ms(at + from));
            let kind = EventKind::ProcessRan { pid, ancestors: ancestors.to_vec(), program, began };
            events.push(Event { at: ms(at + to), kind });
        }
    }
    events.sort_by_key(|event| event.at);
    Recording::new(RecordingHead::bare(Instrument::Client), events)
}

#[test]
fn a_program_that_the_server_started_is_named_while_it_computes() {
    let explained = explain_recording(&with_programs(&[(50, &[42], 20.0, 60.0), (51, &[50, 42], 50.0, 70.0)]), None);
    let tool = &explained.tool_times[0];
    let [dependency] = tool.dependencies.as_slice() else { panic!("{tool:?}") };
    assert_eq!((dependency.kind, dependency.name.as_str()), (DependencyKind::Program, "git"));
    assert_eq!((dependency.time, dependency.requests), (ms(100.0), 0));
    // The line that waits for it keeps its time.
    assert_eq!(tool.lines[0].line.function, "lookup");
    assert_eq!(tool.waiting + dependency.time + tool.rest, tool.server);
}

#[test]
fn work_on_threads_of_the_runtime_is_named_while_the_main_thread_is_idle() {
    let mut events = recording(2, |_| Vec::new(), None, &[(60.0, 80.0)]).events().to_vec();
    let kind = EventKind::PoolWork { pid: 42, work: "files".to_owned(), began: ms(1_010.0) };
    events.push(Event { at: ms(1_070.0), kind });
    events.sort_by_key(|event| event.at);
    let explained = explain_recording(&Recording::new(RecordingHead::bare(Instrument::Client), events), None);
    let tool = &explained.tool_times[0];
    let files = tool.dependencies.iter().find(|one| one.kind == DependencyKind::PoolWork).unwrap();
    // A span says more.
    assert_eq!((files.name.as_str(), files.time), ("files", ms(50.0)));
}

#[test]
fn a_process_that_is_the_server_or_that_started_it_is_no_other_program() {
    let explained = explain_recording(&with_programs(&[(42, &[7], 20.0, 60.0), (8, &[7], 20.0, 60.0)]), None);
    assert_eq!(explained.tool_times[0].dependencies, []);
}

#[test]
fn a_wait_that_lasts_past_the_call_belongs_to_no_call() {
    let subscribed = |id| match id {
        0 => vec![Connection { closed: None, traffic: Some((5.0, 450.0)), ..SHORT }],
        _ => Vec::new(),
    };
    let explained = explain_recording(&recording(3, subscribed, None, &[]), None);
    assert_eq!(explained.tool_times[0].dependencies.len(), 0);
}

#[test]
fn hostile_events_of_connections_do_no_harm() {
    let mut script = Script::stdio();
    let (socket, info) = (SocketId(u64::MAX), None);
    let address = "x".repeat(100_000);
    let (pid, absent) = (Some(1), Some(Nanos(u64::MAX)));
    script.event(5.0, EventKind::SocketOpened { socket, pid, address: address.clone(), absent });
    script.event(5.0, EventKind::SocketOpened { socket, pid, address, absent: None });
    script.event(5.0, EventKind::SocketClosed { socket: SocketId(1), established: true, by: None, info });
    let traffic =
        SocketTraffic { sent: u64::MAX, received: u64::MAX, last_sent: Nanos::ZERO, last_received: Nanos(u64::MAX) };
    script.event(6.0, EventKind::SocketTraffic { socket, traffic });
    script.line(1.0, LineFrom::Client, Some(call_tool(0.0, 1, Reply::Silence)));
    script.line(9.0, LineFrom::Server, Some(call_tool(0.0, 1, Reply::Silence)));
    script.event(9.5, EventKind::SocketClosed { socket, established: true, by: None, info });
    let explained = explain_recording(&script.recording(), None);
    assert_eq!(explained.tool_times[0].calls, 1);
}
