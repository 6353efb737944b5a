//! The entries of a list's page that the caller may use.
//!
//! Constraint: a page holds as many entries as any other, whatever was left out, and is followed by another one only where
//! the caller may use something on it: neither its length nor its cursor tells that there is more. What takes asking is asked
//! side by side.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use super::guarding::{all_agree, permits};
use crate::catalogue::Listed;
use crate::guard::{Asked, BoxFuture, Denial, Permitted};

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
        asked: impl Fn(&'a T) -> Asked<'a>,
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
        entries: &'a [Arc<T>],
        mut waits: Waits<usize>,
        asked: impl Fn(&'a T) -> Asked<'a>,
    ) {
        while !waits.is_empty() {
            let refused = refused(std::mem::take(&mut waits)).await;
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

/// Those of them that somebody didn't agree to. All are asked at the same time.
pub(super) async fn refused<K>(waits: Waits<K>) -> Vec<K> {
    type Asking = Pin<Box<dyn Future<Output = Result<(), Denial>> + Send>>;
    let mut asking: Vec<(Option<K>, Asking)> =
        waits.into_iter().map(|(about, agreeing)| (Some(about), Box::pin(all_agree(agreeing)) as Asking)).collect();
    let mut refused = Vec::new();
    poll_fn(|context| {
        let mut is_over = true;
        for (about, asking) in &mut asking {
            if about.is_none() {
                continue;
            }
            match asking.as_mut().poll(context) {
                Poll::Pending => is_over = false,
                Poll::Ready(agreed) => {
                    let about = about.take();
                    if agreed.is_err() {
                        refused.extend(about);
                    }
                }
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    refused
}
