use mcpace_record::{Closer, Digest, Header, MessageNote};

use super::durations::MOST_SERIES;
use super::*;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const BOUNDS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];

/// Counts of scripted events, 2 ms from one to the next.
struct Script {
    metrics: TrafficMetrics,
    now: Nanos,
}

impl Script {
    fn new() -> Self {
        Self { metrics: TrafficMetrics::new(&BOUNDS), now: Nanos::from_millis(1) }
    }

    fn note(&mut self, kind: EventKind) {
        self.now = self.now + Nanos::from_millis(2);
        self.metrics.count_batch(&[Event { at: self.now, kind }], true);
    }

    fn ask(&mut self, ex: u64, method: &str, headers: &[(&str, &str)], body: &str) {
        self.request_head(Side::Front, ex, method, headers);
        self.request_end(ex, body);
    }

    fn request_head(&mut self, side: Side, ex: u64, method: &str, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(name, value)| Header((*name).to_owned(), (*value).to_owned())).collect();
        let (ex, conn, method, target) = (ExchangeId(ex), ConnectionId(1), method.to_owned(), "/mcp".to_owned());
        self.note(EventKind::RequestHead { side, conn, ex, method, target, headers });
    }

    fn request_end(&mut self, ex: u64, body: &str) {
        let (side, messages, bytes) = (Side::Front, MessageNote::of(body.as_bytes()), body.len() as u64);
        let (ex, digest) = (ExchangeId(ex), Digest::new(0));
        self.note(EventKind::RequestEnd { side, ex, bytes, digest, messages, body: None });
    }

    fn post(&mut self, ex: u64, headers: &[(&str, &str)], body: &str) {
        self.ask(ex, "POST", headers, body);
    }

    fn begin_reply(&mut self, ex: u64, status: u16, content_type: &str) {
        let headers = vec![Header("content-type".to_owned(), content_type.to_owned())];
        self.note(EventKind::ReplyHead { side: Side::Back, ex: ExchangeId(ex), status, headers });
    }

    fn stream_event(&mut self, ex: u64, id: Option<&str>, body: &str) {
        self.note(EventKind::ReplyEvent {
            side: Side::Back,
            ex: ExchangeId(ex),
            seq: 0,
            began: self.now,
            bytes: 100,
            event: None,
            id: id.map(str::to_owned),
            messages: MessageNote::of(body.as_bytes()),
            body: None,
        });
    }

    fn end(&mut self, ex: u64, bytes: u64, ending: ReplyEnding, body: &str) {
        let (side, ex, messages) = (Side::Back, ExchangeId(ex), MessageNote::of(body.as_bytes()));
        self.note(EventKind::ReplyEnd { side, ex, bytes, digest: Digest::new(0), ending, messages, body: None });
    }

    fn answer(&mut self, ex: u64, body: &str) {
        self.begin_reply(ex, 200, "application/json");
        self.end(ex, body.len() as u64, ReplyEnding::Complete, body);
    }

    fn snapshot(&self) -> TrafficSnapshot {
        self.metrics.snapshot()
    }

    /// Requests by method and tool, error, and bucket.
    fn counts(&self) -> Vec<(String, String, Vec<u64>)> {
        let series = self.snapshot().durations;
        let one = |series: DurationSeries| {
            (format!("{} {}{}", series.method, series.tool, series.prompt), series.error, series.buckets)
        };
        let mut counts: Vec<_> = series.into_iter().map(one).collect();
        counts.sort();
        counts
    }

    fn only(&self) -> (String, Vec<u64>) {
        let mut counts = self.counts();
        assert_eq!(counts.len(), 1, "{counts:?}");
        let (_, error, buckets) = counts.remove(0);
        (error, buckets)
    }
}

