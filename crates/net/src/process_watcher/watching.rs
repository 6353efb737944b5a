//! One look after another at the processor clocks of descendants.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_record::{EventKind, EvidenceSource, Nanos};
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::descendants::{Descendant, descendants};
use crate::processor_clock::process_time;
use crate::sampling_thread::Pace;
use crate::{Sink, monotonic_now};

/// How often new processes are looked for.
const SEARCH_PERIOD: Duration = Duration::from_millis(20);

/// The kernel tells the beginning of a process in steps of this length or shorter ones.
const LONGEST_TICK: Duration = Duration::from_millis(10);

/// Processes that are watched, and stretches of time that are noted in all.
const MOST_PROCESSES: usize = 64;
const MOST_STRETCHES: u64 = 500_000;

/// A program computes where it uses at least this part of the time between two looks.
const LEAST_PART: u64 = 4;

/// Longest name of a program, in characters.
const LONGEST_NAME: usize = 60;

/// Watches the descendants of `root` at the pace of `pace`, until the thread is to end.
pub(super) fn watch_until_ended(sink: Arc<Sink>, root: u32, pace: Pace) {
    Watching::new(sink, root).watch(pace);
}

struct Watching {
    sink: Arc<Sink>,
    root: u32,
    /// The descendants that were alive at the last search.
    processes: HashMap<u32, WatchedProcess>,
    noted: u64,
    /// Whether there were once more descendants than are watched.
    has_unwatched: bool,
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
    fn new(sink: Arc<Sink>, root: u32) -> Self {
        Self { sink, root, processes: HashMap::new(), noted: 0, has_unwatched: false }
    }

    fn watch(mut self, mut pace: Pace) {
        let mut searched: Option<Instant> = None;
        let mut last = monotonic_now();
        loop {
            let begin = Instant::now();
            let since_search = searched.map(|searched| begin.duration_since(searched));
            if since_search.is_none_or(|since| since >= SEARCH_PERIOD) {
                self.find_processes(last, since_search);
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

    /// Adds processes that are new and forgets those that have ended, at the time `last` of the last look. `since_search` is the
    /// time since the last search. The processor time of a process counts from its beginning where it began since then,
    /// else from this search: a process that is older may have been adopted, or had no room.
    fn find_processes(&mut self, last: Nanos, since_search: Option<Duration>) {
        let mut found = descendants(self.root, MOST_PROCESSES + 1);
        if found.len() > MOST_PROCESSES {
            found.truncate(MOST_PROCESSES);
            if !self.has_unwatched {
                self.has_unwatched = true;
                let reason =
                    format!("the server has more than {MOST_PROCESSES} descendants: the others were not watched");
                self.note_missing(reason);
            }
        }
        let ended: Vec<u32> =
            self.processes.keys().filter(|pid| found.iter().all(|one| one.pid != **pid)).copied().collect();
        for pid in ended {
            self.end_stretch(pid, last);
            self.processes.remove(&pid);
        }
        for Descendant { pid, parent } in found {
            let process = self.processes.entry(pid).or_insert_with(|| {
                let age = since_search.and_then(|_| process_age(pid));
                let is_new = since_search.zip(age).is_some_and(|(since, age)| age <= since + LONGEST_TICK);
                let used = if is_new { Nanos::ZERO } else { process_time(pid).unwrap_or_default() };
                WatchedProcess { parent, program: String::new(), used, computes_since: None }
            });
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

/// Time since the process was forked; `None` where it has ended.
fn process_age(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold any character. The beginning is the 20th field after it, in ticks since
    // the machine started (proc_pid_stat(5)).
    let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let began = Duration::from_millis(ticks.saturating_mul(1_000) / clock_ticks_per_second().max(1));
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?);
    Some(now.saturating_sub(began))
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

    use mcpace_record::{Instrument, Recording, RecordingHead};

    use super::*;
    use crate::{ProcessWatcher, SinkOptions};

    fn start_shell(script: &str) -> Child {
        let (input, output) = (Stdio::piped(), Stdio::piped());
        Command::new("sh").args(["-c", script]).stdin(input).stdout(output).spawn().unwrap()
    }

    /// Runs a shell until it writes a line, while its descendants are watched; returns its process id and what was seen.
    fn watch_shell(script: &str) -> (u32, Recording) {
        let mut shell = start_shell(script);
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

    fn watching(root: u32) -> Watching {
        let head = RecordingHead::bare(Instrument::Recorder);
        Watching::new(Sink::new(head, SinkOptions::default()).unwrap(), root)
    }

    #[test]
    fn an_old_program_counts_from_when_it_is_found_and_a_new_one_from_its_beginning() {
        let mut shell = start_shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read line");
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        let used = |since: Duration| {
            let mut watching = watching(std::process::id());
            watching.find_processes(monotonic_now(), Some(since));
            watching.processes[&shell.id()].used
        };
        let (old, new) = (used(SEARCH_PERIOD), used(Duration::from_secs(3_600)));
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(old > Nanos::from_millis(30), "{old:?}");
        assert_eq!(new, Nanos::ZERO);
    }

    #[test]
    fn descendants_that_are_not_watched_are_told_once() {
        // The subshells end with the pipe.
        let script = "exec 3<&0; i=0; while [ $i -lt 70 ]; do (read line <&3) & i=$((i+1)); done; echo; read line";
        let mut shell = start_shell(script);
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        let mut watching = watching(shell.id());
        watching.find_processes(monotonic_now(), None);
        watching.find_processes(monotonic_now(), Some(SEARCH_PERIOD));
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(watching.processes.len(), MOST_PROCESSES);
        let seen = watching.sink.recording();
        assert_eq!(seen.events().len(), 1);
        let EventKind::SourceMissing { source, reason, .. } = &seen.events()[0].kind else { panic!("{seen:?}") };
        assert!(*source == EvidenceSource::Processes && reason.contains("more than 64 descendants"), "{reason}");
    }
}
