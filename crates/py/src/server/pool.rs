//! Threads for functions that may take their time.
//!
//! Constraints: an idle thread is woken only where no other is about to look; a thread that is attached to the interpreter
//! takes call after call without letting go in between; threads start when they are needed, up to a limit; calls wait, up to
//! a limit. The lock is never held while a thread waits for the interpreter.
//!
//! Functions that only work and never wait take turns: a second thread would fight the first for the interpreter, and neither
//! would be sooner. Where such a call takes longer than usual for a turn, a lookout, which is one of the idle threads, goes on
//! with the next.
//!
//! The threads are Python's own and run a loop of Python's: where the interpreter ends while a function blocks, its thread is
//! unwound by the system, which must not meet a frame of ours.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mcpace_serve::HandlerError;
use mcpace_wire::jsonrpc::code;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::ending;
use super::handler::Callable;
use super::held;
use super::job::{self, End, Job, Prepared};
use super::pace::{Pace, now_ms};

/// Calls that may wait for a thread.
const WAITING: usize = 100_000;
/// How long a busy function's call keeps others of the kind waiting at most: Python's own turn (`sys.getswitchinterval`).
const TURN: Duration = Duration::from_millis(5);
/// So many quick calls overtake a slow one that waits.
const OVERTAKING: u32 = 16;

/// A thread's life.
const LOOP: &std::ffi::CStr = c"
def work(take):
    while (call := take()) is not None:
        run, function, keywords, finish = call
        try:
            value, raised = run(function, **keywords), False
        except BaseException as error:
            value, raised = error, True
        finish(value, raised)
        del call, run, function, keywords, finish, value
";

/// See the module. Dropping it ends its threads, each after the call that it is at.
pub(super) struct Pool {
    inner: Arc<Threads>,
}

/// What a pool's threads share.
pub(super) struct Threads {
    state: Mutex<State>,
    ready: Condvar,
    /// For the lookout.
    turns: Condvar,
    ended: Condvar,
    limit: usize,
}

#[derive(Default)]
struct State {
    /// They don't wait behind those that take their time.
    quick: VecDeque<Job>,
    /// Of functions that took their time when they last ran.
    slow: VecDeque<Job>,
    /// Quick ones taken since a slow one was.
    overtaken: u32,
    /// Calls of busy functions under way, and when the last of them began.
    busy: usize,
    turn: Option<Instant>,
    threads: usize,
    idle: usize,
    /// One of the threads waits for a turn's end.
    lookout: bool,
    /// A thread was woken or started, and hasn't looked yet.
    looks: bool,
    over: bool,
}

impl State {
    /// The next call, and whether it counts as a busy function's.
    fn pop(&mut self) -> Option<(Job, bool)> {
        let job = if self.next_is_quick() {
            self.overtaken += 1;
            self.quick.pop_front()
        } else {
            self.overtaken = 0;
            self.slow.pop_front()
        }?;
        let is_busy = is_busy(&job);
        if is_busy {
            self.busy += 1;
            self.turn = Some(Instant::now());
        }
        Some((job, is_busy))
    }

    fn next_is_quick(&self) -> bool {
        !self.quick.is_empty() && (self.overtaken < OVERTAKING || self.slow.is_empty())
    }

    /// How long the next call is to wait for its turn yet.
    fn turn_left(&self) -> Option<Duration> {
        let next = if self.next_is_quick() { self.quick.front() } else { self.slow.front() }?;
        let turn = self.turn.filter(|_| self.busy > 0 && is_busy(next))?;
        TURN.checked_sub(turn.elapsed()).filter(|left| !left.is_zero())
    }

    fn is_empty(&self) -> bool {
        self.quick.is_empty() && self.slow.is_empty()
    }
}

fn is_busy(job: &Job) -> bool {
    job.pace.as_ref().is_some_and(|pace| pace.is_busy())
}

impl Pool {
    pub(super) fn new(limit: usize) -> Self {
        let inner = Threads {
            state: Mutex::default(),
            ready: Condvar::new(),
            turns: Condvar::new(),
            ended: Condvar::new(),
            limit: limit.max(1),
        };
        let inner = Arc::new(inner);
        ending::remember_threads(Arc::downgrade(&inner));
        Self { inner }
    }

    pub(super) fn submit(&self, job: Job) {
        let mut state = self.inner.lock();
        if state.over || state.slow.len() + state.quick.len() >= WAITING {
            drop(state);
            let busy = HandlerError::protocol(code::INTERNAL_ERROR, "the server is too busy", None);
            return job.end.refuse(busy);
        }
        if job.pace.as_ref().is_some_and(|pace| pace.was_slow()) {
            state.slow.push_back(job)
        } else {
            state.quick.push_back(job)
        }
        self.inner.call_for_help(state);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.inner.end();
    }
}

impl Threads {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the threads that have nothing to do, and lets the others end after their call. What waits is dropped.
    pub(super) fn end(&self) {
        let waiting = {
            let mut state = self.lock();
            state.over = true;
            (std::mem::take(&mut state.slow), std::mem::take(&mut state.quick))
        };
        self.ready.notify_all();
        self.turns.notify_all();
        // Outside the lock: wakers run.
        drop(waiting);
    }

