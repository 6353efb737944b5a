//! A run from outside: start, watch, stop, wait, read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mcpace_stats::HistogramSummary;

use crate::outcome::{Engine, LoadOutcome, OperationOutcome, RunEnd, Second, SecondDelta};
use crate::plan::{Plan, PlanError};
use crate::program::Program;
use crate::system_limits::raise_descriptors;
use crate::tally::{Counts, SecondPart, ThreadTally};
use crate::user::RunClock;
use crate::worker::{LoadWorker, ThreadReport};

/// Starts a run, on threads of its own.
///
/// # Errors
/// [`PlanError`] where the plan can't be run. That a target can't be found or reached is part of the outcome.
pub fn start_run(plan: Plan) -> Result<Run, PlanError> {
    plan.check()?;
    let shared = Arc::new(RunShared::default());
    let own = Arc::clone(&shared);
    let spawned = thread::Builder::new().name("mcpace-load".to_owned()).spawn(move || {
        let outcome = conduct_plan(plan, &own);
        own.lock_state().outcome = Some(outcome);
        own.changed.notify_all();
    });
    if let Err(error) = spawned {
        return Err(PlanError::Impossible(format!("no thread can be started: {error}")));
    }
    Ok(Run { shared })
}

/// A run under way. Dropped, it ends, and what it measured is lost.
pub struct Run {
    shared: Arc<RunShared>,
}

impl Run {
    /// Waits until the run is over, or for so long. Says whether it is over.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> bool {
        let state = self.shared.lock_state();
        let waited = self.shared.changed.wait_timeout_while(state, longest, |state| state.outcome.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.outcome.is_some()
    }

    /// The whole seconds that have ended since this was asked last.
    #[must_use]
    pub fn progress(&self) -> Vec<Second> {
        let mut state = self.shared.lock_state();
        let to = state.seconds.len();
        let from = std::mem::replace(&mut state.told, to);
        state.seconds[from..].to_vec()
    }

    /// The counts of each second that has ended since this was asked last. Empty where the plan has no share.
    #[must_use]
    pub fn take_deltas(&self) -> Vec<SecondDelta> {
        std::mem::take(&mut self.shared.lock_state().deltas)
    }

    /// Ends the run early. Measurements up to now are kept; calls under way have half a second to end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// The result, once the run is over.
    #[must_use]
    pub fn result(&self) -> Option<LoadOutcome> {
        self.shared.lock_state().outcome.clone()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("over", &self.shared.lock_state().outcome.is_some()).finish()
    }
}

#[derive(Default)]
struct RunShared {
    stop: Arc<AtomicBool>,
    state: Mutex<RunState>,
    changed: Condvar,
}

#[derive(Default)]
struct RunState {
    seconds: Vec<Second>,
    /// How many of them were told.
    told: usize,
    deltas: Vec<SecondDelta>,
    outcome: Option<LoadOutcome>,
}

impl RunShared {
    fn lock_state(&self) -> MutexGuard<'_, RunState> {
        // Nothing under this lock can leave the state half-changed, so a poisoned one is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the plan and makes its outcome.
fn conduct_plan(plan: Plan, shared: &RunShared) -> LoadOutcome {
    raise_descriptors();
    let threads = plan.threads;
    // The lookup of names comes before: it is none of the load's time.
    let share = plan.share;
    let program = Program::new(plan);
    if share.is_some_and(|share| !await_start(share.start_ns, &shared.stop)) {
        return empty_outcome(RunEnd::Stopped, None, mcpace_clock::monotonic_ns(), threads);
    }
    let clock = RunClock(Instant::now());
    let started_ns = mcpace_clock::monotonic_ns();
    let program = match program {
        Ok(program) => Arc::new(program),
        Err(failure) => return failed_outcome(failure, started_ns, threads),
    };
    let (sender, reports) = channel();
    let mut handles = Vec::new();
    for number in 0..threads {
        let (program, stop, sender) = (Arc::clone(&program), Arc::clone(&shared.stop), sender.clone());
        let spawned = thread::Builder::new().name(format!("mcpace-load-{number}")).spawn(move || {
            match LoadWorker::new(program, clock, number, stop, sender.clone()) {
                Ok(worker) => worker.run(),
                // Nobody listens any more where the run was dropped.
                Err(error) => {
                    drop(sender.send(ThreadReport::Failed(format!("a thread of the engine failed: {error}"))))
                }
            }
        });
        match spawned {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                shared.stop.store(true, Ordering::Relaxed);
                return failed_outcome(format!("no thread can be started: {error}"), started_ns, threads);
            }
        }
    }
    drop(sender);
    let mut gathered = gather_reports(&reports, &program, shared, started_ns);
    for handle in handles {
        if handle.join().is_err() {
            gathered.failure.get_or_insert_with(|| "a thread of the engine panicked".to_owned());
        }
    }
    gathered.into_outcome(&program, shared, clock.now())
}

/// Waits for the start that all engines of the load agreed on. Returns whether it came before the wish to stop.
fn await_start(start_ns: u64, stop: &AtomicBool) -> bool {
    const LOOK: Duration = Duration::from_millis(20);
    /// A sleeping thread may wake late: the last moments are waited for awake.
    const AWAKE: Duration = Duration::from_millis(3);
    while !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(start_ns.saturating_sub(mcpace_clock::monotonic_ns()));
        if left.is_zero() {
            return true;
        }
        let asleep = left.saturating_sub(AWAKE);
        if asleep.is_zero() {
            std::hint::spin_loop();
        } else {
            thread::sleep(asleep.min(LOOK));
        }
    }
    false
}

