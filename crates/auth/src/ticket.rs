//! One request for many waiters: work on this crate's own thread, and tickets for what it gives.
//!
//! Constraint: nobody's leaving ends it. It ends by itself: whoever begins it gives it a time limit.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// A place among those who wait for one piece of work.
#[derive(Clone)]
pub(crate) struct Ticket<V>(watch::Receiver<Option<V>>);

impl<V: Clone + Send + Sync + 'static> Ticket<V> {
    /// Begins `work`. `None` where there is no thread for it.
    pub(crate) fn begin(work: impl Future<Output = V> + Send + 'static) -> Option<Self> {
        let (sender, receiver) = watch::channel(None);
        thread()?.spawn(async move {
            // Where all have gone away nobody hears it.
            let _ = sender.send(Some(work.await));
        });
        Some(Self(receiver))
    }

    /// What it gave; `None` where it broke off.
    pub(crate) async fn wait(mut self) -> Option<V> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Whether nothing will ever come of it.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.has_changed().is_err() && self.0.borrow().is_none()
    }
}

/// The thread, started by the first request of the process.
fn thread() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let built = Builder::new_multi_thread().worker_threads(1).thread_name("mcpace-auth").enable_all().build();
        built.inspect_err(|error| tracing::error!("no thread can be started that asks issuers: {error}")).ok()
    });
    made.as_ref()
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
                7
            }
        };
        let first = Ticket::begin(work).unwrap();
        let others: Vec<_> = (0..3).map(|_| tokio::spawn(first.clone().wait())).collect();
        drop(first);
        go.notify_one();
        for other in others {
            assert_eq!(other.await.unwrap(), Some(7));
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_that_breaks_off_leaves_nobody_waiting() {
        let ticket = Ticket::<u8>::begin(async { panic!("on purpose") }).unwrap();
        assert_eq!(ticket.clone().wait().await, None);
        assert!(ticket.is_broken());
        let kept = Ticket::begin(async { 1 }).unwrap();
        assert_eq!(kept.clone().wait().await, Some(1));
        assert!(!kept.is_broken());
    }
}
