//! Any list of events at all: the parts add up, nothing panics, time stays about linear.

use mcpace_explain::{
    Family, Finding, Parts, call_ledgers, call_waterfall, explain_recording, explained_file, find_causes,
};
use mcpace_record::{
    CallId, CallOutcome, Closer, ConnectionId, Digest, Event, EventKind, ExchangeId, Header, Instrument, LineFrom,
    MessageKind, MessageNote, Nanos, PauseCause, Peer, Reader, Recording, RecordingHead, ReplyEnding, ServerTiming,
    Side, SocketCloser, SocketId, SocketTraffic, Span, SpanKind, StackFrame, StackId, TcpInfo, ThreadLock, Writer,
    digest_bytes,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::script::{Post, Reply, Script, call_tool, note, notification, request};

fn check(recording: &Recording) -> Result<(), TestCaseError> {
    let ledgers = call_ledgers(recording);
    for ledger in &ledgers {
        let whole = ledger.end.0 - ledger.start.0;
        let parts = ledger.parts;
        let parts = [
            parts.client_send,
            parts.connect,
            parts.request,
            parts.server,
            parts.response,
            parts.client_receive,
            parts.unaccounted,
        ];
        // In u128: a part that had gone below zero would show as a huge one.
        let sum: u128 = parts.iter().map(|part| u128::from(part.0)).sum();
        prop_assert_eq!(sum, u128::from(whole));
        if let Some(split) = &ledger.split {
            let layers = [split.transport, split.dispatch, split.service, split.rest];
            let sum: u128 = layers.iter().map(|layer| u128::from(layer.0)).sum();
            prop_assert_eq!(sum, u128::from(ledger.parts.server.0));
        }
        let mut cursor = ledger.start;
        for segment in ledger.segments.iter() {
            prop_assert_eq!(segment.from, cursor);
            prop_assert!(segment.to > segment.from);
            cursor = segment.to;
        }
        prop_assert_eq!(cursor, ledger.end);
        prop_assert!(call_waterfall(recording, ledger.call).is_some());
    }
    let found = find_causes(recording);
    for finding in &found {
        for cost in &finding.calls {
            let ledger = ledgers.iter().find(|ledger| ledger.call == cost.call);
            let whole = ledger.map_or(0, |ledger| ledger.end.0 - ledger.start.0);
            prop_assert!(cost.time.0 <= whole, "{:?} costs more than its call", finding);
        }
        for evidence in &finding.evidence {
            prop_assert!(evidence.event < recording.events().len());
        }
    }
    // A cause explains time once: no call is charged with more than it lasted.
    for ledger in &ledgers {
        let costs = found.iter().flat_map(|finding| &finding.calls);
        let costs = costs.filter(|cost| cost.call == ledger.call);
        let charged: u128 = costs.map(|cost| u128::from(cost.time.0)).sum();
        prop_assert!(charged <= u128::from(ledger.end.0 - ledger.start.0));
    }
    serde_json::to_string(&found).map_err(|e| TestCaseError::fail(e.to_string()))?;
    check_inside(recording, &found)?;
    // Read from a file, event by event, it tells the same.
    let file = written(recording);
    let read = explained_file(&mut Reader::events(file.as_slice()).unwrap(), None).unwrap();
    let accounts = &read.accounts;
    prop_assert_eq!(accounts.len(), ledgers.len());
    for ledger in &ledgers {
        let account = accounts.get(ledger.call).unwrap();
        prop_assert_eq!((account.start, account.end, account.parts), (ledger.start, ledger.end, ledger.parts));
        prop_assert_eq!(accounts.operation(account), &*ledger.operation);
        prop_assert_eq!(accounts.outcome(account), ledger.outcome.as_ref());
    }
    let sum = accounts.sum(ledgers.iter().map(|ledger| ledger.call));
    prop_assert_eq!(sum.calls, ledgers.len() as u64);
    prop_assert_eq!(
        sum.parts,
        ledgers.iter().map(|ledger| ledger.parts).fold(Parts::default(), |sum, parts| sum + parts)
    );
    prop_assert_eq!(sum.reported, ledgers.iter().filter(|ledger| ledger.server_timing.is_some()).count() as u64);
    let layers = [sum.layers.transport, sum.layers.dispatch, sum.layers.service, sum.layers.rest];
    prop_assert_eq!(layers.iter().fold(Nanos::ZERO, |sum, layer| sum + *layer), sum.parts.server);
    prop_assert_eq!(&read.findings, &found);
    prop_assert_eq!(read.events, recording.events().len() as u64);
    for shown in &read.waterfalls {
        prop_assert_eq!(call_waterfall(recording, shown.call), Some(shown.clone()));
    }
    // As if it were both before and behind a gateway.
    for finding in explain_recording(recording, Some(recording)).findings {
        for evidence in &finding.evidence {
            prop_assert!(evidence.event < recording.events().len());
        }
    }
    Ok(())
}

/// The rows of a tool's time add up, and no cause inside a tool takes or gains more than its calls last.
fn check_inside(recording: &Recording, found: &[Finding]) -> Result<(), TestCaseError> {
    for tool in explain_recording(recording, None).tool_times {
        let rows = tool.dependencies.iter().map(|row| row.time).chain(tool.packages.iter().map(|row| row.time));
        let sum: u128 = rows.chain([tool.waiting, tool.rest]).map(|time| u128::from(time.0)).sum();
        prop_assert_eq!(sum, u128::from(tool.server.0), "{:?}", tool);
    }
    for finding in found.iter().filter(|finding| finding.cause.kind().family() == Family::Inside) {
        let json = serde_json::to_value(&finding.cause).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let time = |name: &str| json["context"][name].as_u64();
        prop_assert!(time("gain_ns") <= time("cause_ns") && time("cause_ns") <= time("server_ns"), "{}", json);
    }
    Ok(())
}

fn written(recording: &Recording) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &recording.head).unwrap();
    recording.events().iter().for_each(|event| writer.write(event).unwrap());
    writer.finish().unwrap()
}

