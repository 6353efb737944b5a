//! Work that outlives its request: the extension `io.modelcontextprotocol/tasks` (SEP-2663) for 2026-07-28.
//!
//! Constraint: a task is known to everybody before its creation is answered, bounded in number, time and bytes, and visible
//! only to the principal that began it. It lives in this process: a task that must survive a restart belongs in a store of
//! the author's.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{Extra, InputRequest, InputRequests, InputResponses, Json, Task, TaskStatus};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::{Limits, has_room};

/// How long clients are asked to wait between two `tasks/get`, where the tool sets no other time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// So that the end of a task is a time that a clock can tell.
const LONGEST_TTL: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// The longest status message, in characters.
const STATUS_MESSAGE: usize = 1_024;

/// All tasks of a server.
#[derive(Default)]
pub(crate) struct Tasks {
    known: Mutex<TaskTable>,
}

#[derive(Default)]
struct TaskTable {
    tasks: HashMap<String, Arc<Running>>,
    /// Bytes of all results that are kept.
    bytes: usize,
}

/// Settings of a tool's tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// How long a task is kept, from its creation on.
    pub(crate) ttl: Option<Duration>,
    pub(crate) poll_interval: Option<Duration>,
}

/// One task.
pub(crate) struct Running {
    pub(crate) id: String,
    /// Subject of the principal that created the task.
    subject: Option<Arc<str>>,
    created: SystemTime,
    ttl: Duration,
    poll_interval: Duration,
    pub(crate) expires: Instant,
    pub(crate) cancellation: CancellationToken,
    state: Mutex<TaskState>,
}

struct TaskState {
    status: TaskStatus,
    message: Option<String>,
    updated: SystemTime,
    outcome: Option<TaskOutcome>,
    /// Open questions, and the senders of their answers.
    questions: InputRequests,
    waiting: HashMap<String, oneshot::Sender<Json>>,
    /// The keys of all questions so far: a key stands for one question only.
    used_keys: HashSet<String>,
}

/// How the work ended.
pub(crate) enum TaskOutcome {
    /// The result of the request.
    Result(Json),
    /// The JSON-RPC error of the request.
    Error(Json),
}

impl TaskOutcome {
    pub(crate) fn error(code: i64, message: &str, data: Option<&serde_json::value::RawValue>) -> Option<Self> {
        #[derive(Serialize)]
        struct Failed<'a> {
            code: i64,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a serde_json::value::RawValue>,
        }
        Json::of(&Failed { code, message, data }).ok().map(TaskOutcome::Error)
    }

    fn len(&self) -> usize {
        match self {
            TaskOutcome::Result(json) | TaskOutcome::Error(json) => json.get().len(),
        }
    }
}

impl Tasks {
    /// Begins a task. `None` where the limits leave no room for it, or where there are no random bytes for its id.
    pub(crate) fn begin_task(&self, subject: Option<Arc<str>>, terms: Terms, limits: &Limits) -> Option<Arc<Running>> {
        let mut id = [0; 18];
        SystemRandom::new().fill(&mut id).ok()?;
        let now = SystemTime::now();
        let ttl = terms.ttl.unwrap_or(limits.task_time).min(LONGEST_TTL);
        let running = Arc::new(Running {
            id: URL_SAFE_NO_PAD.encode(id),
            subject,
            created: now,
            ttl,
            poll_interval: terms.poll_interval.unwrap_or(POLL_INTERVAL),
            expires: Instant::now() + ttl,
            cancellation: CancellationToken::new(),
            state: Mutex::new(TaskState {
                status: TaskStatus::Working,
                message: None,
                updated: now,
                outcome: None,
                questions: InputRequests::new(),
                waiting: HashMap::new(),
                used_keys: HashSet::new(),
            }),
        });
        let mut known = self.lock_tasks();
        let own = || {
            let subject = running.subject.as_ref()?;
            Some(known.tasks.values().filter(|other| other.subject.as_ref() == Some(subject)).count())
        };
        if !has_room(limits.tasks, known.tasks.len(), own) {
            return None;
        }
        known.tasks.insert(running.id.clone(), Arc::clone(&running));
        Some(running)
    }

