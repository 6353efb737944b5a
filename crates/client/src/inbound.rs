//! Messages of the server, over any transport: answers go to the requests that await them, notifications and questions to the
//! callbacks.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpace_client_protocol::Answer;
use mcpace_client_protocol::inbound::{Incoming, PendingRequests, read_messages};
use mcpace_wire::jsonrpc::{Id, Notification, ParseError, Request, Response, code};
use mcpace_wire::mcp::{CancelledParams, EmptyResult, Extra, Json, ProgressParams, key};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::cache::Cache;
use crate::callbacks::{ClientQuestion, ServerNotification};
use crate::lock::lock_mutex;
use crate::subscription::{self, Change, Listener};
use crate::transport::Back;
use crate::{Callbacks, Limits, Progress, RpcError};

type Hear = Arc<dyn Fn(Progress) + Send + Sync>;

/// One client's ears. Outlasts sessions.
pub(crate) struct Inbound {
    pub(crate) callbacks: Callbacks,
    pub(crate) cache: Cache,
    pub(crate) limits: Limits,
    pub(crate) runtime: Handle,
    /// By the id of the request whose progress it is.
    progress: Mutex<HashMap<i64, Hear>>,
    /// By the id of the request that listens.
    subscriptions: Mutex<HashMap<i64, Listener>>,
    /// The server's questions that are being answered.
    answering: Mutex<HashMap<Id<'static>, AbortHandle>>,
    /// Answers at once (to pings, refusals) that are on their way.
    replying: Arc<Semaphore>,
}

/// Takes an entry out again when whoever made it is done or given up.
pub(crate) struct Registration<'a, T> {
    map: &'a Mutex<HashMap<i64, T>>,
    id: i64,
}

impl<T> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        lock_mutex(self.map).remove(&self.id);
    }
}

impl Inbound {
    pub(crate) fn new(callbacks: Callbacks, limits: Limits, runtime: Handle) -> Self {
        Self {
            callbacks,
            cache: Cache::new(limits.cached),
            replying: Arc::new(Semaphore::new(limits.asked)),
            limits,
            runtime,
            progress: Mutex::default(),
            subscriptions: Mutex::default(),
            answering: Mutex::default(),
        }
    }

