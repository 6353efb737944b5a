//! Traffic of simulated hosts with a simulated server, in virtual milliseconds.
//!
//! Each task of a host runs a list of operations. The task with the earliest next operation goes on, so that the server gets
//! requests in the order of their arrival, and its queues need no events of their own.

mod samples;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::LazyLock;

use mcpace_record::{
    Closer, ConnectionId, EventKind, LineFrom, MessageKind, MessageNote, Recording, ReplyEnding, Side, TcpInfo,
};

use super::dice::Dice;
use super::habits::{Concurrency, CostOf, Faults, GivesUp, Habits, Wire};
use crate::script::asides::{Stream, stream};
use crate::script::{PASS, Post, Reply, Script, ms, note, notification, request};

const MEBIBYTE: f64 = 1_048_576.0;
/// Milliseconds by which Linux delays an acknowledgement.
const ACKNOWLEDGEMENT: f64 = 40.0;
const SERVER: u32 = 4_711;
const METADATA: [&str; 2] = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"];

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| (0..20_000).map(|number| format!("s{number}")).collect());

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Pause(f64),
    /// An operation of the client program starts.
    Start(&'static str),
    Return,
    Connect,
    List,
    Call {
        service: f64,
        arguments: u64,
    },
    Ping,
    Delete,
    Discover,
}

/// A request or notification of a host.
#[derive(Clone, Copy)]
struct Message {
    method: &'static str,
    service: f64,
    arguments: Option<u64>,
    is_notification: bool,
}

impl Message {
    fn request(method: &'static str, service: f64) -> Self {
        Self { method, service, arguments: None, is_notification: false }
    }

    fn is_tool(&self) -> bool {
        self.method == "tools/call"
    }
}

#[derive(Default)]
struct Host {
    session: Option<&'static str>,
    token: Option<&'static str>,
    next_id: u64,
}

struct Task {
    host: usize,
    operations: VecDeque<Operation>,
    connection: Option<u64>,
    /// Replies that the connection has carried.
    carried: u64,
    started: Option<(&'static str, f64)>,
    /// Whether the operation that was started has failed.
    has_failed: bool,
    /// Time at which the last result was at the client.
    result: f64,
}

/// Queues of the server. Times are when each is free again.
struct Server {
    event_loop: f64,
    pool: Vec<f64>,
    sessions: HashMap<usize, f64>,
    replies: HashMap<usize, f64>,
}

/// The kernel's statistics of a front connection and of the one behind it.
#[derive(Default)]
struct Sockets {
    sampled: Option<f64>,
    resent: u32,
    /// Segments that were sent again without a pause.
    resent_early: u32,
    unread: f64,
    segments: u32,
}

/// Time spent, and what the server did.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) calls: u64,
    pub(super) call_time: f64,
    pub(super) connect_time: f64,
    pub(super) exchanges: u64,
}

pub(super) struct Traffic<'s> {
    pub(super) script: Script,
    habits: &'s Habits,
    faults: &'s Faults,
    dice: Dice,
    hosts: Vec<Host>,
    server: Server,
    connections: u64,
    /// Times at which the recorder's own connections stand.
    established: HashMap<u64, f64>,
    sockets: HashMap<u64, Sockets>,
    /// Chances of the network are drawn apart from all else.
    network: Dice,
    sessions: usize,
    early_heads: bool,
    pub(super) totals: Totals,
    /// Times at which requests were served, and at which sessions began.
    served: Vec<f64>,
    begun: Vec<f64>,
    /// Lines with requests over stdio: sent, answered, and the processor time that they cost the server.
    lines: Vec<(f64, f64, f64)>,
    pub(super) end: f64,
}

