//! Threads for functions that may take long.
//!
//! Constraints: an idle thread is woken only where no other is about to look; a thread that is attached to the interpreter
//! takes call after call without letting go in between; threads start when they are needed, up to a limit; calls wait, up to
//! a limit. The lock is never held while a thread waits for the interpreter.
//!
//! While calls wait for their turn ([`crate::server::threads::queue`]), one idle thread is the lookout: it continues when the turn is
//! over.
//!
//! The threads are Python threads that run a Python loop. When the interpreter ends while a function blocks, the system unwinds the
//! function's thread, and the unwinding must not meet a Rust frame.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mcpace_serve::HandlerError;
use mcpace_wire::jsonrpc::code;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::server::call::handler::Callable;
use crate::server::call::job::{self, CallCompletion, Job, Prepared};
use crate::server::threads::inline_policy::{InlinePolicy, now_ms};
use crate::server::threads::queue::{CallQueue, Manner, TakenCall, ThreadShare};
use crate::server::threads::thread_time::ThreadTimer;

/// Calls that may wait for a thread.
const WAITING: usize = 100_000;
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

/// Pools of this process, for its end.
static POOLS: Mutex<Vec<Weak<Threads>>> = Mutex::new(Vec::new());

fn running_pools() -> MutexGuard<'static, Vec<Weak<Threads>>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the threads of all pools, and waits for them within a limit for each pool.
pub(crate) fn end_all(limit: Duration) {
    let pools: Vec<_> = std::mem::take(&mut *running_pools()).iter().filter_map(Weak::upgrade).collect();
    pools.iter().for_each(|threads| threads.end_threads());
    pools.iter().for_each(|threads| threads.wait_for_end(limit));
}

/// Thread pool. Dropping it ends each thread after its current call.
pub(crate) struct ThreadPool {
    inner: Arc<Threads>,
}

/// State that the threads of a pool share.
struct Threads {
    state: Mutex<PoolState>,
    ready: Condvar,
    /// For the lookout.
    turns: Condvar,
    ended: Condvar,
    limit: usize,
}

struct PoolState {
    queue: CallQueue<Job>,
    threads: usize,
    idle: usize,
    /// One of the threads waits for a turn's end.
    lookout: bool,
    /// A thread was woken or started, and hasn't looked yet.
    looks: bool,
    over: bool,
}

impl ThreadPool {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        let state =
            PoolState { queue: CallQueue::new(limit), threads: 0, idle: 0, lookout: false, looks: false, over: false };
        let inner = Threads {
            state: Mutex::new(state),
            ready: Condvar::new(),
            turns: Condvar::new(),
            ended: Condvar::new(),
            limit,
        };
        let inner = Arc::new(inner);
        let mut pools = running_pools();
        pools.retain(|threads| threads.strong_count() > 0);
        pools.push(Arc::downgrade(&inner));
        drop(pools);
        Self { inner }
    }

    pub(crate) fn submit_job(&self, job: Job) {
        let mut state = self.inner.lock_state();
        if state.over || state.queue.len() >= WAITING {
            drop(state);
            let busy = HandlerError::protocol(code::INTERNAL_ERROR, "the server is too busy", None);
            return job.end.refuse_call(busy);
        }
        let manner =
            job.inline_policy.as_ref().map_or_else(Manner::default, |inline_policy| inline_policy.queue_manner());
        let client = job.client;
        state.queue.push_call(job, client, manner);
        self.inner.call_for_help(state);
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.inner.end_threads();
    }
}

impl Threads {
    fn lock_state(&self) -> MutexGuard<'_, PoolState> {
        // Nothing under the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the idle threads, and lets the others end after their call. Waiting calls are dropped.
    fn end_threads(&self) {
        let waiting = {
            let mut state = self.lock_state();
            state.over = true;
            state.queue.drain_all()
        };
        self.ready.notify_all();
        self.turns.notify_all();
        // Outside the lock: wakers run.
        drop(waiting);
    }

