//! One look after another at the processor clocks of descendants.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_record::{EventKind, EvidenceSource, Nanos};

use crate::descendants::{Descendant, descendants};
use crate::processor_clock::process_time;
use crate::sampling_thread::Pace;
use crate::{Sink, monotonic_now};

/// How often new processes are looked for.
const SEARCH_PERIOD: Duration = Duration::from_millis(20);

/// Processes that are watched, and stretches of time that are noted in all.
const MOST_PROCESSES: usize = 64;
const MOST_STRETCHES: u64 = 500_000;

/// A program computes where it uses at least this part of the time between two looks.
const LEAST_PART: u64 = 4;

/// Longest name of a program, in characters.
const LONGEST_NAME: usize = 60;

/// Watches the descendants of `root` at the pace of `pace`, until the thread is to end.
pub(super) fn watch_until_ended(sink: Arc<Sink>, root: u32, pace: Pace) {
    Watching { sink, root, processes: HashMap::new(), noted: 0 }.watch(pace);
}

struct Watching {
    sink: Arc<Sink>,
    root: u32,
    /// The descendants that were alive at the last search.
    processes: HashMap<u32, WatchedProcess>,
    noted: u64,
}

struct WatchedProcess {
    parent: u32,
    program: String,
    /// Processor time at the last look.
    used: Nanos,
    /// When it was seen to begin computing, while it computes.
    computes_since: Option<Nanos>,
}

impl Watching {
    fn watch(mut self, mut pace: Pace) {
        let mut searched: Option<Instant> = None;
        let mut last = monotonic_now();
        loop {
            let begin = Instant::now();
            if searched.is_none_or(|searched| begin.duration_since(searched) >= SEARCH_PERIOD) {
                self.find_processes(last, searched.is_none());
                searched = Some(begin);
            }
            let at = monotonic_now();
            self.look(last, at);
            last = at;
            if !pace.await_next(begin) {
                break;
            }
        }
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            self.end_stretch(pid, last);
        }
        if self.noted > MOST_STRETCHES {
            let reason =
                format!("programs computed in more than {MOST_STRETCHES} stretches: the later ones are missing");
            self.note_missing(reason);
        }
    }

    fn note_missing(&self, reason: String) {
        self.sink.note(EventKind::SourceMissing { source: EvidenceSource::Processes, pid: None, reason });
    }

    /// Adds processes that are new and forgets those that have ended, at the time `last` of the last look. The time that a process
    /// used before the first search does not count.
    fn find_processes(&mut self, last: Nanos, is_first: bool) {
        let found = descendants(self.root, MOST_PROCESSES);
        let ended: Vec<u32> =
            self.processes.keys().filter(|pid| found.iter().all(|one| one.pid != **pid)).copied().collect();
        for pid in ended {
            self.end_stretch(pid, last);
            self.processes.remove(&pid);
        }
        for Descendant { pid, parent } in found {
            let used = if is_first { process_time(pid).unwrap_or_default() } else { Nanos::ZERO };
            let new = || WatchedProcess { parent, program: String::new(), used, computes_since: None };
            let process = self.processes.entry(pid).or_insert_with(new);
            // A process that was forked has the name of its parent until it runs another program.
            if let Some(program) = program_name(pid) {
                process.program = program;
            }
        }
    }

    /// Reads all clocks; the last look was at `last`.
    fn look(&mut self, last: Nanos, at: Nanos) {
        let mut idle = Vec::new();
        for (pid, process) in &mut self.processes {
            let used = process_time(*pid).unwrap_or(process.used);
            let gained = used.since(process.used);
            process.used = used;
            if gained.0.saturating_mul(LEAST_PART) >= at.since(last).0.max(1) {
                process.computes_since.get_or_insert(last);
            } else if process.computes_since.is_some() {
                idle.push(*pid);
            }
        }
        for pid in idle {
            self.end_stretch(pid, last);
        }
    }

    /// Notes that a process computed until `end`, if it did.
    fn end_stretch(&mut self, pid: u32, end: Nanos) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let Some(began) = process.computes_since.take() else { return };
        let program = process.program.clone();
        self.noted += 1;
        if self.noted <= MOST_STRETCHES {
            let ancestors = self.ancestors(pid);
            self.sink.note_at(end, EventKind::ProcessRan { pid, ancestors, program, began });
        }
    }

    fn ancestors(&self, pid: u32) -> Vec<u32> {
        let mut ancestors = Vec::new();
        let mut child = pid;
        while let Some(process) = self.processes.get(&child).filter(|_| ancestors.len() < MOST_PROCESSES) {
            ancestors.push(process.parent);
            child = process.parent;
        }
        ancestors
    }
}

/// Name of the file that a process runs.
fn program_name(pid: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(name.trim_end_matches(" (deleted)").chars().take(LONGEST_NAME).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use mcpace_record::Recording;

    use super::*;
    use crate::ProcessWatcher;

    /// Runs a shell until it writes a line, while its descendants are watched; returns its process id and what was seen.
    fn watch_shell(script: &str) -> (u32, Recording) {
        let (input, output) = (Stdio::piped(), Stdio::piped());
        let mut shell: Child = Command::new("sh").args(["-c", script]).stdin(input).stdout(output).spawn().unwrap();
        let watcher = ProcessWatcher::start(shell.id(), Duration::from_millis(5)).unwrap();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        let seen = watcher.stop();
        shell.kill().unwrap();
        shell.wait().unwrap();
        (shell.id(), seen)
    }

    /// A loop of a second or less, or a wait as long, in a shell of its own; then a line.
    const COMPUTES: &str = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; :'; echo; read line";
    const SLEEPS: &str = "sh -c 'sleep 0.3; :'; echo; read line";

    fn runs(recording: &Recording) -> Vec<(u32, &[u32], &str, Nanos)> {
        let all = recording.events().iter().filter_map(|event| match &event.kind {
            EventKind::ProcessRan { pid, ancestors, program, began } => {
                Some((*pid, ancestors.as_slice(), program.as_str(), event.at.since(*began)))
            }
            _ => None,
        });
        all.collect()
    }

    #[test]
    fn a_descendant_is_seen_while_it_computes() {
        let (shell, seen) = watch_shell(COMPUTES);
        let runs = runs(&seen);
        let computed = runs.iter().fold(Nanos::ZERO, |sum, run| sum + run.3);
        assert!(computed > Nanos::from_millis(30), "{runs:?}");
        for (pid, ancestors, program, _) in runs {
            assert_ne!(pid, shell);
            assert_eq!(ancestors, [shell]);
            assert!(!program.is_empty() && !program.contains('/'), "{program}");
        }
    }

    #[test]
    fn a_descendant_that_sleeps_does_not_compute() {
        let (_, seen) = watch_shell(SLEEPS);
        let computed = runs(&seen).iter().fold(Nanos::ZERO, |sum, run| sum + run.3);
        assert!(computed < Nanos::from_millis(100), "{:?}", runs(&seen));
    }
}
