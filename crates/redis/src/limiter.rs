//! Rate limits that hold over all processes: each use is one script, by Redis's clock.
//!
//! The algorithms are those of [`mcpace_serve::guard::MemoryLimiter`], to the same figures.

use std::sync::Arc;

use mcpace_serve::guard::{Algorithm, Exceeded, Limiter, LimiterDown, MemoryLimiter, RateLimit, Taking};
use mcpace_serve::store::{Broker as _, Name, OnDown};
use redis::Cmd;
use std::time::Duration;

use crate::Inner;
use crate::scripts::call;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct RedisLimiter {
    inner: Arc<Inner>,
    /// Counts while Redis is away, where that is wanted.
    memory: Option<Arc<MemoryLimiter>>,
}

impl RedisLimiter {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        let memory = (inner.link.options.on_down == OnDown::Memory).then(Arc::default);
        Self { inner, memory }
    }

    fn taking(&self, rule: &RateLimit, key: &str) -> Cmd {
        let scripts = &self.inner.link.scripts;
        let (script, burst) = match rule.algorithm {
            Algorithm::FixedWindow => (&scripts.limit_fixed, None),
            Algorithm::SlidingWindow => (&scripts.limit_sliding, None),
            Algorithm::TokenBucket { burst } => (&scripts.limit_bucket, Some(burst)),
        };
        let per = u64::try_from(rule.per.as_micros()).unwrap_or(u64::MAX).clamp(1, 1 << 50);
        // Subjects and keys are nobody's to read.
        let name = format!("{} {:?} {} {per} {key}", rule.name, rule.algorithm, rule.calls);
        let mut take = call(script, self.inner.prefix());
        take.arg(Name::of(&name).to_string()).arg(rule.calls).arg(per).arg(burst);
        take
    }
}

impl Limiter for RedisLimiter {
    fn take(&self, rule: &RateLimit, key: &str) -> Taking {
        if let Some(memory) = self.memory.as_ref().filter(|_| !self.inner.is_up()) {
            return memory.take(rule, key);
        }
        let (take, inner) = (self.taking(rule, key), Arc::clone(&self.inner));
        let spare = self.memory.clone().map(|memory| (memory, rule.clone(), key.to_owned()));
        Taking::Later(Box::pin(async move {
            match (inner.query::<u64>(take).await, spare) {
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
        f.debug_struct("RedisLimiter").field("address", &self.inner.link.address()).finish_non_exhaustive()
    }
}
