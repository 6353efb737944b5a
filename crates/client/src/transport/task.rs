//! A task that ends with its owner: nothing of the client goes on after the client.

use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Aborted when dropped.
#[derive(Debug)]
pub(crate) struct BackgroundTask(JoinHandle<()>);

impl BackgroundTask {
    pub(crate) fn spawn(runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(runtime.spawn(work))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
