//! Tokens that only their issuer can read: it is asked (RFC 7662), once for a token and a while, whoever else waits for the
//! same.
//!
//! Kept: what is good, for its time and never past `exp`; what isn't, briefly, apart from the good ones so that a flood of
//! rubbish drives none of them out. Never kept: that nobody could tell.
//!
//! Anybody can make up a token, and each is a question. So those that were good lately are known beyond the time for which that
//! is believed: their questions stand in a line of their own, which goes first, and a token that nobody waits for any more
//! leaves the line. However many strangers there are, who was let in before them gets through.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use mcpace_serve::http::{TokenError, TokenVerifier};
use mcpace_serve::{PerProcess, Principal};

use crate::access::{Grant, check_shape, server_answer};
use crate::answer::{ENDPOINT, judge_digest};
use crate::cache::{Cache, Until};
use crate::claims::Demands;
use crate::credentials::{ClientAuth, ClientCredentials};
use crate::digest::Digest;
use crate::error::report_failure;
use crate::gate::{Gate, GateLine, GatePlace};
use crate::provider::{Provider, Reach, Way};
use crate::ticket::{Ticket, Work};
use crate::{AuthError, Clock, Failure, Moment, Outage, Report, Secret, SystemClock, TokenRefusal};

/// How [`IntrospectionVerifier`] asks.
pub struct IntrospectionOptions {
    /// The issuer's introspection endpoint.
    pub url: String,
    /// This server's own name there.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// How it is shown.
    pub client_auth: ClientAuth,
    /// Further demands on active tokens. Default: none, because the issuer has checked the expiry by its own clock.
    pub demands: Demands,
    /// How long a good answer is kept; a token that is revoked meanwhile is taken for as long. Default: a minute.
    pub kept: Duration,
    /// For how much longer it is taken while the issuer can't be asked. Default: not at all.
    pub grace: Duration,
    /// How long a bad one is. Default: 5 s.
    pub refusals_kept: Duration,
    /// How many of each are kept. Default: 10,000.
    pub most_kept: NonZeroUsize,
    /// How many requests go to the issuer at a time. Default: 64.
    pub most_requests: usize,
    /// How the issuer is reached.
    pub reach: Reach,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Hears of refusals and outages.
    pub report: Option<Report>,
}

impl IntrospectionOptions {
    /// With defaults for all else.
    #[must_use]
    pub fn new(url: impl Into<String>, client_id: impl Into<String>, client_secret: Secret) -> Self {
        Self {
            url: url.into(),
            client_id: client_id.into(),
            client_secret,
            client_auth: ClientAuth::default(),
            demands: Demands::default(),
            kept: Duration::from_secs(60),
            grace: Duration::ZERO,
            refusals_kept: Duration::from_secs(5),
            most_kept: MOST_KEPT,
            most_requests: 64,
            reach: Reach::default(),
            clock: Arc::new(SystemClock::default()),
            report: None,
        }
    }
}

/// Verifier that asks the issuer about each token (RFC 7662) and caches the verdicts.
pub struct IntrospectionVerifier {
    shared: PerProcess<Arc<IntrospectionShared>>,
    report: Option<Report>,
    checks_audience: bool,
}

struct IntrospectionShared {
    provider: Provider,
    set: Arc<Set>,
    gate: Gate,
    state: Mutex<IntrospectionState>,
}

/// Settings, which never change.
struct Set {
    client: ClientCredentials,
    demands: Demands,
    kept: Duration,
    grace: Duration,
    refusals_kept: Duration,
    time: Duration,
    clock: Arc<dyn Clock>,
    report: Option<Report>,
}

struct IntrospectionState {
    good: Cache<AcceptedToken>,
    bad: Cache<TokenRefusal>,
    under_way: HashMap<Digest, (Work<CachedVerdict>, GateLine)>,
    /// How many of these stand in which line.
    waiting: [usize; 2],
}

/// A token that was good.
struct AcceptedToken {
    grant: Arc<Grant>,
    /// How long that is believed without asking again.
    believed: Option<Until>,
    /// And how long where the issuer can't be asked.
    graced: Option<Until>,
}

type CachedVerdict = Result<Arc<Grant>, Failure>;

