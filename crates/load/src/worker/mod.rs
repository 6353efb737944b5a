//! One thread of the engine: waits for sockets and for times, and has done what is to be done then.
//!
//! The way of a call: `users` (who calls when) → `connecting` → `sending` → `receiving` (a verdict) → `request_end`
//! (counted), and back to `users`. `seconds` closes each second of the run, and `run_end` closes the run.
//!
//! Constraint: one system call to send, one to receive and one to wait; nothing on a call's way allocates or is shared.

mod connecting;
mod receiving;
mod request_end;
mod run_end;
mod seconds;
mod sending;
mod users;

use std::io;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use crate::plan::LoadModel;
use crate::poller::{Events, Poller, Readiness};
use crate::program::Program;
use crate::program_pipes::STDIN_BIT;
use crate::random::Random;
use crate::schedule::{Profile, Schedule, thread_share};
use crate::system_limits::{lower_timer_slack, pin_thread};
use crate::tally::{SecondPart, ThreadTally};
use crate::timers::{Deadlines, NEVER, Pauses};
use crate::user::{RunClock, User, UserActivity};

/// Report of a thread.
#[derive(Debug)]
pub(crate) enum ThreadReport {
    Second(Box<SecondPart>),
    Done { tally: Box<ThreadTally>, measured_end_ns: u64 },
    Failed(String),
}

/// A thread's state.
pub(crate) struct LoadWorker {
    program: Arc<Program>,
    clock: RunClock,
    poller: Poller,
    users: Vec<User>,
    deadlines: Deadlines,
    pauses: Pauses,
    random: Random,
    tally: ThreadTally,
    part: SecondPart,
    /// The address that worked last.
    address: usize,
    /// The next JSON-RPC id; threads have every `threads`th each.
    next_id: u64,
    /// How often each operation was called.
    counters: Vec<u64>,
    /// No more calls begin.
    is_ending: bool,
    /// Users that are somewhere on the way to their first call.
    starting: u32,
    /// Streams that went on after the result, and how many of these did so for long.
    drained: u64,
    held_open: u64,
    /// Sockets that have more to read than one turn allows, by the numbers of their events.
    unread: Vec<u64>,
    /// Programs that were asked to end.
    children: Vec<Child>,
    body: Vec<u8>,
    out: Vec<u8>,
    joined: Vec<u8>,
    /// Number of the thread in its engine, which chooses its core.
    local_thread: usize,
    /// Number of the thread, and the number of threads, over all engines of the load.
    thread: usize,
    threads: usize,
    stop: Arc<AtomicBool>,
    reports: Sender<ThreadReport>,
    profile: Profile,
    is_flat: bool,
    /// The open model's arrivals: those to begin, and, ahead of them, those to count.
    due: Schedule,
    next_due: Option<u64>,
    counted: Schedule,
    next_counted: Option<u64>,
    /// Free slots; the one that was used last is used next, since its connection is warm.
    idle: Vec<u32>,
    /// Users that are not there, to be used again.
    parked: Vec<u32>,
    /// Users that are there, and those of them that stay.
    alive: u64,
    staying: u64,
    most_users: u64,
    /// Calls that may still begin.
    budget: u64,
    /// An arrival found no free slot and waits; and until when that has been so.
    is_full: bool,
    full_until: u64,
    measured_end: u64,
    /// A core of its own: the last moments before an arrival are waited for awake.
    has_core: bool,
}

/// How often the wish to stop is looked for.
const LOOK_NS: u64 = 20_000_000;

/// How long before an arrival a thread with a core of its own stays awake.
const AWAKE_NS: u64 = 50_000;

/// A wait that is shorter was none: the events were there already.
const NO_WAIT_NS: u64 = 5_000;

/// How long calls under way may go on after a stop that was asked for.
const STOPPED_DRAIN_NS: u64 = 500_000_000;

/// How long the sessions' ends may take.
const LEAVE_NS: u64 = 1_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

impl LoadWorker {
    pub(crate) fn new(
        program: Arc<Program>,
        clock: RunClock,
        local_thread: usize,
        stop: Arc<AtomicBool>,
        reports: Sender<ThreadReport>,
    ) -> io::Result<Self> {
        let (first_thread, threads) = program.plan.thread_range();
        let thread = first_thread + local_thread;
        let profile = Profile::from_plan(&program.plan);
        let (arrivals, most_users) = match program.plan.model {
            LoadModel::Closed { .. } => (Default::default(), profile.peak_level().round() as u64),
            LoadModel::Open { arrivals, max_in_flight, .. } => (arrivals, u64::from(max_in_flight)),
        };
        let seed = program.plan.seed;
        let due = Schedule::new(profile.clone(), arrivals, thread, threads, seed);
        let mut worker = Self {
            clock,
            poller: Poller::new()?,
            users: Vec::new(),
            deadlines: Deadlines::default(),
            pauses: Pauses::default(),
            random: Random::new(seed.wrapping_add(thread as u64).wrapping_mul(0x2545_F491_4F6C_DD1D)),
            tally: ThreadTally::new(program.row_count()),
            part: SecondPart::new(0),
            address: 0,
            next_id: thread as u64 + 1,
            counters: vec![0; program.calls.len()],
            is_ending: false,
            starting: 0,
            drained: 0,
            held_open: 0,
            unread: Vec::new(),
            children: Vec::new(),
            body: Vec::new(),
            out: Vec::new(),
            joined: Vec::new(),
            local_thread,
            thread,
            threads,
            stop,
            reports,
            is_flat: profile.is_flat(),
            profile,
            counted: due.clone(),
            due,
            next_due: None,
            next_counted: None,
            idle: Vec::new(),
            parked: Vec::new(),
            alive: 0,
            staying: 0,
            most_users: thread_share(most_users, thread, threads),
            budget: program.plan.max_calls.map_or(u64::MAX, |calls| thread_share(calls, thread, threads)),
            is_full: false,
            full_until: 0,
            measured_end: program.end_ns,
            has_core: program.plan.cores.is_some(),
            program,
        };
        if worker.program.is_open() {
            worker.next_due = worker.due.next();
            worker.next_counted = worker.counted.next();
        }
        Ok(worker)
    }