impl<'s> Traffic<'s> {
    pub(super) fn new(habits: &'s Habits, faults: &'s Faults, seed: u64) -> Self {
        let mut dice = Dice::from_seed(seed);
        let script = match habits.wire {
            Wire::Http => Script::recorder(),
            Wire::Stdio => Script::stdio(),
            Wire::OwnClient => Script::client(),
        };
        let slots = match faults.concurrency {
            Concurrency::ToolPool(slots) | Concurrency::RequestPool(slots) => slots,
            _ => 0,
        };
        Self {
            script,
            habits,
            faults,
            early_heads: dice.chance(0.5),
            dice,
            hosts: (0..habits.hosts).map(|_| Host::default()).collect(),
            server: Server {
                event_loop: 0.0,
                pool: vec![0.0; slots],
                sessions: HashMap::new(),
                replies: HashMap::new(),
            },
            connections: 0,
            established: HashMap::new(),
            sockets: HashMap::new(),
            network: Dice::from_seed(seed ^ 0x0071),
            sessions: 0,
            totals: Totals::default(),
            served: Vec::new(),
            lines: Vec::new(),
            begun: Vec::new(),
            end: 0.0,
        }
    }

    /// All hosts connect, then all tasks run.
    pub(super) fn run(&mut self, programs: Vec<(usize, Vec<Operation>)>) {
        let mut ready = 100.0_f64;
        let mut first_tasks = HashMap::new();
        for host in 0..self.hosts.len() {
            let start = 100.0 + host as f64 * self.dice.uniform(1.0, 400.0);
            let mut task = Task::new(host, vec![Operation::Start("connect"), Operation::Connect, Operation::Return]);
            if !self.faults.session_per_call {
                let mut at = start;
                while let Some(next) = self.step(&mut task, at) {
                    at = next;
                }
                ready = ready.max(at);
            }
            first_tasks.insert(host, task);
        }
        let mut queue = BinaryHeap::new();
        let mut tasks = Vec::new();
        for (host, operations) in programs {
            let at = if self.faults.waits_for_get.is_some() { ready } else { ready + self.dice.uniform(1.0, 30.0) };
            queue.push(Reverse((ms(at), tasks.len())));
            let mut task = first_tasks.remove(&host).unwrap_or_else(|| Task::new(host, Vec::new()));
            task.operations = operations.into();
            tasks.push(task);
        }
        while let Some(Reverse((at, number))) = queue.pop() {
            let at = at.0 as f64 / 1e6;
            self.end = self.end.max(at);
            if let Some(next) = self.step(&mut tasks[number], at) {
                queue.push(Reverse((ms(next), number)));
            }
        }
    }

    /// Does a task's next operation. Returns when the one after it starts.
    fn step(&mut self, task: &mut Task, at: f64) -> Option<f64> {
        let next = match task.operations.pop_front()? {
            Operation::Pause(pause) => at + pause,
            Operation::Start(operation) => {
                task.started = Some((operation, at));
                at + 0.05
            }
            Operation::Return => self.return_to_program(task, at),
            Operation::Connect => self.connect_host(task, at),
            Operation::List => self.list_tools(task, at),
            Operation::Call { service, arguments } => self.call_tool(task, at, service, arguments),
            Operation::Ping => self.send(task, at, &Message::request("ping", 0.2)),
            Operation::Delete => self.end_session(task, at),
            Operation::Discover => self.fetch_metadata(at, self.faults.rediscovery.unwrap_or(2.0)),
        };
        self.end = self.end.max(next);
        Some(next)
    }

    fn return_to_program(&mut self, task: &mut Task, at: f64) -> f64 {
        let Some((operation, from)) = task.started.take() else { return at };
        let held = if operation == "call" { self.faults.late_delivery.unwrap_or(0.0) } else { 0.0 };
        let to = at + 0.1 + held;
        if self.habits.marks {
            if std::mem::take(&mut task.has_failed) {
                self.script.failed_call(operation, from, to);
            } else {
                self.script.call(operation, from, to);
            }
        }
        if operation == "call" {
            self.totals.calls += 1;
            self.totals.call_time += to - from;
        } else {
            self.totals.connect_time += to - from;
        }
        to
    }

    // Connecting ------------------------------------------------------------------------------------------------------

