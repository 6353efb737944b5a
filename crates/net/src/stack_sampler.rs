//! Samples the stacks of the threads of Python processes, from outside, by py-spy.
//!
//! The processes are the descendants of one process, as they come and go. A process stands still while its stacks are
//! read, for half a millisecond or so. The sampler lengthens its period so that processes stand still for at most a
//! twentieth of the time. Periods vary at random, so that work at a steady pace is not met at one and the same place.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcpace_record::{EventKind, EvidenceSource, Instrument, Nanos, Recording, RecordingHead, StackFrame, StackId};
use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};
use rand::Rng;

use crate::descendants::child_pids;
use crate::lock::lock_mutex;
use crate::{NetError, Sink, SinkOptions, monotonic_now};

/// How often new processes are looked for.
const SEARCH_PERIOD: Duration = Duration::from_millis(200);

/// Processes that are sampled at most.
const MOST_PROCESSES: usize = 16;

/// How often attaching to a process is tried: an interpreter that has just started cannot be read yet.
const ATTEMPTS: u32 = 25;

/// Samples in a row that may fail before a process is given up.
const MOST_FAILURES: u32 = 100;

/// The period is at least this many times as long as reading the stacks takes.
const LEAST_RATIO: u32 = 20;

/// Frames of one stack, and different stacks, that are kept.
const MOST_FRAMES: usize = 200;
const MOST_STACKS: usize = 100_000;

/// Samples Python processes until it is dropped or stopped.
pub struct StackSampler {
    sink: Arc<Sink>,
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Ending {
    ended: Mutex<bool>,
    wake: Condvar,
}

impl StackSampler {
    /// Samples the descendants of `root` each `period`.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn start(root: u32, period: Duration) -> Result<Self, NetError> {
        let sink = Sink::new(RecordingHead::bare(Instrument::Client), SinkOptions::default())?;
        let ending = Arc::new(Ending::default());
        let sampling = Sampling {
            sink: Arc::clone(&sink),
            root,
            processes: Vec::new(),
            stacks: HashMap::new(),
            cost: Duration::ZERO,
        };
        let end = Arc::clone(&ending);
        let thread = std::thread::Builder::new()
            .name("mcpace-stacks".to_owned())
            .spawn(move || sampling.sample_until_ended(&end, period))
            .map_err(|reason| NetError::Io { what: "could not start the sampler's thread", reason })?;
        Ok(Self { sink, ending, thread: Some(thread) })
    }

    /// Ends sampling and returns the samples, with what could not be sampled.
    #[must_use]
    pub fn stop(mut self) -> Recording {
        self.end_thread();
        // Without a file, finishing cannot fail.
        let _ = self.sink.finish();
        self.sink.recording()
    }

