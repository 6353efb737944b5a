//! The order in which calls that wait for a thread go on, and how many threads each client may hold.
//!
//! Clients (sessions, principals or connections) take turns, one call each. A client may take another thread only while at least a
//! third of the number that it holds stays free: a newcomer then finds a free thread, however much others ask for (dynamic
//! thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds for FunctionHost-Memory Packet Switches", 1998). Within this,
//! quick functions overtake slow ones, a limited number of times. Functions that only work and never wait take turns: a second
//! thread would fight the first for the interpreter, and neither would be sooner. Where such a call takes longer than a turn,
//! the next one may go.
//!
//! Constraint: pure; time is a parameter.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// How long a busy function's call keeps others of the kind waiting at most: Python's own turn (`sys.getswitchinterval`).
const TURN: Duration = Duration::from_millis(5);
/// Number of quick calls that may overtake a waiting slow call.
const OVERTAKING: u32 = 16;
/// Threads that a client may hold for each that is free.
const HELD_PER_FREE: usize = 3;

/// A number that all calls of one client have in common. Calls of client 0 have no other client beside them, or are nobody's: they may
/// hold all threads.
pub(crate) type ClientNumber = u64;

/// Calls that wait for a thread, and counts of those that run.
pub(crate) struct CallQueue<T> {
    /// How many threads there may be.
    limit: usize,
    quick: Lane<T>,
    slow: Lane<T>,
    /// Quick ones taken since a slow one was.
    overtaken: u32,
    /// Calls of busy functions under way, and when the last of them began.
    busy: usize,
    turn: Option<Instant>,
    /// Calls under way: of all clients, and of each that has any.
    running: usize,
    held: FxHashMap<ClientNumber, usize>,
}

/// Known behaviour of a call's function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Its last call took its time.
    pub(crate) is_slow: bool,
    /// Its calls mostly work.
    pub(crate) is_busy: bool,
}

struct WaitingCall<T> {
    call: T,
    is_busy: bool,
}

/// Calls that wait, each client's in their order.
struct Lane<T> {
    // Clients are numbered by us or named by a verified token, so nobody can choose keys that collide.
    waiting: FxHashMap<ClientNumber, VecDeque<WaitingCall<T>>>,
    /// Clients that have calls here: the first has its turn.
    turns: VecDeque<ClientNumber>,
    calls: usize,
}

/// A call taken from the queue. The thread that took it reports its end.
pub(crate) struct TakenCall<T> {
    pub(crate) call: T,
    pub(crate) place: ThreadShare,
}

/// The share of the threads that a running call holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadShare {
    client: ClientNumber,
    /// Whether it counts as a busy function's.
    is_busy: bool,
}

impl<T> Lane<T> {
    fn new() -> Self {
        Self { waiting: FxHashMap::default(), turns: VecDeque::new(), calls: 0 }
    }

    fn push_call(&mut self, client: ClientNumber, waiting: WaitingCall<T>) {
        let calls = self.waiting.entry(client).or_default();
        if calls.is_empty() {
            self.turns.push_back(client);
        }
        calls.push_back(waiting);
        self.calls += 1;
    }

    /// Takes the first call of a client, whose next turn comes after all others'.
    fn take_first(&mut self, at: usize) -> Option<(ClientNumber, WaitingCall<T>)> {
        let client = self.turns.remove(at)?;
        let calls = self.waiting.get_mut(&client)?;
        let first = calls.pop_front()?;
        if calls.is_empty() {
            self.waiting.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        self.calls -= 1;
        Some((client, first))
    }

    fn first_of(&self, at: usize) -> Option<&WaitingCall<T>> {
        self.waiting.get(self.turns.get(at)?)?.front()
    }
}

/// Which lane is next.
#[derive(Clone, Copy)]
enum NextLane {
    Quick(usize),
    Slow(usize),
}

impl<T> CallQueue<T> {
    /// For so many threads.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            quick: Lane::new(),
            slow: Lane::new(),
            overtaken: 0,
            busy: 0,
            turn: None,
            running: 0,
            held: FxHashMap::default(),
        }
    }

    pub(crate) fn push_call(&mut self, call: T, client: ClientNumber, manner: Manner) {
        let lane = if manner.is_slow { &mut self.slow } else { &mut self.quick };
        lane.push_call(client, WaitingCall { call, is_busy: manner.is_busy });
    }

    pub(crate) fn len(&self) -> usize {
        self.quick.calls + self.slow.calls
    }

    /// Whether a call waits that may have a thread, its function's turn come or not.
    pub(crate) fn has_next(&self) -> bool {
        self.next_client().is_some()
    }

    /// The next call, its turn come or not.
    pub(crate) fn pop_next(&mut self, now: Instant) -> Option<TakenCall<T>> {
        let (client, WaitingCall { call, is_busy }) = match self.next_client()? {
            NextLane::Quick(at) => {
                self.overtaken += 1;
                self.quick.take_first(at)
            }
            NextLane::Slow(at) => {
                self.overtaken = 0;
                self.slow.take_first(at)
            }
        }?;
        if is_busy {
            self.busy += 1;
            self.turn = Some(now);
        }
        self.running += 1;
        *self.held.entry(client).or_default() += 1;
        Some(TakenCall { call, place: ThreadShare { client, is_busy } })
    }

    /// A call that was taken is over.
    pub(crate) fn finish_place(&mut self, ThreadShare { client, is_busy }: ThreadShare) {
        self.busy -= usize::from(is_busy && self.busy > 0);
        self.running = self.running.saturating_sub(1);
        if let Some(held) = self.held.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&client);
            }
        }
    }

    /// How long the next call is to wait for its turn yet; `None` where it may go, or there is none.
    pub(crate) fn turn_left(&self, now: Instant) -> Option<Duration> {
        let next = match self.next_client()? {
            NextLane::Quick(at) => self.quick.first_of(at),
            NextLane::Slow(at) => self.slow.first_of(at),
        }?;
        let turn = self.turn.filter(|_| self.busy > 0 && next.is_busy)?;
        TURN.checked_sub(now.saturating_duration_since(turn)).filter(|left| !left.is_zero())
    }

    /// Takes all calls out.
    pub(crate) fn drain_all(&mut self) -> Vec<T> {
        let lanes = [&mut self.quick, &mut self.slow];
        let all = lanes.into_iter().flat_map(|lane| {
            lane.turns.clear();
            lane.calls = 0;
            std::mem::take(&mut lane.waiting).into_values()
        });
        all.flatten().map(|waiting| waiting.call).collect()
    }

    fn next_client(&self) -> Option<NextLane> {
        let quick = || self.first_allowed(&self.quick).map(NextLane::Quick);
        let slow = || self.first_allowed(&self.slow).map(NextLane::Slow);
        if self.overtaken < OVERTAKING { quick().or_else(slow) } else { slow().or_else(quick) }
    }

    /// The place in its lane's turns of the first client that may have another thread. Those that may not hold at least one, so there
    /// are fewer of them than threads.
    fn first_allowed(&self, lane: &Lane<T>) -> Option<usize> {
        let free = self.limit.saturating_sub(self.running);
        lane.turns.iter().position(|client| {
            let held = self.held.get(client).copied().unwrap_or_default();
            *client == 0 || held <= free.saturating_mul(HELD_PER_FREE)
        })
    }
}