    fn connect_host(&mut self, task: &mut Task, at: f64) -> f64 {
        let mut at = at;
        self.sessions += 1;
        let session = NAMES[self.sessions % NAMES.len()].as_str();
        let service = self.dice.uniform(0.5, 5.0);
        if self.habits.wire == Wire::Stdio {
            let start = self.faults.slow_start.unwrap_or_else(|| self.dice.uniform(60.0, 700.0));
            self.script.spawn(at, SERVER, "python");
            let answered = self.line_exchange(task, at + 1.0, &Message::request("initialize", start));
            return self.send(task, answered + 0.2, &initialized());
        }
        if self.faults.probing {
            let conn = self.free_connection(task, at);
            let back = self.sent_on(conn.0, conn.1) + self.round_trip() + 2.0;
            let refused = request(conn.1, 0, "initialize", Reply::Json(back, back + 0.2));
            self.script.post(Post { status: 405, conn: conn.0, ..refused });
            let tried = Stream { session: None, status: 405, content_type: "text/plain", ..stream(0.0, 0.0, None) };
            let from = back + 1.0;
            let to = from + self.round_trip() + 2.0;
            self.script.open(conn.0, Stream { at: from, head: to, end: Some(to + 0.1), ..tried });
            at = to + 0.5;
        }
        if self.habits.token {
            self.hosts[task.host].token = Some(NAMES[task.host].as_str());
            let (conn, from) = self.free_connection(task, at);
            let back = self.sent_on(conn, from + 0.1) + self.round_trip() + 0.5;
            let refused = request(from, 0, "initialize", Reply::Json(back, back + 0.1));
            self.script.post(Post { status: 401, conn, error: true, ..refused });
            at = self.fetch_metadata(back + 1.0, 4.0);
        }
        let (conn, from) = self.free_connection(task, at);
        let arrival = self.sent_on(conn, from) + self.round_trip() / 2.0;
        let cost = self.faults.constant_cost.filter(|(_, of)| *of != CostOf::Sessions).map_or(0.0, |(cost, _)| cost);
        let (_, done) = self.serve(task.host, arrival, service + cost, false);
        let done = done + self.round_trip() / 2.0;
        let given = self.habits.session_ids.then_some(session);
        self.script.begin_with_token(conn, from, given, self.hosts[task.host].token, done);
        self.carry(task);
        self.hosts[task.host].session = self.habits.session_ids.then_some(session);
        self.begun.push(done);
        let ready = self.send(task, done + 0.3, &initialized());
        match (self.faults.waits_for_get, self.habits.standalone_stream) {
            (None, false) => ready,
            (waits, _) => {
                let conn = self.new_connection(ready);
                let head = self.sent_on(conn.0, conn.1)
                    + self.round_trip()
                    + waits.unwrap_or_else(|| self.dice.uniform(0.5, 3_000.0));
                self.script.session_get(conn.0, conn.1, head, self.hosts[task.host].session);
                if waits.is_some() { head + 0.5 } else { ready }
            }
        }
    }

    fn end_session(&mut self, task: &mut Task, at: f64) -> f64 {
        let (conn, at) = self.free_connection(task, at);
        let done = self.sent_on(conn, at) + self.round_trip() + 0.5;
        if let Some(session) = self.hosts[task.host].session {
            self.script.delete(conn, at, session, done);
        }
        done + PASS
    }

    fn fetch_metadata(&mut self, at: f64, time: f64) -> f64 {
        let mut at = at;
        for target in METADATA {
            let (conn, from) = self.new_connection(at);
            at = self.sent_on(conn, from) + self.round_trip() + time / 2.0;
            self.script.fetch(conn, from, target, at, 200);
            at += PASS + 0.1;
        }
        at
    }

    /// The task's connection, opened where there is none, and when it can take a request.
    fn free_connection(&mut self, task: &mut Task, at: f64) -> (u64, f64) {
        match task.connection {
            Some(conn) if !self.faults.connection_per_request => (conn, at),
            old => {
                if let (Some(old), true) = (old, self.faults.connection_per_request) {
                    let side = if self.habits.wire == Wire::OwnClient { Side::Back } else { Side::Front };
                    self.script.close(side, old, at, Closer::Client);
                }
                let (conn, ready) = self.new_connection(at);
                task.connection = Some(conn);
                task.carried = 0;
                (conn, ready)
            }
        }
    }

