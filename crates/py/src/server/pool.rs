//! Threads for functions that may take their time.
//!
//! Constraints: an idle thread is woken only where no other is about to look; a thread that is attached to the interpreter
//! takes call after call without letting go in between; threads start when they are needed, up to a limit; calls wait, up to
//! a limit. The lock is never held while a thread waits for the interpreter.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use mcpace_serve::HandlerError;
use mcpace_wire::jsonrpc::code;
use pyo3::prelude::*;

use super::job::Job;

/// Calls that may wait for a thread.
const WAITING: usize = 100_000;

/// See the module. Dropping it ends its threads, each after the call that it is at.
pub(super) struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    ready: Condvar,
    limit: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    threads: usize,
    idle: usize,
    /// A thread was woken or started, and hasn't looked yet.
    looks: bool,
    over: bool,
}

impl Pool {
    pub(super) fn new(limit: usize) -> Self {
        Self { inner: Arc::new(Inner { state: Mutex::default(), ready: Condvar::new(), limit: limit.max(1) }) }
    }

    pub(super) fn submit(&self, job: Job) {
        let mut state = self.inner.lock();
        if state.over || state.waiting.len() >= WAITING {
            drop(state);
            let busy = HandlerError::protocol(code::INTERNAL_ERROR, "the server is too busy", None);
            return job.end.refuse(busy);
        }
        state.waiting.push_back(job);
        self.inner.call_for_help(state);
    }

    /// Ends the threads that have nothing to do, and lets the others end after their call. What waits is dropped.
    pub(super) fn end(&self) {
        let waiting = {
            let mut state = self.inner.lock();
            state.over = true;
            std::mem::take(&mut state.waiting)
        };
        self.inner.ready.notify_all();
        // Outside the lock: wakers run.
        drop(waiting);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that somebody looks at what waits.
    fn call_for_help(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.looks || state.waiting.is_empty() {
            return;
        }
        if state.idle > 0 {
            state.looks = true;
            drop(state);
            self.ready.notify_one();
        } else if state.threads < self.limit {
            state.looks = true;
            state.threads += 1;
            let number = state.threads;
            drop(state);
            let inner = Arc::clone(self);
            let started = thread::Builder::new().name(format!("mcpace-tool-{number}")).spawn(move || inner.work());
            if let Err(error) = started {
                // Those that are there have to do.
                eprintln!("mcpace: can't start another thread for tools: {error}");
                let mut state = self.lock();
                state.threads -= 1;
                state.looks = false;
            }
        }
    }

    /// A thread's life. Its thread state lasts as long, so that attaching is cheap.
    fn work(self: Arc<Self>) {
        let ended = Python::try_attach(|py| {
            py.detach(|| {
                while let Some(job) = self.wait() {
                    let Some(()) = Python::try_attach(|py| self.run_all(py, job)) else { return };
                }
            });
        });
        if ended.is_none() {
            self.lock().threads -= 1;
        }
    }

    /// One call after the other, for as long as any wait.
    fn run_all(self: &Arc<Self>, py: Python<'_>, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            job.run(py);
            next = self.lock().waiting.pop_front();
        }
    }

    /// The next call; `None` at the end.
    fn wait(self: &Arc<Self>) -> Option<Job> {
        let mut state = self.lock();
        // Whoever was called for help has come.
        state.looks = false;
        loop {
            if state.over {
                state.threads -= 1;
                return None;
            }
            if let Some(job) = state.waiting.pop_front() {
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
}