    pub(crate) fn hear_progress(&self, id: i64, hear: Hear) -> Registration<'_, Hear> {
        lock_mutex(&self.progress).insert(id, hear);
        Registration { map: &self.progress, id }
    }

    pub(crate) fn register_listener(&self, id: i64, listener: Listener) -> Registration<'_, Listener> {
        lock_mutex(&self.subscriptions).insert(id, listener);
        Registration { map: &self.subscriptions, id }
    }

    /// Takes one JSON text. Returns the answer to `expected`, where it is in it; other answers go to `router`.
    pub(crate) fn handle_text(
        self: &Arc<Self>,
        text: &Bytes,
        back: &Back,
        expected: Option<i64>,
        pending: Option<&PendingRequests>,
    ) -> Result<Option<Answer>, ParseError> {
        let mut found = None;
        for message in read_messages(text)? {
            let is_ours = expected.is_some_and(|id| message.is_answer_to(id));
            match message {
                Incoming::Answer(_, answer) if is_ours => found = Some(answer),
                Incoming::Answer(id, answer) => {
                    if let Some(pending) = pending {
                        pending.deliver(id.as_ref(), answer);
                    }
                }
                Incoming::Notification(notification) => self.handle_notification(&notification),
                Incoming::Request(request) => self.handle_question(request, back),
            }
        }
        Ok(found)
    }

    fn handle_notification(&self, notification: &Notification<'_>) {
        let method = notification.method.as_ref();
        match (method, notification.params) {
            ("notifications/progress", Some(params)) => self.handle_progress(params),
            ("notifications/cancelled", Some(params)) => self.handle_cancelled(params),
            _ => {
                let shape = notification.params.and_then(NotificationShape::from_params).unwrap_or_default();
                self.cache.invalidate(method, shape.uri.as_deref());
                if let Some(id) = shape.subscription_id() {
                    self.notify_change(id, subscription::read_change(method, shape.uri, notification.params));
                }
            }
        }
        self.callbacks.forward_notification(ServerNotification { method, params: notification.params });
    }

    fn handle_progress(&self, params: &RawValue) {
        let Ok(progress) = serde_json::from_str::<ProgressParams>(params.get()) else { return };
        let Id::Integer(id) = progress.progress_token else { return };
        let hear = lock_mutex(&self.progress).get(&id).cloned();
        if let Some(hear) = hear {
            hear(progress);
        }
    }

    fn notify_change(&self, id: i64, change: Change) {
        let mut subscriptions = lock_mutex(&self.subscriptions);
        let Some(listener) = subscriptions.get(&id) else { return };
        if listener.changes.try_send(change).is_err() {
            listener.overflow.store(true, Ordering::Release);
            subscriptions.remove(&id);
        }
    }

    fn handle_cancelled(&self, params: &RawValue) {
        let Ok(params) = serde_json::from_str::<CancelledParams>(params.get()) else { return };
        let given_up = params.request_id.and_then(|id| lock_mutex(&self.answering).remove(&id));
        if let Some(task) = given_up {
            task.abort();
        }
    }

    /// Answers a question of the server, at once where that needs nobody.
    fn handle_question(self: &Arc<Self>, request: Request<'_>, back: &Back) {
        let id = request.id.into_owned();
        if request.method == "ping" {
            return self.send_reply(back, &id, Ok(Json::of(&EmptyResult::default()).ok()));
        }
        let mut answering = lock_mutex(&self.answering);
        if answering.len() >= self.limits.asked || answering.contains_key(&id) {
            drop(answering);
            return self.send_reply(
                back,
                &id,
                Err(RpcError::new(code::INTERNAL_ERROR, "the client is busy with others")),
            );
        }
        let asked = ClientQuestion {
            method: request.method.into_owned(),
            params: request.params.map(Json::from),
            id: id.to_string(),
        };
        let (inbound, back, key) = (Arc::clone(self), back.clone(), id.clone());
        // The callback begins in the task, not here: it may take locks of its own, and ours is held.
        let task = self.runtime.spawn(async move {
            let answer = inbound.callbacks.answer_question(asked).await;
            // One that was cancelled meanwhile has no answer any more.
            if lock_mutex(&inbound.answering).remove(&id).is_some() {
                back.send_unanswered(reply_body(&id, answer.map(Some))).await;
            }
        });
        answering.insert(key, task.abort_handle());
    }

    fn send_reply(&self, back: &Back, id: &Id<'static>, answer: Result<Option<Json>, RpcError>) {
        let body = reply_body(id, answer);
        if let Back::Pipe(outbox) = back {
            // Needs no task, and what the server doesn't take is bounded there.
            return drop(outbox.send_line(&body));
        }
        // A server that asks faster than it takes answers goes without: each may be a connection.
        let Ok(room) = Arc::clone(&self.replying).try_acquire_owned() else { return };
        let back = back.clone();
        drop(self.runtime.spawn(async move {
            back.send_unanswered(body).await;
            drop(room);
        }));
    }

    /// Gives up all questions of a session that is over.
    pub(crate) fn cancel_questions(&self) {
        for (_, task) in lock_mutex(&self.answering).drain() {
            task.abort();
        }
        lock_mutex(&self.subscriptions).clear();
    }
}

fn reply_body(id: &Id<'_>, answer: Result<Option<Json>, RpcError>) -> Bytes {
    let response = match &answer {
        Ok(Some(result)) => Response::result(id.clone(), result.as_raw()),
        Ok(None) => return Bytes::new(),
        Err(error) => {
            let mut object = mcpace_wire::jsonrpc::ErrorObject::new(error.code, error.message.as_str());
            object.data = error.data.as_ref().map(Json::as_raw);
            return Response::error(Some(id.clone()), object).to_vec().into();
        }
    };
    response.to_vec().into()
}

/// The members of a notification's parameters that decide where it goes.
#[derive(Default, Deserialize)]
struct NotificationShape {
    #[serde(default)]
    uri: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: Option<Extra>,
}

impl NotificationShape {
    fn from_params(params: &RawValue) -> Option<Self> {
        serde_json::from_str(params.get()).ok()
    }

    fn subscription_id(&self) -> Option<i64> {
        self.meta.as_ref()?.get(key::SUBSCRIPTION_ID)?.as_i64()
    }
}
