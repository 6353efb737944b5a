//! The connection: made, watched, and made again, on a thread of its own.
//!
//! Constraints: nobody waits for Redis longer than [`crate::Options::limit`]; while it is away callers learn so at once. That it
//! went is said once, and that it is back once. A second connection only waits for what other processes tell this one: that
//! it stands is what "up" means.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpace_serve::store::{Down, OnDown, Received};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::mailbox::Mailbox;
use crate::scripts::Scripts;
use crate::{Event, Options};

/// See the module.
pub(crate) struct Link {
    client: Client,
    pub(crate) options: Options,
    pub(crate) scripts: Scripts,
    /// This process among those that share: random, and held by a key for as long as it lives.
    pub(crate) number: u32,
    pub(crate) runtime: Handle,
    connection: Mutex<Option<MultiplexedConnection>>,
    up: AtomicBool,
    broken: Notify,
    /// Counts connections: what fails late on an old one says nothing of the one there is now.
    epoch: AtomicU64,
    /// Messages to this process that were dropped before it read them.
    pub(crate) missed: AtomicU64,
    /// What was last said of answers that are errors, so that it is said once.
    complained: Mutex<Option<String>>,
}

/// Before Redis is tried again, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Batches of messages that nobody took yet.
pub(crate) const RECEIVED: usize = 1_024;