const MOST_KEPT: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
const MOST_KEPT_BYTES: usize = 32 << 20;
/// How many tokens wait for their verdict at most, those being asked for included; in each line.
const MOST_WAITING: usize = 1024;
/// How long a token that was good is told from strangers' ones, where it doesn't end before.
const KNOWN: Duration = Duration::from_secs(24 * 3600);

impl IntrospectionVerifier {
    /// # Errors
    /// [`AuthError`]: a URL or credentials that can't be used.
    pub fn new(options: IntrospectionOptions) -> Result<Self, AuthError> {
        let way = Way::new(ENDPOINT, &options.url, &options.reach)?;
        let set = Arc::new(Set {
            client: ClientCredentials::new(&options.client_id, &options.client_secret, options.client_auth)?,
            demands: options.demands,
            kept: options.kept,
            grace: options.grace,
            refusals_kept: options.refusals_kept,
            time: options.reach.time,
            clock: options.clock,
            report: options.report.clone(),
        });
        let (most_kept, most_requests) = (options.most_kept, options.most_requests.clamp(1, MOST_WAITING));
        let checks_audience = !set.demands.audiences.is_empty();
        let shared = PerProcess::new(move || {
            let state = IntrospectionState {
                good: Cache::new(most_kept, MOST_KEPT_BYTES),
                bad: Cache::new(most_kept, MOST_KEPT_BYTES),
                under_way: HashMap::new(),
                waiting: [0; 2],
            };
            let (provider, gate) = (way.open_provider(), Gate::new(most_requests));
            Arc::new(IntrospectionShared { provider, set: Arc::clone(&set), gate, state: Mutex::new(state) })
        });
        Ok(Self { shared, report: options.report, checks_audience })
    }

    async fn check_token(&self, token: &str) -> CachedVerdict {
        check_shape(token)?;
        let digest = Digest::of(token);
        let (asked, in_grace) = match self.shared.get().cached_or_ticket(&digest, token) {
            Look::Verdict(verdict) => return verdict,
            Look::Asked(asked, in_grace) => (asked, in_grace),
        };
        let verdict = match asked {
            Ok(ticket) => ticket.wait_result().await.unwrap_or(Err(Outage::Thread { what: ENDPOINT }.into())),
            Err(outage) => Err(outage.into()),
        };
        match (verdict, in_grace) {
            (Err(Failure::Unavailable(_)), Some(grant)) => Ok(grant),
            (verdict, _) => verdict,
        }
    }
}

impl TokenVerifier for IntrospectionVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(server_answer(self.check_token(token), self.report.as_ref(), token))
    }

    fn takes_any_audience(&self) -> bool {
        !self.checks_audience
    }
}

/// Result of looking a token up in the shared state.
enum Look {
    Verdict(CachedVerdict),
    /// The issuer has to say; and what to take it for where it can't.
    Asked(Result<Ticket<CachedVerdict>, Outage>, Option<Arc<Grant>>),
}

impl IntrospectionShared {
    /// Returns the cached verdict of a token, or a place among those that wait for it. Both are looked up under one
    /// lock, so no request is sent for a verdict that has just arrived.
    fn cached_or_ticket(self: &Arc<Self>, digest: &Digest, token: &str) -> Look {
        let now = self.set.clock.now();
        let mut state = self.lock_state();
        let known = state.good.find_fresh(digest, now);
        if let Some(known) = known
            && still_holds(known.believed, now)
        {
            return Look::Verdict(Ok(Arc::clone(&known.grant)));
        }
        let line = if known.is_some() { GateLine::Known } else { GateLine::Strangers };
        let in_grace = known.filter(|known| still_holds(known.graced, now)).map(|known| Arc::clone(&known.grant));
        if let Some(refusal) = state.bad.find_fresh(digest, now) {
            return Look::Verdict(Err(refusal.clone().into()));
        }
        Look::Asked(self.join_check(&mut state, digest, token, line), in_grace)
    }