/// Results of all threads together.
struct Gathered {
    tally: ThreadTally,
    started_ns: u64,
    measured_end_ns: u64,
    failure: Option<String>,
}

/// Takes the threads' reports until the last of them has ended, and publishes each second when all have told theirs.
fn gather_reports(
    reports: &Receiver<ThreadReport>,
    program: &Program,
    shared: &RunShared,
    started_ns: u64,
) -> Gathered {
    let tally = ThreadTally::new(program.row_count());
    let mut gathered = Gathered { tally, started_ns, measured_end_ns: 0, failure: None };
    let mut open: BTreeMap<u64, (SecondPart, usize)> = BTreeMap::new();
    for report in reports {
        match report {
            ThreadReport::Second(part) => {
                let (merged, told) = open.entry(part.second).or_insert_with(|| (SecondPart::new(part.second), 0));
                merged.merge_part(*part);
                *told += 1;
                while let Some(entry) = open.first_entry().filter(|entry| entry.get().1 == program.plan.threads) {
                    gathered.publish_second(entry.remove().0, program, shared);
                }
            }
            ThreadReport::Done { tally, measured_end_ns } => {
                gathered.tally.merge_tally(*tally);
                gathered.measured_end_ns = gathered.measured_end_ns.max(measured_end_ns);
            }
            ThreadReport::Failed(why) => {
                gathered.failure.get_or_insert(why);
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
    }
    // Threads end a moment apart, so that the last seconds may be some threads' only.
    for (part, _) in open.into_values() {
        gathered.publish_second(part, program, shared);
    }
    gathered
}

impl Gathered {
    /// Publishes a second that all threads have reported. The operations that were cut from their tallies come back here.
    fn publish_second(&mut self, mut part: SecondPart, program: &Program, shared: &RunShared) {
        let second = part.second_outcome(program.plan.warm_up_s);
        let delta = part.cut.take().map(|cut| {
            let delta = SecondDelta {
                started_ns: self.started_ns,
                second: second.clone(),
                latency: HistogramSummary::from(&part.latency),
                operations: operation_outcomes(program, &cut.operations, |_, counts| counts.ended_calls() > 0),
                intended: cut.intended,
                begun: cut.begun,
                late: cut.late,
                unfinished: cut.unfinished,
                connections: cut.connections,
            };
            self.tally.merge_operations(cut.operations);
            delta
        });
        let mut state = shared.lock_state();
        state.seconds.push(second);
        state.deltas.extend(delta);
    }

    fn into_outcome(self, program: &Program, shared: &RunShared, now: u64) -> LoadOutcome {
        let Self { tally, started_ns, measured_end_ns, failure } = self;
        let is_stopped = shared.stop.load(Ordering::Relaxed) && measured_end_ns < program.end_ns;
        let ended = match (&failure, is_stopped) {
            (Some(_), _) => RunEnd::Failed,
            (None, true) => RunEnd::Stopped,
            (None, false) => RunEnd::Done,
        };
        let reason = tally.engine_saturation(program.is_open());
        let mut seconds = shared.lock_state().seconds.clone();
        // The last, partial one, where nothing happened in it.
        if seconds.last().is_some_and(|last| last.ok + last.errors + last.intended == 0) {
            seconds.pop();
        }
        let engine = Engine {
            threads: program.plan.threads,
            cpu_s: tally.cpu_ns as f64 / 1e9,
            busy: tally.busy_share(),
            late_p99_s: tally.lateness.quantile(0.99) as f64 / 1e9,
            saturated: reason.is_some(),
            reason,
        };
        // The session's own requests are left out where there were none.
        let operations = operation_outcomes(program, &tally.operations, |at, counts| {
            at < program.calls.len() || counts.ended_calls() > 0
        });
        LoadOutcome {
            ended,
            failure,
            started_ns,
            elapsed_s: now as f64 / 1e9,
            measured_s: measured_end_ns.saturating_sub(program.warm_up_ns) as f64 / 1e9,
            intended: tally.intended,
            begun: tally.begun,
            dropped: tally.intended.saturating_sub(tally.begun),
            late: tally.late,
            unfinished: tally.unfinished,
            operations,
            connections: tally.connections,
            seconds,
            engine,
        }
    }
}

/// The operations that `is_kept` chooses by their row and their counts.
fn operation_outcomes(
    program: &Program,
    counts: &[Counts],
    is_kept: impl Fn(usize, &Counts) -> bool,
) -> Vec<OperationOutcome> {
    let rows = program.row_names().into_iter().zip(counts).enumerate();
    rows.filter(|(at, (_, counts))| is_kept(*at, counts))
        .map(|(_, ((name, kind), counts))| counts.to_outcome(name, kind))
        .collect()
}

fn failed_outcome(why: String, started_ns: u64, threads: usize) -> LoadOutcome {
    empty_outcome(RunEnd::Failed, Some(why), started_ns, threads)
}

/// The outcome of a run without a call.
fn empty_outcome(ended: RunEnd, failure: Option<String>, started_ns: u64, threads: usize) -> LoadOutcome {
    LoadOutcome {
        ended,
        failure,
        started_ns,
        elapsed_s: 0.0,
        measured_s: 0.0,
        intended: 0,
        begun: 0,
        dropped: 0,
        late: 0,
        unfinished: 0,
        operations: Vec::new(),
        connections: Default::default(),
        seconds: Vec::new(),
        engine: Engine { threads, cpu_s: 0.0, busy: 0.0, late_p99_s: 0.0, saturated: false, reason: None },
    }
}
