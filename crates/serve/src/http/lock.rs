//! Locks that nobody can have left half way.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock under which nothing can panic.
pub(super) fn lock_mutex<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