    fn join_check(
        self: &Arc<Self>,
        state: &mut IntrospectionState,
        digest: &Digest,
        token: &str,
        line: GateLine,
    ) -> Result<Ticket<CachedVerdict>, Outage> {
        if let Some(ticket) = state.under_way.get(digest).and_then(|(work, _)| work.join_work()) {
            return Ok(ticket);
        }
        // A request that broke off no longer counts.
        state.finish_check(digest);
        if state.waiting[line as usize] >= MOST_WAITING {
            return Err(Outage::Busy { what: ENDPOINT, limit: MOST_WAITING });
        }
        let (shared, digest, token) = (Arc::clone(self), *digest, Secret::new(token));
        let begun = Ticket::begin_work(|work| async move { shared.settle_verdict(digest, &token, line, &work).await });
        let (ticket, work) = begun.ok_or(Outage::Thread { what: ENDPOINT })?;
        state.under_way.insert(digest, (work, line));
        state.waiting[line as usize] += 1;
        Ok(ticket)
    }

    /// Asks, and keeps what was told. `None` where nobody waits for it any more.
    async fn settle_verdict(
        &self,
        digest: Digest,
        token: &Secret,
        line: GateLine,
        work: &Work<CachedVerdict>,
    ) -> Option<CachedVerdict> {
        let Set { demands, clock, time, .. } = &*self.set;
        let asking = async {
            let _place = self.wait_place(&digest, line, work).await?;
            Some(self.ask_provider(token).await)
        };
        let asked = match tokio::time::timeout(*time, asking).await {
            Ok(asked) => asked?,
            Err(_) => Err(Outage::TimeLimit { what: ENDPOINT, limit: *time }),
        };
        let judged = |json: Bytes| judge_digest(&json, &digest, demands, clock.now().wall).map(Arc::new);
        let verdict = asked.map_err(Failure::from).and_then(judged);
        if let Err(failure) = &verdict
            && failure.is_told()
        {
            report_failure(self.set.report.as_ref(), failure);
        }
        let mut state = self.lock_state();
        state.keep_verdict(digest, &verdict, &self.set);
        state.finish_check(&digest);
        Some(verdict)
    }

    /// A place among the questions under way. `None` where all have gone away who waited for it.
    async fn wait_place(&self, digest: &Digest, line: GateLine, work: &Work<CachedVerdict>) -> Option<GatePlace> {
        let mut place = pin!(self.gate.wait_place(line));
        loop {
            tokio::select! {
                // Also where there is a place: the issuer's time is others'.
                biased;
                () = work.waiters_gone() => {
                    let mut state = self.lock_state();
                    // Nobody comes back to it without the lock.
                    if work.is_left() {
                        state.finish_check(digest);
                        return None;
                    }
                }
                place = &mut place => return Some(place),
            }
        }
    }

    async fn ask_provider(&self, token: &Secret) -> Result<Bytes, Outage> {
        let client = &self.set.client;
        self.provider.ask_provider(Method::POST, &client.headers, client.introspection_form(token)).await
    }

    fn lock_state(&self) -> MutexGuard<'_, IntrospectionState> {
        // Nothing under the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IntrospectionState {
    fn keep_verdict(&mut self, digest: Digest, verdict: &CachedVerdict, set: &Set) {
        let now = set.clock.now();
        match verdict {
            Ok(grant) => {
                let within = |time| Until::capped_time(time, grant.good_until, now);
                let graced = within(set.kept.saturating_add(set.grace)).filter(|_| !set.grace.is_zero());
                let known = AcceptedToken { grant: Arc::clone(grant), believed: within(set.kept), graced };
                if let Some(until) = within(KNOWN.max(set.kept.saturating_add(set.grace))) {
                    self.good.keep_value(digest, known, grant.size_bytes(), until);
                }
            }
            Err(Failure::Refused(refusal)) => {
                self.good.forget(&digest);
                if let Some(until) = Until::capped_time(set.refusals_kept, None, now) {
                    self.bad.keep_value(digest, refusal.clone(), size_of::<TokenRefusal>(), until);
                }
            }
            Err(Failure::Unavailable(_)) => {}
        }
    }

    /// Nobody is asked about it any more.
    fn finish_check(&mut self, digest: &Digest) {
        if let Entry::Occupied(entry) = self.under_way.entry(*digest) {
            let (_, line) = entry.remove();
            self.waiting[line as usize] -= 1;
        }
    }
}

fn still_holds(until: Option<Until>, now: Moment) -> bool {
    until.is_some_and(|until| !until.is_past(now))
}

impl std::fmt::Debug for IntrospectionVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntrospectionVerifier").finish_non_exhaustive()
    }
}