    /// Front connections have the first half of each two hundred numbers, and those behind them the other.
    fn new_connection(&mut self, at: f64) -> (u64, f64) {
        let number = self.connections;
        self.connections += 1;
        let conn = number / 100 * 200 + number % 100;
        let failing = self.faults.dead_address.unwrap_or(0.0);
        if self.habits.wire == Wire::OwnClient {
            if failing > 0.0 {
                self.script.connect_fails(conn + 100_000, at, at + failing);
            }
            let from = at + failing + 0.02;
            self.script.connect(conn, from, from + self.round_trip(), None);
            return (conn, from + self.round_trip() + 0.05);
        }
        self.script.accept(conn, at);
        let established = at + PASS + self.round_trip();
        self.script.connect(conn + 100, at + PASS, established, Some(conn));
        self.established.insert(conn, established);
        (conn, at + 0.1)
    }

    fn round_trip(&self) -> f64 {
        self.habits.round_trip + self.faults.distance.unwrap_or(0.0)
    }

    /// Time for which a segment of a connection's request or reply is lost. Each loss of the same segment doubles the
    /// kernel's time-out. The server's kernel counts the segments of replies.
    fn lose_segment(&mut self, conn: u64, is_request: bool) -> f64 {
        let Some(part) = self.faults.loss else { return 0.0 };
        let (mut lost, mut timeout) = (0.0, 200.0 + self.round_trip());
        while lost < 3_000.0 && self.network.chance(part) {
            lost += timeout * self.network.uniform(1.0, 1.1);
            timeout *= 2.0;
            self.sockets.entry(conn).or_default().resent += u32::from(is_request);
        }
        lost
    }

    /// Samples both sockets of a front connection, at most ten times a second.
    fn sample_sockets(&mut self, conn: u64, at: f64) {
        if !self.habits.tcp_samples {
            return;
        }
        let rtt = self.round_trip().max(0.03);
        let delayed = self.network.uniform(0.0, 30.0);
        let resends = self.network.chance(0.0005);
        let sockets = self.sockets.entry(conn).or_default();
        sockets.segments += 2;
        sockets.resent_early += u32::from(resends);
        if sockets.sampled.is_some_and(|last| at - last < 100.0) {
            return;
        }
        sockets.sampled = Some(at);
        let segments = sockets.segments;
        let info = TcpInfo { segments_out: segments, segments_in: segments, ..TcpInfo::default() };
        let front = TcpInfo { rtt: ms(0.05 + delayed), min_rtt: ms(0.03), rwnd_limited: ms(sockets.unread), ..info };
        let retransmitted = sockets.resent + sockets.resent_early;
        let back = TcpInfo { rtt: ms(rtt + delayed), min_rtt: ms(rtt), retransmitted, ..info };
        for (side, conn, info) in [(Side::Front, conn, front), (Side::Back, conn + 100, back)] {
            self.script.event(at, EventKind::TcpInfo { side, conn: ConnectionId(conn), info });
        }
    }

    /// Time at which a request that is sent at `at` goes to the server.
    fn sent_on(&self, conn: u64, at: f64) -> f64 {
        at.max(self.established.get(&conn).copied().unwrap_or(0.0))
    }

    fn carry(&mut self, task: &mut Task) {
        task.carried += 1;
        self.totals.exchanges += 1;
    }

    // Requests --------------------------------------------------------------------------------------------------------

    fn list_tools(&mut self, task: &mut Task, at: f64) -> f64 {
        let service = self.dice.uniform(0.5, 3.0);
        self.send(task, at, &Message::request("tools/list", service))
    }

    fn call_tool(&mut self, task: &mut Task, at: f64, service: f64, arguments: u64) -> f64 {
        let mut at = at;
        if let Some(gives_up) = self.faults.gives_up
            && (self.dice.chance(gives_up.part) || !gives_up.repeats && service > gives_up.limit)
        {
            at = self.give_call_up(task, at, gives_up, arguments);
            if !gives_up.repeats {
                task.has_failed = true;
                return at;
            }
        }
        let call = Message { arguments: Some(arguments), ..Message::request("tools/call", service) };
        self.send(task, at, &call)
    }