fn recording(instrument: Instrument, events: Vec<Event>) -> Recording {
    let head = RecordingHead::bare(instrument);
    Recording::new(head, events)
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Front), Just(Side::Back)]
}

fn conn() -> impl Strategy<Value = ConnectionId> {
    (0..4_u64).prop_map(ConnectionId)
}

fn ex() -> impl Strategy<Value = ExchangeId> {
    prop_oneof![9 => 0..6_u64, 1 => Just(u64::MAX)].prop_map(ExchangeId)
}

fn at() -> impl Strategy<Value = Nanos> {
    prop_oneof![9 => 0..5_000_000_000_u64, 1 => any::<u64>()].prop_map(Nanos)
}

fn message() -> impl Strategy<Value = MessageNote> {
    let kind = prop_oneof![
        Just(MessageKind::Request),
        Just(MessageKind::Notification),
        Just(MessageKind::Result),
        Just(MessageKind::Error),
    ];
    let method = text(&[
        "initialize",
        "tools/call",
        "tools/call",
        "tools/list",
        "server/discover",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/tools/list_changed",
    ]);
    let content = || option::of((1..3_u64).prop_map(Digest::new));
    let tools = option::of(prop_oneof![0..300_u32, Just(u32::MAX)]);
    let sizes = (content(), content(), tools);
    (kind, option::of(0..3_u64), option::of(method), sizes).prop_map(|(kind, id, method, sizes)| MessageNote {
        method,
        content: sizes.0,
        arguments: sizes.1,
        tools: sizes.2,
        timing: id.map(|id| ServerTiming {
            service: Nanos([u64::MAX, 5, 1_000][id as usize % 3]),
            ..ServerTiming::default()
        }),
        ..note(kind, id)
    })
}

fn text(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(values).prop_map(str::to_owned)
}

fn headers() -> impl Strategy<Value = Vec<Header>> {
    let header = (
        text(&["accept", "authorization", "mcp-session-id", "content-type", "connection", "last-event-id"]),
        text(&["text/event-stream", "application/x-www-form-urlencoded", "a", "b", "close"]),
    );
    vec(header.prop_map(|(name, value)| Header(name, value)), 0..3)
}

fn closer() -> impl Strategy<Value = Closer> {
    proptest::sample::select(&[Closer::Client, Closer::Server, Closer::Instrument][..])
}

