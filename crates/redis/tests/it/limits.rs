//! Rate limits over several processes: exact, by Redis's clock.

use std::sync::Arc;
use std::time::Duration;

use mcpace_redis::{ConnectionEvent, Redis, RedisLimiter};
use mcpace_serve::guard::{Algorithm, Exceeded, Limiter as _, LimiterDown, RateLimit, Taking};
use mcpace_serve::store::OnDown;

use crate::peer::limited;
use crate::server::{RedisServer, options};

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::TokenBucket { burst: 20 }];

async fn take(limiter: &RedisLimiter, rule: &RateLimit, key: &str) -> Result<Result<(), Exceeded>, LimiterDown> {
    match limiter.take(rule, key) {
        Taking::Now(taken) => Ok(taken),
        Taking::Later(later) => later.await,
    }
}

fn limiter(redis: &RedisServer, on_down: OnDown) -> RedisLimiter {
    Redis::open(&redis.url(), options(on_down).0).unwrap().limiter()
}

#[tokio::test]
async fn takes_of_many_at_once_are_exact() {
    let redis = RedisServer::start();
    let limiters = [limiter(&redis, OnDown::Refuse), limiter(&redis, OnDown::Refuse)];
    for algorithm in ALGORITHMS {
        // The period is so long that no use is returned within the test.
        let rule = Arc::new(RateLimit::new("many", 20, Duration::from_secs(36_000)).algorithm(algorithm));
        let tasks: Vec<_> = (0..60)
            .map(|number| {
                let (limiter, rule) = (limiters[number % 2].clone(), Arc::clone(&rule));
                tokio::spawn(async move { take(&limiter, &rule, "grace").await.unwrap().is_ok() })
            })
            .collect();
        let mut allowed = 0;
        for task in tasks {
            allowed += usize::from(limited("a take", task).await.unwrap().unwrap());
        }
        assert_eq!(allowed, 20, "{algorithm:?}");
        // Somebody else's, and another rule's, are counted apart.
        assert!(take(&limiters[0], &rule, "bob").await.unwrap().is_ok());
        let other = RateLimit { name: "other".into(), ..(*rule).clone() };
        assert!(take(&limiters[0], &other, "grace").await.unwrap().is_ok());
    }
    for key in redis.ask::<Vec<String>>(&["KEYS", "test:r:*"]) {
        assert!(redis.ask::<i64>(&["PTTL", &key]) > 0 && !key.contains("grace"), "{key}");
    }
}

#[tokio::test]
async fn there_is_room_again_when_it_was_said_and_not_before() {
    let redis = RedisServer::start();
    let limiter = limiter(&redis, OnDown::Refuse);
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::TokenBucket { burst: 2 }] {
        let rule = RateLimit::new("room", 2, Duration::from_secs(3600)).algorithm(algorithm);
        for _ in 0..2 {
            assert_eq!(take(&limiter, &rule, "grace").await, Ok(Ok(())), "{algorithm:?}");
        }
        let Ok(Err(Exceeded { retry_after })) = take(&limiter, &rule, "grace").await else { panic!("{algorithm:?}") };
        let most = match algorithm {
            Algorithm::SlidingWindow => rule.per * 17 / 16,
            Algorithm::FixedWindow => rule.per,
            Algorithm::TokenBucket { .. } => rule.per / 2,
        };
        assert!(retry_after <= most && retry_after > most / 2, "{algorithm:?}: {retry_after:?}");
        // Short ones, awaited as they say: there is room then.
        let rule = RateLimit::new("short", 2, Duration::from_millis(160)).algorithm(algorithm);
        let mut taken = 0;
        limited("room", async {
            while taken < 6 {
                match take(&limiter, &rule, "grace").await.unwrap() {
                    Ok(()) => taken += 1,
                    Err(Exceeded { retry_after }) => tokio::time::sleep(retry_after).await,
                }
            }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn without_redis_nobody_counts_or_each_process_does() {
    let mut redis = RedisServer::start();
    let (refusing, mut events) = options(OnDown::Refuse);
    let refusing = Redis::open(&redis.url(), refusing).unwrap().limiter();
    let alone = limiter(&redis, OnDown::Memory);
    redis.kill();
    let gone = events.wait_for(|events| matches!(events.as_slice(), [ConnectionEvent::Gone { .. }]));
    limited("word of the end", gone).await.unwrap().unwrap();
    let rule = RateLimit::new("alone", 2, Duration::from_secs(3600));
    assert_eq!(take(&refusing, &rule, "grace").await, Err(LimiterDown));
    for _ in 0..2 {
        assert_eq!(take(&alone, &rule, "grace").await, Ok(Ok(())));
    }
    assert!(matches!(take(&alone, &rule, "grace").await, Ok(Err(Exceeded { .. }))));
}
