//! The legacy sessions: a sharded table, bounded in number ([`SessionPlaces`]), swept of those that nobody uses.
//!
//! Constraint: time is a parameter; nothing finds a session while it ends.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use mcpace_wire::http::SessionId;

use super::http_session::HttpSession;
use super::lock::lock_mutex;
use super::session_capacity::{PlaceOutcome, SessionPlaces};
use super::session_key::{AsItIs, SessionKey};
use super::session_streams::SessionStreams;
use crate::principal::Principal;
use crate::session::Session;

/// How long a session lives that nobody used since it began: its client has said nothing after `initialize`.
const UNUSED_IDLE: Duration = Duration::from_secs(60);

/// The table of sessions.
pub(super) struct Sessions {
    shards: Box<[Mutex<Shard>]>,
    places: SessionPlaces,
    idle: Duration,
    life: Option<Duration>,
    epoch: Instant,
    /// This process, where it is one of several.
    member: Option<u8>,
}

type Shard = HashMap<SessionKey, Arc<HttpSession>, BuildHasherDefault<AsItIs>>;

const SHARDS: usize = 16;

impl Sessions {
    pub(super) fn new(
        limit: usize,
        (idle, life): (Duration, Option<Duration>),
        now: Instant,
        member: Option<u8>,
    ) -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(Self { shards, places: SessionPlaces::new(limit), idle, life, epoch: now, member })
    }

    /// A place for a new session of this caller, before it is known whether there will be one. `None` when all are taken, or the
    /// caller has too many.
    pub(super) fn reserve_place(self: &Arc<Self>, principal: Option<&Principal>) -> Option<SessionPlace> {
        let owner = principal.map(|principal| Arc::clone(&principal.subject));
        let taken = self.places.take_place(owner.as_ref());
        if taken == PlaceOutcome::Refused {
            return None;
        }
        // From here on it is given back by being dropped.
        let place = SessionPlace { of: Some(Arc::clone(self)), owner };
        (taken == PlaceOutcome::Free || self.make_room()).then_some(place)
    }

    /// Ends the oldest session that nobody has used. False where there is none.
    fn make_room(&self) -> bool {
        while let Some(key) = self.places.oldest_noted() {
            if let Some(http_session) = self.peek_session(key).filter(|http_session| http_session.is_unused()) {
                self.end_session(&http_session);
                return true;
            }
        }
        false
    }

    /// Remaining lifetime of a session, where the lifetime is limited.
    pub(super) fn remaining_lifetime(&self, http_session: &HttpSession, now: Instant) -> Option<Duration> {
        http_session.remaining_lifetime(self.elapsed_millis(now))
    }

    /// The session of this id, if it is this principal's; used just now.
    pub(super) fn find_session(
        &self,
        id: &SessionId,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Option<Arc<HttpSession>> {
        let key = SessionKey::parse_id(id.as_str())?;
        let http_session = Arc::clone(self.lock_shard(key).get(&key)?);
        let now = self.elapsed_millis(now);
        if !http_session.session.belongs_to(principal) || http_session.is_over(now) {
            return None;
        }
        http_session.touch_at(now);
        Some(http_session)
    }

    /// The session of this key, whoever asks.
    pub(super) fn peek_session(&self, key: SessionKey) -> Option<Arc<HttpSession>> {
        self.lock_shard(key).get(&key).cloned()
    }

    /// Those that somebody has used within this time, or is using.
    pub(super) fn used_within(&self, time: Duration, now: Instant) -> Vec<SessionKey> {
        let now = self.elapsed_millis(now);
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut used = Vec::new();
        for shard in &self.shards {
            let shard = lock_mutex(shard);
            let is_used = |http_session: &&Arc<HttpSession>| {
                Arc::strong_count(http_session) > 1 || now.saturating_sub(http_session.seen_at()) <= time
            };
            used.extend(shard.values().filter(is_used).map(|http_session| http_session.key));
        }
        used
    }

    /// Ends a session.
    pub(super) fn end_session(&self, http_session: &HttpSession) {
        // Out of the table first: nothing finds it while it ends.
        let removed = self.lock_shard(http_session.key).remove(&http_session.key);
        if removed.is_some() {
            self.places.give_back(http_session.owner());
            http_session.end_session();
        }
    }

    /// Ends the sessions that nobody has used for the idle limit and nobody is using, and those whose whole life is over.
    pub(super) fn sweep_idle(&self, now: Instant) {
        let now = self.elapsed_millis(now);
        let idle = u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX);
        for shard in &self.shards {
            let mut dead = Vec::new();
            lock_mutex(shard).retain(|_, http_session| {
                // Requests and streams under way hold the session; nobody can begin to while the shard is locked.
                let is_used = Arc::strong_count(http_session) > 1;
                if is_used {
                    http_session.touch_at(now);
                }
                let idle = if http_session.is_unused() { idle.min(UNUSED_IDLE.as_millis() as u64) } else { idle };
                let lives =
                    (is_used || now.saturating_sub(http_session.seen_at()) < idle) && !http_session.is_over(now);
                http_session.streams.drop_expired();
                if !lives {
                    dead.push(Arc::clone(http_session));
                }
                lives
            });
            for http_session in &dead {
                self.places.give_back(http_session.owner());
                http_session.end_session();
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.count_taken()
    }

    /// Lets go of the connections that only wait: they would hold up a stop for ever.
    pub(super) fn end_standalone_streams(&self) {
        for shard in &self.shards {
            lock_mutex(shard).values().for_each(|http_session| http_session.streams.end_standalone());
        }
    }

    fn lock_shard(&self, key: SessionKey) -> MutexGuard<'_, Shard> {
        lock_mutex(&self.shards[key.shard_index(SHARDS)])
    }

    /// When a session ends that has so much left of its life.
    fn end_of(&self, left: Option<Duration>, now: Instant) -> u64 {
        left.and_then(|left| now.checked_add(left)).map_or(u64::MAX, |end| self.elapsed_millis(end))
    }

    fn elapsed_millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }
}