    /// The task of this id, if `subject` began it.
    pub(crate) fn find_task(&self, id: &str, subject: Option<&Arc<str>>) -> Option<Arc<Running>> {
        self.lock_tasks().tasks.get(id).filter(|running| running.subject.as_ref() == subject).cloned()
    }

    /// Ends a task with its outcome, unless it has ended already. An outcome for which `limits` leave no room becomes an
    /// error.
    pub(crate) fn finish_task(&self, task: &Running, outcome: Option<TaskOutcome>, limits: &Limits) -> bool {
        let bytes = outcome.as_ref().map_or(0, TaskOutcome::len);
        let (outcome, kept) = {
            let mut known = self.lock_tasks();
            let outcome = if known.bytes.saturating_add(bytes) <= limits.task_bytes {
                outcome
            } else {
                let words =
                    format!("the result of {bytes} bytes finds no room among the results that the server keeps");
                TaskOutcome::error(code::INTERNAL_ERROR, &words, None)
            };
            let kept = outcome.as_ref().map_or(0, TaskOutcome::len);
            known.bytes += kept;
            (outcome, kept)
        };
        let status = match outcome {
            Some(TaskOutcome::Result(_)) => TaskStatus::Completed,
            _ => TaskStatus::Failed,
        };
        let has_ended = task.end_task(status, outcome);
        if !has_ended {
            self.lock_tasks().bytes -= kept;
        }
        has_ended
    }

    pub(crate) fn forget_task(&self, id: &str) {
        let mut known = self.lock_tasks();
        if let Some(task) = known.tasks.remove(id) {
            known.bytes -= task.lock_state().outcome.as_ref().map_or(0, TaskOutcome::len);
        }
    }

    fn lock_tasks(&self) -> MutexGuard<'_, TaskTable> {
        // Nothing under the lock can leave the map half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// The task as it is now.
    pub(crate) fn current_task(&self) -> Task {
        let state = self.lock_state();
        let (result, error) = match &state.outcome {
            Some(TaskOutcome::Result(result)) => (Some(result.clone()), None),
            Some(TaskOutcome::Error(error)) => (None, Some(error.clone())),
            None => (None, None),
        };
        Task {
            task_id: self.id.clone(),
            status: state.status,
            status_message: state.message.clone(),
            created_at: humantime::format_rfc3339_millis(self.created).to_string(),
            last_updated_at: humantime::format_rfc3339_millis(state.updated).to_string(),
            ttl_ms: Some(Some(to_millis(self.ttl))),
            ttl: None,
            poll_interval_ms: Some(to_millis(self.poll_interval)),
            poll_interval: None,
            result,
            error,
            input_requests: (state.status == TaskStatus::InputRequired).then(|| state.questions.clone()),
            result_type: None,
            meta: None,
            extra: Extra::new(),
        }
    }

    /// Ends the task, unless it has ended already.
    pub(crate) fn end_task(&self, status: TaskStatus, outcome: Option<TaskOutcome>) -> bool {
        let mut state = self.lock_state();
        if state.status.is_terminal() {
            return false;
        }
        state.status = status;
        state.message = None;
        state.updated = SystemTime::now();
        state.outcome = outcome;
        state.questions.clear();
        state.waiting.clear();
        true
    }

    /// Sets the words that describe how far the work is. False where nothing changed.
    pub(crate) fn set_status_message(&self, message: &str) -> bool {
        let message: String = message.chars().take(STATUS_MESSAGE).collect();
        let mut state = self.lock_state();
        if state.status.is_terminal() || state.message.as_ref() == Some(&message) {
            return false;
        }
        state.message = Some(message);
        state.updated = SystemTime::now();
        true
    }

