//! Places for questions to an issuer, of which there are few: whoever is known goes before strangers, who are as many as
//! somebody likes to make up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Bounded number of concurrent requests to an issuer, with one queue for known tokens and one for unknown ones.
pub(crate) struct Gate(Arc<Mutex<GateLines>>);

/// Where somebody stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateLine {
    /// Tokens that were good lately.
    Known,
    /// All others.
    Strangers,
}

struct GateLines {
    free: usize,
    /// In the order of [`GateLine`].
    waiting: [VecDeque<oneshot::Sender<GatePlace>>; 2],
}

/// A place; whoever drops it gives it to the next.
pub(crate) struct GatePlace(Option<Arc<Mutex<GateLines>>>);

impl Gate {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(GateLines { free: places, waiting: Default::default() })))
    }

    /// A place, once there is one. Nobody stands in line before this is polled, nor after it is dropped.
    pub(crate) async fn wait_place(&self, line: GateLine) -> GatePlace {
        loop {
            let waits = {
                let mut lines = lock_lines(&self.0);
                if lines.free > 0 {
                    lines.free -= 1;
                    return GatePlace(Some(Arc::clone(&self.0)));
                }
                let line = &mut lines.waiting[line as usize];
                if line.len() == line.capacity() {
                    // Before it grows: who has left stands here until its turn.
                    line.retain(|waiting| !waiting.is_closed());
                }
                let (sender, receiver) = oneshot::channel();
                line.push_back(sender);
                receiver
            };
            if let Ok(place) = waits.await {
                return place;
            }
        }
    }
}

impl Drop for GatePlace {
    fn drop(&mut self) {
        let Some(of) = self.0.take() else { return };
        loop {
            let next = {
                let mut lines = lock_lines(&of);
                let next = lines.waiting.iter_mut().find_map(VecDeque::pop_front);
                if next.is_none() {
                    lines.free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(GatePlace(Some(Arc::clone(&of)))) {
                Ok(()) => return,
                // Gone; the place goes to the next instead of through here again.
                Err(mut back) => drop(back.0.take()),
            }
        }
    }
}

fn lock_lines(lines: &Mutex<GateLines>) -> MutexGuard<'_, GateLines> {
    // Nothing under the lock can panic half way.
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting<'g> = Pin<Box<dyn Future<Output = GatePlace> + 'g>>;

    fn poll(waiting: &mut Waiting<'_>) -> Option<GatePlace> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    fn begin(gate: &Gate, line: GateLine) -> Waiting<'_> {
        let mut waiting: Waiting<'_> = Box::pin(gate.wait_place(line));
        assert!(poll(&mut waiting).is_none(), "there was a place");
        waiting
    }

    #[test]
    fn who_is_known_goes_first_and_each_line_keeps_its_order() {
        let gate = Gate::new(1);
        let mut place = poll(&mut (Box::pin(gate.wait_place(GateLine::Strangers)) as Waiting<'_>));
        assert!(place.is_some());
        let mut lines =
            [GateLine::Strangers, GateLine::Strangers, GateLine::Known, GateLine::Known].map(|line| begin(&gate, line));
        for next in [2, 3, 0, 1] {
            drop(place);
            let mut ready = lines.iter_mut().map(poll).collect::<Vec<_>>();
            place = ready[next].take();
            assert!(place.is_some(), "{next}");
            assert!(ready.iter().all(Option::is_none));
            lines[next] = Box::pin(std::future::pending());
        }
    }

    #[test]
    fn who_leaves_takes_no_place_along_and_fills_no_line() {
        let gate = Gate::new(1);
        let place = poll(&mut (Box::pin(gate.wait_place(GateLine::Known)) as Waiting<'_>));
        let mut stays = begin(&gate, GateLine::Strangers);
        for _ in 0..10_000 {
            drop(begin(&gate, GateLine::Strangers));
            drop(begin(&gate, GateLine::Known));
        }
        let waiting = |line: GateLine| lock_lines(&gate.0).waiting[line as usize].len();
        assert!(waiting(GateLine::Known) < 100 && waiting(GateLine::Strangers) < 100);
        // Given, and never taken.
        let unheard = begin(&gate, GateLine::Known);
        drop(place);
        drop(unheard);
        let place = poll(&mut stays);
        assert!(place.is_some());
        drop(place);
        assert_eq!(lock_lines(&gate.0).free, 1);
    }
}