    /// Waits for the threads' end, for so long.
    pub(super) fn wait_for_end(&self, limit: Duration) {
        let is_busy = |state: &mut State| state.threads > 0;
        let waited = self.ended.wait_timeout_while(self.lock(), limit, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Sees to it that somebody looks at what waits.
    fn call_for_help(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.looks || state.is_empty() || (state.lookout && state.turn_left().is_some()) {
            return;
        }
        if state.idle > 0 {
            state.looks = true;
            drop(state);
            self.ready.notify_one();
        } else if state.threads < self.limit {
            state.looks = true;
            state.threads += 1;
            drop(state);
            let its = Arc::clone(self);
            // The caller may have no time for the interpreter, so a thread of ours starts Python's.
            let started = thread::Builder::new().name("mcpace-starter".to_owned()).spawn(move || its.start());
            if let Err(error) = started {
                self.not_started(&error);
            }
        }
    }

    fn start(self: &Arc<Self>) {
        let started = Python::try_attach(|py| {
            static WORK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let work = WORK.get_or_try_init(py, || {
                let module = PyModule::from_code(py, LOOP, c"<mcpace>", c"mcpace_threads")?;
                module.getattr("work").map(Bound::unbind)
            })?;
            let take = Bound::new(py, Take { threads: Arc::clone(self), busy: AtomicBool::new(false) })?;
            py.import("_thread")?.call_method1("start_new_thread", (work, (take,))).map(drop)
        });
        match started {
            Some(Ok(())) => {}
            Some(Err(error)) => self.not_started(&error),
            None => self.not_started(&"the interpreter is ending"),
        }
    }

    /// Those that are there have to do.
    fn not_started(&self, reason: &dyn std::fmt::Display) {
        let mut state = self.lock();
        state.threads -= 1;
        state.looks = false;
        let nobody = state.threads == 0;
        let mut waiting = VecDeque::new();
        if nobody {
            waiting.append(&mut state.quick);
            waiting.append(&mut state.slow);
        }
        drop(state);
        if !waiting.is_empty() {
            eprintln!("mcpace: no thread can be started for tools: {reason}");
        }
    }

    /// The next call; `None` at the end.
    fn wait(self: &Arc<Self>) -> Option<(Job, bool)> {
        let mut state = self.lock();
        loop {
            if state.over {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            if let Some(left) = state.turn_left() {
                state.looks = false;
                if !state.lookout {
                    state.lookout = true;
                    let (waited, _) = self.turns.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                    state = waited;
                    state.lookout = false;
                    continue;
                }
            } else if let Some(job) = state.pop() {
                // More may be there than one thread should do.
                self.call_for_help(state);
                return Some(job);
            }
            state.idle += 1;
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.looks = false;
        }
    }

    /// The next call, if one may begin at once, for a thread whose last one counted as a busy function's or didn't.
    fn next(self: &Arc<Self>, was_busy: bool) -> Option<(Job, bool)> {
        let mut state = self.lock();
        state.busy -= usize::from(was_busy);
        // Whoever was called for help has come, or will find nothing: at worst one more is woken.
        state.looks = false;
        let job = if state.over || state.turn_left().is_some() { None } else { state.pop() };
        if job.is_some() {
            self.call_for_help(state);
        }
        job
    }
}

/// Remembered for the process's end.
pub(super) type WeakThreads = Weak<Threads>;

/// Gives a thread its next call: `(run, function, keywords, finish)`, or `None` at the end.
#[pyclass(frozen)]
struct Take {
    threads: Arc<Threads>,
    /// Whether the thread's last call was counted as busy.
    busy: AtomicBool,
}

type Call<'py> = (Bound<'py, PyAny>, Py<PyAny>, Bound<'py, PyDict>, Bound<'py, Finish>);

#[pymethods]
impl Take {
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Option<Call<'py>>> {
        loop {
            let (job, is_busy) = match self.threads.next(self.busy.swap(false, Relaxed)) {
                Some(job) => job,
                None => match py.detach(|| self.threads.wait()) {
                    Some(job) => job,
                    None => return Ok(None),
                },
            };
            self.busy.store(is_busy, Relaxed);
            if job.end.is_given_up() {
                continue;
            }
            let Job { callable, shared, arguments, context, pace, end } = job;
            let (started, worked) = (Instant::now(), held::worked());
            let prepared = job::prepare(py, &callable, &shared, &arguments, context).and_then(|prepared| {
                let Prepared { keywords, variables } = prepared;
                Ok((variables.getattr(pyo3::intern!(py, "run"))?, keywords))
            });
            match prepared {
                Ok((run, keywords)) => {
                    let function = callable.function().clone_ref(py);
                    let open = Mutex::new(Some(Open { callable, pace, end, started, worked }));
                    return Ok(Some((run, function, keywords, Bound::new(py, Finish { open })?)));
                }
                Err(error) => end.give(py, &callable, Err(error)),
            }
        }
    }
}

/// Takes a call's outcome.
#[pyclass(frozen)]
struct Finish {
    open: Mutex<Option<Open>>,
}

struct Open {
    callable: Arc<Callable>,
    pace: Option<Arc<Pace>>,
    end: End,
    started: Instant,
    /// The thread's time on a processor before.
    worked: Duration,
}

#[pymethods]
impl Finish {
    fn __call__(&self, value: Bound<'_, PyAny>, raised: bool) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Open { callable, pace, end, started, worked }) = open else { return };
        let py = value.py();
        end.give(py, &callable, if raised { Err(PyErr::from_value(value)) } else { Ok(value) });
        if let Some(pace) = pace {
            pace.ran(started.elapsed(), held::worked().saturating_sub(worked), now_ms());
        }
    }
}
