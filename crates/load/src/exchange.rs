//! What happens to one user: it connects, opens a session, calls, and is told what came back.
//!
//! A user always knows what comes next ([`Worker::proceed`]); whatever ends a step, well or badly, passes through one place
//! ([`Worker::complete`]), which counts it. So a call that has begun ends exactly once.

use std::io;

use crate::judge::{Awaited, Failure, Verdict};
use crate::link::{Link, opening_error};
use crate::outcome::ErrorKind;
use crate::plan::Session;
use crate::program::What;
use crate::tally::Ended;
use crate::template::Fill;
use crate::user::{Request, State, User};
use crate::worker::Worker;

/// How long a stream may go on after the result before the connection is given up.
const GRACE_NS: u64 = 50_000_000;

impl Worker {
    /// Does what the user is to do next.
    pub(crate) fn proceed(&mut self, index: u32, now: u64) {
        let is_http = self.program.is_http();
        let user = &self.users[index as usize];
        let ends_session = user.job.is_none()
            && user.has_session_id
            && (self.program.plan.session == Session::Call || user.is_leaving);
        if user.job.is_none() && !ends_session {
            if user.is_leaving {
                self.leave(index);
            } else {
                if self.program.plan.session == Session::Call {
                    self.users[index as usize].forget_session();
                }
                self.rest(index, now);
            }
        } else if user.link.is_none() {
            self.connect(index, now);
        } else if ends_session {
            if is_http {
                self.send(index, What::Delete, now);
            }
        } else if self.program.has_sessions() && user.session.is_none() {
            self.send(index, What::Initialize, now);
        } else if self.program.has_sessions() && !user.has_greeted {
            self.send(index, What::Initialized, now);
        } else if let Some(job) = user.job {
            self.send(index, What::Operation(job.operation), now);
        }
    }

    fn connect(&mut self, index: u32, now: u64) {
        self.deadlines.set(index, now + self.program.timeout_ns);
        let user = &mut self.users[index as usize];
        user.state = State::Connecting;
        let number = User::event_number(index, user.generation);
        let program = &self.program;
        let opened = match &program.address {
            None => Link::spawn(&program.plan.target, &self.epoll, number),
            Some(address) => {
                let to = program.addresses[(self.address + user.tried) % program.addresses.len()];
                let tls = program.tls.as_ref().map(|config| (config, address.host.as_str()));
                Link::connect(to, tls, &self.epoll, number)
            }
        };
        match opened {
            Ok(link) => {
                let is_process = matches!(link, Link::Process(_));
                user.link = Some(link);
                if is_process {
                    self.connected(index, now);
                }
            }
            Err(error) => self.not_connected(index, &error, now),
        }
    }

    /// Something happened to a connection that is being made.
    pub(crate) fn connecting(&mut self, index: u32, is_writable: bool) {
        let Some(link) = &mut self.users[index as usize].link else { return };
        match link.is_connected(is_writable) {
            Ok(None) => {}
            Ok(Some(())) => self.connected(index, self.clock.now()),
            Err(error) => self.not_connected(index, &error, self.clock.now()),
        }
    }

    fn connected(&mut self, index: u32, now: u64) {
        self.tally.connections.opened += 1;
        let user = &mut self.users[index as usize];
        if user.tried > 0 {
            self.address = (self.address + user.tried) % self.program.addresses.len();
            user.tried = 0;
        }
        self.proceed(index, now);
    }

    fn not_connected(&mut self, index: u32, error: &io::Error, now: u64) {
        let user = &mut self.users[index as usize];
        user.disconnect();
        user.tried += 1;
        if user.tried < self.program.addresses.len() {
            return self.connect(index, now);
        }
        user.tried = 0;
        let failure = match opening_error(error) {
            ErrorKind::Connect if !self.program.is_http() => {
                (ErrorKind::ProcessExit, format!("the program can't be started: {error}").into())
            }
            kind => (kind, format!("no connection: {error}").into()),
        };
        self.unconnected(index, failure, now);
    }

    /// There is no connection, and there won't be one for this call.
    fn unconnected(&mut self, index: u32, failure: Failure, now: u64) {
        self.tally.connections.failed += 1;
        let user = &mut self.users[index as usize];
        user.failures = user.failures.saturating_add(1);
        if user.job.is_some() {
            self.fail_job(index, failure, now);
        } else {
            // It only wanted to end its session.
            user.forget_session();
        }
        self.proceed(index, now);
    }

