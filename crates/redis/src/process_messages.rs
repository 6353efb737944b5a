//! Messages between processes, and the broker's calls that every part uses.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mcpace_serve::store::{Broker, Down, Later, Post, Received, To};
use redis::{Cmd, FromRedisValue};

use crate::RedisInner;
use crate::link::LONGEST_PAUSE;
use crate::scripts::script_call;

/// Length of the longest message, in bytes: a quarter of what a box holds (`lua/common.lua`).
const LONGEST: usize = 4 << 20;

impl Broker for RedisInner {
    fn number(&self) -> u32 {
        self.link.number
    }

    fn is_up(&self) -> bool {
        self.link.is_up()
    }

    fn post<'a>(&'a self, to: To, post: &'a Post) -> Later<'a, bool> {
        Box::pin(async move {
            let body = serde_json::to_string(post).map_err(|_| Down)?;
            if body.len() > LONGEST {
                tracing::warn!(bytes = body.len(), "a message to another process is too long: it is not passed on");
                return Ok(false);
            }
            let to = match to {
                To::Process(number) => number.to_string(),
                To::Others => String::new(),
            };
            let mut posting = script_call(&self.link.scripts.post, self.prefix());
            posting.arg(to).arg(self.link.number).arg(body);
            self.run_query(posting).await.map(|taken: i64| taken == 1)
        })
    }

    fn settling(&self) -> Duration {
        // Until they try again, and how long that may take.
        LONGEST_PAUSE * 2 + self.link.options.limit * 2
    }

    fn receive(&self) -> Pin<Box<dyn Future<Output = Received> + Send + '_>> {
        Box::pin(async move {
            match self.received.lock().await.recv().await {
                Some((received, bytes)) => {
                    self.link.held.fetch_sub(bytes, Relaxed);
                    received
                }
                // The connection's thread has ended: nothing will come any more.
                None => pending().await,
            }
        })
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.link.runtime.spawn(task);
    }
}

impl RedisInner {
    pub(crate) fn prefix(&self) -> &str {
        &self.link.options.prefix
    }

    pub(crate) async fn run_query<T: FromRedisValue + Send + 'static>(&self, command: Cmd) -> Result<T, Down> {
        self.link.run_limited(|mut connection| async move { command.query_async(&mut connection).await }).await
    }
}