/// A place in the table, given back when dropped unused.
pub(super) struct SessionPlace {
    of: Option<Arc<Sessions>>,
    /// Whose it is.
    owner: Option<Arc<str>>,
}

impl SessionPlace {
    /// Puts a session there. `None` if the system gives no randomness for an id.
    pub(super) fn fill_place(
        mut self,
        session: Arc<Session>,
        streams: SessionStreams,
        now: Instant,
    ) -> Option<Arc<HttpSession>> {
        let sessions = self.of.as_ref()?;
        let key = SessionKey::random()?;
        let key = sessions.member.map_or(key, |member| key.of_member(member));
        let until = sessions.end_of(sessions.life, now);
        let http_session = Arc::new(HttpSession::new(key, session, streams, sessions.elapsed_millis(now), until));
        sessions.lock_shard(key).insert(key, Arc::clone(&http_session));
        sessions
            .places
            .note_fresh(key, |key| sessions.peek_session(key).is_some_and(|http_session| http_session.is_unused()));
        self.of = None;
        Some(http_session)
    }

    /// Puts one there that another process began, and that has so much left of its life; or finds that somebody else has.
    pub(super) fn adopt_session(
        mut self,
        key: SessionKey,
        session: Arc<Session>,
        streams: SessionStreams,
        (now, left): (Instant, Option<Duration>),
    ) -> Option<Arc<HttpSession>> {
        let sessions = self.of.clone()?;
        let until = sessions.end_of(left, now);
        let http_session = Arc::new(HttpSession::new(key, session, streams, sessions.elapsed_millis(now), until));
        let mut shard = sessions.lock_shard(key);
        if let Some(known) = shard.get(&key) {
            return Some(Arc::clone(known));
        }
        shard.insert(key, Arc::clone(&http_session));
        self.of = None;
        Some(http_session)
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        if let Some(sessions) = &self.of {
            sessions.places.give_back(self.owner.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpace_wire::Revision;
    use mcpace_wire::mcp::{ClientCapabilities, Implementation};

    use super::super::session_streams::tests::small_streams;
    use super::*;
    use crate::session::ClientDescription;

    const IDLE: Duration = Duration::from_secs(60);

    fn begin_as(sessions: &Arc<Sessions>, principal: Option<&Principal>, now: Instant) -> Option<Arc<HttpSession>> {
        let info = Implementation { name: "test".to_owned(), ..Implementation::default() };
        let client = ClientDescription { info, capabilities: ClientCapabilities::default() };
        let session = Session::new(Revision::V2025_11_25, principal.cloned(), client);
        sessions.reserve_place(principal)?.fill_place(Arc::new(session), small_streams(), now)
    }

    fn begin(sessions: &Arc<Sessions>, now: Instant) -> Arc<HttpSession> {
        begin_as(sessions, None, now).unwrap()
    }

    fn id(http_session: &HttpSession) -> SessionId {
        http_session.key.to_string().parse().unwrap()
    }

    #[test]
    fn a_session_ends_once_it_has_been_idle_and_not_before() {
        let begun = Instant::now();
        let sessions = Sessions::new(10, (IDLE, None), begun, None);
        let first = id(&begin(&sessions, begun));
        let held = begin(&sessions, begun);
        sessions.sweep_idle(begun + IDLE / 2);
        assert_eq!(sessions.len(), 2);
        // Used half way: it has all of its time again.
        assert!(sessions.find_session(&first, None, begun + IDLE / 2).is_some());
        sessions.sweep_idle(begun + IDLE);
        assert_eq!(sessions.len(), 2);
        sessions.sweep_idle(begun + IDLE * 3 / 2);
        assert!(sessions.find_session(&first, None, begun + IDLE * 3 / 2).is_none());
        // In use all the time, its idle time only begins when it is let go.
        let second = id(&held);
        drop(held);
        sessions.sweep_idle(begun + IDLE * 2);
        assert!(sessions.find_session(&second, None, begun + IDLE * 2).is_some());
        sessions.sweep_idle(begun + IDLE * 3);
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
            sessions.sweep_idle(now);
            assert!(sessions.find_session(&id, None, now).is_some());
        }
        assert!(sessions.find_session(&id, None, begun + IDLE * 2).is_none());
        sessions.sweep_idle(begun + IDLE * 2);
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn the_oldest_that_nobody_used_makes_room_and_one_in_use_never_does() {
        let begun = Instant::now();
        let sessions = Sessions::new(3, (IDLE, None), begun, None);
        let ids = [(); 3].map(|()| id(&begin(&sessions, begun)));
        let is_there = |id| sessions.find_session(id, None, begun).is_some();
        assert!(is_there(&ids[0]));
        let fourth = id(&begin(&sessions, begun));
        assert!(!is_there(&ids[1]) && is_there(&ids[0]) && is_there(&ids[2]) && is_there(&fourth));
        // All have said something now.
        assert!(begin_as(&sessions, None, begun).is_none());
        assert_eq!(sessions.len(), 3, "who gets no place takes none");
    }

    #[test]
    fn who_has_many_gets_no_more_while_others_do() {
        let begun = Instant::now();
        let sessions = Sessions::new(20, (IDLE, None), begun, None);
        let [greedy, other] = ["greedy", "other"].map(|subject| Principal::new(subject, []));
        let of_greedy: Vec<_> = (0..10).map(|_| id(&begin_as(&sessions, Some(&greedy), begun).unwrap())).collect();
        assert!(begin_as(&sessions, Some(&greedy), begun).is_none());
        assert!(begin_as(&sessions, Some(&other), begun).is_some());
        assert_eq!(sessions.len(), 11);
        // Ended sessions don't count.
        for id in &of_greedy[..2] {
            let http_session = sessions.find_session(id, Some(&greedy), begun).unwrap();
            sessions.end_session(&http_session);
        }
        assert!(begin_as(&sessions, Some(&greedy), begun).is_some());
    }
}