fn ending() -> impl Strategy<Value = ReplyEnding> {
    let endings = &[
        ReplyEnding::Complete,
        ReplyEnding::Complete,
        ReplyEnding::ClientLeft,
        ReplyEnding::ServerBroke,
        ReplyEnding::NoReply,
        ReplyEnding::Cut,
    ];
    proptest::sample::select(&endings[..])
}

fn connection_event() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        conn().prop_map(|conn| EventKind::ConnectStart { conn, address: String::new() }),
        (side(), conn(), option::of(conn())).prop_map(|(side, conn, serves)| {
            EventKind::ConnectionOpened { side, conn, address: String::new(), serves }
        }),
        conn().prop_map(|conn| EventKind::TlsReady { conn, protocol: String::new() }),
        conn().prop_map(|conn| EventKind::ConnectFailed { conn, address: String::new(), reason: String::new() }),
        (side(), conn(), closer()).prop_map(|(side, conn, by)| EventKind::ConnectionClosed {
            side,
            conn,
            by,
            reason: None
        }),
    ]
}

fn request_event() -> impl Strategy<Value = EventKind> {
    let target = text(&["/mcp", "/.well-known/oauth-protected-resource"]);
    let method = text(&["POST", "POST", "GET", "DELETE"]);
    prop_oneof![
        (side(), conn(), ex(), method, target, headers()).prop_map(|(side, conn, ex, method, target, headers)| {
            EventKind::RequestHead { side, conn, ex, method, target, headers }
        }),
        (side(), ex(), any::<u64>(), 0..2_u8, vec(message(), 0..3)).prop_map(|(side, ex, bytes, body, messages)| {
            EventKind::RequestEnd { side, ex, bytes, digest: digest_bytes(&[body]), messages, body: None }
        }),
    ]
}

fn reply_event() -> impl Strategy<Value = EventKind> {
    let status = proptest::sample::select(&[200_u16, 200, 202, 307, 401, 404, 405, 500][..]);
    prop_oneof![
        (side(), ex(), status, headers())
            .prop_map(|(side, ex, status, headers)| { EventKind::ReplyHead { side, ex, status, headers } }),
        (side(), ex()).prop_map(|(side, ex)| EventKind::ReplyBodyStart { side, ex }),
        (side(), ex(), 0..3_u32, at(), vec(message(), 0..3)).prop_map(|(side, ex, seq, began, messages)| {
            EventKind::ReplyEvent { side, ex, seq, began, bytes: 1, event: None, id: None, messages, body: None }
        }),
        (side(), ex(), any::<u64>(), ending(), vec(message(), 0..3)).prop_map(|(side, ex, bytes, ending, messages)| {
            EventKind::ReplyEnd { side, ex, bytes, digest: digest_bytes(b""), ending, messages, body: None }
        }),
    ]
}

fn other_event() -> impl Strategy<Value = EventKind> {
    let from = [LineFrom::Client, LineFrom::Server, LineFrom::ServerStderr];
    let from = proptest::sample::select(from.to_vec());
    let call = || (0..4_u64).prop_map(CallId);
    let peer = proptest::sample::select(&[Peer::Client, Peer::Server][..]);
    let operation = text(&["connect", "list", "call", "disconnect"]);
    prop_oneof![
        (side(), from, at(), 0..3_u8, vec(message(), 0..3)).prop_map(|(side, from, began, line, messages)| {
            EventKind::StdioLine {
                side,
                from,
                began,
                bytes: 1,
                digest: digest_bytes(&[line]),
                messages,
                body: None,
                blocked: Nanos(began.0 % 1_000),
            }
        }),
        (0..3_u32).prop_map(|pid| EventKind::ProcessStarted { pid, program: "npx".to_owned() }),
        (0..3_u32).prop_map(|pid| EventKind::ProcessExited { pid, code: None, signal: None }),
        (call(), operation).prop_map(|(call, operation)| EventKind::CallStart { call, operation, tool: None }),
        (call(), any::<bool>()).prop_map(|(call, well)| {
            let outcome = if well { CallOutcome::Ok } else { CallOutcome::failed("no") };
            EventKind::CallEnd { call, outcome }
        }),
        (peer, 0..2_u32, at(), prop_oneof![0..u64::from(u32::MAX), any::<u64>()], any::<u32>())
            .prop_map(|(of, pid, cpu, resident, threads)| EventKind::ProcessSample { of, pid, cpu, resident, threads }),
        (option::of(ex()), option::of(Just("1".to_owned())))
            .prop_map(|(ex, id)| { EventKind::ServerTiming { ex, id, timing: ServerTiming::default() } }),
        any::<u64>().prop_map(|count| EventKind::EventsLost { count }),
        inside_event(),
        (at(), at()).prop_map(|(by, busy)| EventKind::InstrumentLate { by, busy }),
        (side(), conn(), at(), any::<u32>(), any::<u64>()).prop_map(|(side, conn, min_rtt, retransmitted, limited)| {
            let (rwnd_limited, sndbuf_limited) = (Nanos(limited), Nanos(limited / 2));
            let info = TcpInfo { min_rtt, retransmitted, rwnd_limited, sndbuf_limited, ..TcpInfo::default() };
            EventKind::TcpInfo { side, conn, info }
        }),
    ]
}

