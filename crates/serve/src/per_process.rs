//! Values that a forked child must not share with its parent, such as a verifier or a limiter with threads, tasks and
//! connections. The child has a copy of their memory but not of the threads, and would wait for them without end.
//!
//! Constraint: no lock, because another thread of the parent may have held it at the fork.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// A value that each process makes for itself: a forked child has none of its parent's threads and makes a new one.
pub struct PerProcess<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    made: ArcSwap<Made<T>>,
}

struct Made<T> {
    process: u32,
    value: Arc<T>,
}

impl<T> PerProcess<T> {
    /// Makes this process's own at once.
    pub fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self::with(make(), make)
    }

    /// This process has its own already; only children make theirs.
    pub fn with(own: T, make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let made = Made { process: std::process::id(), value: Arc::new(own) };
        Self { make: Box::new(make), made: ArcSwap::from_pointee(made) }
    }

    /// This process's own.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        self.value_for(std::process::id())
    }

    fn value_for(&self, process: u32) -> Arc<T> {
        loop {
            let made = self.made.load();
            if made.process == process {
                return Arc::clone(&made.value);
            }
            drop(made);
            let fresh = Arc::new(Made { process, value: Arc::new((self.make)()) });
            let before = self.made.rcu(|now| if now.process == process { Arc::clone(now) } else { Arc::clone(&fresh) });
            if before.process != process {
                // The parent's: to drop it would wait for threads that are not here, and take apart what one of them may
                // have been in the middle of.
                std::mem::forget(before);
            }
        }
    }
}

impl<T> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::PerProcess;

    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_child_begins_anew_and_takes_nothing_of_its_parents_apart() {
        let (made, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (Arc::clone(&made), Arc::clone(&dropped));
        let own = PerProcess::new(move || {
            counts.0.fetch_add(1, Ordering::SeqCst);
            Counted(Arc::clone(&counts.1))
        });
        let (parent, child) = (std::process::id(), std::process::id().wrapping_add(1));
        assert!(Arc::ptr_eq(&own.value_for(parent), &own.get()));
        assert_eq!(made.load(Ordering::SeqCst), 1);
        let of_child = own.value_for(child);
        assert!(Arc::ptr_eq(&of_child, &own.value_for(child)));
        assert_eq!(made.load(Ordering::SeqCst), 2);
        drop(of_child);
        assert_eq!(dropped.load(Ordering::SeqCst), 0, "the parent's was dropped");
        drop(own);
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "its own");
    }
}