    /// A call that takes longer than its client waits.
    fn give_call_up(&mut self, task: &mut Task, at: f64, gives_up: GivesUp, arguments: u64) -> f64 {
        let id = self.next_id(task);
        let late = if gives_up.repeats { 0.0 } else { self.dice.uniform(0.0, 20.0) };
        let until = at + gives_up.limit + late;
        let about = |method, at| Post { id: Some(id), ..notification(at, method, at + 1.0) };
        let progress = (1..=gives_up.progress)
            .map(|number| (number, at + gives_up.limit * f64::from(number) / f64::from(gives_up.progress + 1)));
        let asked =
            Post { name: Some("greet"), arguments: Some(arguments), ..request(at, id, "tools/call", Reply::Silence) };
        if self.habits.wire == Wire::Stdio {
            self.script.line(at, LineFrom::Client, Some(asked.clone()));
            for (_, at) in progress {
                self.script.line(at, LineFrom::Server, Some(about("notifications/progress", at)));
            }
            if gives_up.cancels {
                self.script.line(until, LineFrom::Client, Some(about("notifications/cancelled", until)));
                let answered = until + self.dice.magnitude(5.0, 5_000.0);
                self.script.line(answered, LineFrom::Server, Some(asked));
                self.end = self.end.max(answered);
            }
            return until;
        }
        let (conn, from) = self.free_connection(task, at);
        let host = &self.hosts[task.host];
        let (session, token) = (host.session, host.token);
        let ex = self.script.post(Post { at: from, conn, session, token, ..asked });
        if gives_up.progress > 0 {
            self.script.head(ex, self.sent_on(conn, from) + self.round_trip() + 0.5, 200, Some("text/event-stream"));
        }
        for (number, at) in progress {
            self.script.stream_event(ex, number, at + self.round_trip(), vec![progress_note()]);
        }
        if gives_up.cancels {
            let (conn, from) = self.new_connection(until);
            let back = self.sent_on(conn, from) + self.round_trip() + 0.5;
            let told =
                Post { reply: Reply::Empty(back), conn, session, token, ..about("notifications/cancelled", from) };
            self.script.post(told);
        }
        self.script.reply_end(ex, until, ReplyEnding::ClientLeft, "", Vec::new());
        task.connection = None;
        until + 0.5
    }

    fn next_id(&mut self, task: &Task) -> u64 {
        let host = &mut self.hosts[task.host];
        host.next_id += 1;
        host.next_id
    }

    /// Sends a message. Returns when its sender goes on.
    fn send(&mut self, task: &mut Task, at: f64, message: &Message) -> f64 {
        if self.habits.wire == Wire::Stdio {
            return self.line_exchange(task, at, message);
        }
        let (conn, mut at) = self.free_connection(task, at);
        let id = if message.is_notification { 0 } else { self.next_id(task) };
        let (session, token) = (self.hosts[task.host].session, self.hosts[task.host].token);
        let like = if message.is_notification {
            notification(at, message.method, 0.0)
        } else {
            request(at, id, message.method, Reply::Silence)
        };
        let post = Post {
            conn,
            session,
            token,
            name: message.is_tool().then_some("greet"),
            arguments: message.arguments,
            content: Some(message.arguments.unwrap_or(0)),
            result: (message.method == "tools/list").then_some(u64::from(self.habits.tools)),
            tools: (message.method == "tools/list").then_some(self.habits.tools),
            bytes: (message.method == "tools/list").then(|| self.listing_bytes()),
            ..like
        };
        if self.faults.redirect {
            let sent_on = self.sent_on(conn, at) + self.round_trip() + 0.3;
            self.script.post(Post { at, status: 307, reply: Reply::Empty(sent_on), ..post.clone() });
            self.carry(task);
            at = sent_on + PASS + 0.1;
        }
        let target = if self.faults.redirect { "/mcp/" } else { "/mcp" };
        let post = Post { at, target, ..post };
        let done = self.answered_post(task, message, post.clone());
        if !message.is_notification && self.faults.duplicates > 0.0 && self.dice.chance(self.faults.duplicates) {
            let conn = task.connection.unwrap_or(post.conn);
            return self.answered_post(task, message, Post { at: done + 0.3, conn, ..post });
        }
        done
    }

