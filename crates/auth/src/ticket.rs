//! One request for many waiters: work on this crate's own thread, and tickets for what it gives.
//!
//! Constraint: nobody's leaving ends it, unless it asks itself whether anybody still waits. It ends by itself: whoever begins it
//! gives it a time limit.

use std::future::Future;
use std::sync::{Arc, LazyLock, Weak};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use mcpace_serve::PerProcess;

/// A place among those who wait for one piece of work.
pub(crate) struct Ticket<V>(watch::Receiver<Option<V>>);

/// The work, for whoever else wants to wait for it. Keeps nothing alive.
pub(crate) struct Work<V>(Weak<watch::Sender<Option<V>>>);

impl<V: Clone + Send + Sync + 'static> Ticket<V> {
    /// Begins a piece of work, which is given itself. `None` of it: nobody is told anything. None at all where there is no
    /// thread for it.
    pub(crate) fn begin_work<F>(work: impl FnOnce(Work<V>) -> F) -> Option<(Self, Work<V>)>
    where
        F: Future<Output = Option<V>> + Send + 'static,
    {
        let (sender, receiver) = watch::channel(None);
        let sender = Arc::new(sender);
        let begun = Work(Arc::downgrade(&sender));
        let work = work(begun.clone());
        with_runtime(|thread| {
            thread.spawn(async move {
                if let Some(given) = work.await {
                    // Where all have gone away nobody hears it.
                    let _ = sender.send(Some(given));
                }
            });
        })?;
        Some((Self(receiver), begun))
    }

    /// Waits for the result; `None` where the work broke off.
    pub(crate) async fn wait_result(mut self) -> Option<V> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl<V> Work<V> {
    /// A place among those who wait. `None` where nothing will come of it.
    pub(crate) fn join_work(&self) -> Option<Ticket<V>> {
        Some(Ticket(self.0.upgrade()?.subscribe()))
    }

    /// Whether nobody waits for it.
    pub(crate) fn is_left(&self) -> bool {
        self.0.upgrade().is_none_or(|sender| sender.receiver_count() == 0)
    }

    /// Until nobody waits for it. Somebody may come again after that.
    pub(crate) async fn waiters_gone(&self) {
        if let Some(sender) = self.0.upgrade() {
            sender.closed().await;
        }
    }
}

impl<V> Clone for Work<V> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

/// Does something with the thread, which the first request of the process starts.
fn with_runtime(with: impl FnOnce(&Runtime)) -> Option<()> {
    static RUNTIME: LazyLock<PerProcess<Option<Runtime>>> = LazyLock::new(|| {
        PerProcess::new(|| {
            let built = Builder::new_multi_thread().worker_threads(1).thread_name("mcpace-auth").enable_all().build();
            built.inspect_err(|error| tracing::error!("no thread can be started that asks issuers: {error}")).ok()
        })
    });
    RUNTIME.get().as_ref().as_ref().map(with)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn whoever_leaves_ends_nobody_elses_wait() {
        let (go, runs) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (go, runs) = (Arc::clone(&go), Arc::clone(&runs));
            async move {
                go.notified().await;
                runs.fetch_add(1, Ordering::SeqCst);
                Some(7)
            }
        };
        let (first, begun) = Ticket::begin_work(|_| work).unwrap();
        let others: Vec<_> = (0..3).map(|_| tokio::spawn(begun.join_work().unwrap().wait_result())).collect();
        drop(first);
        go.notify_one();
        for other in others {
            assert_eq!(other.await.unwrap(), Some(7));
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_hears_that_nobody_waits_any_more() {
        let heard = Arc::new(Notify::new());
        let tells = Arc::clone(&heard);
        let (ticket, begun) = Ticket::<u8>::begin_work(|work| async move {
            work.waiters_gone().await;
            assert!(work.is_left());
            tells.notify_one();
            None
        })
        .unwrap();
        let other = begun.join_work().unwrap();
        drop(ticket);
        assert!(!begun.is_left());
        drop(other);
        heard.notified().await;
    }

    #[tokio::test]
    async fn work_that_breaks_off_leaves_nobody_waiting() {
        let (ticket, begun) = Ticket::<u8>::begin_work(|_| async { panic!("on purpose") }).unwrap();
        assert_eq!(ticket.wait_result().await, None);
        assert!(begun.join_work().is_none() && begun.is_left());
        let (kept, _) = Ticket::begin_work(|_| async { Some(1) }).unwrap();
        assert_eq!(kept.wait_result().await, Some(1));
    }
}