    /// Waits for the threads' end, for so long.
    fn wait_for_end(&self, limit: Duration) {
        let is_busy = |state: &mut PoolState| state.threads > 0;
        let waited = self.ended.wait_timeout_while(self.lock_state(), limit, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Sees to it that somebody looks at what waits.
    fn call_for_help(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        let waits_for_its_turn = state.lookout && state.queue.turn_left(Instant::now()).is_some();
        if state.looks || !state.queue.has_next() || waits_for_its_turn {
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
            let started = thread::Builder::new().name("mcpace-starter".to_owned()).spawn(move || its.start_thread());
            if let Err(error) = started {
                self.not_started(&error);
            }
        }
    }

    fn start_thread(self: &Arc<Self>) {
        let started = Python::try_attach(|py| {
            static WORK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let work = WORK.get_or_try_init(py, || {
                let module = PyModule::from_code(py, LOOP, c"<mcpace>", c"mcpace_threads")?;
                module.getattr("work").map(Bound::unbind)
            })?;
            let take = Bound::new(py, CallSource { threads: Arc::clone(self), last: Mutex::default() })?;
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
        let mut state = self.lock_state();
        state.threads -= 1;
        state.looks = false;
        let nobody = state.threads == 0;
        let waiting = if nobody { state.queue.drain_all() } else { Vec::new() };
        drop(state);
        if !waiting.is_empty() {
            eprintln!("mcpace: no thread can be started for tools: {reason}");
        }
    }

    /// The next call; `None` at the end.
    fn wait_next(self: &Arc<Self>) -> Option<TakenCall<Job>> {
        let mut state = self.lock_state();
        loop {
            if state.over {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            if let Some(left) = state.queue.turn_left(Instant::now()) {
                state.looks = false;
                if !state.lookout {
                    state.lookout = true;
                    let (waited, _) = self.turns.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                    state = waited;
                    state.lookout = false;
                    continue;
                }
            } else if let Some(taken) = state.queue.pop_next(Instant::now()) {
                // More may be there than one thread should do.
                self.call_for_help(state);
                return Some(taken);
            }
            state.idle += 1;
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.looks = false;
        }
    }

    /// The next call, if one may begin at once, for a thread whose last one is over.
    fn next_ready(self: &Arc<Self>, last: Option<ThreadShare>) -> Option<TakenCall<Job>> {
        let mut state = self.lock_state();
        if let Some(last) = last {
            state.queue.finish_place(last);
        }
        // The thread that was woken for help has come, or will find nothing: at worst one more thread is woken.
        state.looks = false;
        let now = Instant::now();
        let waits = state.over || state.queue.turn_left(now).is_some();
        let taken = if waits { None } else { state.queue.pop_next(now) };
        if taken.is_some() {
            self.call_for_help(state);
        }
        taken
    }
}

/// Gives a thread its next call: `(run, function, keywords, finish)`, or `None` at the end.
#[pyclass(frozen)]
struct CallSource {
    threads: Arc<Threads>,
    /// Place of the thread's last call in the queue's counts.
    last: Mutex<Option<ThreadShare>>,
}

type PooledCall<'py> = (Bound<'py, PyAny>, Py<PyAny>, Bound<'py, PyDict>, Bound<'py, CallSink>);

#[pymethods]
impl CallSource {
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Option<PooledCall<'py>>> {
        loop {
            let TakenCall { call: job, place } = match self.threads.next_ready(self.lock_last().take()) {
                Some(taken) => taken,
                None => match py.detach(|| self.threads.wait_next()) {
                    Some(taken) => taken,
                    None => return Ok(None),
                },
            };
            *self.lock_last() = Some(place);
            if job.end.is_given_up() {
                continue;
            }
            let Job { callable, variables, arguments, context, inline_policy, end, client: _ } = job;
            let watch = ThreadTimer::start();
            let prepared = job::prepare_call(py, &callable, &variables, &arguments, context, end.observed_request())
                .and_then(|prepared| {
                    let Prepared { keywords, variables } = prepared;
                    Ok((variables.getattr(pyo3::intern!(py, "run"))?, keywords))
                });
            match prepared {
                Ok((run, keywords)) => {
                    let function = callable.function().clone_ref(py);
                    let open = Mutex::new(Some(OpenCall { callable, inline_policy, end, watch }));
                    return Ok(Some((run, function, keywords, Bound::new(py, CallSink { open })?)));
                }
                Err(error) => end.deliver_outcome(py, &callable, Err(error)),
            }
        }
    }
}

impl CallSource {
    fn lock_last(&self) -> MutexGuard<'_, Option<ThreadShare>> {
        // Nothing under the lock can panic half way.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a call's outcome.
#[pyclass(frozen)]
struct CallSink {
    open: Mutex<Option<OpenCall>>,
}

struct OpenCall {
    callable: Arc<Callable>,
    inline_policy: Option<Arc<InlinePolicy>>,
    end: CallCompletion,
    watch: ThreadTimer,
}

#[pymethods]
impl CallSink {
    fn __call__(&self, value: Bound<'_, PyAny>, raised: bool) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(OpenCall { callable, inline_policy, end, watch }) = open else { return };
        let py = value.py();
        end.deliver_outcome(py, &callable, if raised { Err(PyErr::from_value(value)) } else { Ok(value) });
        if let Some(inline_policy) = inline_policy {
            inline_policy.record_call(watch.read(), now_ms());
        }
    }
}
