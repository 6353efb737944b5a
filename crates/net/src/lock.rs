//! Locks of this crate. All of them guard plain values that each holder changes in whole steps (an assignment, a push, a
//! removal), so a thread that panicked in between leaves nothing half done and its lock can be taken all the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, poisoned or not.
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
