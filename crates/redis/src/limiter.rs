//! Rate limits that hold over all processes: each use is one script, by Redis's clock.
//!
//! The algorithms are those of [`mcpace_serve::guard::MemoryLimiter`], to the same figures. Keys are counted by their hashes: that
//! keeps them short, and out of sight, but who can read Redis can try names. A forked child counts over a connection of its own.

use std::sync::Arc;

use mcpace_serve::PerProcess;
use mcpace_serve::guard::{Algorithm, Exceeded, Limiter, LimiterDown, MemoryLimiter, RateLimit, Taking};
use mcpace_serve::store::{Broker as _, OnDown, SessionName};
use redis::Cmd;
use std::time::Duration;

use crate::scripts::script_call;
use crate::{OpenError, Options, RedisInner};

/// Rate limiter over all processes that share a Redis. Cheap to clone.
#[derive(Clone)]
pub struct RedisLimiter {
    /// `None` where a child gets no thread for it.
    own: Arc<PerProcess<Option<Arc<RedisInner>>>>,
    /// Counts while Redis is away, where that is wanted.
    memory: Option<Arc<MemoryLimiter>>,
}

/// Counts of one rule at a time that are kept apart; past it keys share 256 counts.
const KEYS: usize = 100_000;

impl RedisLimiter {
    /// Connects for limits alone, as [`crate::Redis::open`] does. Messages between processes are not read.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(url: &str, options: Options) -> Result<Self, OpenError> {
        RedisInner::open_inner(url, options, false).map(|inner| Self::new(&inner))
    }

    pub(crate) fn new(inner: &Arc<RedisInner>) -> Self {
        let memory = (inner.link.options.on_down == OnDown::Memory).then(Arc::default);
        let (client, options) = (inner.link.client.clone(), inner.link.options.clone());
        let anew = move || RedisInner::begin_inner(client.clone(), options.clone(), false).ok().map(Arc::new);
        Self { own: Arc::new(PerProcess::with(Some(Arc::clone(inner)), anew)), memory }
    }

    fn take_command(inner: &RedisInner, rule: &RateLimit, key: &str) -> Cmd {
        let scripts = &inner.link.scripts;
        let (script, burst) = match rule.algorithm {
            Algorithm::FixedWindow => (&scripts.limit_fixed, None),
            Algorithm::SlidingWindow => (&scripts.limit_sliding, None),
            Algorithm::TokenBucket { burst } => (&scripts.limit_bucket, Some(burst)),
        };
        let per = u64::try_from(rule.per.as_micros()).unwrap_or(u64::MAX).clamp(1, 1 << 50);
        let rule_name = format!("{} {:?} {} {per} ", rule.name, rule.algorithm, rule.calls);
        let mut take = script_call(script, inner.prefix());
        take.arg(SessionName::of(&format!("{rule_name}{key}")).to_string()).arg(rule.calls).arg(per);
        take.arg(burst.map(|burst| burst.to_string()).unwrap_or_default());
        take.arg(SessionName::of(&rule_name).to_string()).arg(KEYS);
        take
    }
}

impl Limiter for RedisLimiter {
    fn take(&self, rule: &RateLimit, key: &str) -> Taking {
        let own = self.own.get();
        let is_up = own.as_ref().as_ref().is_some_and(|inner| inner.is_up());
        if let Some(memory) = self.memory.as_ref().filter(|_| !is_up) {
            return memory.take(rule, key);
        }
        let Some(inner) = own.as_ref().clone() else {
            return Taking::Later(Box::pin(async { Err(LimiterDown) }));
        };
        let take = Self::take_command(&inner, rule, key);
        let spare = self.memory.clone().map(|memory| (memory, rule.clone(), key.to_owned()));
        Taking::Later(Box::pin(async move {
            inner.first_attempt().await;
            match (inner.run_query::<u64>(take).await, spare) {
                (Ok(0), _) => Ok(Ok(())),
                (Ok(micros), _) => Ok(Err(Exceeded { retry_after: Duration::from_micros(micros) })),
                (Err(_), Some((memory, rule, key))) => match memory.take(&rule, &key) {
                    Taking::Now(taken) => Ok(taken),
                    Taking::Later(later) => later.await,
                },
                (Err(_), None) => Err(LimiterDown),
            }
        }))
    }
}

impl std::fmt::Debug for RedisLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisLimiter").finish_non_exhaustive()
    }
}