    /// Sends `post`, whose reply is still to be worked out.
    fn answered_post(&mut self, task: &mut Task, message: &Message, post: Post) -> f64 {
        let trip = self.round_trip();
        let conn = post.conn;
        let lost = self.lose_segment(conn, true);
        let arrival = self.sent_on(conn, post.at + post.sending) + lost + trip / 2.0;
        let cost = self.cost_of(&post);
        let service = message.service + cost;
        let (start, done) = self.serve(task.host, arrival, service, message.is_tool());
        let back = done + self.lose_segment(conn, false) + trip / 2.0;
        let read = self.reading_time(message);
        self.carry(task);
        task.result = back + PASS;
        if message.is_notification {
            self.script.post(Post { reply: Reply::Empty(back), ..post });
            self.sample_sockets(conn, back + 2.0 * PASS);
            return back + PASS;
        }
        // Either the reply fits the kernel's buffer, and its end is there at once, or it comes as the client reads.
        let (in_time, later) = if self.early_heads { (read, 0.0) } else { (0.0, read) };
        if !self.habits.event_streams {
            let waits = self.faults.delayed_ack && task.carried > 2;
            let last = back + if waits { self.dice.uniform(ACKNOWLEDGEMENT, ACKNOWLEDGEMENT + 3.0) } else { 0.05 };
            let last = last + in_time;
            let bytes = post.bytes.or_else(|| (read > 0.0).then_some(400_000));
            self.script.post(Post { reply: Reply::Json(back, last), bytes, ..post });
            return self.end_reply(conn, last, in_time, later);
        }
        let head = if self.early_heads { start + trip / 2.0 + 0.1 } else { back - 0.05 };
        let back = back + in_time;
        let end = back + self.habits.stream_end;
        if self.faults.undrained {
            let left = back + 0.3;
            self.script.post(Post { reply: Reply::Left(head, back, left), ..post });
            task.connection = None;
            return back + PASS;
        }
        let ex = self.script.post(Post { reply: Reply::Sse(head, back, Some(end)), ..post });
        self.add_progress(ex, message, start + trip / 2.0, back);
        self.end_reply(conn, end, in_time, later)
    }

    fn reading_time(&mut self, message: &Message) -> f64 {
        let reads = self.faults.slow_reader.filter(|_| message.is_tool());
        reads.map_or(0.0, |time| time * self.network.uniform(0.7, 1.3))
    }

    /// The end of a reply, which the client took some time to read. Returns when it goes on.
    fn end_reply(&mut self, conn: u64, end: f64, in_time: f64, later: f64) -> f64 {
        // A client that reads at once leaves a large reply waiting for a moment.
        let usual = self.network.uniform(0.0, 1.0);
        self.sockets.entry(conn).or_default().unread += in_time * 0.95 + usual;
        self.sample_sockets(conn, end + 2.0 * PASS);
        self.sockets.entry(conn).or_default().unread += later * 0.95;
        end + PASS + later
    }

    fn add_progress(&mut self, ex: mcpace_record::ExchangeId, message: &Message, from: f64, to: f64) {
        if !message.is_tool() {
            return;
        }
        for number in 1..=self.habits.progress {
            let at = from + (to - from) * f64::from(number) / f64::from(self.habits.progress + 1);
            let at = if self.faults.buffered_progress { to - 0.02 } else { at };
            self.script.stream_event(ex, number, at, vec![progress_note()]);
        }
    }

    fn cost_of(&self, post: &Post) -> f64 {
        match self.faults.constant_cost {
            Some((cost, CostOf::All)) => cost,
            Some((cost, CostOf::Tokens)) if post.token.is_some() => cost,
            Some((cost, CostOf::Sessions)) if post.session.is_some() => cost,
            _ => 0.0,
        }
    }

    fn listing_bytes(&self) -> u64 {
        self.faults.listing_bytes.unwrap_or(u64::from(self.habits.tools) * 600)
    }