    /// Runs to the end and reports.
    pub(crate) fn run(mut self) {
        let last = match self.prepare_thread().and_then(|()| self.run_turn()) {
            Ok(()) => {
                self.tally.cpu_ns = mcpace_clock::thread_processor_ns();
                self.end_programs();
                let tally = std::mem::replace(&mut self.tally, ThreadTally::new(0));
                ThreadReport::Done { tally: Box::new(tally), measured_end_ns: self.measured_end }
            }
            Err(error) => ThreadReport::Failed(format!("a thread of the engine failed: {error}")),
        };
        // Nobody listens any more where the run was dropped.
        let _ = self.reports.send(last);
    }

    fn prepare_thread(&self) -> io::Result<()> {
        lower_timer_slack();
        match &self.program.plan.cores {
            Some(cores) => pin_thread(cores[self.local_thread % cores.len()]),
            None => Ok(()),
        }
    }

    fn run_turn(&mut self) -> io::Result<()> {
        let mut events = Events::new(512);
        let mut scratch = vec![0; 64 * 1024];
        let mut ending = NEVER;
        let mut is_leaving = false;
        loop {
            let mut now = self.clock.now();
            self.handle_timers(now);
            if !self.is_ending {
                self.populate_users(now);
                now = self.begin_arrivals();
            }
            self.close_seconds(now);
            let is_stopped = self.stop.load(Ordering::Relaxed);
            let is_spent = self.budget == 0 && self.is_quiet();
            if !self.is_ending && (now >= self.program.end_ns || is_stopped || is_spent) {
                ending = now + self.drain_users(now, is_stopped);
            } else if self.is_ending
                && !is_leaving
                && (now >= ending || (is_stopped && now + STOPPED_DRAIN_NS < ending))
            {
                is_leaving = true;
                ending = now + LEAVE_NS;
                self.abandon_waiting(now);
            }
            if self.is_ending && (self.alive == 0 || (is_leaving && now >= ending)) {
                self.last_part(now);
                return Ok(());
            }
            self.wait_events(&mut events, now, ending)?;
            let unread = std::mem::take(&mut self.unread);
            for (number, readiness) in events.iter() {
                self.handle_event(number, readiness, &mut scratch);
            }
            for number in unread {
                self.handle_event(number, Readiness::UNREAD, &mut scratch);
            }
        }
    }

    /// Waits for sockets, or for the next time at which something is to be done.
    fn wait_events(&mut self, events: &mut Events, now: u64, ending: u64) -> io::Result<()> {
        let arrival = if self.is_full || self.is_ending { NEVER } else { self.next_due.unwrap_or(NEVER) };
        let timers = self.deadlines.earliest().min(self.pauses.earliest());
        let second = (self.part.second + 1) * SECOND_NS;
        let phase = if self.is_ending { ending } else { self.program.end_ns };
        let next = arrival.min(timers).min(second).min(phase).min(now + LOOK_NS);
        let before = self.clock.now();
        let mut length = next.saturating_sub(before);
        if self.has_core && arrival.min(self.pauses.earliest()) == next && length < AWAKE_NS {
            length = 0;
        }
        if !self.unread.is_empty() {
            length = 0;
        }
        self.poller.wait(events, length)?;
        let after = self.clock.now();
        let waited = after - before;
        if events.is_empty() || waited > NO_WAIT_NS {
            self.part.idle_ns += waited;
            if before >= self.program.warm_up_ns && !self.is_ending {
                self.tally.idle_ns += waited;
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, number: u64, readiness: Readiness, scratch: &mut [u8]) {
        let index = number as u32;
        let is_stdin = number & STDIN_BIT != 0;
        let Some(user) = self.users.get(index as usize) else { return };
        if User::event_number(index, user.generation) != number & !STDIN_BIT {
            return;
        }
        if user.state == UserActivity::Connecting {
            self.continue_connecting(index, readiness.is_closed() || readiness.is_writable());
            return;
        }
        if readiness.is_writable() && !self.flush_unsent(index) {
            return;
        }
        if !is_stdin && (readiness.is_closed() || readiness.is_readable()) {
            self.read_ready(index, readiness.is_closed(), scratch);
        }
    }

    fn handle_timers(&mut self, now: u64) {
        while let Some(index) = self.deadlines.pop_due(now) {
            self.timed_out(index, now);
        }
        while let Some((at, index)) = self.pauses.pop_due(now) {
            let user = &self.users[index as usize];
            if user.state != UserActivity::Pausing || user.pause_ns != at {
                continue;
            }
            self.tally.lateness.record(now - at);
            self.users[index as usize].state = UserActivity::Idle;
            self.schedule_next(index, at, now);
        }
    }
}