/// Evidence about the inside of a server's programs; spans that never end, contradict each other, or have no name.
fn inside_event() -> impl Strategy<Value = EventKind> {
    let files =
        &["/srv/weather.py", "/v/site-packages/httpx/_client.py", "/v/site-packages/pydantic/main.py", "<frozen x>"];
    let functions = &["forecast", "AsyncClient.__init__", "<module>", "run_forever", "", "\u{202e}"];
    let frame = (text(functions), text(files)).prop_map(|(function, file)| StackFrame { function, file, line: 7 });
    let stack = || prop_oneof![9 => 0..4_u64, 1 => any::<u64>()].prop_map(StackId);
    let socket = || (0..4_u64).prop_map(SocketId);
    let locks = [ThreadLock::HoldsInterpreter, ThreadLock::Waits, ThreadLock::WaitsLimited];
    let lock = option::of(proptest::sample::select(locks.to_vec()));
    let names = &["http.request.method", "url.full", "db.system", "db.statement", "server.address", "server.port"];
    let attribute = (text(names), text(&["GET", "http://h/1", "://", "", "SELECT ?", "\u{1b}[2J"]));
    prop_oneof![
        (at(), vec(attribute, 0..4)).prop_map(|(began, attributes)| {
            EventKind::Span(Box::new(Span { kind: SpanKind::Client, began, attributes, ..Span::default() }))
        }),
        (stack(), vec(frame, 0..4)).prop_map(|(stack, frames)| EventKind::StackSeen { stack, frames }),
        (stack(), any::<bool>(), lock).prop_map(|(stack, running, lock)| EventKind::StackSample {
            pid: 1,
            thread: 1,
            stack,
            running,
            lock
        }),
        (0..4_u64, at()).prop_map(|(stack, began)| EventKind::TimerFired { pid: 1, stack: StackId(stack), began }),
        at().prop_map(|began| EventKind::PoolWork { pid: 1, work: "files".to_owned(), began }),
        (0..4_u32, vec(0..4_u32, 0..4), at()).prop_map(|(pid, ancestors, began)| EventKind::ProcessRan {
            pid,
            ancestors,
            program: "git".to_owned(),
            began
        }),
        (socket(), option::of(at())).prop_map(|(socket, absent)| EventKind::SocketOpened {
            socket,
            pid: None,
            address: "10.0.0.5:5432".to_owned(),
            absent
        }),
        (socket(), at(), at(), any::<u64>(), any::<u64>()).prop_map(
            |(socket, sent_at, received_at, sent, received)| {
                let traffic = SocketTraffic { sent, received, last_sent: sent_at, last_received: received_at };
                EventKind::SocketTraffic { socket, traffic }
            }
        ),
        (socket(), any::<bool>()).prop_map(|(socket, established)| EventKind::SocketClosed {
            socket,
            established,
            by: Some(SocketCloser::Peer),
            info: None
        }),
        at().prop_map(|began| EventKind::RuntimePause { pid: 1, cause: PauseCause::GarbageCollection, began }),
    ]
}

