//! An issuer's keys by URL: fetched when first needed, anew from time to time and for keys that nobody knows yet, once for
//! all who wait. When that is due, `rotation` decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;

use crate::error::report_failure;
use crate::key_set::{Judgement, KeySet};
use crate::provider::Provider;
use crate::rotation::{Policy, Rotation, RotationStep};
use crate::ticket::{Ticket, Work};
use crate::token_parts::Jws;
use crate::{Clock, Failure, Outage, Report, TokenRefusal};

/// Keys of an issuer, fetched from its URL and cached.
pub(crate) struct KeyRing(Arc<RingShared>);

struct RingShared {
    provider: Provider,
    clock: Arc<dyn Clock>,
    report: Option<Report>,
    state: Mutex<RingState>,
}

struct RingState {
    rotation: Rotation,
    under_way: Option<Work<Result<(), Outage>>>,
}

impl KeyRing {
    /// `report` hears of each request that failed, also where tokens are taken all the same.
    pub(crate) fn new(provider: Provider, policy: Policy, clock: Arc<dyn Clock>, report: Option<Report>) -> Self {
        let state = Mutex::new(RingState { rotation: Rotation::new(policy), under_way: None });
        Self(Arc::new(RingShared { provider, clock, report, state }))
    }

    /// The generation of the keys, which changes with them, where they are not too old to be believed.
    pub(crate) fn trusted_generation(&self, now: Duration) -> Option<u64> {
        self.0.lock_state().rotation.trusted_generation(now)
    }

    /// Whether the issuer signed it, and by which generation of keys. Waits for them where they are missing or too old; once.
    pub(crate) async fn check_signature(&self, token: &Jws<'_>) -> Result<u64, Failure> {
        let mut outage = None;
        let mut may_fetch = true;
        loop {
            let (keys, generation) = {
                let state = self.0.lock_state();
                (state.rotation.current_keys(), state.rotation.generation())
            };
            // Signatures take their time: not while others wait for the lock.
            let judgement = keys.map_or(Judgement::Missing, |keys| keys.judge_token(token));
            let ticket = {
                let mut state = self.0.lock_state();
                if state.rotation.generation() != generation {
                    continue;
                }
                let joined = state.under_way.as_ref().and_then(Work::join_work);
                let now = self.0.clock.now().steady;
                match state.rotation.next_step(now, judgement != Judgement::Missing, may_fetch, joined.is_some()) {
                    RotationStep::Use => return judgement_verdict(judgement, generation),
                    RotationStep::UseAndRefresh => {
                        // Its failure is told by itself.
                        let _ = self.0.begin_fetch(&mut state, now);
                        return judgement_verdict(judgement, generation);
                    }
                    RotationStep::Unknown => return Err(TokenRefusal::UnknownKey.into()),
                    RotationStep::Unavailable => {
                        let what = self.0.provider.what();
                        return Err(outage.unwrap_or(Outage::Resting { what }).into());
                    }
                    RotationStep::Fetch => match joined {
                        Some(ticket) => ticket,
                        None => self.0.begin_fetch(&mut state, now)?,
                    },
                }
            };
            let what = self.0.provider.what();
            outage = ticket.wait_result().await.unwrap_or(Err(Outage::Thread { what })).err();
            may_fetch = false;
        }
    }
}

fn judgement_verdict(judgement: Judgement, generation: u64) -> Result<u64, Failure> {
    match judgement {
        Judgement::Good => Ok(generation),
        Judgement::Forged | Judgement::Missing => Err(TokenRefusal::Signature.into()),
    }
}

impl RingShared {
    fn lock_state(&self) -> MutexGuard<'_, RingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_fetch(
        self: &Arc<Self>,
        state: &mut RingState,
        now: Duration,
    ) -> Result<Ticket<Result<(), Outage>>, Outage> {
        state.rotation.note_request(now);
        let shared = Arc::clone(self);
        // Also where nobody waits: the keys are for the next.
        let work = |_: Work<_>| async move {
            let fetched = shared.fetch_keys().await;
            if let Err(outage) = &fetched {
                report_failure(shared.report.as_ref(), &outage.clone().into());
            }
            let mut state = shared.lock_state();
            let done = match fetched {
                Ok(keys) => {
                    state.rotation.accept_keys(keys, shared.clock.now().steady);
                    Ok(())
                }
                Err(outage) => {
                    state.rotation.note_failure();
                    Err(outage)
                }
            };
            state.under_way = None;
            Some(done)
        };
        let (ticket, work) = Ticket::begin_work(work).ok_or(Outage::Thread { what: self.provider.what() })?;
        state.under_way = Some(work);
        Ok(ticket)
    }

    async fn fetch_keys(&self) -> Result<KeySet, Outage> {
        let json = self.provider.ask_provider(Method::GET, &[], Bytes::new()).await?;
        KeySet::read_keys(&json).map_err(|reason| Outage::Unreadable { what: self.provider.what(), reason })
    }
}