    fn end_thread(&mut self) {
        *lock_mutex(&self.ending.ended) = true;
        self.ending.wake.notify_all();
        // A sampler that panicked leaves the samples that it had taken.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for StackSampler {
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl Ending {
    /// Waits for `period`; whether sampling goes on.
    fn goes_on_after(&self, period: Duration) -> bool {
        let ended = lock_mutex(&self.ended);
        match self.wake.wait_timeout_while(ended, period, |ended| !*ended) {
            Ok((ended, _)) => !*ended,
            Err(_) => false,
        }
    }
}

struct Sampling {
    sink: Arc<Sink>,
    root: u32,
    processes: Vec<SampledProcess>,
    stacks: HashMap<Vec<StackFrame>, StackId>,
    /// How long reading all stacks takes, smoothed.
    cost: Duration,
}

/// A process, with its reader while it can be read.
struct SampledProcess {
    pid: u32,
    reader: Option<PythonSpy>,
    attempts: u32,
    failures: u32,
    given_up: bool,
}

impl Sampling {
    fn sample_until_ended(mut self, ending: &Ending, period: Duration) {
        let mut searched: Option<Instant> = None;
        let mut random = rand::rng();
        loop {
            let begin = Instant::now();
            if searched.is_none_or(|searched| begin.duration_since(searched) >= SEARCH_PERIOD) {
                searched = Some(begin);
                self.find_processes();
            }
            let (begin, at) = (Instant::now(), monotonic_now());
            for number in 0..self.processes.len() {
                self.sample_process(at, number);
            }
            self.cost = (self.cost * 7 + begin.elapsed()) / 8;
            let usual = period.max(self.cost * LEAST_RATIO);
            if !ending.goes_on_after(usual.mul_f64(random.random_range(0.5..1.5))) {
                break;
            }
        }
        if self.processes.is_empty() {
            self.note_missing(None, "none of the server's processes is a Python interpreter".to_owned());
        }
    }

    fn note_missing(&self, pid: Option<u32>, reason: String) {
        self.sink.note(EventKind::SourceMissing { source: EvidenceSource::Stacks, pid, reason });
    }

    /// Finds new processes, attaches to those that run Python, and forgets those that have ended.
    fn find_processes(&mut self) {
        // A process is attached to one search after it was found: a fork that is about to run another program still has the
        // interpreter's name, and a process that is traced while it starts a program gets a SIGTRAP.
        for number in 0..self.processes.len() {
            self.attach_process(number);
        }
        let mut pids = child_pids(self.root);
        let mut next = 0;
        while next < pids.len() && pids.len() < MOST_PROCESSES {
            for pid in child_pids(pids[next]) {
                if !pids.contains(&pid) {
                    pids.push(pid);
                }
            }
            next += 1;
        }
        for pid in pids {
            let is_known = self.processes.iter().any(|process| process.pid == pid);
            if !is_known && self.processes.len() < MOST_PROCESSES && runs_python(pid) {
                self.processes.push(SampledProcess { pid, reader: None, attempts: 0, failures: 0, given_up: false });
            }
        }
    }

    fn attach_process(&mut self, number: usize) {
        let process = &mut self.processes[number];
        if process.reader.is_some() || process.given_up {
            return;
        }
        if !runs_python(process.pid) {
            process.given_up = true;
            return;
        }
        let Ok(pid) = i32::try_from(process.pid) else { return };
        let config = Config { blocking: LockingStrategy::Lock, include_idle: true, ..Config::default() };
        process.attempts += 1;
        match PythonSpy::new(pid, &config) {
            Ok(reader) => process.reader = Some(reader),
            Err(_) if !is_alive(process.pid) => process.given_up = true,
            Err(error) if process.attempts >= ATTEMPTS || is_forbidden(&error) => {
                process.given_up = true;
                let (pid, reason) = (process.pid, format!("{error:#}"));
                self.note_missing(Some(pid), reason);
            }
            Err(_) => {}
        }
    }

    fn sample_process(&mut self, at: Nanos, number: usize) {
        let process = &mut self.processes[number];
        let Some(reader) = &mut process.reader else { return };
        match reader.get_stack_traces() {
            Ok(traces) => {
                process.failures = 0;
                let pid = process.pid;
                for trace in traces {
                    self.note_sample(at, pid, &trace);
                }
            }
            Err(_) if !is_alive(process.pid) => process.reader = None,
            Err(error) => {
                // Most failures are stacks that changed while they were read.
                process.failures += 1;
                if process.failures >= MOST_FAILURES {
                    (process.reader, process.given_up) = (None, true);
                    let (pid, reason) = (process.pid, format!("{error:#}"));
                    self.note_missing(Some(pid), reason);
                }
            }
        }
    }

    fn note_sample(&mut self, at: Nanos, pid: u32, trace: &StackTrace) {
        let frames: Vec<StackFrame> = trace
            .frames
            .iter()
            .take(MOST_FRAMES)
            .map(|frame| StackFrame {
                function: frame.name.clone(),
                file: frame.filename.clone(),
                line: u32::try_from(frame.line).unwrap_or(0),
            })
            .collect();
        let stack = match self.stacks.get(&frames) {
            Some(stack) => *stack,
            None if self.stacks.len() >= MOST_STACKS => return,
            None => {
                let stack = StackId(self.stacks.len() as u64);
                self.sink.note_at(at, EventKind::StackSeen { stack, frames: frames.clone() });
                self.stacks.insert(frames, stack);
                stack
            }
        };
        let running = trace.active;
        self.sink.note_at(at, EventKind::StackSample { pid, thread: trace.thread_id, stack, running });
    }
}

/// Whether the process's program is a Python interpreter, by its name.
fn runs_python(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    let name = program.as_deref().ok().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.is_some_and(|name| name.starts_with("python"))
}

fn is_alive(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}/mem")).unwrap_or(false)
}

/// Whether the system forbids reading the process, so that trying again is no use.
fn is_forbidden(error: &dyn std::fmt::Debug) -> bool {
    format!("{error:?}").contains("Permission")
}