/// Calls of one tool over stdio, one after another, with any evidence about them.
fn looked_into() -> impl Strategy<Value = Recording> {
    let times = (0..4_000_000_000_u64).prop_map(Nanos);
    let event = (times.clone(), times, inside_event()).prop_map(|(at, began, mut kind)| {
        match &mut kind {
            EventKind::Span(span) => span.began = began,
            EventKind::RuntimePause { began: own, .. } => *own = began,
            _ => {}
        }
        Event { at, kind }
    });
    (vec(10.0..800.0, 3..6), vec(event, 0..150)).prop_map(|(lengths, events)| {
        let mut script = Script::stdio();
        script.spawn(0.0, 1, "python");
        let mut at = 5.0;
        for (id, length) in lengths.into_iter().enumerate() {
            script.call("call", at, at + length + 2.0);
            script.line(at + 1.0, LineFrom::Client, Some(call_tool(0.0, id as u64, Reply::Silence)));
            script.line(at + 1.0 + length, LineFrom::Server, Some(call_tool(0.0, id as u64, Reply::Silence)));
            at += length + 3.0;
        }
        for event in events {
            script.event(event.at.0 as f64 / 1e6, event.kind);
        }
        script.recording()
    })
}

fn soup() -> impl Strategy<Value = Vec<Event>> {
    let kind = prop_oneof![
        2 => connection_event(),
        3 => request_event(),
        4 => reply_event(),
        3 => other_event(),
    ];
    vec((at(), kind).prop_map(|(at, kind)| Event { at, kind }), 0..120)
}

/// A dialogue as it could be: operations with requests one after the other, any reply, any gaps.
fn dialogue() -> impl Strategy<Value = Recording> {
    let step = (0..7_u8, 0.0..50.0, 0.0..400.0, 0.0..3000.0_f64, 1..4_u64);
    (any::<bool>(), vec((0.0..30.0, vec(step, 0..5)), 1..6)).prop_map(|(own, operations)| {
        let mut script = if own { Script::client() } else { Script::recorder() };
        let mut at = 0.0;
        for (pause, steps) in operations {
            let start = at + pause;
            at = start;
            for (kind, gap, server, hold, conn) in steps {
                let sent = at + gap;
                let result = sent + 0.2 + server;
                let json = Reply::Json(result, result + 1.0);
                let sse = Reply::Sse(sent + 0.2, result, Some(result + hold));
                let post = match kind {
                    0 => request(sent, 0, "initialize", sse),
                    1 => notification(sent, "notifications/initialized", result),
                    2 => request(sent, 1, "tools/list", json),
                    3 => call_tool(sent, 2, sse),
                    4 => call_tool(sent, 2, json),
                    5 => call_tool(sent, 2, Reply::Broken(sent + 0.2, result)),
                    _ => call_tool(sent, 2, Reply::Silence),
                };
                script.post(Post { conn, ..post });
                at = result + if kind == 3 { hold } else { 1.0 };
            }
            script.call("call", start, at + pause);
            at += pause;
        }
        script.recording()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn parts_add_up_in_any_soup(events in soup(), own in any::<bool>()) {
        let instrument = if own { Instrument::Client } else { Instrument::Recorder };
        check(&recording(instrument, events))?;
    }

    #[test]
    fn parts_add_up_with_any_evidence_about_the_inside(recording in looked_into()) {
        check(&recording)?;
    }

    #[test]
    fn parts_add_up_in_any_dialogue(recording in dialogue()) {
        check(&recording)?;
    }
}

/// Steps grow with the events, not with their square: a quadratic walk over these would take minutes and trip the test
/// run's own limit.
#[test]
fn large_recordings_are_walked_once() {
    let mut script = Script::recorder();
    for call in 0..20_000_u64 {
        let at = call as f64;
        // Calls that never return, streams that never end, one id for all.
        let start = EventKind::CallStart { call: CallId(call), operation: format!("operation {call}"), tool: None };
        script.event(at, start);
        script.get(call, at, Some(at + 0.5), None);
        script.post(Post { conn: call, ..call_tool(at, 1, Reply::Sse(at + 0.3, at + 0.4, Some(at + 0.45))) });
        script.connect_fails(call + 50_000, at, at + 0.1);
    }
    let recording = script.recording();
    assert_eq!(call_ledgers(&recording).len(), 20_000);
    assert!(find_causes(&recording).len() < 1000);
}
