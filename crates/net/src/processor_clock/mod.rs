//! Processor time of a process and its descendants, read from outside at each exchange.
//!
//! The kernel has a clock of each process (clock_getcpuclockid(3)): one system call, in nanoseconds, all threads. While a
//! thread runs on another processor, its share is as old as the last timer tick, up to 4 ms. The reading that counts for an
//! exchange is therefore the one at the next request, after the process went to sleep. Readings have a budget for each second.
//! Where the kernel has no such clock, there are no readings.
//!
//! Many commands are wrappers (`npx`, `uv run`), whose server is a descendant. Descendants are looked for often: one that is
//! found late brings the time of its first moments to a later exchange. One that ends between two searches is not counted.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod none;

use std::sync::Mutex;

use mcpace_record::Nanos;

use crate::lock::lock_mutex;
use crate::monotonic_now;
#[cfg(target_os = "linux")]
use linux::child_pids;
#[cfg(target_os = "linux")]
pub(crate) use linux::process_time;
#[cfg(not(target_os = "linux"))]
use none::{child_pids, process_time};

/// Readings a second, and readings that may come at once.
const READINGS_A_SECOND: u64 = 5_000;
const BURST: u64 = 500;

/// How often descendants are looked for, and how many are watched at most.
const SEARCH_PERIOD: Nanos = Nanos::from_millis(100);
const MOST_PROCESSES: usize = 16;

/// Reads the processor time of one process and its descendants.
pub(crate) struct ProcessorClock {
    pid: u32,
    state: Mutex<ClockState>,
}

struct ClockState {
    processes: Vec<ProcessTime>,
    searched: Option<Nanos>,
    /// Readings that may still be taken, as of `refilled`.
    budget: u64,
    refilled: Nanos,
}

/// A process and the last reading of its clock. A process that has ended keeps its time.
struct ProcessTime {
    pid: u32,
    used: Nanos,
    ended: bool,
}

impl ProcessorClock {
    pub(crate) fn new(pid: u32) -> Self {
        let processes = vec![ProcessTime { pid, used: Nanos::ZERO, ended: false }];
        let state = ClockState { processes, searched: None, budget: BURST, refilled: monotonic_now() };
        Self { pid, state: Mutex::new(state) }
    }

    /// Process id of the process itself.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Now, and the processor time that was used up to now; `None` where the process has ended, where the system can't tell,
    /// and where the second's budget is spent.
    pub(crate) fn read_time(&self) -> Option<(Nanos, Nanos)> {
        let mut state = lock_mutex(&self.state);
        let at = monotonic_now();
        if !state.spend_reading(at) {
            return None;
        }
        if state.searched.is_none_or(|searched| at.since(searched) >= SEARCH_PERIOD) {
            state.searched = Some(at);
            state.add_descendants();
        }
        for process in state.processes.iter_mut().filter(|process| !process.ended) {
            match process_time(process.pid) {
                // A clock that goes back is that of another process with the same number.
                Some(used) if used >= process.used => process.used = used,
                _ => process.ended = true,
            }
        }
        let alive = state.processes.iter().any(|process| !process.ended);
        alive.then(|| (at, state.processes.iter().fold(Nanos::ZERO, |sum, process| sum + process.used)))
    }
}

impl ClockState {
    /// Whether a reading is within the budget.
    fn spend_reading(&mut self, at: Nanos) -> bool {
        let fresh = at.since(self.refilled).0.saturating_mul(READINGS_A_SECOND) / 1_000_000_000;
        if fresh > 0 {
            self.budget = self.budget.saturating_add(fresh).min(BURST);
            self.refilled = at;
        }
        let within = self.budget > 0;
        self.budget = self.budget.saturating_sub(1);
        within
    }

    fn add_descendants(&mut self) {
        let mut next = 0;
        while next < self.processes.len() {
            let process = &self.processes[next];
            next += 1;
            if process.ended {
                continue;
            }
            for pid in child_pids(process.pid) {
                let is_new = self.processes.iter().all(|known| known.pid != pid);
                if is_new && self.processes.len() < MOST_PROCESSES {
                    self.processes.push(ProcessTime { pid, used: Nanos::ZERO, ended: false });
                }
            }
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that runs `script` and then waits for the end of its input.
    fn shell(script: &str) -> Child {
        let (input, output) = (Stdio::piped(), Stdio::piped());
        Command::new("sh").args(["-c", script]).stdin(input).stdout(output).spawn().unwrap()
    }

    /// Waits until the shell has written a line.
    fn await_line(child: &mut Child) {
        use std::io::{BufRead, BufReader};
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_clock_counts_what_the_process_and_its_children_compute() {
        let mut idle = shell("echo; read line");
        let mut busy = shell("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read line; :'; :");
        await_line(&mut idle);
        await_line(&mut busy);
        let used = |child: &Child| ProcessorClock::new(child.id()).read_time().unwrap().1;
        let (idle_time, busy_time) = (used(&idle), used(&busy));
        assert!(busy_time.0 > 10 * idle_time.0, "{idle_time:?} {busy_time:?}");
        end(idle);
        drop(busy.stdin.take());
        end(busy);
    }

    #[test]
    fn a_child_of_any_thread_is_found() {
        let mut child = shell("echo; read line");
        await_line(&mut child);
        // Tests run on threads of their own.
        assert!(child_pids(std::process::id()).contains(&child.id()));
        end(child);
    }

    #[test]
    fn a_process_that_has_ended_has_no_clock() {
        let mut child = shell("echo; read line");
        await_line(&mut child);
        let clock = ProcessorClock::new(child.id());
        assert!(clock.read_time().is_some());
        end(child);
        assert_eq!(clock.read_time(), None);
        assert_eq!(ProcessorClock::new(u32::MAX).read_time(), None);
    }

    #[test]
    fn readings_beyond_the_budget_are_left_out() {
        let clock = ProcessorClock::new(std::process::id());
        let mut state = lock_mutex(&clock.state);
        let at = state.refilled;
        assert_eq!((0..BURST + 100).filter(|_| state.spend_reading(at)).count() as u64, BURST);
        let later = at + Nanos::from_millis(10);
        assert_eq!((0..BURST).filter(|_| state.spend_reading(later)).count() as u64, READINGS_A_SECOND / 100);
    }
}
