//! An issuer's keys by URL: fetched when first needed, anew from time to time and for keys that nobody knows yet, once for
//! all who wait. When that is due, `rotation` decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Method;

use crate::error::told;
use crate::jws::Jws;
use crate::key_set::{Judgement, KeySet};
use crate::provider::Provider;
use crate::rotation::{Policy, Rotation, Step};
use crate::ticket::Ticket;
use crate::{Clock, Failure, Outage, Refusal, Report};

/// See the module.
pub(crate) struct KeyRing(Arc<Shared>);

struct Shared {
    provider: Provider,
    clock: Arc<dyn Clock>,
    report: Option<Report>,
    state: Mutex<State>,
}

struct State {
    rotation: Rotation,
    under_way: Option<Ticket<Result<(), Outage>>>,
}

impl KeyRing {
    /// `report` hears of each request that failed, also where tokens are taken all the same.
    pub(crate) fn new(provider: Provider, policy: Policy, clock: Arc<dyn Clock>, report: Option<Report>) -> Self {
        let state = Mutex::new(State { rotation: Rotation::new(policy), under_way: None });
        Self(Arc::new(Shared { provider, clock, report, state }))
    }

    /// Changes when the keys do.
    pub(crate) fn generation(&self) -> u64 {
        self.0.lock().rotation.generation()
    }

    /// Whether the issuer signed it. Waits for its keys where they are missing or too old; once.
    pub(crate) async fn check(&self, token: &Jws<'_>) -> Result<(), Failure> {
        let mut outage = None;
        let mut may_fetch = true;
        loop {
            let (keys, generation) = {
                let state = self.0.lock();
                (state.rotation.keys(), state.rotation.generation())
            };
            // Signatures take their time: not while others wait for the lock.
            let judgement = keys.map_or(Judgement::Missing, |keys| keys.judge(token));
            let ticket = {
                let mut state = self.0.lock();
                if state.rotation.generation() != generation {
                    continue;
                }
                let under_way = state.under_way.take_if(|ticket| ticket.is_broken());
                drop(under_way);
                let now = self.0.clock.now().steady;
                let is_fetching = state.under_way.is_some();
                match state.rotation.look(now, judgement != Judgement::Missing, may_fetch, is_fetching) {
                    Step::Use => return verdict(judgement),
                    Step::UseAndRefresh => {
                        // Its failure is told by itself.
                        let _ = self.0.begin(&mut state, now);
                        return verdict(judgement);
                    }
                    Step::Unknown => return Err(Refusal::UnknownKey.into()),
                    Step::Unavailable => {
                        let what = self.0.provider.what();
                        return Err(outage.unwrap_or(Outage::Resting { what }).into());
                    }
                    Step::Fetch => match &state.under_way {
                        Some(ticket) => ticket.clone(),
                        None => self.0.begin(&mut state, now)?,
                    },
                }
            };
            let what = self.0.provider.what();
            outage = ticket.wait().await.unwrap_or(Err(Outage::Thread { what })).err();
            may_fetch = false;
        }
    }
}

fn verdict(judgement: Judgement) -> Result<(), Failure> {
    match judgement {
        Judgement::Good => Ok(()),
        Judgement::Forged | Judgement::Missing => Err(Refusal::Signature.into()),
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(
        self: &Arc<Self>,
        state: &mut State,
        now: std::time::Duration,
    ) -> Result<Ticket<Result<(), Outage>>, Outage> {
        state.rotation.begun(now);
        let shared = Arc::clone(self);
        let work = async move {
            let fetched = shared.fetch().await;
            if let Err(outage) = &fetched {
                told(shared.report.as_ref(), outage.clone().into());
            }
            let mut state = shared.lock();
            let done = match fetched {
                Ok(keys) => {
                    state.rotation.arrived(keys, shared.clock.now().steady);
                    Ok(())
                }
                Err(outage) => {
                    state.rotation.failed();
                    Err(outage)
                }
            };
            state.under_way = None;
            done
        };
        let ticket = Ticket::begin(work).ok_or(Outage::Thread { what: self.provider.what() })?;
        state.under_way = Some(ticket.clone());
        Ok(ticket)
    }

    async fn fetch(&self) -> Result<KeySet, Outage> {
        let json = self.provider.ask(Method::GET, &[], Bytes::new()).await?;
        KeySet::read(&json).map_err(|reason| Outage::Unreadable { what: self.provider.what(), reason })
    }
}