    /// Puts a question to the client; the receiver fails when the task ends first.
    pub(crate) fn ask_client(&self, key: String, request: InputRequest) -> oneshot::Receiver<Json> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock_state();
        if !state.status.is_terminal() {
            let key = match state.used_keys.contains(&key) {
                true => format!("{key}-{}", state.used_keys.len()),
                false => key,
            };
            state.used_keys.insert(key.clone());
            state.questions.insert(key.clone(), request);
            state.waiting.insert(key, sender);
            state.status = TaskStatus::InputRequired;
            state.updated = SystemTime::now();
        }
        receiver
    }

    /// Takes the client's answers; those to no open question are ignored. True when the work goes on.
    pub(crate) fn take_answers(&self, answers: InputResponses) -> bool {
        let mut state = self.lock_state();
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

    fn lock_state(&self) -> MutexGuard<'_, TaskState> {
        // As above.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use mcpace_wire::mcp::Method;

    use super::*;

    fn begin(tasks: &Tasks, subject: Option<&str>, limits: &Limits) -> Option<Arc<Running>> {
        tasks.begin_task(subject.map(Arc::from), Terms::default(), limits)
    }

    #[tokio::test]
    async fn one_caller_has_a_tenth_of_the_second_half() {
        let limits = Limits { tasks: 20, ..Limits::default() };
        let tasks = Tasks::default();
        let of_ada = (0..20).map_while(|_| begin(&tasks, Some("ada"), &limits)).count();
        assert_eq!(of_ada, 10);
        assert!(begin(&tasks, Some("bob"), &limits).is_some() && begin(&tasks, Some("bob"), &limits).is_some());
        assert!(begin(&tasks, Some("bob"), &limits).is_none());
        let others = (0..20).map_while(|_| begin(&tasks, None, &limits)).count();
        assert_eq!(others, 8);
    }

    #[tokio::test]
    async fn results_are_bounded_in_bytes_until_they_are_forgotten() {
        let limits = Limits { task_bytes: 10, ..Limits::default() };
        let tasks = Tasks::default();
        let result = || Some(TaskOutcome::Result(Json::of(&"12345678").unwrap()));
        let one = begin(&tasks, None, &limits).unwrap();
        assert!(tasks.finish_task(&one, result(), &limits));
        let other = begin(&tasks, None, &limits).unwrap();
        assert!(tasks.finish_task(&other, result(), &limits));
        assert_eq!(
            (one.current_task().status, other.current_task().status),
            (TaskStatus::Completed, TaskStatus::Failed)
        );
        assert!(other.current_task().error.unwrap().get().contains("finds no room"));
        tasks.forget_task(&one.id);
        tasks.forget_task(&other.id);
        assert_eq!(tasks.lock_tasks().bytes, 0);
        let cancelled = begin(&tasks, None, &limits).unwrap();
        cancelled.end_task(TaskStatus::Cancelled, None);
        assert!(!tasks.finish_task(&cancelled, result(), &limits));
        assert_eq!(tasks.lock_tasks().bytes, 0);
    }

    #[tokio::test]
    async fn a_key_stands_for_one_question() {
        let limits = Limits::default();
        let task = begin(&Tasks::default(), None, &limits).unwrap();
        let question =
            || InputRequest { method: Method::RootsList.as_str().to_owned(), params: None, extra: Extra::new() };
        let first = task.ask_client("roots".to_owned(), question());
        assert!(task.take_answers(InputResponses::from_iter([("roots".to_owned(), Json::of(&1).unwrap())])));
        assert_eq!(first.await.unwrap().get(), "1");
        let mut second = task.ask_client("roots".to_owned(), question());
        assert!(!task.take_answers(InputResponses::from_iter([("roots".to_owned(), Json::of(&2).unwrap())])));
        assert!(second.try_recv().is_err());
        let asked = task.current_task().input_requests.unwrap();
        let key = asked.keys().next().unwrap();
        assert_ne!(key, "roots");
        assert!(task.take_answers(InputResponses::from_iter([(key.clone(), Json::of(&3).unwrap())])));
        assert_eq!(second.await.unwrap().get(), "3");
    }
}
