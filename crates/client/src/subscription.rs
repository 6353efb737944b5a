//! Changes that a server of 2026-07-28 tells whoever listens (basic/patterns/subscriptions).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpace_wire::mcp::{Json, SubscriptionFilter, SubscriptionParams};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::client::Client;
use mcpace_client_protocol::{Outgoing, ParamsWriter};

use crate::ClientError;
use crate::underway::Underway;

/// Something that changed. There is no replay: whoever begins to listen fetches first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and templates.
    Resources,
    /// One resource, or one below one that was subscribed.
    Resource(String),
    /// Something else, by its method and parameters: a task's status, for one.
    Other(String, Option<Json>),
    /// The filter that the server agreed to. It comes first and is never given out.
    #[doc(hidden)]
    Acknowledged(SubscriptionFilter),
}

pub(crate) fn read_change(method: &str, uri: Option<String>, params: Option<&RawValue>) -> Change {
    match (method, uri) {
        ("notifications/tools/list_changed", _) => Change::Tools,
        ("notifications/prompts/list_changed", _) => Change::Prompts,
        ("notifications/resources/list_changed", _) => Change::Resources,
        ("notifications/resources/updated", Some(uri)) => Change::Resource(uri),
        ("notifications/subscriptions/acknowledged", _) => {
            let agreed = params.and_then(|params| serde_json::from_str::<SubscriptionParams>(params.get()).ok());
            Change::Acknowledged(agreed.unwrap_or_default().notifications)
        }
        _ => Change::Other(method.to_owned(), params.map(Json::from)),
    }
}

/// A subscription; dropped, it ends.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) id: i64,
    pub(crate) agreed: SubscriptionFilter,
    pub(crate) changes: mpsc::Receiver<Change>,
    pub(crate) listening: ListeningFuture,
    pub(crate) overflow: Arc<AtomicBool>,
    pub(crate) limit: usize,
    pub(crate) ended: bool,
}

/// Where a subscription's changes are put.
pub(crate) struct Listener {
    pub(crate) changes: mpsc::Sender<Change>,
    /// Set when there was no room: a change must not be missed unnoticed.
    pub(crate) overflow: Arc<AtomicBool>,
}

impl Subscription {
    /// The id of the request that listens.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The filter that the server agreed to.
    #[must_use]
    pub fn agreed(&self) -> &SubscriptionFilter {
        &self.agreed
    }

    /// The next change; `None` when the server ended the subscription in good order.
    ///
    /// # Errors
    /// The stream was lost: listen again and fetch anew. Also [`ClientError::TooLarge`] where more changes came than
    /// [`crate::Limits::changes`] since the last call.
    pub async fn next(&mut self) -> Result<Option<Change>, ClientError> {
        loop {
            match self.changes.recv().await {
                Some(Change::Acknowledged(_)) => {}
                Some(change) => return Ok(Some(change)),
                None if std::mem::replace(&mut self.ended, true) => return Ok(None),
                None if self.overflow.load(Ordering::Acquire) => {
                    self.listening.abort();
                    return Err(ClientError::TooLarge { what: "the number of changes not taken", limit: self.limit });
                }
                // Only its owner's end aborts it.
                None => return (&mut self.listening).await.unwrap_or(Ok(())).map(|()| None),
            }
        }
    }
}

impl Client {
    /// Listens for changes (2026-07-28): returns when the server has agreed to what [`Subscription::agreed`] says.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] in legacy revisions.
    pub async fn listen(&self, wanted: &SubscriptionFilter) -> Result<Subscription, ClientError> {
        let method = "subscriptions/listen";
        self.must_exist(method)?;
        let session = self.inner.current_session()?;
        let limit = self.inner.options.limits.changes;
        let (changes, mut received) = mpsc::channel(limit.max(1));
        let overflow = Arc::new(AtomicBool::new(false));
        let listener = Listener { changes, overflow: Arc::clone(&overflow) };
        let id = self.inner.next_id();
        let fill = |params: &mut ParamsWriter<'_>| params.value("notifications", wanted);
        let body = session.dialect.request(id, method, &fill, None, false);
        let inbound = Arc::clone(&self.inner.inbound);
        let runtime = self.inner.inbound.runtime.clone();
        let mut listening = runtime.spawn(async move {
            let _heard = inbound.register_listener(id, listener);
            let underway = Underway::new(&inbound, &session, id);
            let reply = session.link.request(&Outgoing::request(id, method, body, true)).await;
            underway.finish_request();
            reply?.into_result(method, || session.link.address(), false).map(drop)
        });
        let time = self.inner.options.limits.call_time;
        let agreed = tokio::select! {
            biased;
            change = received.recv() => match change {
                Some(Change::Acknowledged(agreed)) => agreed,
                Some(_) => return Err(give_up(listening, "its first message is no acknowledgement")),
                None => return Err(ended_early(listening.await)),
            },
            ended = &mut listening => return Err(ended_early(ended)),
            () = tokio::time::sleep(time) => {
                listening.abort();
                return Err(ClientError::TimeLimit { what: method.to_owned(), limit: time });
            }
        };
        Ok(Subscription { id, agreed, changes: received, listening, overflow, limit, ended: false })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

type ListeningFuture = JoinHandle<Result<(), ClientError>>;

fn give_up(listening: ListeningFuture, reason: &str) -> ClientError {
    listening.abort();
    ClientError::bad_reply("subscriptions/listen", reason)
}

fn ended_early(ended: Result<Result<(), ClientError>, JoinError>) -> ClientError {
    match ended {
        Ok(Err(error)) => error,
        _ => ClientError::bad_reply("subscriptions/listen", "it ended before it was acknowledged"),
    }
}
