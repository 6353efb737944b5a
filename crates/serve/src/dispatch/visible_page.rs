//! The entries of a list's page that the caller may use.
//!
//! Constraint: a page has its full number of entries even if hidden entries are skipped, and a page has a cursor only if the
//! caller may use an entry on a later page. Neither the length nor the cursor of a page reveals hidden entries. Permissions
//! that need time are checked concurrently, within the limits of [`crate::guard`].

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use super::guard_check::{all_agree, check_permissions};
use crate::catalogue::Listed;
use crate::guard::{AccessRequest, BoxFuture, Denial, Permitted};
use crate::guard::{MOST_OF_ONE, Share};

/// Selection of the visible entries of one page.
pub(super) struct PageSelection {
    /// Position of the next entry to check.
    at: usize,
    size: usize,
    /// Positions of visible entries, in order, including those whose check is still under way.
    picked: Vec<usize>,
}

/// Entries whose permissions answer later.
pub(super) type PendingPermissions<K> = Vec<(K, Vec<BoxFuture<Result<(), Denial>>>)>;

impl PageSelection {
    /// Begins a page of `size` entries at position `at`.
    pub(super) fn new(at: usize, size: usize) -> Self {
        Self { at, size, picked: Vec::new() }
    }

    /// Checks entries until the page is full and one more visible entry is known.
    pub(super) fn go_on<'a, T: Listed>(
        &mut self,
        entries: &'a [Arc<T>],
        asked: impl Fn(&'a T) -> AccessRequest<'a>,
    ) -> PendingPermissions<usize> {
        let mut waits = PendingPermissions::new();
        while self.picked.len() <= self.size {
            let Some(entry) = entries.get(self.at) else { break };
            let permitted = match entry.guard().filter(|guard| guard.is_selective()) {
                Some(guard) => check_permissions(guard, &asked(entry)),
                None => Permitted::Yes,
            };
            match permitted {
                Permitted::Yes => self.picked.push(self.at),
                Permitted::No(_) => {}
                Permitted::Later(agreeing) => {
                    self.picked.push(self.at);
                    waits.push((self.at, agreeing));
                }
            }
            self.at += 1;
        }
        waits
    }

    /// Completes the page: awaits the checks that are under way, and fills the places of refused entries.
    pub(super) async fn see_through<'a, T: Listed>(
        &mut self,
        share: &Share<'_>,
        entries: &'a [Arc<T>],
        mut waits: PendingPermissions<usize>,
        asked: impl Fn(&'a T) -> AccessRequest<'a>,
    ) {
        while !waits.is_empty() {
            let refused = refused_entries(share, std::mem::take(&mut waits)).await;
            self.picked.retain(|position| !refused.contains(position));
            waits = self.go_on(entries, &asked);
        }
    }

    /// The positions on the page, and that of the first entry on the next.
    pub(super) fn selected_page(&self) -> (&[usize], Option<usize>) {
        let (page, next) = self.picked.split_at(self.size.min(self.picked.len()));
        (page, next.first().copied())
    }
}

/// Returns the entries that a permission refused. The checks run concurrently, as far as slots are free.
pub(super) async fn refused_entries<K>(share: &Share<'_>, waits: PendingPermissions<K>) -> Vec<K> {
    let mut waits = waits.into_iter();
    let mut asking: Vec<Asking<'_, K>> = Vec::new();
    let mut refused = Vec::new();
    poll_fn(|context| {
        let mut goes_on = |asking: &mut Asking<'_, K>| match asking.answer.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(agreed) => {
                refused.extend(asking.about.take().filter(|_| agreed.is_err()));
                false
            }
        };
        asking.retain_mut(&mut goes_on);
        while asking.len() < MOST_OF_ONE {
            // The remaining checks have not started.
            let Some((about, agreeing)) = waits.next() else { break };
            let mut next = Asking { about: Some(about), answer: Box::pin(in_turn(share, agreeing)) };
            if goes_on(&mut next) {
                asking.push(next);
            }
        }
        if asking.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    refused
}

/// A check that is under way.
struct Asking<'p, K> {
    about: Option<K>,
    answer: Pin<Box<dyn Future<Output = Result<(), Denial>> + Send + 'p>>,
}

async fn in_turn(share: &Share<'_>, agreeing: Vec<BoxFuture<Result<(), Denial>>>) -> Result<(), Denial> {
    let _turn = share.wait_turn().await;
    all_agree(agreeing).await
}
