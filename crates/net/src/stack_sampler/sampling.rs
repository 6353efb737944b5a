//! Finds the Python processes and reads their stacks.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_record::{EventKind, EvidenceSource, Nanos, StackFrame, StackId, ThreadLock};
use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};

use crate::descendants::watched_pids;
use crate::sampling_thread::Pace;
use crate::{Sink, monotonic_now};

/// How often new processes are looked for.
const SEARCH_PERIOD: Duration = Duration::from_millis(200);

/// Processes that are sampled at most.
const MOST_PROCESSES: usize = 16;

/// How often attaching to a process is tried: an interpreter that has just started cannot be read yet.
const ATTEMPTS: u32 = 25;

/// Samples in a row that may fail before a process is given up.
const MOST_FAILURES: u32 = 100;

/// Frames of one stack, and different stacks, that are kept.
const MOST_FRAMES: usize = 200;
const MOST_STACKS: usize = 100_000;

/// Flag of a process that exits (`PF_EXITING` of the kernel).
const EXITING: u32 = 0x4;

/// Threads of a process whose waits are read at one sample.
const MOST_THREADS: usize = 256;

/// Number of `futex` among the system calls, its operations that wait, and the bits that hold its operation.
const FUTEX: &str = if cfg!(target_arch = "x86_64") { "202" } else { "98" };
/// Number of `restart_syscall`. The kernel goes on with a wait of limited time by it after the thread was stopped for a sample,
/// and leaves the arguments of the wait as they were (restart_syscall(2)).
const RESTARTED: &str = if cfg!(target_arch = "x86_64") { "219" } else { "128" };
/// The bit of `futex`'s operation for a lock within one process, as those of threads are. It tells a `futex` that was restarted
/// from other calls.
const FUTEX_PRIVATE: u64 = 0x80;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_COMMAND: u64 = 0x7f;

/// Samples `root` and its descendants at the pace of `pace`, until the thread is to end.
pub(super) fn sample_until_ended(sink: Arc<Sink>, root: u32, pace: Pace) {
    Sampling { sink, root, processes: Vec::new(), found_python: false, stacks: HashMap::new() }
        .sample_until_ended(pace);
}

