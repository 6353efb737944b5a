//! How much of a handler is too much: its time, its result.
//!
//! Constraint: what isn't bounded pays a branch. A result is refused whole: half of one would be taken for all of it.

use std::time::Duration;

use tokio::time::timeout;

use crate::guard::{BoxFuture, Compiled};
use crate::service::HandlerError;

/// Ends `work` where it takes longer than it may; `late` makes what there is instead, of the words and the time it took.
pub(super) fn in_time<T: Send + 'static>(
    guard: Option<&Compiled>,
    work: BoxFuture<T>,
    late: impl FnOnce(HandlerError, Duration) -> T + Send + 'static,
) -> BoxFuture<T> {
    let Some(limit) = guard.and_then(|guard| guard.timeout) else { return work };
    Box::pin(async move {
        // Dropping the work at the limit's end is what ends it.
        match timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => {
                let words = format!("timed out after {} seconds", limit.as_secs_f64());
                late(HandlerError::new(words), limit)
            }
        }
    })
}

/// The words for a result that is too long.
pub(super) fn too_long(bytes: usize, most: Option<usize>) -> Option<String> {
    let most = most.filter(|&most| bytes > most)?;
    Some(format!("the result is too long: {bytes} bytes of JSON, and no more than {most} are sent; ask for less"))
}