fn call(id: u32, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

fn result(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

#[test]
fn requests_are_counted_by_tool_prompt_and_error() {
    let mut script = Script::new();
    for (ex, request, reply) in [
        (1, call(1, "add"), result(1)),
        (2, call(1, "add"), result(1)),
        (3, call(1, "add"), r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#.to_owned()),
        (4, call(1, "add"), r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#.to_owned()),
        (5, r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#.to_owned(), result(7).replace('7', r#""a""#)),
        (6, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"greeting"}}"#.to_owned(), result(1)),
        (7, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(), String::new()),
    ] {
        script.post(ex, &[], &request);
        script.answer(ex, &reply);
    }
    // 4 ms from the end of the request to the end of the reply.
    let row = |name: &str, error: &str, count| (name.to_owned(), error.to_owned(), vec![0, count, 0]);
    assert_eq!(
        script.counts(),
        [
            row("prompts/get greeting", "", 1),
            row("tools/call add", "", 2),
            row("tools/call add", "-32602", 1),
            row("tools/call add", "tool_error", 1),
            row("tools/list ", "", 1),
        ]
    );
    let snapshot = script.snapshot();
    let sums: f64 = snapshot.durations.iter().map(|series| series.sum).sum();
    assert!((sums - 0.024).abs() < 1e-9, "{sums}");
    assert_eq!((snapshot.unmeasured_requests, snapshot.open_exchanges), (0, 0));
}

#[test]
fn buckets_have_the_trace_of_their_latest_request() {
    let mut script = Script::new();
    let other = TRACE.replace("0af7", "1111");
    let own = call(1, "add").replace(r#""arguments""#, &format!(r#""_meta":{{"traceparent":"{other}"}},"arguments""#));
    for (ex, headers, body) in [(1, vec![("traceparent", TRACE)], call(1, "add")), (2, vec![], call(1, "add"))] {
        script.post(ex, &headers, &body);
        script.answer(ex, &result(1));
    }
    let exemplar = |script: &Script| script.snapshot().durations.remove(0).exemplars;
    let [None, Some(found), None] = &exemplar(&script)[..] else { panic!("{:?}", exemplar(&script)) };
    assert_eq!((found.trace_id.as_str(), found.span_id.as_str()), (&TRACE[3..35], &TRACE[36..52]));
    assert!((found.value - 0.004).abs() < 1e-9);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    assert!(found.timestamp <= now && found.timestamp > 0.0, "{found:?}");
    // The message's own trace comes first.
    script.post(3, &[("traceparent", TRACE)], &own);
    script.answer(3, &result(1));
    assert_eq!(exemplar(&script)[1].as_ref().unwrap().trace_id, other[3..35]);
    // One that the recorder began (`--traceparent`).
    let began = TRACE.replace("0af7", "2222");
    script.request_head(Side::Front, 4, "POST", &[]);
    script.request_head(Side::Back, 4, "POST", &[("traceparent", &began)]);
    script.request_end(4, &call(1, "add"));
    script.answer(4, &result(1));
    assert_eq!(exemplar(&script)[1].as_ref().unwrap().trace_id, began[3..35]);
}

#[test]
fn failed_exchanges_end_their_requests() {
    for (status, ending, error) in [
        (200, ReplyEnding::ServerBroke, "server_broke"),
        (200, ReplyEnding::ClientLeft, "cancelled"),
        (502, ReplyEnding::NoReply, "no_reply"),
        (200, ReplyEnding::Cut, "cut"),
        (404, ReplyEnding::Complete, "404"),
    ] {
        let mut script = Script::new();
        script.post(1, &[], &call(1, "add"));
        script.begin_reply(1, status, "text/html");
        script.end(1, 10, ending, "<html>");
        assert_eq!(script.only(), (error.to_owned(), vec![0, 1, 0]));
        let [exchange] = &script.snapshot().exchanges[..] else { panic!() };
        assert_eq!((exchange.status.as_str(), exchange.count), (&*format!("{}xx", status / 100), 1));
        assert_eq!((exchange.method, exchange.ending), ("POST", ending));
    }
}

#[test]
fn answers_on_other_streams_are_joined_within_a_session() {
    let (mine, others) = ([("mcp-session-id", "a")], [("mcp-session-id", "b")]);
    // The old transport: the answer comes after the request's own reply, or before it.
    for is_early in [false, true] {
        let mut script = Script::new();
        script.ask(1, "GET", &mine, "");
        script.begin_reply(1, 200, "text/event-stream");
        script.ask(2, "GET", &others, "");
        script.begin_reply(2, 200, "text/event-stream; charset=utf-8");
        script.post(3, &mine, &call(1, "add"));
        script.stream_event(2, None, &result(1));
        if is_early {
            script.stream_event(1, None, &result(1));
        }
        script.begin_reply(3, 202, "text/plain");
        script.end(3, 8, ReplyEnding::Complete, "Accepted");
        if !is_early {
            assert_eq!(script.counts(), []);
            script.stream_event(1, None, &result(1));
        }
        // 4 ms when it is early, and 8 ms when it is not; another session's answer is nobody's.
        assert_eq!(script.only(), (String::new(), vec![0, 1, 0]));
        let sum = script.snapshot().durations[0].sum;
        assert!((sum - if is_early { 0.004 } else { 0.008 }).abs() < 1e-9, "{sum}");
        assert_eq!(script.snapshot().open_streams, 2);
        // Kept for a request that never came, and older than the next one of that id.
        script.post(4, &others, &call(1, "add"));
        script.begin_reply(4, 202, "text/plain");
        script.end(4, 8, ReplyEnding::Complete, "Accepted");
        assert_eq!(script.only().1, [0, 1, 0]);
    }
}

#[test]
fn a_resumable_stream_may_break_off_and_bring_the_answer_later() {
    let session = [("mcp-session-id", "a")];
    let mut script = Script::new();
    script.post(1, &session, &call(1, "add"));
    script.begin_reply(1, 200, "text/event-stream");
    script.stream_event(1, Some("7"), "");
    script.end(1, 100, ReplyEnding::ServerBroke, "");
    script.ask(2, "GET", &session, "");
    script.begin_reply(2, 200, "text/event-stream");
    script.stream_event(2, Some("8"), &result(1));
    assert_eq!(script.only(), (String::new(), vec![0, 0, 1]));
}

#[test]
fn without_sessions_answers_are_joined_while_one_stream_is_open() {
    for (streams, expected) in [(1, 1), (2, 0)] {
        let mut script = Script::new();
        for ex in 1..=streams {
            script.ask(ex, "GET", &[], "");
            script.begin_reply(ex, 200, "text/event-stream");
        }
        script.post(3, &[], &call(1, "add"));
        script.begin_reply(3, 202, "text/plain");
        script.end(3, 8, ReplyEnding::Complete, "Accepted");
        script.stream_event(1, None, &result(1));
        assert_eq!(script.counts().len(), expected);
        // The stream that remains is the only one again.
        script.end(streams, 100, ReplyEnding::ClientLeft, "");
        assert_eq!(script.snapshot().open_streams, streams - 1);
    }
}

#[test]
fn a_request_whose_late_answer_never_comes_is_unmeasured() {
    let mut script = Script::new();
    script.post(1, &[], &call(1, "add"));
    script.begin_reply(1, 200, "text/event-stream");
    script.stream_event(1, Some("7"), "");
    script.end(1, 100, ReplyEnding::ServerBroke, "");
    assert_eq!(script.snapshot().unmeasured_requests, 0);
    script.now = script.now + LONGEST_LATE;
    script.ask(2, "GET", &[], "");
    assert_eq!((script.snapshot().unmeasured_requests, script.counts()), (1, vec![]));
}

#[test]
fn requests_in_open_exchanges_are_limited() {
    let mut script = Script::new();
    let calls: Vec<String> = (0..100).map(|id| call(id, "add")).collect();
    let batch = format!("[{}]", calls.join(","));
    let exchanges = (MOST_PENDING / calls.len()) as u64;
    for ex in 0..=exchanges {
        script.post(ex, &[], &batch);
    }
    assert_eq!(script.snapshot().unmeasured_requests, 100);
    script.answer(1, &result(7));
    script.post(exchanges + 1, &[], &batch);
    // There is room again for those of the exchange that ended.
    assert_eq!(script.snapshot().unmeasured_requests, 100);
}

#[test]
fn a_notification_cancels_a_request_of_its_own_session() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for (session, expected) in [("a", 1), ("b", 0)] {
        let mut script = Script::new();
        script.post(1, &[("mcp-session-id", "a")], &call(1, "add"));
        script.begin_reply(1, 200, "text/event-stream");
        script.post(2, &[("mcp-session-id", session)], cancel);
        script.end(1, 0, ReplyEnding::Complete, "");
        let cancelled = script.counts().iter().filter(|(_, error, _)| error == "cancelled").count();
        assert_eq!(cancelled, expected);
    }
}

#[test]
fn open_exchanges_streams_connections_and_bytes_are_counted() {
    let mut script = Script::new();
    for (side, conn) in [(Side::Front, 1), (Side::Front, 2), (Side::Back, 3), (Side::Back, 4)] {
        let (conn, address) = (ConnectionId(conn), String::new());
        script.note(EventKind::ConnectionOpened { side, conn, address, serves: None });
    }
    let (side, conn, by) = (Side::Front, ConnectionId(1), Closer::Client);
    script.note(EventKind::ConnectionClosed { side, conn, by, reason: None });
    // TLS failed on an open connection.
    script.note(EventKind::ConnectFailed { conn: ConnectionId(3), address: String::new(), reason: String::new() });
    script.post(1, &[], "12345");
    script.begin_reply(1, 200, "text/event-stream");
    script.stream_event(1, None, "");
    let found = script.snapshot();
    assert_eq!((found.client_connections, found.server_connections), (1, 1));
    assert_eq!((found.client_connections_opened, found.server_connections_opened, found.failed_connects), (2, 2, 1));
    assert_eq!((found.open_exchanges, found.open_streams), (1, 1));
    assert_eq!((found.request_bytes, found.reply_bytes), (5, 100));
    // The end tells the bytes of the events again.
    script.end(1, 130, ReplyEnding::Complete, "");
    let found = script.snapshot();
    assert_eq!((found.reply_bytes, found.open_exchanges, found.open_streams), (130, 0, 0));
    assert_eq!((found.events, found.lost_events), (11, 0));
    script.note(EventKind::EventsLost { count: 5 });
    let batch = [Event { at: script.now, kind: EventKind::ReplyBodyStart { side: Side::Back, ex: ExchangeId(9) } }];
    script.metrics.count_batch(&batch, false);
    let found = script.snapshot();
    assert_eq!((found.events, found.lost_events), (12, 6));
}

#[test]
fn names_and_ids_of_peers_take_bounded_room() {
    let mut script = Script::new();
    for number in 0..MOST_SERIES as u64 + 50 {
        script.post(number, &[], &call(1, &format!("tool{number}")));
        script.answer(number, &result(1));
    }
    assert_eq!(script.counts().len(), MOST_SERIES + 1);
    let others: Vec<_> = script.counts().into_iter().filter(|(name, _, _)| name == "other other").collect();
    assert_eq!(others, [("other other".to_owned(), String::new(), vec![0, 50, 0])]);
    // A batch of requests, long names, and methods that nobody knows.
    let mut script = Script::new();
    let batch: Vec<_> = (0..100).map(|id| call(id, &"é".repeat(500))).collect();
    script.ask(1, "PURGE", &[], &format!("[{}]", batch.join(",")));
    script.end(1, 0, ReplyEnding::ServerBroke, "");
    let found = script.snapshot();
    assert_eq!((found.unmeasured_requests, found.durations[0].buckets.iter().sum::<u64>()), (0, 100));
    assert_eq!(found.durations[0].tool, "é".repeat(128));
    assert_eq!((found.exchanges[0].method, found.exchanges[0].status.as_str()), ("_OTHER", ""));
    // Requests without an answer.
    let mut script = Script::new();
    for id in 0..MOST_LATE as u32 + 1 {
        script.post(u64::from(id), &[], &call(id, "add"));
        script.end(u64::from(id), 0, ReplyEnding::Complete, "");
    }
    assert_eq!(script.snapshot().unmeasured_requests, MOST_LATE as u64);
    assert_eq!(lock_mutex(&script.metrics.traffic).late.len(), 1);
    // Exchanges that lost their end.
    let mut script = Script::new();
    for ex in 0..=MOST_EXCHANGES as u64 {
        script.request_head(Side::Front, ex, "GET", &[]);
    }
    assert_eq!(script.snapshot().open_exchanges, 1);
    // A reply that ended before its request.
    script.end(MOST_EXCHANGES as u64, 0, ReplyEnding::Complete, "");
    script.request_end(MOST_EXCHANGES as u64, &call(1, "add"));
    assert_eq!(script.snapshot().unmeasured_requests, 1);
}
