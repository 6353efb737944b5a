//! The legacy sessions: a sharded table, bounded in number, swept of those that nobody uses.
//!
//! Constraint: one caller keeps nobody out. Where all places are taken, a session whose client said nothing since it began makes
//! room, the oldest first; and once half of them are, an authenticated caller has a tenth at most.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcpace_wire::http::SessionId;
use rand::TryRngCore;
use rand::rngs::OsRng;

use super::streams::Streams;
use crate::exchange::Principal;
use crate::session::Session;
use crate::store::Name;

/// What a session id stands for: 128 bits that nobody can guess. On the wire: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u128);

/// Neither among the bits that choose a shard nor among those that are the hash.
const MEMBER_SHIFT: u32 = 64;

impl Key {
    /// From the system's randomness. `None` if it has none to give.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        OsRng.try_fill_bytes(&mut bytes).ok()?;
        Some(Key(u128::from_ne_bytes(bytes)))
    }

    /// With the number of the process that has the session in it: 120 bits are left to be guessed.
    fn of_member(self, member: u8) -> Self {
        Key(self.0 & !(0xff << MEMBER_SHIFT) | u128::from(member) << MEMBER_SHIFT)
    }

    /// What a store of sessions calls it.
    pub(super) fn name(self) -> Name {
        Name::of(&self.to_string())
    }

    /// The number of the process that has the session, where it is one of several.
    pub(super) fn member(self) -> u8 {
        (self.0 >> MEMBER_SHIFT) as u8
    }

    pub(super) fn parse(id: &str) -> Option<Self> {
        let is_ours = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // Signs and upper case, which the parser would take, are out by now.
        if is_ours { u128::from_str_radix(id, 16).ok().map(Key) } else { None }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A session as the transport has it. Small, since there may be very many.
pub(super) struct Live {
    pub(super) key: Key,
    pub(super) session: Arc<Session>,
    pub(super) streams: Streams,
    /// When it was last used, in milliseconds since the table was made; with [`UNUSED`] when it began.
    seen: AtomicU64,
    /// When it ends however much it is used, in the same milliseconds.
    until: u64,
    /// As of which state of a store it is known to live; 0 before it is in one.
    pub(super) verified: AtomicU64,
    /// What of its answers, and of its cancellations, was passed on to other processes.
    answers: Passed,
    cancellations: Passed,
}

/// What was passed on to other processes: the second, in the upper half, and how much in that.
#[derive(Default)]
struct Passed(AtomicU64);

/// What a client says for another process than the one that it says it to.
#[derive(Clone, Copy)]
pub(super) enum Passing {
    /// An answer of so many bytes.
    Answer(usize),
    Cancellation,
}

/// Nobody has used it since it began.
const UNUSED: u64 = 1 << 63;
/// How long such a session lives: its client has said nothing after `initialize`.
const UNUSED_IDLE: Duration = Duration::from_secs(60);
/// How much of one client's a second is passed on to other processes, of answers and of cancellations each.
const PASSED_ON: u64 = 100;
/// So many bytes of an answer count as one more.
const ANSWERS_PART: usize = 64 << 10;

/// See the module.
pub(super) struct Sessions {
    shards: Box<[Mutex<Shard>]>,
    /// Those in the table, and those that are about to be.
    count: AtomicUsize,
    limit: usize,
    /// How many of them are whose, where anybody is authenticated.
    owned: Mutex<HashMap<Arc<str>, usize>>,
    /// Those that nobody may have used yet, the oldest first; and some that are used, or gone.
    fresh: Mutex<VecDeque<Key>>,
    idle: Duration,
    life: Option<Duration>,
    epoch: Instant,
    /// This process, where it is one of several.
    member: Option<u8>,
}

type Shard = HashMap<Key, Arc<Live>, BuildHasherDefault<AsItIs>>;

const SHARDS: usize = 16;

impl Sessions {
    pub(super) fn new(
        limit: usize,
        (idle, life): (Duration, Option<Duration>),
        now: Instant,
        member: Option<u8>,
    ) -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (owned, fresh) = (Mutex::default(), Mutex::default());
        Arc::new(Self { shards, count: AtomicUsize::new(0), limit, owned, fresh, idle, life, epoch: now, member })
    }

    /// A place for a new session of this caller, before it is known whether there will be one. `None` when all are taken, or the
    /// caller has too many.
    pub(super) fn reserve(self: &Arc<Self>, principal: Option<&Principal>) -> Option<Place> {
        let owner = principal.map(|principal| Arc::clone(&principal.subject));
        if let Some(owner) = &owner {
            let mut owned = lock(&self.owned);
            let count = owned.entry(Arc::clone(owner)).or_default();
            if *count >= (self.limit / 10).max(1) && self.len() >= self.limit / 2 {
                return None;
            }
            *count += 1;
        }
        // From here on it is given back by being dropped.
        let place = Place { of: Some(Arc::clone(self)), owner };
        let taken = self.count.fetch_add(1, Relaxed);
        (taken < self.limit || self.make_room()).then_some(place)
    }

    /// Ends the oldest session that nobody has used. False where there is none.
    fn make_room(&self) -> bool {
        loop {
            let Some(key) = lock(&self.fresh).pop_front() else { return false };
            if let Some(live) = self.peek(key).filter(|live| live.is_unused()) {
                self.end(&live);
                return true;
            }
        }
    }

    /// Notes a session that has only begun.
    fn is_fresh(&self, key: Key) {
        let mut fresh = lock(&self.fresh);
        // So that the list has few that are used or gone, and never more than there may be sessions.
        while fresh.front().is_some_and(|&key| !self.peek(key).is_some_and(|live| live.is_unused()))
            || fresh.len() >= self.limit.max(1)
        {
            fresh.pop_front();
        }
        fresh.push_back(key);
    }

    /// Gives a place back.
    fn give_back(&self, owner: Option<&Arc<str>>) {
        self.count.fetch_sub(1, Relaxed);
        if let Some(owner) = owner {
            let mut owned = lock(&self.owned);
            if let Some(count) = owned.get_mut(owner) {
                *count -= 1;
                if *count == 0 {
                    owned.remove(owner);
                }
            }
        }
    }

    /// What a session has left of its whole life.
    pub(super) fn left(&self, live: &Live, now: Instant) -> Option<Duration> {
        (live.until != u64::MAX).then(|| Duration::from_millis(live.until.saturating_sub(self.millis(now))))
    }

    /// The session of this id, if it is this principal's; used just now.
    pub(super) fn find(&self, id: &SessionId, principal: Option<&Principal>, now: Instant) -> Option<Arc<Live>> {
        let key = Key::parse(id.as_str())?;
        let live = Arc::clone(self.shard(key).get(&key)?);
        let now = self.millis(now);
        if !live.session.belongs_to(principal) || now >= live.until {
            return None;
        }
        live.seen.store(now, Relaxed);
        Some(live)
    }

    /// The session of this key, whoever asks.
    pub(super) fn peek(&self, key: Key) -> Option<Arc<Live>> {
        self.shard(key).get(&key).cloned()
    }

    /// Those that somebody has used within this time, or is using.
    pub(super) fn used_within(&self, time: Duration, now: Instant) -> Vec<Key> {
        let now = self.millis(now);
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut used = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let is_used = |live: &&Arc<Live>| Arc::strong_count(live) > 1 || now.saturating_sub(live.seen_at()) <= time;
            used.extend(shard.values().filter(is_used).map(|live| live.key));
        }
        used
    }

    /// Ends a session.
    pub(super) fn end(&self, live: &Live) {
        // Out of the table first: nothing finds it while it ends.
        let removed = self.shard(live.key).remove(&live.key);
        if removed.is_some() {
            self.give_back(live.owner());
            live.end();
        }
    }

    /// Ends the sessions that nobody has used for the idle limit and nobody is using, and those whose whole life is over.
    pub(super) fn sweep(&self, now: Instant) {
        let now = self.millis(now);
        let idle = u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX);
        for shard in &self.shards {
            let mut dead = Vec::new();
            lock(shard).retain(|_, live| {
                // Requests and streams under way hold the session; nobody can begin to while the shard is locked.
                let is_used = Arc::strong_count(live) > 1;
                if is_used {
                    live.seen.store(now, Relaxed);
                }
                let idle = if live.is_unused() { idle.min(UNUSED_IDLE.as_millis() as u64) } else { idle };
                let is_fresh = is_used || now.saturating_sub(live.seen_at()) < idle;
                let lives = is_fresh && now < live.until;
                if !lives {
                    dead.push(Arc::clone(live));
                }
                lives
            });
            for live in &dead {
                self.give_back(live.owner());
                live.end();
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Lets go of the connections that only wait: they would hold up a stop for ever.
    pub(super) fn end_standalone_streams(&self) {
        for shard in &self.shards {
            lock(shard).values().for_each(|live| live.streams.end_standalone());
        }
    }

    fn shard(&self, key: Key) -> MutexGuard<'_, Shard> {
        // The key is random: any of its bits are as good as a hash. The table itself uses the low ones.
        lock(&self.shards[(key.0 >> 124) as usize % SHARDS])
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }
}

