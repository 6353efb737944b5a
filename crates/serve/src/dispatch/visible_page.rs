//! The entries of a list's page that the caller may use.
//!
//! Constraint: a page holds as many entries as any other, whatever was left out, and is followed by another one only where
//! the caller may use something on it: neither its length nor its cursor tells that there is more. What takes asking is asked
//! side by side, as far as there are turns.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use super::authorization::{all_agree, permits};
use crate::catalogue::Listed;
use crate::guard::{AccessRequest, BoxFuture, Denial, Permitted};
use crate::guard::{MOST_OF_ONE, Share};

/// See the module.
pub(super) struct Picking {
    /// The next position to look at.
    at: usize,
    size: usize,
    /// Positions, in their order; those that are still asked about among them.
    picked: Vec<usize>,
}

/// Things that somebody has to be asked about.
pub(super) type Waits<K> = Vec<(K, Vec<BoxFuture<Result<(), Denial>>>)>;

impl Picking {
    /// Of a page of `size` entries that begins at a position.
    pub(super) fn new(at: usize, size: usize) -> Self {
        Self { at, size, picked: Vec::new() }
    }

    /// Looks at entry after entry until the page is full, and one more is there.
    pub(super) fn go_on<'a, T: Listed>(
        &mut self,
        entries: &'a [Arc<T>],
        asked: impl Fn(&'a T) -> AccessRequest<'a>,
    ) -> Waits<usize> {
        let mut waits = Waits::new();
        while self.picked.len() <= self.size {
            let Some(entry) = entries.get(self.at) else { break };
            let permitted = match entry.guard().filter(|guard| guard.is_selective()) {
                Some(guard) => permits(guard, &asked(entry)),
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

    /// The same to the end, whoever has to be asked.
    pub(super) async fn see_through<'a, T: Listed>(
        &mut self,
        share: &Share<'_>,
        entries: &'a [Arc<T>],
        mut waits: Waits<usize>,
        asked: impl Fn(&'a T) -> AccessRequest<'a>,
    ) {
        while !waits.is_empty() {
            let refused = refused(share, std::mem::take(&mut waits)).await;
            self.picked.retain(|position| !refused.contains(position));
            waits = self.go_on(entries, &asked);
        }
    }

    /// The positions on the page, and that of the first entry on the next.
    pub(super) fn page(&self) -> (&[usize], Option<usize>) {
        let (page, next) = self.picked.split_at(self.size.min(self.picked.len()));
        (page, next.first().copied())
    }
}

/// Those of them that somebody didn't agree to. They are asked side by side, as far as others leave turns.
pub(super) async fn refused<K>(share: &Share<'_>, waits: Waits<K>) -> Vec<K> {
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
            // Nobody has begun with those that are left.
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

/// Something that somebody is being asked about.
struct Asking<'p, K> {
    about: Option<K>,
    answer: Pin<Box<dyn Future<Output = Result<(), Denial>> + Send + 'p>>,
}

async fn in_turn(share: &Share<'_>, agreeing: Vec<BoxFuture<Result<(), Denial>>>) -> Result<(), Denial> {
    let _turn = share.turn().await;
    all_agree(agreeing).await
}