    fn send(&mut self, index: u32, what: What, now: u64) {
        let program = &self.program;
        let user = &mut self.users[index as usize];
        let id = program.plan.fixed_id.unwrap_or(self.next_id);
        self.next_id += program.plan.threads as u64;
        self.body.clear();
        self.out.clear();
        let call = match what {
            What::Operation(number) => {
                self.counters[usize::from(number)] += 1;
                Some(&program.calls[usize::from(number)])
            }
            What::Initialize => Some(&program.initialize),
            What::Initialized => Some(&program.initialized),
            What::Delete => None,
        };
        let counter = match what {
            What::Operation(number) => self.counters[usize::from(number)] - 1,
            _ => 0,
        };
        if let Some(call) = call {
            call.body.render(id, &mut Fill { counter, user: user.number, random: &mut self.random }, &mut self.body);
        }
        let session: &[u8] = user.session.as_deref().unwrap_or_default();
        match (call.and_then(|call| call.head.as_ref()), what, &program.delete) {
            (Some(head), ..) | (None, What::Delete, Some(head)) => head.render(session, &self.body, &mut self.out),
            _ => {
                self.out.extend_from_slice(&self.body);
                self.out.push(b'\n');
            }
        }
        let sent_bytes = self.out.len() as u64;
        user.request = Request { what, id, sent_ns: now, sent_bytes, received_bytes: 0 };
        user.state = State::Awaiting;
        if std::mem::replace(&mut user.is_used, true) {
            self.tally.connections.reused_requests += 1;
        }
        if matches!(what, What::Operation(_)) {
            let is_first = std::mem::take(&mut user.is_fresh);
            self.starting -= u32::from(is_first);
            // A closed model's session is opened before its call, not as part of it.
            let is_opened_before = is_first || program.plan.session == Session::Call;
            if let Some(job) = user.job.as_mut().filter(|_| !program.is_open() && is_opened_before) {
                job.due_ns = now;
            }
        }
        self.deadlines.set(index, now + program.timeout_ns);
        let Some(link) = &mut user.link else { return };
        match link.write(&self.out) {
            Ok(length) if length == self.out.len() => {}
            Ok(length) => user.unsent.extend_from_slice(&self.out[length..]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => user.unsent.extend_from_slice(&self.out),
            Err(error) => return self.reset(index, &error),
        }
        // A notification over stdio has no answer.
        if what == What::Initialized && !self.program.is_http() {
            let verdict = Verdict { failure: None, form: None, ended: true, keep: true, agreed: None };
            self.complete(index, verdict, now);
        }
    }

    /// Sends what the socket didn't take before. Whether the connection is still there.
    pub(crate) fn flush(&mut self, index: u32) -> bool {
        let user = &mut self.users[index as usize];
        let Some(link) = &mut user.link else { return false };
        let mut sent = 0;
        let outcome = loop {
            if sent == user.unsent.len() {
                break link.flush();
            }
            match link.write(&user.unsent[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        user.unsent.drain(..sent);
        if user.unsent.is_empty() && user.unsent.capacity() > 4096 {
            user.unsent = Vec::new();
        }
        outcome.map_err(|error| self.reset(index, &error)).is_ok()
    }

    /// Reads what has come.
    pub(crate) fn readable(&mut self, index: u32, is_closed: bool, scratch: &mut [u8]) {
        let generation = self.users[index as usize].generation;
        loop {
            let user = &mut self.users[index as usize];
            if user.generation != generation {
                return;
            }
            let Some(link) = &mut user.link else { return };
            match link.read(scratch) {
                Ok(0) => return self.closed(index),
                Ok(length) => {
                    if self.program.plan.quick_ack {
                        link.acknowledge();
                    }
                    let is_last = length < scratch.len() && !is_closed && link.short_read_is_last();
                    self.bytes(index, &scratch[..length]);
                    if is_last {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.reset(index, &error),
            }
        }
    }

    fn bytes(&mut self, index: u32, data: &[u8]) {
        let limit = self.program.plan.limits.body_bytes;
        let is_http = self.program.is_http();
        let user = &mut self.users[index as usize];
        match user.state {
            State::Awaiting => {}
            State::Draining => {
                let keep = match user.reader.feed(data, limit) {
                    Ok(Some(fed)) if fed.ended => !fed.excess,
                    Ok(_) => return user.reader.discard(),
                    Err(_) => false,
                };
                let now = self.clock.now();
                return self.drained(index, keep, now);
            }
            // Over stdio a server may say something unasked; over HTTP it may not.
            _ if !is_http => return,
            _ => return self.hang_up(index),
        }
        user.request.received_bytes += data.len() as u64;
        if !is_http {
            return self.lines(index, data);
        }
        let awaited = awaited(&self.program, user);
        let verdict = match user.reader.feed(data, limit) {
            Err(wrong) => Some(Verdict::wrong(&wrong, limit)),
            Ok(None) => None,
            Ok(Some(fed)) => awaited.reply(&fed, &mut user.scan, &mut self.joined),
        };
        match verdict {
            Some(verdict) => {
                let now = self.clock.now();
                self.complete(index, verdict, now);
            }
            None => {
                let done = user.scan.done();
                if user.reader.forget(done) {
                    user.scan.forget(done);
                }
            }
        }
    }

    fn lines(&mut self, index: u32, data: &[u8]) {
        let limit = self.program.plan.limits.body_bytes;
        let mut rest = data;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let user = &mut self.users[index as usize];
            // An answer may have been the process's last: then nothing more is read.
            if user.link.is_none() {
                return;
            }
            let whole;
            let line = if user.line.is_empty() {
                &rest[..end]
            } else {
                user.line.extend_from_slice(&rest[..end]);
                whole = std::mem::take(&mut user.line);
                whole.as_slice()
            };
            rest = &rest[end + 1..];
            let line = line.trim_ascii();
            if user.state != State::Awaiting || line.is_empty() {
                continue;
            }
            if let Some(verdict) = awaited(&self.program, user).line(line) {
                let now = self.clock.now();
                self.complete(index, verdict, now);
            }
        }
        let user = &mut self.users[index as usize];
        user.line.extend_from_slice(rest);
        if user.line.len() > limit {
            let words = format!("a line of more than {limit} bytes");
            self.broken(index, ErrorKind::TooLarge, words.into());
        }
    }

    /// The target has closed the connection, or the program its output.
    fn closed(&mut self, index: u32) {
        self.tally.connections.closed_by_peer += 1;
        let now = self.clock.now();
        let is_http = self.program.is_http();
        let user = &mut self.users[index as usize];
        match user.state {
            State::Awaiting if !is_http => {
                self.broken(index, ErrorKind::ProcessExit, "the program ended before its reply".into());
            }
            State::Awaiting => {
                let awaited = awaited(&self.program, user);
                let verdict = match user.reader.close() {
                    Some(fed) => awaited.reply(&fed, &mut user.scan, &mut self.joined),
                    None => None,
                };
                let verdict = match verdict {
                    Some(verdict) => Verdict { keep: false, ..verdict },
                    None if user.reader.has_begun() => {
                        Verdict::broken(ErrorKind::NotMcp, "half a reply, then the connection's end")
                    }
                    None => Verdict::broken(ErrorKind::Reset, "the connection was closed before the reply"),
                };
                self.complete(index, verdict, now);
            }
            State::Draining => self.drained(index, false, now),
            State::Connecting => self.not_connected(index, &io::ErrorKind::ConnectionReset.into(), now),
            State::Idle | State::Pausing | State::Parked => self.hang_up(index),
        }
    }

    /// The connection broke.
    fn reset(&mut self, index: u32, error: &io::Error) {
        let now = self.clock.now();
        match self.users[index as usize].state {
            State::Connecting => self.not_connected(index, error, now),
            _ if !self.program.is_http() => {
                self.broken(index, ErrorKind::ProcessExit, format!("the program's pipe broke: {error}").into());
            }
            _ => self.broken(index, ErrorKind::Reset, format!("the connection broke: {error}").into()),
        }
    }

    /// What the user was waiting for can't come any more.
    fn broken(&mut self, index: u32, kind: ErrorKind, words: std::borrow::Cow<'static, str>) {
        let now = self.clock.now();
        match self.users[index as usize].state {
            State::Awaiting => self.complete(index, Verdict::broken(kind, words), now),
            State::Draining => self.drained(index, false, now),
            State::Connecting | State::Idle | State::Pausing | State::Parked => self.hang_up(index),
        }
    }

    /// A time limit has passed.
    pub(crate) fn timed_out(&mut self, index: u32, now: u64) {
        let seconds = self.program.plan.timeout_s;
        match self.users[index as usize].state {
            State::Awaiting => {
                let words = format!("no whole reply within {seconds} s");
                self.complete(index, Verdict::broken(ErrorKind::Timeout, words), now);
            }
            State::Connecting => {
                self.users[index as usize].disconnect();
                let words = format!("no connection within {seconds} s");
                self.unconnected(index, (ErrorKind::Timeout, words.into()), now);
            }
            State::Draining => {
                self.held_open += 1;
                self.drained(index, false, now);
            }
            State::Idle | State::Pausing | State::Parked => {}
        }
    }

    /// A request has ended, whatever way.
    fn complete(&mut self, index: u32, verdict: Verdict, now: u64) {
        let user = &mut self.users[index as usize];
        let Request { what, sent_ns, sent_bytes, received_bytes, .. } = user.request;
        let kind = verdict.failure.as_ref().map(|(kind, _)| *kind);
        match kind {
            None | Some(ErrorKind::ToolError | ErrorKind::JsonrpcError | ErrorKind::Assertion) => user.failures = 0,
            Some(ErrorKind::Reset | ErrorKind::ProcessExit) => user.failures = user.failures.saturating_add(1),
            Some(_) => {}
        }
        match (what, kind) {
            (What::Initialize, None) => {
                let version = verdict.agreed.as_deref().unwrap_or(self.program.plan.revision.as_str());
                user.has_session_id = user.reader.session.is_some();
                user.session = Some(session_lines(user.reader.session.as_deref(), version));
            }
            (What::Initialized, None) => user.has_greeted = true,
            (What::Delete | What::Initialize, _) | (_, Some(ErrorKind::SessionLost)) => user.forget_session(),
            _ => {}
        }
        match what {
            What::Operation(_) => {
                if let Some(job) = user.job.take() {
                    let ended = Ended {
                        latency_ns: now.saturating_sub(job.due_ns),
                        service_ns: now - sent_ns,
                        at_ns: now,
                        sent_bytes,
                        received_bytes,
                        form: verdict.form,
                        failure: verdict.failure,
                    };
                    self.count(what, job.due_ns, ended);
                }
            }
            _ => {
                let failure = verdict.failure.clone();
                if self.program.plan.session == Session::User || self.program.is_measured(sent_ns) {
                    let time = now - sent_ns;
                    let ended = Ended {
                        latency_ns: time,
                        service_ns: time,
                        at_ns: now,
                        sent_bytes,
                        received_bytes,
                        form: verdict.form,
                        failure: verdict.failure,
                    };
                    self.tally.call(self.program.row(what), ended);
                }
                if let Some(failure) = failure {
                    self.fail_job(index, failure, now);
                }
            }
        }
        let user = &mut self.users[index as usize];
        if verdict.keep && !verdict.ended {
            user.state = State::Draining;
            user.reader.discard();
            self.drained += 1;
            // A target that holds its streams open would hold each user up.
            let holds = self.held_open > 3 && self.held_open * 10 > self.drained;
            self.deadlines.set(index, now + if holds { 0 } else { GRACE_NS });
            return;
        }
        self.drained(index, verdict.keep, now);
    }

    /// The reply is over, too.
    fn drained(&mut self, index: u32, keep: bool, now: u64) {
        let user = &mut self.users[index as usize];
        if !keep || user.reader.closes {
            self.hang_up(index);
        } else {
            user.reader.reset();
            user.scan = Default::default();
        }
        self.users[index as usize].state = State::Idle;
        self.proceed(index, now);
    }

    /// The call fails before it could be sent.
    fn fail_job(&mut self, index: u32, failure: Failure, now: u64) {
        let user = &mut self.users[index as usize];
        let Some(job) = user.job.take() else { return };
        let is_first = std::mem::take(&mut user.is_fresh);
        self.starting -= u32::from(is_first);
        let is_unsent = !self.program.is_open() && (is_first || self.program.plan.session == Session::Call);
        let due = if is_unsent { job.begun_ns } else { job.due_ns };
        let ended = Ended {
            latency_ns: now.saturating_sub(due),
            service_ns: 0,
            at_ns: now,
            sent_bytes: 0,
            received_bytes: 0,
            form: None,
            failure: Some(failure),
        };
        self.count(What::Operation(job.operation), due, ended);
    }

    /// Counts a call of the plan's.
    fn count(&mut self, what: What, due: u64, ended: Ended) {
        if ended.failure.is_none() {
            self.part.ok += 1;
            self.part.latency.record(ended.latency_ns);
        } else {
            self.part.errors += 1;
        }
        if self.program.is_measured(due) {
            self.tally.begun += u64::from(!self.program.is_open());
            self.tally.call(self.program.row(what), ended);
        }
    }

    fn hang_up(&mut self, index: u32) {
        self.users[index as usize].disconnect();
    }

    /// The user has nothing to do any more, and its session is over.
    fn leave(&mut self, index: u32) {
        if let Some(Link::Process(process)) = self.users[index as usize].disconnect() {
            self.children.extend(process.ask_to_end());
        }
        self.users[index as usize].forget_session();
        self.park(index);
    }
}

fn awaited<'a>(program: &'a crate::program::Program, user: &User) -> Awaited<'a> {
    let expect = match user.request.what {
        What::Operation(number) => program.calls[usize::from(number)].expect.as_ref(),
        _ => None,
    };
    Awaited { what: user.request.what, id: user.request.id, in_session: user.has_session_id, expect }
}

/// The header lines that a session adds to each request.
fn session_lines(id: Option<&str>, version: &str) -> Box<[u8]> {
    let mut lines = String::new();
    if let Some(id) = id {
        lines.push_str(&format!("mcp-session-id: {id}\r\n"));
    }
    // The header came with 2025-06-18; revisions are named by their dates.
    if version >= "2025-06-18" {
        lines.push_str(&format!("mcp-protocol-version: {version}\r\n"));
    }
    lines.into_bytes().into_boxed_slice()
}
