//! Sessions, streams and rate limits that several processes share, kept in Redis: [`mcpace_serve::store`] and
//! [`mcpace_serve::guard::Limiter`] over one connection a process.
//!
//! Design constraints: each step is one script, atomic and by Redis's own clock; every wait has a limit; every key has the
//! prefix and an expiry, and none holds a secret (`mcpace_serve::store`). One Redis or one with replicas behind one address;
//! deliberately absent: Redis Cluster, whose scripts must name their keys beforehand.
//!
//! ```no_run
//! use mcpace_redis::{Options, Redis};
//! use mcpace_serve::{Server, http};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let redis = Redis::open("redis://127.0.0.1:6379", Options::default())?;
//! let server = Server::builder("example", "1.0").build()?;
//! let options = http::Options { store: Some(redis.stores()), ..http::Options::default() };
//! let running = http::serve(server, options)?;
//! # Ok(())
//! # }
//! ```

mod limiter;
mod link;
mod process_inbox;
mod process_messages;
mod scripts;
mod sessions;
mod stream_log;

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mcpace_serve::store::{OnDown, Stores};
use redis::{Client, ConnectionAddr, IntoConnectionInfo as _};
use tokio::runtime;
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use limiter::RedisLimiter;
use link::{Outage, RedisLink};
use process_inbox::Letters;

/// How to use a Redis.
#[derive(Clone)]
pub struct Options {
    /// Prefix of all keys, `mcpace:` by default. Servers that share sessions need one prefix, which no other server
    /// uses: servers of one prefix find each other's sessions and receive each other's broadcasts.
    pub prefix: String,
    /// Behaviour while Redis is away; [`OnDown::Refuse`] by default.
    pub on_down: OnDown,
    /// How long one step may take, 1 s if not said; more, by a second a megabyte, where much is written. To connect takes several.
    pub limit: Duration,
    /// After how long without a word a process counts as gone; 10 s if not said.
    pub alive: Duration,
    /// Is told when Redis goes and when it is back, once each, on the connection's thread. Nothing if not said.
    pub tell: Arc<dyn Fn(&ConnectionEvent) + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "mcpace:".to_owned(),
            on_down: OnDown::Refuse,
            limit: Duration::from_secs(1),
            alive: Duration::from_secs(10),
            tell: Arc::new(|_| {}),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("prefix", &self.prefix).field("on_down", &self.on_down).finish_non_exhaustive()
    }
}

/// Change of the connection's state. Addresses are without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It is of no use any more, or was of none from the beginning.
    Gone {
        /// Which Redis.
        address: String,
        /// Whether it can be reached, and refuses to serve: its memory is full, say. Otherwise it can't be reached.
        answers: bool,
        /// Why.
        reason: String,
    },
    /// It can be reached again.
    Back {
        /// Which Redis.
        address: String,
    },
    /// It is there, without what it knew: it was emptied, or started again without a file. Processes put their sessions back; what
    /// waited for clients, and streams that had ended, are gone.
    Emptied {
        /// Which Redis.
        address: String,
    },
    /// It is there, and refuses what it is asked for.
    Refused {
        /// Which Redis.
        address: String,
        /// In its words.
        reason: String,
    },
}

/// Why there is no connection to begin with.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is none. It is not shown: it may have a password.
    #[error(
        "the store's URL can't be used: write it as redis://host:6379/0, rediss:// for TLS, unix:///path for a socket ({0})"
    )]
    Url(String),
    /// It does not answer, and nothing is to go on without it.
    #[error("Redis at {address} can't be reached: {reason}")]
    Unreachable {
        /// Which Redis.
        address: String,
        /// Why.
        reason: String,
    },
    /// It answers, and refuses to serve: its memory is full, say.
    #[error("Redis at {address} can't be used: {reason}")]
    Unusable {
        /// Which Redis.
        address: String,
        /// In its words.
        reason: String,
    },
    /// The system gives no thread.
    #[error("no thread for the connection to Redis: {0}")]
    Thread(#[from] std::io::Error),
}

/// A Redis, and the thread that talks to it; that ends with the last user.
#[derive(Clone)]
pub struct Redis {
    inner: Arc<RedisInner>,
}