impl Live {
    fn new(
        sessions: &Sessions,
        key: Key,
        session: Arc<Session>,
        streams: Streams,
        (now, left): (Instant, Option<Duration>),
    ) -> Self {
        let until = left.and_then(|left| now.checked_add(left)).map_or(u64::MAX, |end| sessions.millis(end));
        let seen = AtomicU64::new(sessions.millis(now) | UNUSED);
        session.name(key.to_string());
        Self {
            key,
            session,
            streams,
            seen,
            until,
            verified: AtomicU64::new(0),
            answers: Passed::default(),
            cancellations: Passed::default(),
        }
    }

    /// Whether it may pass something on to other processes in this second, which it does then: they would hear nothing else.
    pub(super) fn passes_on(&self, what: Passing, second: u64) -> bool {
        match what {
            // Who cancels much can still answer.
            Passing::Answer(bytes) => self.answers.take(1 + (bytes / ANSWERS_PART) as u64, second),
            Passing::Cancellation => self.cancellations.take(1, second),
        }
    }

    fn is_unused(&self) -> bool {
        self.seen.load(Relaxed) & UNUSED != 0
    }

    fn seen_at(&self) -> u64 {
        self.seen.load(Relaxed) & !UNUSED
    }

    fn owner(&self) -> Option<&Arc<str>> {
        self.session.principal().map(|principal| &principal.subject)
    }