    fn line_exchange(&mut self, task: &mut Task, at: f64, message: &Message) -> f64 {
        let id = self.next_id(task);
        let like = if message.is_notification {
            notification(at, message.method, 0.0)
        } else {
            request(at, id, message.method, Reply::Silence)
        };
        let is_list = message.method == "tools/list";
        let post = Post {
            name: message.is_tool().then_some("greet"),
            arguments: message.arguments,
            content: Some(message.arguments.unwrap_or(0)),
            result: is_list.then_some(u64::from(self.habits.tools)),
            tools: is_list.then_some(self.habits.tools),
            ..like
        };
        self.script.line(at, LineFrom::Client, Some(post.clone()));
        self.carry(task);
        if message.is_notification {
            return at + 2.0 * PASS;
        }
        let cost = self.faults.constant_cost.filter(|(_, of)| *of == CostOf::Processor).map_or(0.0, |(cost, _)| cost);
        let (_, done) = self.serve(task.host, at + 0.1, message.service + cost, message.is_tool());
        self.lines.push((at + PASS, done, cost + self.habits.processor.min(message.service)));
        let size = if is_list { self.listing_bytes() } else { 200 };
        self.script.sized_line(done, LineFrom::Server, Some(post), size);
        task.result = done + PASS;
        done + 2.0 * PASS
    }

    // The server ------------------------------------------------------------------------------------------------------

    /// When the server starts a request and when it has the answer.
    fn serve(&mut self, host: usize, arrival: f64, service: f64, is_tool: bool) -> (f64, f64) {
        let queue = &mut self.server;
        let start_at = |free: f64| arrival.max(free);
        let (start, done) = match self.faults.concurrency {
            Concurrency::Parallel => (arrival, arrival + service),
            Concurrency::EventLoop => {
                let start = start_at(queue.event_loop);
                queue.event_loop = start + if is_tool { service } else { service.min(0.3) };
                (start, start + service)
            }
            Concurrency::ToolPool(_) if !is_tool => (arrival, arrival + service),
            Concurrency::ToolPool(_) | Concurrency::RequestPool(_) => {
                let free = queue.pool.iter_mut().min_by(|a, b| a.total_cmp(b));
                let Some(free) = free else { return (arrival, arrival + service) };
                let start = arrival.max(*free);
                *free = start + service;
                (start, start + service)
            }
            Concurrency::SessionSerial => {
                let free = queue.sessions.entry(host).or_default();
                let start = arrival.max(*free);
                *free = start + service;
                (start, start + service)
            }
            Concurrency::RepliesInOrder => {
                let last = queue.replies.entry(host).or_default();
                *last = last.max(arrival + service);
                (arrival, *last)
            }
        };
        self.served.push(done);
        (start, done)
    }

    // Loops -----------------------------------------------------------------------------------------------------------

    /// Opens the standalone stream again and again. Each ends at once.
    pub(super) fn loop_streams(&mut self, period: f64) {
        let number = self.dice.count(5, 80);
        let (conn, mut at) = self.new_connection(self.end / 4.0 + 300.0);
        let session = self.hosts[0].session;
        for _ in 0..number {
            let head = self.sent_on(conn, at) + self.round_trip() + 1.0;
            self.script.open(conn, Stream { session, ..stream(at, head, Some(head + 2.0)) });
            at += period.max(head + 5.0 - at) * self.dice.uniform(1.0, 1.01);
        }
        self.end = self.end.max(at);
    }

    /// Repeats a request that the server refuses.
    pub(super) fn retry_refused(&mut self, status: u16, pause: f64) {
        let number = self.dice.count(12, 120);
        let (conn, mut at) = self.new_connection(self.end / 4.0 + 300.0);
        let session = self.hosts[0].session;
        for _ in 0..number {
            let id = 100_000 + self.totals.exchanges;
            self.totals.exchanges += 1;
            let back = self.sent_on(conn, at) + self.round_trip() + 1.0;
            let refused = Post {
                status,
                conn,
                session,
                error: true,
                name: Some("greet"),
                content: Some(1),
                arguments: Some(1),
                ..request(at, id, "tools/call", Reply::Json(back, back + 0.1))
            };
            self.script.post(refused);
            at = back + pause * self.dice.uniform(1.0, 1.02);
        }
        self.end = self.end.max(at);
    }