/// State that the stores share.
pub(crate) struct RedisInner {
    pub(crate) link: Arc<RedisLink>,
    pub(crate) received: Mutex<mpsc::Receiver<Letters>>,
    /// How the first attempt to connect went.
    first: First,
    over: Option<DropGuard>,
}

type First = watch::Receiver<Option<Result<(), Outage>>>;

impl Redis {
    /// Connects. With [`OnDown::Memory`] a Redis that is away is waited for in the background; otherwise that is an error. Blocks
    /// until it is known, for four times [`Options::limit`] at most.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(url: &str, options: Options) -> Result<Self, OpenError> {
        RedisInner::open_inner(url, options, true).map(|inner| Self { inner })
    }

    /// For [`mcpace_serve::http::Options::store`] of one server.
    #[must_use]
    pub fn stores(&self) -> Stores {
        let parts = Arc::clone(&self.inner);
        Stores {
            sessions: parts.clone(),
            events: parts.clone(),
            broker: parts,
            on_down: self.inner.link.options.on_down,
        }
    }

    /// Limiter for [`mcpace_serve::Builder::limiter`]. A server that shares only its limits uses [`RedisLimiter::open`]
    /// instead.
    #[must_use]
    pub fn limiter(&self) -> RedisLimiter {
        RedisLimiter::new(&self.inner)
    }

    /// How many messages of other processes were dropped before this one read them.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inner.link.missed.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl RedisInner {
    /// See [`Redis::open`]. `hears`: whether anybody wants to know what other processes say.
    fn open_inner(url: &str, options: Options, hears: bool) -> Result<Arc<Self>, OpenError> {
        let info = url.into_connection_info().map_err(|error| OpenError::Url(error.to_string()))?;
        if matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
            return Err(OpenError::Url("#insecure is not supported".to_owned()));
        }
        let client = Client::open(info).map_err(|error| OpenError::Url(error.to_string()))?;
        let (on_down, limit) = (options.on_down, options.limit);
        let inner = Self::begin_inner(client, options, hears)?;
        let mut first = inner.first.clone();
        let begun = Instant::now();
        let outcome = loop {
            match first.borrow_and_update().clone() {
                Some(outcome) => break outcome,
                None if begun.elapsed() > limit * 4 => break Err(Outage::late()),
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        match outcome {
            Err(Outage { answers, reason }) if on_down == OnDown::Refuse => {
                let address = inner.link.address();
                Err(match answers {
                    true => OpenError::Unusable { address, reason },
                    false => OpenError::Unreachable { address, reason },
                })
            }
            _ => Ok(Arc::new(inner)),
        }
    }

    /// Sets the stores up without waiting for the connection.
    fn begin_inner(client: Client, options: Options, hears: bool) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let number = loop {
            // Others would have to draw the same of two thousand million.
            match rand::random::<u32>() >> 1 {
                0 => {}
                number => break number,
            }
        };
        let link = RedisLink::new(client, options, number, runtime.handle().clone());
        let (known, first) = watch::channel(None);
        let (sender, received) = mpsc::channel(link::RECEIVED);
        let over = CancellationToken::new();
        let keeping = Arc::clone(&link).keep_connected(known, hears.then_some(sender), over.clone());
        thread::Builder::new().name("mcpace-redis".to_owned()).spawn(move || runtime.block_on(keeping))?;
        Ok(Self { link, received: Mutex::new(received), first, over: Some(over.drop_guard()) })
    }

    /// Waits until it is known how the first attempt to connect went, for so long only.
    pub(crate) async fn first_attempt(&self) {
        if self.first.borrow().is_some() || !self.link.is_here() {
            return;
        }
        let mut first = self.first.clone();
        let limit = self.link.options.limit * 4;
        let waiting = async move {
            let _ = tokio::time::timeout(limit, first.wait_for(Option::is_some)).await;
        };
        // On the connection's own thread: who asks may have no clock.
        let _ = self.link.runtime.spawn(waiting).await;
    }
}

impl Drop for RedisInner {
    fn drop(&mut self) {
        // In a forked child there is no thread to end, and its parent's may have been in the middle of something.
        if !self.link.is_here() {
            std::mem::forget(self.over.take());
        }
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("address", &self.inner.link.address()).finish_non_exhaustive()
    }
}