    fn end(&self) {
        self.session.cancel_all();
        self.streams.end();
    }
}

impl Passed {
    /// Whether there is room for so much in this second.
    fn take(&self, much: u64, second: u64) -> bool {
        let (second, before) = (second << 32, self.0.load(Relaxed));
        let count = if before >> 32 << 32 == second { before & u64::from(u32::MAX) } else { 0 };
        if count + much > PASSED_ON {
            return false;
        }
        // Two at the same moment may count as one.
        self.0.store(second | (count + much), Relaxed);
        true
    }
}

/// A place in the table, given back when dropped unused.
pub(super) struct Place {
    of: Option<Arc<Sessions>>,
    /// Whose it is.
    owner: Option<Arc<str>>,
}

impl Place {
    /// Puts a session there. `None` if the system gives no randomness for an id.
    pub(super) fn take(mut self, session: Arc<Session>, streams: Streams, now: Instant) -> Option<Arc<Live>> {
        let sessions = self.of.as_ref()?;
        let key = Key::random()?;
        let key = sessions.member.map_or(key, |member| key.of_member(member));
        let live = Arc::new(Live::new(sessions, key, session, streams, (now, sessions.life)));
        sessions.shard(key).insert(key, Arc::clone(&live));
        sessions.is_fresh(key);
        self.of = None;
        Some(live)
    }

    /// Puts one there that another process began, and that has so much left of its life; or finds that somebody else has.
    pub(super) fn take_up(
        mut self,
        key: Key,
        session: Arc<Session>,
        streams: Streams,
        (now, left): (Instant, Option<Duration>),
    ) -> Option<Arc<Live>> {
        let sessions = self.of.clone()?;
        let live = Arc::new(Live::new(&sessions, key, session, streams, (now, left)));
        let mut shard = sessions.shard(key);
        if let Some(known) = shard.get(&key) {
            return Some(Arc::clone(known));
        }
        shard.insert(key, Arc::clone(&live));
        self.of = None;
        Some(live)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(sessions) = &self.of {
            sessions.give_back(self.owner.as_ref());
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under the lock can panic half way.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes random keys by taking them as they are. Clients choose what is looked up, never what is in the table.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_ne_bytes(word);
        }
    }

    fn write_u128(&mut self, key: u128) {
        // The low half is what is wanted.
        self.0 = key as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use mcpace_wire::Revision;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation};

