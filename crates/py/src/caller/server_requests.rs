//! Passes the server's requests and notifications to Python callbacks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpace_client::{Callbacks, ClientQuestion, RpcError};
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{ElicitationCapability, Json, SamplingCapability};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tokio::sync::oneshot;

use super::bridge::{Bridge, BridgeMessage};
use super::inbox::{self, BoundedInbox};

/// Capabilities that the callbacks implement.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CallbackCapabilities {
    sampling: Option<SamplingCapability>,
    elicitation: Option<ElicitationCapability>,
    roots: bool,
}

/// A question; `answer` or `refuse` it, from any thread. Dropped unanswered, it is refused.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Question {
    #[pyo3(get)]
    method: String,
    /// The request's id, or the key that the server gave it; as JSON.
    #[pyo3(get)]
    id: String,
    params: Option<Json>,
    answer: Mutex<Option<oneshot::Sender<Result<Json, RpcError>>>>,
}

#[pymethods]
impl Question {
    /// A JSON object, or nothing.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.params.as_ref().map(|params| PyBytes::new(py, params.get().as_bytes()))
    }

    /// Answers with a result's JSON text.
    fn answer(&self, result: String) {
        let answer = Json::from_text(result).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()));
        self.end_question(answer);
    }

    /// Refuses; `data` is JSON text.
    #[pyo3(signature = (code, message, data=None))]
    fn refuse(&self, code: i64, message: String, data: Option<String>) {
        let data = data.and_then(|data| Json::from_text(data).ok());
        self.end_question(Err(RpcError { code, message, data }));
    }
}

impl Question {
    fn end_question(&self, answer: Result<Json, RpcError>) {
        let waiting = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            // The server may have taken its question back.
            let _ = waiting.send(answer);
        }
    }
}

/// Callbacks for the server's requests and notifications. They run on the loop of `bridge`, or without one on the calling thread.
pub(super) struct ServerCallbacks {
    pub(super) asks: Arc<Py<PyAny>>,
    pub(super) hears: Option<Arc<Py<PyAny>>>,
    pub(super) bridge: Option<Arc<Bridge>>,
    /// News that the loop has not heard yet.
    pub(super) news: Arc<Mutex<BoundedInbox<News>>>,
}

/// A notification: its method, and its parameters as JSON.
pub(super) type News = (String, Option<String>);

impl ServerCallbacks {
    pub(super) fn into_callbacks(self, answered: CallbackCapabilities) -> Callbacks {
        let ears = Arc::new(self);
        let mut callbacks = Callbacks::default();
        if let Some(capability) = answered.sampling {
            let ears = Arc::clone(&ears);
            callbacks = callbacks.raw_sampling(capability, move |asked| Arc::clone(&ears).ask_python(asked));
        }
        if let Some(capability) = answered.elicitation {
            let ears = Arc::clone(&ears);
            callbacks = callbacks.raw_elicitation(capability, move |asked| Arc::clone(&ears).ask_python(asked));
        }
        if answered.roots {
            let ears = Arc::clone(&ears);
            callbacks = callbacks.raw_roots(move |asked| Arc::clone(&ears).ask_python(asked));
        }
        if ears.hears.is_some() {
            callbacks =
                callbacks.hears(move |told| ears.tell_python(told.method, told.params.map(|params| params.get())));
        }
        callbacks
    }

    async fn ask_python(self: Arc<Self>, asked: ClientQuestion) -> Result<Json, RpcError> {
        let (answer, answered) = oneshot::channel();
        let question =
            Question { method: asked.method, id: asked.id, params: asked.params, answer: Mutex::new(Some(answer)) };
        let asks = Arc::clone(&self.asks);
        match &self.bridge {
            Some(bridge) => {
                bridge.push_message(BridgeMessage::Run(Box::new(move |py| asks.call1(py, (question,)).map(drop))))
            }
            // Nobody's loop: it may take its time on a thread of its own.
            None => {
                drop(tokio::task::spawn_blocking(move || when_attached(|py| asks.call1(py, (question,)).map(drop))))
            }
        }
        answered.await.unwrap_or_else(|_| Err(RpcError::new(code::INTERNAL_ERROR, "the client gave no answer")))
    }

    fn tell_python(&self, method: &str, params: Option<&str>) {
        // Progress has ears of its own, and is frequent.
        let Some(hears) = self.hears.as_ref().filter(|_| method != "notifications/progress") else { return };
        let Some(bridge) = &self.bridge else {
            return when_attached(|py| hears.call1(py, (method, params)).map(drop));
        };
        let bytes = method.len() + params.map_or(0, str::len);
        let one = (method.to_owned(), params.map(str::to_owned));
        if lock_inbox(&self.news).put_value(one, bytes, method == "notifications/message") {
            let (hears, news) = (Arc::clone(hears), Arc::clone(&self.news));
            bridge.push_message(BridgeMessage::Run(Box::new(move |py| deliver_news(py, &hears, &news))));
        }
    }
}

fn lock_inbox(news: &Mutex<BoundedInbox<News>>) -> MutexGuard<'_, BoundedInbox<News>> {
    // Nothing under the lock can panic half way.
    news.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deliver_news(py: Python<'_>, hears: &Py<PyAny>, news: &Mutex<BoundedInbox<News>>) -> PyResult<()> {
    let (came, has_dropped) = lock_inbox(news).take_values();
    if has_dropped {
        inbox::say_dropped(py, "notifications")?;
    }
    for one in came {
        // One that fails is not the others' business.
        if let Err(error) = hears.call1(py, one) {
            error.write_unraisable(py, None);
        }
    }
    Ok(())
}

/// With the interpreter, where it isn't ending.
fn when_attached(work: impl for<'py> FnOnce(Python<'py>) -> PyResult<()>) {
    let _ = crate::attaching::with_interpreter(|py| {
        if let Err(error) = work(py) {
            error.write_unraisable(py, None);
        }
    });
}
