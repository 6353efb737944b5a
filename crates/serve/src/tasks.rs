//! Work that outlives its request: the extension `io.modelcontextprotocol/tasks` (SEP-2663) for 2026-07-28.
//!
//! Constraint: a task is known to everybody before its creation is answered, bounded in number and time, and visible only
//! to the principal that began it. It lives in this process: what must survive a restart belongs in a store of the author's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpace_wire::mcp::{Extra, InputRequest, InputRequests, InputResponses, Json, Method, Task, TaskStatus};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long clients are asked to wait between two `tasks/get`.
const POLL_INTERVAL_MS: u64 = 1_000;

/// All tasks of a server.
#[derive(Default)]
pub(crate) struct Tasks {
    known: Mutex<HashMap<String, Arc<Running>>>,
}

/// One of them.
pub(crate) struct Running {
    pub(crate) id: String,
    /// Who began it.
    subject: Option<Arc<str>>,
    created: SystemTime,
    kept: Duration,
    pub(crate) expires: Instant,
    pub(crate) cancellation: CancellationToken,
    state: Mutex<State>,
}

struct State {
    status: TaskStatus,
    updated: SystemTime,
    outcome: Option<Outcome>,
    /// Open questions and who waits for the answers.
    questions: InputRequests,
    waiting: HashMap<String, oneshot::Sender<Json>>,
}

/// How the work ended.
pub(crate) enum Outcome {
    /// What the request would have returned.
    Result(Json),
    /// The JSON-RPC error that it would have failed with.
    Error(Json),
}

impl Tasks {
    /// Begins one. `None` when there are `limit` already, or no random bytes for its id.
    pub(crate) fn begin(&self, subject: Option<Arc<str>>, kept: Duration, limit: usize) -> Option<Arc<Running>> {
        let mut id = [0; 18];
        SystemRandom::new().fill(&mut id).ok()?;
        let now = SystemTime::now();
        let running = Arc::new(Running {
            id: URL_SAFE_NO_PAD.encode(id),
            subject,
            created: now,
            kept,
            expires: Instant::now() + kept,
            cancellation: CancellationToken::new(),
            state: Mutex::new(State {
                status: TaskStatus::Working,
                updated: now,
                outcome: None,
                questions: InputRequests::new(),
                waiting: HashMap::new(),
            }),
        });
        let mut known = self.known();
        if known.len() >= limit {
            return None;
        }
        known.insert(running.id.clone(), Arc::clone(&running));
        Some(running)
    }

    /// The task of this id, if `subject` began it.
    pub(crate) fn find(&self, id: &str, subject: Option<&Arc<str>>) -> Option<Arc<Running>> {
        self.known().get(id).filter(|running| running.subject.as_ref() == subject).cloned()
    }

    pub(crate) fn forget(&self, id: &str) {
        self.known().remove(id);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        // Nothing under the lock can leave the map half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// How it is now.
    pub(crate) fn task(&self) -> Task {
        let state = self.state();
        let (result, error) = match &state.outcome {
            Some(Outcome::Result(result)) => (Some(result.clone()), None),
            Some(Outcome::Error(error)) => (None, Some(error.clone())),
            None => (None, None),
        };
        Task {
            task_id: self.id.clone(),
            status: state.status,
            status_message: None,
            created_at: humantime::format_rfc3339_millis(self.created).to_string(),
            last_updated_at: humantime::format_rfc3339_millis(state.updated).to_string(),
            ttl_ms: Some(Some(u64::try_from(self.kept.as_millis()).unwrap_or(u64::MAX))),
            ttl: None,
            poll_interval_ms: Some(POLL_INTERVAL_MS),
            poll_interval: None,
            result,
            error,
            input_requests: (state.status == TaskStatus::InputRequired).then(|| state.questions.clone()),
            result_type: None,
            meta: None,
            extra: Extra::new(),
        }
    }

    /// Ends it, unless it has ended.
    pub(crate) fn end(&self, status: TaskStatus, outcome: Option<Outcome>) -> bool {
        let mut state = self.state();
        if state.status.is_terminal() {
            return false;
        }
        state.status = status;
        state.updated = SystemTime::now();
        state.outcome = outcome;
        state.questions.clear();
        state.waiting.clear();
        true
    }

    /// Puts a question to the client; the receiver fails when the task ends first.
    pub(crate) fn ask(&self, key: String, method: Method, params: Option<Json>) -> oneshot::Receiver<Json> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if !state.status.is_terminal() {
            let request = InputRequest { method: method.as_str().to_owned(), params, extra: Extra::new() };
            state.questions.insert(key.clone(), request);
            state.waiting.insert(key, sender);
            state.status = TaskStatus::InputRequired;
            state.updated = SystemTime::now();
        }
        receiver
    }

    /// Takes the client's answers; those to no open question are passed over. True when the work goes on.
    pub(crate) fn answer(&self, answers: InputResponses) -> bool {
        let mut state = self.state();
        for (key, answer) in answers {
            if let Some(sender) = state.waiting.remove(&key) {
                state.questions.remove(&key);
                // The handler may have stopped waiting, which is fine.
                let _ = sender.send(answer);
            }
        }
        let resumed = state.status == TaskStatus::InputRequired && state.questions.is_empty();
        if resumed {
            state.status = TaskStatus::Working;
            state.updated = SystemTime::now();
        }
        resumed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // As above.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