struct Sampling {
    sink: Arc<Sink>,
    root: u32,
    processes: Vec<SampledProcess>,
    /// Whether any process ran Python.
    found_python: bool,
    stacks: HashMap<Vec<StackFrame>, StackId>,
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
    fn sample_until_ended(mut self, mut pace: Pace) {
        let mut searched: Option<Instant> = None;
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
            if !pace.await_next(begin) {
                break;
            }
        }
        if !self.found_python {
            self.note_missing(None, "none of the server's processes is a Python interpreter".to_owned());
        }
    }

    fn note_missing(&self, pid: Option<u32>, reason: String) {
        self.sink.note(EventKind::SourceMissing { source: EvidenceSource::Stacks, pid, reason });
    }

    /// Finds new processes, attaches to those that run Python, and forgets those that have ended.
    fn find_processes(&mut self) {
        // A process is attached to one search after it was found: a fork that is about to run another program still has the
        // interpreter's name and memory.
        for number in 0..self.processes.len() {
            self.attach_process(number);
        }
        self.processes.retain(|process| is_alive(process.pid));
        for pid in watched_pids(self.root, MOST_PROCESSES) {
            let is_known = self.processes.iter().any(|process| process.pid == pid);
            if !is_known && self.processes.len() < MOST_PROCESSES && runs_python(pid) {
                self.found_python = true;
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
        // A process that is seized while it exits is reaped by the sampler, and its parent never learns how it ended.
        if !is_alive(process.pid) {
            process.reader = None;
        }
        let Some(reader) = &mut process.reader else { return };
        // A stop for a sample wakes the threads that wait, so their waits are read before it.
        let waits = thread_waits(process.pid);
        match reader.get_stack_traces() {
            Ok(traces) => {
                process.failures = 0;
                let pid = process.pid;
                for trace in traces {
                    self.note_sample(at, pid, &trace, &waits);
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

    fn note_sample(&mut self, at: Nanos, pid: u32, trace: &StackTrace, waits: &HashMap<u64, ThreadLock>) {
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
        let (thread, running) = (trace.thread_id, trace.active);
        let lock = if trace.owns_gil {
            Some(ThreadLock::HoldsInterpreter)
        } else {
            trace.os_thread_id.filter(|_| !trace.active).and_then(|thread| waits.get(&thread).copied())
        };
        self.sink.note_at(at, EventKind::StackSample { pid, thread, stack, running, lock });
    }
}

/// The threads of a process that wait for a lock. Systems that hide the calls of a thread tell of no wait.
fn thread_waits(pid: u32) -> HashMap<u64, ThreadLock> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return HashMap::new() };
    let wait = |task: fs::DirEntry| {
        let thread = task.file_name().to_str()?.parse().ok()?;
        Some((thread, futex_wait(&fs::read_to_string(task.path().join("syscall")).ok()?)?))
    };
    tasks.flatten().take(MOST_THREADS).filter_map(wait).collect()
}

/// The wait of a system call, as `/proc/PID/task/TID/syscall` shows it: its number and its arguments.
fn futex_wait(call: &str) -> Option<ThreadLock> {
    let mut words = call.split_ascii_whitespace();
    let number = words.next()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (_, operation, _, limit) = (argument()?, argument()?, argument()?, argument()?);
    let is_futex = number == FUTEX || (number == RESTARTED && operation & FUTEX_PRIVATE != 0 && limit != 0);
    if !is_futex {
        return None;
    }
    match operation & FUTEX_COMMAND {
        FUTEX_WAIT | FUTEX_WAIT_BITSET if limit == 0 => Some(ThreadLock::Waits),
        FUTEX_WAIT | FUTEX_WAIT_BITSET => Some(ThreadLock::WaitsLimited),
        _ => None,
    }
}

/// Whether the process's program is a Python interpreter, by its name.
fn runs_python(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    let name = program.as_deref().ok().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.is_some_and(|name| name.starts_with("python"))
}

/// Whether the process exists and has not begun to exit.
fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !is_exiting(&stat))
}

/// Whether `/proc/PID/stat` shows a process that exits or has ended (proc_pid_stat(5), `flags`).
fn is_exiting(stat: &str) -> bool {
    // The name of the program stands in parentheses and may have any characters.
    let Some((_, fields)) = stat.rsplit_once(") ") else { return true };
    let flags = fields.split_ascii_whitespace().nth(6).and_then(|flags| flags.parse::<u32>().ok());
    flags.is_none_or(|flags| flags & EXITING != 0)
}

/// Whether the system forbids reading the process, so that trying again is no use.
fn is_forbidden(error: &dyn std::fmt::Debug) -> bool {
    format!("{error:?}").contains("Permission")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_exits_is_told_from_one_that_runs() {
        let stat = |flags: u32| format!("7 (a) b) R 1 7 7 0 -1 {flags} 1234 0 0\n");
        assert!(!is_exiting(&stat(0x40_0000)));
        assert!(is_exiting(&stat(0x40_0004)));
        assert!(is_exiting(""));
        assert!(is_alive(std::process::id()));
    }

    #[test]
    fn a_wait_for_a_lock_is_told_from_other_system_calls() {
        let wait = |operation: &str, limit: &str| {
            futex_wait(&format!("{FUTEX} 0x7f0000000000 {operation} 0x0 {limit} 0x0 0xffffffff 0x7ffe 0x7f00\n"))
        };
        assert_eq!(wait("0x189", "0x7ffe0000"), Some(ThreadLock::WaitsLimited));
        assert_eq!(wait("0x189", "0x0"), Some(ThreadLock::Waits));
        assert_eq!(wait("0x80", "0x0"), Some(ThreadLock::Waits));
        let restarted = |operation: &str, limit: &str| {
            futex_wait(&format!("{RESTARTED} 0x7f0000000000 {operation} 0x0 {limit} 0x0 0xffffffff 0x7ffe 0x7f00\n"))
        };
        assert_eq!(restarted("0x89", "0x7ffe0000"), Some(ThreadLock::WaitsLimited));
        // A sleep, whose second argument is a pointer or nothing, and a poll of nine descriptors.
        assert_eq!((restarted("0x0", "0x0"), restarted("0x9", "0x3e8")), (None, None));
        // A thread that wakes others.
        assert_eq!(wait("0x81", "0x0"), None);
        for other in ["running", "-1 0x7ffe 0x7f00", "", "1 0x1 0x2 0x3 0x0 0x0 0x0 0x7ffe 0x7f00", FUTEX] {
            assert_eq!(futex_wait(other), None, "{other}");
        }
    }
}
