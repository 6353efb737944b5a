//! Signs of life of one connection, and the orders that it is given.
//!
//! No request costs a timer: a connection leaves marks here, and its worker looks at all of them every now and then. What is
//! only looked at for change is written as by one thread, which it is but for HTTP/2 on a runtime of many: there a mark may
//! get lost, and the next one does. How many requests are under way has to be right, and is counted as by many.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Go on.
    Serve,
    /// Finish what is in flight, take nothing new.
    Finish,
    /// Stop at once.
    Cut,
}

/// The marks.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// Bytes came or went; counts up.
    moves: AtomicU32,
    /// Requests begun; counts up.
    calls: AtomicU32,
    /// Requests that a handler is busy with.
    busy: AtomicU32,
    /// Bytes of a head came, and its request has not begun.
    in_head: AtomicBool,
    /// A request's body is being read.
    in_body: AtomicBool,
    /// It takes too long.
    body_expired: AtomicBool,
    /// The client's side of the socket is full.
    blocked: AtomicBool,
}

/// Changes a counter, without a locked instruction.
fn bump(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

impl Pulse {
    pub(super) fn order(&self) -> Order {
        match self.order.load(Relaxed) {
            0 => Order::Serve,
            1 => Order::Finish,
            _ => Order::Cut,
        }
    }

    /// Gives an order. A later one can't soften it.
    pub(super) fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Relaxed);
        self.wake();
    }

    pub(super) fn on_order(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
    }

    pub(super) fn has_read(&self) {
        bump(&self.moves);
        if self.busy.load(Relaxed) == 0 {
            self.in_head.store(true, Relaxed);
        }
    }

    pub(super) fn has_written(&self) {
        bump(&self.moves);
        self.blocked.store(false, Relaxed);
    }

    pub(super) fn is_blocked(&self) {
        self.blocked.store(true, Relaxed);
    }

    /// A request has begun; it has ended when the guard goes.
    pub(super) fn begin(&self) -> Busy<'_> {
        bump(&self.calls);
        self.busy.fetch_add(1, Relaxed);
        self.in_head.store(false, Relaxed);
        Busy(self)
    }

    /// A body is being read; until the guard goes.
    pub(super) fn begin_body(&self) -> InBody<'_> {
        self.body_expired.store(false, Relaxed);
        self.in_body.store(true, Relaxed);
        InBody(self)
    }
}

/// See [`Pulse::begin`].
pub(super) struct Busy<'p>(&'p Pulse);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Relaxed);
    }
}

/// See [`Pulse::begin_body`].
pub(super) struct InBody<'p>(&'p Pulse);

impl InBody<'_> {
    pub(super) fn is_expired(&self) -> bool {
        self.0.body_expired.load(Relaxed)
    }
}

impl Drop for InBody<'_> {
    fn drop(&mut self) {
        self.0.in_body.store(false, Relaxed);
    }
}

/// How long each state may last, in looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// How often to look.
    pub(super) interval: Duration,
    pub(super) head: u32,
    pub(super) body: u32,
    pub(super) idle: u32,
    pub(super) write: u32,
}

impl Patience {
    pub(super) fn new(head: Duration, body: Duration, idle: Duration, write: Duration) -> Self {
        let shortest = head.min(body).min(idle).min(write);
        let interval = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
        // One look more than fits: the first may come right after the state began.
        let looks =
            |time: Duration| u32::try_from(time.as_nanos().div_ceil(interval.as_nanos())).unwrap_or(u32::MAX - 1) + 1;
        Self { interval, head: looks(head), body: looks(body), idle: looks(idle), write: looks(write) }
    }
}

/// What was seen at the last look.
#[derive(Debug, Default)]
pub(super) struct Observed {
    moves: u32,
    calls: u32,
    head: u32,
    body: u32,
    idle: u32,
    write: u32,
}

impl Observed {
    /// Looks, and orders what has to be.
    pub(super) fn look(&mut self, pulse: &Pulse, patience: &Patience) {
        let (moves, calls) = (pulse.moves.load(Relaxed), pulse.calls.load(Relaxed));
        let same_call = calls == self.calls;
        let still = moves == self.moves;
        (self.moves, self.calls) = (moves, calls);
        let count = |looks: &mut u32, goes_on: bool| {
            *looks = if goes_on { *looks + 1 } else { 0 };
            *looks
        };
        if count(&mut self.head, pulse.in_head.load(Relaxed) && same_call) >= patience.head {
            pulse.give(Order::Cut);
        }
        if count(&mut self.write, pulse.blocked.load(Relaxed) && still) >= patience.write {
            pulse.give(Order::Cut);
        }
        if count(&mut self.idle, pulse.busy.load(Relaxed) == 0 && still) >= patience.idle {
            pulse.give(Order::Finish);
        }
        if count(&mut self.body, pulse.in_body.load(Relaxed) && same_call) >= patience.body {
            pulse.body_expired.store(true, Relaxed);
            pulse.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> Patience {
        let second = Duration::from_secs(1);
        Patience::new(second, 2 * second, 4 * second, 3 * second)
    }

    fn looks_until(order: Order, pulse: &Pulse, mut between: impl FnMut(&Pulse)) -> u32 {
        let mut observed = Observed::default();
        (1..1000)
            .find(|_| {
                observed.look(pulse, &patience());
                between(pulse);
                pulse.order() == order
            })
            .unwrap()
    }

    #[test]
    fn a_head_that_trickles_is_cut() {
        let pulse = Pulse::default();
        pulse.has_read();
        let looks = looks_until(Order::Cut, &pulse, Pulse::has_read);
        assert!(looks >= patience().head && looks <= patience().head + 1, "{looks}");
    }

    #[test]
    fn a_connection_with_calls_is_never_slow() {
        let pulse = Pulse::default();
        let mut observed = Observed::default();
        for _ in 0..1000 {
            pulse.has_read();
            drop(pulse.begin());
            pulse.has_written();
            observed.look(&pulse, &patience());
        }
        assert_eq!(pulse.order(), Order::Serve);
    }

    #[test]
    fn an_idle_connection_is_asked_to_finish_and_a_busy_one_is_not() {
        let pulse = Pulse::default();
        let busy = pulse.begin();
        let mut observed = Observed::default();
        for _ in 0..1000 {
            observed.look(&pulse, &patience());
        }
        assert_eq!(pulse.order(), Order::Serve);
        drop(busy);
        looks_until(Order::Finish, &pulse, |_| {});
    }

    #[test]
    fn a_reader_that_stands_still_is_cut() {
        let pulse = Pulse::default();
        let _busy = pulse.begin();
        pulse.is_blocked();
        looks_until(Order::Cut, &pulse, |_| {});
    }

    #[test]
    fn a_slow_body_expires_and_the_next_has_its_own_time() {
        let pulse = Pulse::default();
        let _busy = pulse.begin();
        let body = pulse.begin_body();
        let mut observed = Observed::default();
        for _ in 0..=patience().body {
            pulse.has_read();
            observed.look(&pulse, &patience());
        }
        assert!(body.is_expired());
        drop(body);
        assert!(!pulse.begin_body().is_expired());
    }
}
