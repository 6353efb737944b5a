//! A task that ends with its owner: nothing of the client goes on after the client.

use std::future::Future;

use tokio::task::JoinHandle;

/// Aborted when dropped.
pub(crate) struct BackgroundTask(JoinHandle<()>);

impl BackgroundTask {
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Ends it and waits until everything it held is dropped.
    pub(crate) async fn abort_task(mut self) {
        self.0.abort();
        // Whether it was cancelled or had ended by itself makes no difference.
        drop((&mut self.0).await);
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
