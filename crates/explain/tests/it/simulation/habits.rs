//! Habits that a healthy host and server have, and the faults that a scene adds.

use super::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// The recorder between a client and an HTTP server.
    Http,
    /// The recorder between a client and a server process.
    Stdio,
    /// The instrumented HTTP client.
    OwnClient,
}

/// Traits of a scene that cost nothing. Times are in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    pub(crate) wire: Wire,
    /// Whether the client program marks its operations.
    pub(crate) marks: bool,
    pub(crate) event_streams: bool,
    pub(crate) round_trip: f64,
    pub(crate) spread: f64,
    /// Hosts, each with a session of its own.
    pub(crate) hosts: u64,
    /// Calls that a host makes at the same time, over a connection each.
    pub(crate) at_once: u64,
    /// Calls of each task that runs at the same time.
    pub(crate) calls: u64,
    pub(crate) tool: f64,
    /// Time between two calls of a task.
    pub(crate) pause: f64,
    pub(crate) session_ids: bool,
    pub(crate) token: bool,
    /// Period of a host's pings.
    pub(crate) ping_every: Option<f64>,
    /// Whether the client opens the server's own stream, which stays open.
    pub(crate) standalone_stream: bool,
    /// Time from a result to the end of its event stream.
    pub(crate) stream_end: f64,
    /// Milliseconds between two samples of the server's process.
    pub(crate) sampled: Option<f64>,
    /// Tools that a listing has.
    pub(crate) tools: u32,
    /// Processor time of a request.
    pub(crate) processor: f64,
    /// Progress notifications of each call.
    pub(crate) progress: u32,
    /// Whether the recorder notes the kernel's statistics of its connections.
    pub(crate) tcp_samples: bool,
}

impl Habits {
    pub(crate) fn random(dice: &mut Dice) -> Self {
        let wire = match dice.uniform(0.0, 1.0) {
            part if part < 0.65 => Wire::Http,
            part if part < 0.9 => Wire::Stdio,
            _ => Wire::OwnClient,
        };
        let marks = wire == Wire::OwnClient || dice.chance(0.3);
        let at_once = if marks || dice.chance(0.5) { 1 } else { dice.count(2, 50) };
        Self {
            wire,
            marks,
            event_streams: dice.chance(0.5),
            round_trip: if wire == Wire::Stdio { 0.05 } else { dice.magnitude(0.05, 40.0) },
            spread: dice.pick(&[0.02, 0.1, 0.4, 2.0]),
            hosts: if marks || wire == Wire::Stdio { 1 } else { dice.pick(&[1, 1, 1, 2, 4]) },
            at_once,
            calls: dice.count(1, 300).div_ceil(at_once).max(2),
            tool: dice.magnitude(2.0, 10_000.0),
            pause: dice.pick(&[0.0, 5.0, 200.0, 3_000.0]),
            session_ids: dice.chance(0.6),
            token: dice.chance(0.2),
            ping_every: dice.chance(0.3).then(|| dice.magnitude(500.0, 30_000.0)),
            standalone_stream: wire == Wire::Http && dice.chance(0.4),
            stream_end: dice.uniform(0.0, 1.5),
            sampled: dice.chance(0.4).then_some(500.0),
            tools: dice.count(1, 60) as u32,
            processor: dice.magnitude(0.1, 5.0),
            progress: if dice.chance(0.1) { 4 } else { 0 },
            tcp_samples: false,
        }
    }

    /// Scenes of a network's causes have the kernel's statistics, and others often have them. A way to the server that takes
    /// a notable part of a call is a cause, once the statistics show it, so that a scene without this cause has none then.
    pub(crate) fn with_tcp_samples(self, faults: &Faults, dice: &mut Dice) -> Self {
        let is_near = self.round_trip < 1.0 || self.round_trip < 3.0 && self.round_trip < self.tool / 80.0;
        let shows_network = faults.loss.is_some() || faults.slow_reader.is_some() || faults.distance.is_some();
        let is_sampled = shows_network || is_near && dice.chance(0.7);
        Self { tcp_samples: self.wire == Wire::Http && is_sampled, ..self }
    }