    /// Resumes a stream after the same event, without ever getting the answer.
    pub(super) fn resume_in_vain(&mut self, period: f64, is_marked: bool) {
        let attempts = self.dice.count(4, 40);
        let (conn, at) = self.new_connection(self.end + 50.0);
        let session = self.hosts[0].session;
        let head = self.sent_on(conn, at) + self.round_trip() + 1.0;
        let call = Post { conn, session, name: Some("greet"), ..request(at, 99_999, "tools/call", Reply::Empty(head)) };
        self.script.post(call);
        let mut next = head + period;
        for _ in 0..attempts {
            let head = next + self.round_trip() + 1.0;
            self.script.open(conn, Stream { session, after: Some("7"), ..stream(next, head, Some(head + 1.0)) });
            next += period.max(self.round_trip() + 5.0);
        }
        if is_marked {
            self.script.failed_call("call", at - 1.0, next);
        }
        self.end = next;
    }

    /// Opens standalone streams that all end at one age, and are opened again.
    pub(super) fn cut_streams(&mut self, age: f64) {
        let ending = self.dice.pick(&[ReplyEnding::ServerBroke, ReplyEnding::ClientLeft, ReplyEnding::Complete]);
        for _ in 0..self.dice.count(3, 8) {
            let from = 200.0 + self.dice.uniform(0.0, 20_000.0);
            let (conn, mut at) = self.new_connection(from);
            let host = (self.dice.count(1, self.habits.hosts) - 1) as usize;
            for _ in 0..2 {
                let head = self.sent_on(conn, at) + self.round_trip() + 1.0;
                let ex = self.script.session_get(conn, at, head, self.hosts[host].session);
                let end = head + age * self.dice.uniform(1.0, 1.002);
                self.script.reply_end(ex, end, ending, "", Vec::new());
                at = end + self.dice.uniform(5.0, 500.0);
            }
            self.end = self.end.max(at);
        }
    }

    /// A call is refused, its client gets a token, and then sends nothing more.
    pub(super) fn stop_after_token(&mut self, is_marked: bool) {
        let (conn, at) = self.new_connection(self.end + 500.0);
        let session = self.hosts[0].session;
        let trip = self.round_trip();
        let back = self.sent_on(conn, at) + trip + 1.0;
        let refused = Post {
            status: 401,
            conn,
            session,
            error: true,
            name: Some("greet"),
            ..request(at, 88_888, "tools/call", Reply::Json(back, back + 0.1))
        };
        self.script.post(refused);
        let (other, from) = self.new_connection(back + 5.0);
        let granted = self.sent_on(other, from) + trip + self.dice.uniform(2.0, 200.0);
        self.script.token(other, from, granted);
        let until = granted + self.dice.uniform(15_000.0, 120_000.0);
        self.script.close(Side::Front, conn, until, Closer::Client);
        if is_marked {
            self.script.failed_call("call", at - 1.0, until);
        }
        self.end = until;
    }

    // The end ---------------------------------------------------------------------------------------------------------

    fn add_lateness(&mut self) {
        let Some((by, busy)) = self.faults.instrument_late else { return };
        for at in std::mem::take(&mut self.served) {
            self.script.event(at - 0.1, EventKind::InstrumentLate { by: ms(by), busy: ms(busy) });
        }
    }

    pub(super) fn recording(mut self) -> Recording {
        self.add_samples();
        self.add_last_samples();
        self.add_lateness();
        self.script.recording()
    }
}

impl Task {
    fn new(host: usize, operations: Vec<Operation>) -> Self {
        Self {
            host,
            operations: operations.into(),
            connection: None,
            carried: 0,
            started: None,
            has_failed: false,
            result: 0.0,
        }
    }
}

fn progress_note() -> MessageNote {
    let method = Some("notifications/progress".to_owned());
    MessageNote { method, ..note(MessageKind::Notification, None) }
}

fn initialized() -> Message {
    Message { is_notification: true, ..Message::request("notifications/initialized", 0.2) }
}
