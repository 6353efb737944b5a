//! Open subscriptions (`subscriptions/listen`, since 2026-07-28) and the changes that each one wants.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpace_wire::jsonrpc::{Id, write_notification};
use mcpace_wire::mcp::{Extra, Method, SubscriptionFilter, SubscriptionParams, Task, key};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limits::has_room;
use crate::outlet::Outlet;
use crate::tasks::Running;

/// All open subscriptions.
#[derive(Default)]
pub(crate) struct OpenSubscriptions {
    open: Arc<Mutex<Vec<Arc<SubscriptionEntry>>>>,
}

/// One open subscription. It ends when this is dropped.
pub(crate) struct OpenSubscription {
    entry: Arc<SubscriptionEntry>,
    among: Arc<Mutex<Vec<Arc<SubscriptionEntry>>>>,
}

struct SubscriptionEntry {
    /// `_meta` of each message: the listen request's id, its type kept.
    meta: Extra,
    tools: bool,
    prompts: bool,
    resources: bool,
    watched: HashSet<String>,
    tasks: HashSet<String>,
    outlet: Arc<dyn Outlet>,
    /// Whose it is.
    subject: Option<Arc<str>>,
    gone: CancellationToken,
}

/// A change that clients can be notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListChange<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a str),
}

impl ListChange<'_> {
    pub(crate) fn notification_method(self) -> Method {
        match self {
            ListChange::Tools => Method::ToolsListChanged,
            ListChange::Prompts => Method::PromptsListChanged,
            ListChange::Resources => Method::ResourcesListChanged,
            ListChange::Resource(_) => Method::ResourceUpdated,
        }
    }

    /// The notification, with this metadata.
    pub(crate) fn notification_message(self, meta: Option<&Extra>) -> Vec<u8> {
        let mut params = Extra::new();
        if let ListChange::Resource(uri) = self {
            params.insert("uri".to_owned(), uri.into());
        }
        if let Some(meta) = meta {
            params.insert("_meta".to_owned(), Value::Object(meta.clone()));
        }
        let mut out = Vec::with_capacity(128);
        // A tree of JSON can always be written.
        let written = write_notification(
            &mut out,
            self.notification_method().as_str(),
            Some(&params).filter(|it| !it.is_empty()),
        );
        debug_assert!(written.is_ok());
        out
    }
}

impl OpenSubscriptions {
    /// Opens a subscription. The acknowledgement is on its way when this returns. `None` where [`has_room`] says so.
    pub(crate) fn open_subscription(
        &self,
        id: Id<'static>,
        filter: SubscriptionFilter,
        outlet: Arc<dyn Outlet>,
        (subject, limit): (Option<&Arc<str>>, usize),
    ) -> Option<OpenSubscription> {
        let id = serde_json::to_value(&id).unwrap_or_default();
        let meta = Extra::from_iter([(key::SUBSCRIPTION_ID.to_owned(), id)]);
        let entry = Arc::new(SubscriptionEntry {
            meta: meta.clone(),
            tools: filter.tools_list_changed == Some(true),
            prompts: filter.prompts_list_changed == Some(true),
            resources: filter.resources_list_changed == Some(true),
            watched: filter.resource_subscriptions.iter().flatten().cloned().collect(),
            tasks: filter.task_ids.iter().flatten().cloned().collect(),
            outlet,
            subject: subject.cloned(),
            gone: CancellationToken::new(),
        });
        let mut open = lock_entries(&self.open);
        let own = || subject.map(|_| open.iter().filter(|other| other.subject == entry.subject).count());
        if !has_room(limit, open.len(), own) {
            return None;
        }
        // Under the lock, so that no change can come before it.
        let params = SubscriptionParams { notifications: filter, meta: Some(meta), extra: Extra::new() };
        let mut message = Vec::with_capacity(192);
        let written = write_notification(&mut message, Method::SubscriptionsAcknowledged.as_str(), Some(&params));
        debug_assert!(written.is_ok());
        entry.send_message(message);
        open.push(Arc::clone(&entry));
        Some(OpenSubscription { entry, among: Arc::clone(&self.open) })
    }

    /// Notifies each subscription that wants this change.
    pub(crate) fn notify_subscribers(&self, change: ListChange<'_>) {
        let subscriptions: Vec<_> =
            lock_entries(&self.open).iter().filter(|entry| entry.wants_change(change)).cloned().collect();
        for entry in subscriptions {
            entry.send_message(change.notification_message(Some(&entry.meta)));
        }
    }

    /// Notifies each subscription of this task.
    pub(crate) fn notify_task_subscribers(&self, task: &Running) {
        let subscriptions: Vec<_> =
            lock_entries(&self.open).iter().filter(|entry| entry.tasks.contains(&task.id)).cloned().collect();
        if subscriptions.is_empty() {
            return;
        }
        let task = task.current_task();
        for entry in subscriptions {
            let params = Task { meta: Some(entry.meta.clone()), ..task.clone() };
            let mut message = Vec::with_capacity(256);
            let written = write_notification(&mut message, Method::TaskChanged.as_str(), Some(&params));
            debug_assert!(written.is_ok());
            entry.send_message(message);
        }
    }
}

impl OpenSubscription {
    /// When its client can't be reached any more.
    pub(crate) async fn wait_gone(&self) {
        self.entry.gone.cancelled().await;
    }

    /// `_meta` of its result.
    pub(crate) fn result_meta(&self) -> Extra {
        self.entry.meta.clone()
    }
}

impl Drop for OpenSubscription {
    fn drop(&mut self) {
        lock_entries(&self.among).retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

impl SubscriptionEntry {
    fn wants_change(&self, change: ListChange<'_>) -> bool {
        match change {
            ListChange::Tools => self.tools,
            ListChange::Prompts => self.prompts,
            ListChange::Resources => self.resources,
            ListChange::Resource(uri) => self.watched.contains(uri),
        }
    }

    fn send_message(&self, message: Vec<u8>) {
        if self.outlet.send(message.into()).is_err() {
            self.gone.cancel();
        }
    }
}

fn lock_entries(open: &Mutex<Vec<Arc<SubscriptionEntry>>>) -> MutexGuard<'_, Vec<Arc<SubscriptionEntry>>> {
    // Nothing under the lock can leave the list half changed.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