impl Link {
    pub(crate) fn new(client: Client, options: Options, number: u32, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            client,
            options,
            scripts: Scripts::new(),
            number,
            runtime,
            connection: Mutex::default(),
            up: AtomicBool::new(false),
            broken: Notify::new(),
            epoch: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            complained: Mutex::default(),
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Relaxed)
    }

    /// Where Redis is, without what the URL has of secrets.
    pub(crate) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Has Redis do something, within the limit. Can be awaited on any runtime.
    pub(crate) async fn run<T, F>(self: &Arc<Self>, act: impl FnOnce(MultiplexedConnection) -> F) -> Result<T, Down>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
        T: Send + 'static,
    {
        let epoch = self.epoch.load(Relaxed);
        let connection = lock(&self.connection).clone().ok_or(Down)?;
        let task = self.runtime.spawn(tokio::time::timeout(self.options.limit, act(connection)));
        match task.await {
            Ok(Ok(Ok(value))) => return Ok(value),
            Ok(Ok(Err(error))) => {
                self.failed(&error, epoch);
            }
            // Late, or the runtime is ending.
            Ok(Err(_)) | Err(_) => self.is_broken(epoch),
        }
        Err(Down)
    }

    /// Whether an error is of the connection, or of a Redis that can't serve at the moment; then it is made anew. Any other is
    /// an answer, and is said once.
    pub(crate) fn failed(&self, error: &RedisError, epoch: u64) -> bool {
        let is_answer = match error.kind() {
            ErrorKind::Server(kind) => !matches!(
                kind,
                ServerErrorKind::NoScript
                    | ServerErrorKind::BusyLoading
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::TryAgain
                    | ServerErrorKind::ReadOnly
            ),
            kind => matches!(kind, ErrorKind::Parse | ErrorKind::UnexpectedReturnType | ErrorKind::Extension),
        } && error.code() != Some("OOM");
        if !is_answer {
            self.is_broken(epoch);
            return true;
        }
        let text = error.to_string();
        let mut complained = lock(&self.complained);
        if complained.as_ref() != Some(&text) {
            tracing::error!(error = text, "Redis answers with an error");
            (self.options.tell)(&Event::Refused { address: self.address(), reason: text.clone() });
            *complained = Some(text);
        }
        false
    }

    /// Which connection there is.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    fn is_broken(&self, epoch: u64) {
        if self.epoch() == epoch {
            self.broken.notify_one();
        }
    }

    /// Keeps the connection until `over`. `first` learns how the first attempt went.
    pub(crate) async fn keep(
        self: Arc<Self>,
        first: watch::Sender<Option<Result<(), String>>>,
        received: mpsc::Sender<Received>,
        over: CancellationToken,
    ) {
        let mut mailbox = Mailbox::new(Arc::clone(&self), received);
        let mut is_said = false;
        let mut pause = PAUSE;
        let keeping = async {
            loop {
                let reason = match self.connect(&mut mailbox).await {
                    Ok(waiting) => {
                        // Before it is said: who hears it may ask.
                        self.up.store(true, Relaxed);
                        if std::mem::take(&mut is_said) {
                            tracing::warn!(address = self.address(), "Redis is back");
                            (self.options.tell)(&Event::Back { address: self.address() });
                        }
                        pause = PAUSE;
                        *lock(&self.complained) = None;
                        first.send_replace(Some(Ok(())));
                        let reason = tokio::select! {
                            error = mailbox.read(waiting) => error.to_string(),
                            error = self.stay() => error.to_string(),
                            () = self.broken.notified() => "it does not answer in time, or can't serve".to_owned(),
                        };
                        self.up.store(false, Relaxed);
                        *lock(&self.connection) = None;
                        reason
                    }
                    Err(reason) => {
                        first.send_if_modified(|first| {
                            first.is_none().then(|| *first = Some(Err(reason.clone()))).is_some()
                        });
                        reason
                    }
                };
                // That there was none to begin with is said by whoever opened it, where nothing goes on without.
                let is_told = matches!(*first.borrow(), Some(Err(_))) && self.options.on_down == OnDown::Refuse;
                if !std::mem::replace(&mut is_said, true) && !is_told {
                    tracing::warn!(address = self.address(), reason, "Redis can't be reached");
                    (self.options.tell)(&Event::Gone { address: self.address(), reason });
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        tokio::select! {
            () = keeping => {}
            () = over.cancelled() => {}
        }
        self.leave().await;
    }

    /// Connects twice, loads the scripts and says that this process lives; the connection that waits.
    async fn connect(&self, mailbox: &mut Mailbox) -> Result<MultiplexedConnection, String> {
        let connecting = async {
            let limit = Some(self.options.limit);
            let config = AsyncConnectionConfig::new().set_connection_timeout(limit).set_response_timeout(limit);
            let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
            for script in self.scripts.all() {
                script.load_async(&mut connection).await?;
            }
            self.live(&mut connection).await?;
            mailbox.begin(&mut connection).await?;
            // Its answers come when there are any.
            let config = AsyncConnectionConfig::new().set_connection_timeout(limit).set_response_timeout(None);
            let waiting = self.client.get_multiplexed_async_connection_with_config(&config).await?;
            RedisResult::Ok((connection, waiting))
        };
        match tokio::time::timeout(self.options.limit * 2, connecting).await {
            Ok(Ok((connection, waiting))) => {
                // A permit of the connection before.
                let _ = tokio::time::timeout(Duration::ZERO, self.broken.notified()).await;
                self.epoch.fetch_add(1, Relaxed);
                *lock(&self.connection) = Some(connection);
                Ok(waiting)
            }
            // One sentence, whatever it is that answers there.
            Ok(Err(error)) => Err(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
            Err(_) => Err("it does not answer in time".to_owned()),
        }
    }

    /// Says again and again that this process lives. Ends when it can't.
    async fn stay(&self) -> RedisError {
        loop {
            tokio::time::sleep(self.options.alive / 3).await;
            let Some(mut connection) = lock(&self.connection).clone() else { continue };
            if let Err(error) = self.live(&mut connection).await {
                return error;
            }
        }
    }

    async fn live(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let millis = u64::try_from(self.options.alive.as_millis()).unwrap_or(u64::MAX);
        let mut set = redis::cmd("SET");
        set.arg(self.life()).arg(1).arg("PX").arg(millis);
        set.query_async::<Value>(connection).await.map(|_| ())
    }

    /// The others needn't wait to learn that this process is gone.
    async fn leave(&self) {
        self.up.store(false, Relaxed);
        let connection = lock(&self.connection).take();
        if let Some(mut connection) = connection {
            let mut del = redis::cmd("DEL");
            del.arg(self.life());
            let _ = tokio::time::timeout(self.options.limit, del.query_async::<Value>(&mut connection)).await;
        }
    }

    fn life(&self) -> String {
        format!("{}up:{}", self.options.prefix, self.number)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half way.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