    /// Client programs mark operations that follow on one another. Marks of calls that overlap belong to no program.
    pub(crate) fn without_ambiguous_marks(self) -> Self {
        let marks = self.marks && self.hosts == 1 && self.at_once == 1;
        Self { marks, ..self }
    }
}

impl std::fmt::Display for Habits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wire, round_trip, tool, pause, hosts, at_once, calls, spread, .. } = self;
        let marks = if self.marks { " marked" } else { "" };
        let replies = if self.event_streams { "events" } else { "JSON" };
        let names = [(self.session_ids, "session"), (self.token, "token"), (self.standalone_stream, "GET")];
        let names: Vec<_> = names.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        write!(f, "{wire:?}{marks} {replies} {names:?}, {hosts} hosts x {at_once} x {calls} calls of {tool:.1} ms")?;
        write!(f, " +-{spread}, round trip {round_trip:.2}, pause {pause}, ping {:?}", self.ping_every)
    }
}

/// How a server runs several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Concurrency {
    #[default]
    Parallel,
    /// A tool runs on the event loop, and nothing else runs meanwhile.
    EventLoop,
    /// Only so many tools run at a time. Other requests are answered.
    ToolPool(usize),
    /// Only so many requests of any kind run at a time.
    RequestPool(usize),
    /// The requests of a session run one after another.
    SessionSerial,
    /// Requests run in parallel, and replies of a session leave in the order of their requests.
    RepliesInOrder,
}

/// Part of the requests that a server's constant cost belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostOf {
    Tokens,
    Sessions,
    All,
    /// All requests of a server over stdio, whose processor time is read.
    Processor,
}

/// A client that gives calls up. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivesUp {
    pub(crate) limit: f64,
    /// Part of the calls that take longer.
    pub(crate) part: f64,
    /// Whether the client repeats a call that it gave up. Otherwise the call has failed.
    pub(crate) repeats: bool,
    /// Whether the client tells the server.
    pub(crate) cancels: bool,
    /// Progress notifications until then.
    pub(crate) progress: u32,
}

/// Causes that a scene has. All are off by default. Times are in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) concurrency: Concurrency,
    pub(crate) constant_cost: Option<(f64, CostOf)>,
    pub(crate) delayed_ack: bool,
    pub(crate) redirect: bool,
    /// Part of the requests that are sent twice.
    pub(crate) duplicates: f64,
    pub(crate) gives_up: Option<GivesUp>,
    pub(crate) connection_per_request: bool,
    pub(crate) undrained: bool,
    pub(crate) list_after_call: bool,
    pub(crate) list_before_call: bool,
    pub(crate) session_per_call: bool,
    pub(crate) rediscovery: Option<f64>,
    /// Time that the standalone stream's head takes, for which the client waits.
    pub(crate) waits_for_get: Option<f64>,
    pub(crate) probing: bool,
    /// Time that a client holds a result before its call returns.
    pub(crate) late_delivery: Option<f64>,
    /// Bytes that the server keeps of each session.
    pub(crate) session_leak: Option<f64>,
    /// Bytes that the server keeps of each request.
    pub(crate) request_leak: Option<f64>,
    pub(crate) buffered_progress: bool,
    /// Time from a process's start to its first answer.
    pub(crate) slow_start: Option<f64>,
    /// Time that connecting takes because the first address doesn't answer.
    pub(crate) dead_address: Option<f64>,
    pub(crate) instrument_late: Option<(f64, f64)>,
    pub(crate) listing_bytes: Option<u64>,
    pub(crate) get_loop: Option<f64>,
    pub(crate) retry_storm: Option<(u16, f64)>,
    pub(crate) resume_loop: Option<f64>,
    pub(crate) stream_age: Option<f64>,
    pub(crate) auth_deadlock: bool,
    /// Part of the requests and replies whose segment is lost once.
    pub(crate) loss: Option<f64>,
    /// Time that a client takes to read the reply to a call.
    pub(crate) slow_reader: Option<f64>,
    /// Round-trip time to the server, beside the usual one.
    pub(crate) distance: Option<f64>,
}