    use super::super::log::LogBounds;
    use super::super::streams::StreamBounds;
    use super::*;
    use crate::session::Client;

    const IDLE: Duration = Duration::from_secs(60);

    fn session() -> (Arc<Session>, Streams) {
        let bounds = StreamBounds {
            log: LogBounds { events: 8, bytes: 1024 },
            standalone: 1,
            open: 1,
            replay_bytes_each: 100,
            replay_bytes_all: 150,
            replay_bytes: AtomicUsize::new(0),
        };
        let info = Implementation { name: "test".to_owned(), ..Implementation::default() };
        let client = Client { info, capabilities: ClientCapabilities::default() };
        let session = Session::new(Revision::V2025_11_25, None, client);
        (Arc::new(session), Streams::new(Arc::new(bounds), true))
    }

    fn begin(sessions: &Arc<Sessions>, now: Instant) -> Arc<Live> {
        let (session, streams) = session();
        sessions.reserve(None).unwrap().take(session, streams, now).unwrap()
    }

    fn id(live: &Live) -> SessionId {
        live.key.to_string().parse().unwrap()
    }

    #[test]
    fn a_session_ends_once_it_has_been_idle_and_not_before() {
        let begun = Instant::now();
        let sessions = Sessions::new(10, (IDLE, None), begun, None);
        let first = id(&begin(&sessions, begun));
        let held = begin(&sessions, begun);
        sessions.sweep(begun + IDLE / 2);
        assert_eq!(sessions.len(), 2);
        // Used half way: it has all of its time again.
        assert!(sessions.find(&first, None, begun + IDLE / 2).is_some());
        sessions.sweep(begun + IDLE);
        assert_eq!(sessions.len(), 2);
        sessions.sweep(begun + IDLE * 3 / 2);
        assert!(sessions.find(&first, None, begun + IDLE * 3 / 2).is_none());
        // In use all the time, its idle time only begins when it is let go.
        let second = id(&held);
        drop(held);
        sessions.sweep(begun + IDLE * 2);
        assert!(sessions.find(&second, None, begun + IDLE * 2).is_some());
        sessions.sweep(begun + IDLE * 3);
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn a_session_ends_with_its_whole_life_however_much_it_is_used() {
        let begun = Instant::now();
        let sessions = Sessions::new(10, (IDLE, Some(IDLE * 2)), begun, None);
        let held = begin(&sessions, begun);
        let id = id(&held);
        for quarter in 1..8 {
            let now = begun + IDLE * quarter / 4;
            sessions.sweep(now);
            assert!(sessions.find(&id, None, now).is_some());
        }
        assert!(sessions.find(&id, None, begun + IDLE * 2).is_none());
        sessions.sweep(begun + IDLE * 2);
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn an_id_is_32_digits_in_lower_case_and_nothing_else() {
        let key = Key::random().unwrap();
        let text = key.to_string();
        assert!(Key::parse(&text) == Some(key));
        let short = &text[1..];
        for bad in [short.to_owned(), format!("{text}0"), format!("+{short}"), "A".repeat(32), format!("-{short}")] {
            assert!(Key::parse(&bad).is_none(), "{bad}");
        }
    }

    /// No test shows that nobody can guess an id; this one shows that all of it is drawn anew.
    #[test]
    fn no_bit_of_an_id_is_the_same_in_all() {
        let ids = (0..128).map(|_| Key::random().unwrap().0);
        let (ones, zeros) = ids.fold((0, 0), |(ones, zeros), id| (ones | id, zeros | !id));
        assert_eq!((ones, zeros), (u128::MAX, u128::MAX));
    }

    #[test]
    fn what_ended_streams_take_is_bounded_and_given_back() {
        let (_, streams) = session();
        let ended = |length: usize| {
            let log = streams.new_log();
            log.push_reply(&vec![b'x'; length]);
            log.end();
            streams.finish(&log);
            log.number().unwrap()
        };
        let is_kept = |number: u64| streams.resume(&format!("{number:x}-0")).is_some();
        let (first, second) = (ended(10), ended(10));
        assert!(is_kept(first) && is_kept(second));
        let third = ended(20);
        assert!(!is_kept(first) && is_kept(third));
        assert!(!is_kept(ended(200)));
        streams.end();
        assert!(!is_kept(third));
    }
}
