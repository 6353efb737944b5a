//! stdio as exchanges: a client's line, and the server's line that answers its id.
//!
//! Lines carry no exchange ids. A line that passes through the recorder is recognised on its other side by its digest, in
//! the order of its direction.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use mcpace_record::{
    Digest, EventKind, ExchangeId, LineFrom, MessageKind, Nanos, ReplyEnding, ServerTiming, Side, TraceContext,
};

use super::bursts::{Burst, Bursts};
use super::leg::Fact;
use super::positions::Positions;
use super::texts::Keeper;
use super::{Exchange, Note, Process, ReplyShape, Stamp, Transport};

/// Exchanges and other facts that the lines of stdio amount to.
pub(super) struct StdioLines<'a> {
    pub(super) exchanges: Vec<Exchange<'a>>,
    pub(super) processes: Vec<Process<'a>>,
    pub(super) bursts: Vec<Burst>,
    pub(super) notifying: Vec<NotifyingLine<'a>>,
    /// Traces that exchanges belong to.
    pub(super) contexts: Vec<(ExchangeId, TraceContext)>,
}

/// A line with which a server notifies its client.
#[derive(Debug)]
pub(crate) struct NotifyingLine<'a> {
    pub(crate) read: Stamp,
    pub(crate) messages: &'a [Note<'a>],
}

#[derive(Default)]
pub(super) struct StdioJoin<'a> {
    exchanges: Vec<Exchange<'a>>,
    processes: Vec<Process<'a>>,
    /// Exchanges without an answer, by the id of their request.
    open: HashMap<&'a str, usize>,
    /// Lines read on one side and not yet seen on the other.
    passing: HashMap<(LineFrom, Digest), VecDeque<Option<usize>>>,
    /// Positions in `exchanges` of the lines that each process was given.
    of_process: Vec<(usize, usize)>,
    bursts: Bursts,
    notifying: Vec<NotifyingLine<'a>>,
    /// Positions in `exchanges` of lines that belong to a trace.
    contexts: Vec<(usize, TraceContext)>,
}

struct StdioLine<'a> {
    at: Stamp,
    side: Side,
    from: LineFrom,
    began: Nanos,
    bytes: u64,
    digest: Digest,
    messages: &'a [Note<'a>],
    blocked: Nanos,
}

impl<'a> StdioJoin<'a> {
    pub(super) fn join_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::ProcessStarted { pid, program } => self.program_started(at, *pid, keeper.keep_text(program)),
            EventKind::ProcessExited { pid, code, signal } => {
                let process = self.processes.iter_mut().rfind(|p| p.pid == *pid);
                if let Some(process) = process.filter(|process| process.exited.is_none()) {
                    (process.exited, process.exit_code, process.exit_signal) = (Some(at), *code, *signal);
                }
            }
            EventKind::StdioLine { side, from, began, bytes, digest, messages, blocked, .. } => {
                let lines = self.exchanges.len();
                self.join_line(&StdioLine {
                    at,
                    side: *side,
                    from: *from,
                    began: (*began).min(at.at),
                    bytes: *bytes,
                    digest: *digest,
                    messages: keeper.keep_notes(messages),
                    blocked: *blocked,
                });
                if self.exchanges.len() > lines {
                    let parents = messages.iter().filter_map(|message| message.traceparent.as_deref());
                    self.contexts.extend(parents.filter_map(TraceContext::parse).map(|context| (lines, context)));
                }
            }
            EventKind::ServerTiming { ex: None, id: Some(id), timing } => self.note_timing(keeper, id, *timing),
            _ => {}
        }
    }

    /// Numbers the exchanges past `taken`.
    pub(super) fn finish_lines(mut self, taken: &Positions) -> StdioLines<'a> {
        let mut number = 0;
        for exchange in &mut self.exchanges {
            number += 1;
            while taken.get(number).is_some() {
                number += 1;
            }
            exchange.id = ExchangeId(number);
        }
        for (process, exchange) in self.of_process {
            let id = self.exchanges[exchange].id;
            self.processes[process].exchanges.push(id);
        }
        let bursts = self.bursts.finish_bursts(&self.exchanges);
        let contexts = self.contexts.into_iter().map(|(at, context)| (self.exchanges[at].id, context)).collect();
        StdioLines { exchanges: self.exchanges, processes: self.processes, bursts, notifying: self.notifying, contexts }
    }

    fn program_started(&mut self, at: Stamp, pid: u32, program: &'a str) {
        // A new server knows nothing of what another one was asked.
        self.open.clear();
        self.bursts.end_process();
        self.processes.push(Process {
            pid,
            program,
            started: at,
            exited: None,
            exit_code: None,
            exit_signal: None,
            first_output: None,
            first_stderr: None,
            exchanges: Vec::new(),
        });
    }

    fn join_line(&mut self, line: &StdioLine<'a>) {
        let process = self.processes.last_mut();
        match (line.from, process) {
            (LineFrom::Server, Some(process)) => {
                process.first_output.get_or_insert(line.at);
            }
            (LineFrom::ServerStderr, Some(process)) => {
                process.first_stderr.get_or_insert(line.at);
            }
            _ => {}
        }
        match line.from {
            LineFrom::Client => self.client_line(line),
            LineFrom::Server => self.server_line(line),
            LineFrom::ServerStderr => {}
        }
    }

    fn client_line(&mut self, line: &StdioLine<'a>) {
        if line.side == Side::Back
            && let Some(passed) = self.note_passed(line)
        {
            self.client_line_passed(passed, line);
            return;
        }
        let mut exchange = Exchange::new(ExchangeId(0), Transport::Stdio, line.at);
        exchange.messages = line.messages;
        exchange.digest = Some(line.digest);
        exchange.request_bytes = line.bytes;
        let end = (!exchange.asks()).then_some(line.at);
        let leg = exchange.leg_mut(line.side);
        leg.set_fact(Fact::RequestStart, Some(Stamp { at: line.began, ..line.at }));
        leg.set_fact(Fact::RequestEnd, Some(line.at));
        leg.set_fact(Fact::End, end);
        let index = self.exchanges.len();
        if line.side == Side::Front {
            self.note_reading(line, Some(index));
        }
        for message in line.messages {
            if let (MessageKind::Request, Some(id)) = (message.kind(), message.id) {
                self.open.insert(id, index);
            }
        }
        if let Some(process) = self.processes.len().checked_sub(1) {
            self.of_process.push((process, index));
        }
        self.exchanges.push(exchange);
    }

    fn client_line_passed(&mut self, index: Option<usize>, line: &StdioLine<'a>) {
        let Some(index) = index else { return };
        let exchange = &mut self.exchanges[index];
        let asks = exchange.asks();
        let back = exchange.leg_mut(Side::Back);
        back.note_fact(Fact::RequestStart, line.at);
        back.note_fact(Fact::RequestEnd, line.at);
        if !asks {
            back.note_fact(Fact::End, line.at);
        }
    }

    fn server_line(&mut self, line: &StdioLine<'a>) {
        if line.side == Side::Front {
            if let Some(Some(index)) = self.note_passed(line) {
                self.exchanges[index].blocked = line.blocked;
                let front = self.exchanges[index].leg_mut(Side::Front);
                front.set_result(Some(line.at), Some(line.at));
                front.set_fact(Fact::End, Some(line.at));
            }
            return;
        }
        if line.messages.iter().any(|message| message.kind() == MessageKind::Notification) {
            self.notifying.push(NotifyingLine { read: line.at, messages: line.messages });
        }
        let answered = line.messages.iter().filter(|message| message.answers());
        let mut index = None;
        for message in answered {
            index = message.id.and_then(|id| self.open.remove(id));
            if let Some(index) = index {
                self.note_answer(index, line, message);
            }
        }
        self.bursts.add_line(line.at, line.began, line.bytes, index);
        self.note_reading(line, index);
    }

    fn note_answer(&mut self, index: usize, line: &StdioLine<'a>, answer: &'a Note<'a>) {
        let exchange = &mut self.exchanges[index];
        exchange.answer = Some(answer);
        exchange.server_timing = answer.timing.or(exchange.server_timing);
        exchange.shape = ReplyShape::Whole;
        exchange.ending = Some(ReplyEnding::Complete);
        exchange.reply_bytes = line.bytes;
        exchange.reply_digest = Some(line.digest);
        let back = exchange.leg_mut(Side::Back);
        back.set_result(Some(Stamp { at: line.began, ..line.at }), Some(line.at));
        back.set_fact(Fact::End, Some(line.at));
    }

    fn note_timing(&mut self, keeper: &Keeper<'a>, id: &str, timing: ServerTiming) {
        let about = self.exchanges.iter_mut().rev().take(TOLD_REACH);
        let mut about = about.filter(|e| e.messages.iter().any(|m| m.id == Some(id)) && e.asks());
        if let Some(exchange) = about.next() {
            exchange.server_timing.get_or_insert_with(|| keeper.keep_value(timing));
        }
    }

    fn note_reading(&mut self, line: &StdioLine<'a>, exchange: Option<usize>) {
        let queue = self.passing.entry((line.from, line.digest)).or_default();
        queue.push_back(exchange);
    }

    fn note_passed(&mut self, line: &StdioLine<'a>) -> Option<Option<usize>> {
        let Entry::Occupied(mut queue) = self.passing.entry((line.from, line.digest)) else { return None };
        let passed = queue.get_mut().pop_front();
        if queue.get().is_empty() {
            queue.remove();
        }
        passed
    }
}

/// How many exchanges back a server's timing is looked for: it follows its answer closely.
const TOLD_REACH: usize = 64;
