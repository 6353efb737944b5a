//! The connection: made, watched, and made again, on a thread of its own.
//!
//! Constraints: no caller waits for Redis longer than [`crate::Options::limit`]; while Redis is away callers fail at
//! once. The loss of the connection is reported once, and so is its return. A second connection only waits for messages
//! of other processes; the link counts as "up" while this connection stands. A limiter that is opened alone has no
//! second connection. A forked child does not have the thread, and no caller there waits for it.

use std::future::{Future, pending};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpace_serve::store::{Down, OnDown};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::process_inbox::{Letters, Mailbox};
use crate::scripts::Scripts;
use crate::{ConnectionEvent, Options};

/// Connection to Redis with its state, shared by all stores.
pub(crate) struct RedisLink {
    pub(crate) client: Client,
    pub(crate) options: Options,
    pub(crate) scripts: Scripts,
    /// This process among those that share: random, and held by a key for as long as it lives.
    pub(crate) number: u32,
    /// Whose thread it is on. A forked child has none of it.
    process: u32,
    pub(crate) runtime: Handle,
    connection: Mutex<Option<MultiplexedConnection>>,
    up: AtomicBool,
    broken: Notify,
    why: Mutex<Option<Outage>>,
    /// Counts connections: what fails late on an old one says nothing of the one there is now.
    epoch: AtomicU64,
    /// Messages to this process that were dropped before it read them.
    pub(crate) missed: AtomicU64,
    /// The bytes of messages that were read and that nobody took yet.
    pub(crate) held: AtomicUsize,
    /// Mark that is written into a Redis that has none. A different mark means that this Redis has lost its data.
    era: Mutex<Option<String>>,
    /// It has, and the mailbox doesn't know yet.
    pub(crate) emptied: AtomicBool,
    /// It has, and nobody has said so yet: where there is no mailbox, `emptied` stays.
    unsaid: AtomicBool,
    /// Last error answer that was logged, so that it is logged once.
    complained: Mutex<Option<String>>,
}

/// Before Redis is tried again, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Batches of messages that nobody took yet.
pub(crate) const RECEIVED: usize = 64;
/// How long a Redis with nobody at it is known as the same: longer than anything that is kept there.
const ERA_MS: u64 = 7 * 24 * 3_600_000;

/// Why Redis is of no use at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// It can be reached, and refuses to serve: its memory is full, say.
    pub(crate) answers: bool,
    pub(crate) reason: String,
}

impl Outage {
    pub(crate) fn of(error: &RedisError) -> Self {
        let answers = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
        Self { answers, reason: error_sentence(error) }
    }

    pub(crate) fn late() -> Self {
        Self { answers: false, reason: "it does not answer in time".to_owned() }
    }
}

impl RedisLink {
    pub(crate) fn new(client: Client, options: Options, number: u32, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            client,
            options,
            scripts: Scripts::new(),
            number,
            process: std::process::id(),
            runtime,
            connection: Mutex::default(),
            up: AtomicBool::new(false),
            broken: Notify::new(),
            why: Mutex::default(),
            epoch: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            era: Mutex::default(),
            emptied: AtomicBool::new(false),
            unsaid: AtomicBool::new(false),
            complained: Mutex::default(),
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Relaxed) && self.is_here()
    }

    /// Whether its thread is in this process.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Where Redis is, without what the URL has of secrets.
    pub(crate) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Has Redis do something, within the limit. Can be awaited on any runtime.
    pub(crate) async fn run_limited<T, F>(
        self: &Arc<Self>,
        act: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Down>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.run_within(self.options.limit, act).await
    }

    /// Runs `act` within `limit`, for operations that may take longer than most.
    pub(crate) async fn run_within<T, F>(
        self: &Arc<Self>,
        limit: Duration,
        act: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Down>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
        T: Send + 'static,
    {
        if !self.is_here() {
            return Err(Down);
        }
        let epoch = self.epoch.load(Relaxed);
        let connection = lock_mutex(&self.connection).clone().ok_or(Down)?;
        let task = self.runtime.spawn(tokio::time::timeout(limit, act(connection)));
        match task.await {
            Ok(Ok(Ok(value))) => return Ok(value),
            Ok(Ok(Err(error))) => {
                self.report_failure(&error, epoch);
            }
            // Late, or the runtime is ending.
            Ok(Err(_)) | Err(_) => self.report_broken(epoch, Outage::late()),
        }
        Err(Down)
    }

    /// Reports an error. True where it is of the connection, or of a Redis that can't serve at the moment; then it is made anew.
    /// Any other is an answer, and is said once.
    pub(crate) fn report_failure(&self, error: &RedisError, epoch: u64) -> bool {
        if !is_answer(error) {
            self.report_broken(epoch, Outage::of(error));
            return true;
        }
        let text = error.to_string();
        let mut complained = lock_mutex(&self.complained);
        if complained.as_ref() != Some(&text) {
            tracing::error!(error = text, "Redis answers with an error");
            (self.options.tell)(&ConnectionEvent::Refused { address: self.address(), reason: text.clone() });
            *complained = Some(text);
        }
        false
    }

    /// Which connection there is.
    pub(crate) fn connection_epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    fn report_broken(&self, epoch: u64, outage: Outage) {
        if self.connection_epoch() == epoch {
            *lock_mutex(&self.why) = Some(outage);
            self.broken.notify_one();
        }
    }

    /// Keeps the connection until `over`. `first` learns how the first attempt went; `received` takes what other processes tell
    /// this one, where anybody wants to hear it.
    pub(crate) async fn keep_connected(
        self: Arc<Self>,
        first: watch::Sender<Option<Result<(), Outage>>>,
        received: Option<mpsc::Sender<Letters>>,
        over: CancellationToken,
    ) {
        let mut mailbox = received.map(|received| Mailbox::new(Arc::clone(&self), received));
        let mut is_said = false;
        let mut pause = PAUSE;
        let keeping = async {
            loop {
                let outage = match self.open_connection(mailbox.as_mut()).await {
                    Ok(waiting) => {
                        // Before it is said: who hears it may ask.
                        self.up.store(true, Relaxed);
                        if std::mem::take(&mut is_said) {
                            tracing::warn!(address = self.address(), "Redis is back");
                            (self.options.tell)(&ConnectionEvent::Back { address: self.address() });
                        }
                        // The mailbox knows of it by the connection's being another.
                        self.emptied.store(false, Relaxed);
                        self.say_emptied();
                        pause = PAUSE;
                        *lock_mutex(&self.complained) = None;
                        first.send_replace(Some(Ok(())));
                        self.hold_connection(mailbox.as_mut().zip(waiting)).await
                    }
                    Err(outage) => {
                        first.send_if_modified(|first| {
                            first.is_none().then(|| *first = Some(Err(outage.clone()))).is_some()
                        });
                        outage
                    }
                };
                // That there was none to begin with is said by whoever opened it, where nothing goes on without.
                let is_told = matches!(*first.borrow(), Some(Err(_))) && self.options.on_down == OnDown::Refuse;
                if !std::mem::replace(&mut is_said, true) && !is_told {
                    let Outage { answers, reason } = outage;
                    tracing::warn!(address = self.address(), answers, reason, "Redis is away");
                    (self.options.tell)(&ConnectionEvent::Gone { address: self.address(), answers, reason });
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        tokio::select! {
            () = keeping => {}
            () = over.cancelled() => {}
        }
        self.announce_leave().await;
    }

    /// Reads what others tell this process, where it hears them, and says that it lives, until the connection is of no use any more.
    async fn hold_connection(&self, hearing: Option<(&mut Mailbox, MultiplexedConnection)>) -> Outage {
        let hearing = async {
            match hearing {
                Some((mailbox, waiting)) => mailbox.read_posts(waiting).await,
                None => pending().await,
            }
        };
        let outage = tokio::select! {
            outage = hearing => outage,
            outage = self.stay_alive() => outage,
            () = self.broken.notified() => lock_mutex(&self.why).take().unwrap_or_else(Outage::late),
        };
        self.up.store(false, Relaxed);
        *lock_mutex(&self.connection) = None;
        outage
    }

    /// Connects, loads the scripts and says that this process lives. Where there is a mailbox: once more, for the connection that
    /// waits.
    async fn open_connection(&self, mailbox: Option<&mut Mailbox>) -> Result<Option<MultiplexedConnection>, Outage> {
        let connecting = async {
            // Answers have their limit where they are waited for: some may take longer than others.
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(self.options.limit))
                .set_response_timeout(None);
            let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
            for script in self.scripts.all() {
                script.load_async(&mut connection).await?;
            }
            self.announce_life(&mut connection).await?;
            let waiting = match mailbox {
                Some(mailbox) => {
                    mailbox.begin_reading(&mut connection).await?;
                    Some(self.client.get_multiplexed_async_connection_with_config(&config).await?)
                }
                None => None,
            };
            RedisResult::Ok((connection, waiting))
        };
        match tokio::time::timeout(self.options.limit * 2, connecting).await {
            Ok(Ok((connection, waiting))) => {
                // A permit of the connection before.
                let _ = tokio::time::timeout(Duration::ZERO, self.broken.notified()).await;
                self.epoch.fetch_add(1, Relaxed);
                *lock_mutex(&self.connection) = Some(connection);
                Ok(waiting)
            }
            Ok(Err(error)) => Err(Outage::of(&error)),
            Err(_) => Err(Outage::late()),
        }
    }

    /// Says again and again that this process lives. Ends when it can't.
    async fn stay_alive(&self) -> Outage {
        loop {
            tokio::time::sleep(self.options.alive / 3).await;
            let Some(mut connection) = lock_mutex(&self.connection).clone() else { continue };
            match tokio::time::timeout(self.options.limit, self.announce_life(&mut connection)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Outage::of(&error),
                Err(_) => return Outage::late(),
            }
            self.say_emptied();
        }
    }

    /// This process lives, and Redis is the one that it was.
    async fn announce_life(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let millis = u64::try_from(self.options.alive.as_millis()).unwrap_or(u64::MAX);
        let era = format!("{}era", self.options.prefix);
        let mut pipe = redis::pipe();
        pipe.cmd("SET").arg(self.life_value()).arg(1).arg("PX").arg(millis).ignore();
        pipe.cmd("SET").arg(&era).arg(rand::random::<u64>()).arg("NX").arg("PX").arg(ERA_MS).ignore();
        pipe.cmd("PEXPIRE").arg(&era).arg(ERA_MS).ignore();
        pipe.cmd("GET").arg(&era);
        let (now,): (String,) = pipe.query_async(connection).await?;
        let before = lock_mutex(&self.era).replace(now.clone());
        if before.is_some_and(|before| before != now) {
            self.emptied.store(true, Relaxed);
            self.unsaid.store(true, Relaxed);
        }
        Ok(())
    }

    /// Once each time that it was.
    fn say_emptied(&self) {
        if !self.unsaid.swap(false, Relaxed) {
            return;
        }
        tracing::warn!(address = self.address(), "Redis has lost what it knew");
        (self.options.tell)(&ConnectionEvent::Emptied { address: self.address() });
    }

    /// The others needn't wait to learn that this process is gone.
    async fn announce_leave(&self) {
        self.up.store(false, Relaxed);
        let connection = lock_mutex(&self.connection).take();
        if let Some(mut connection) = connection {
            let mut del = redis::cmd("DEL");
            del.arg(self.life_value());
            let _ = tokio::time::timeout(self.options.limit, del.query_async::<Value>(&mut connection)).await;
        }
    }

    fn life_value(&self) -> String {
        format!("{}up:{}", self.options.prefix, self.number)
    }
}

/// Whether an error answers what was asked, which would be answered so again: a command that can't be, or a script that fails. Any
/// other is of the connection, or of a Redis that can't serve at the moment (its disk is full, its replicas are away, a script
/// takes too long, the password is another): then it may well be taken later.
fn is_answer(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => true,
        ErrorKind::Server(ServerErrorKind::ResponseError) => is_lasting(error.detail().unwrap_or_default()),
        ErrorKind::Extension => error.code() == Some("WRONGTYPE"),
        _ => false,
    }
}

/// Before Redis 7 a script's error is `ERR` whatever went wrong within, which stands in its middle: `…: -MISCONF Redis is…`.
fn is_lasting(detail: &str) -> bool {
    let within = detail.split(": -").nth(1).and_then(|rest| rest.split_whitespace().next());
    let within = within.filter(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()));
    matches!(within, None | Some("ERR" | "WRONGTYPE"))
}

/// One sentence, whatever it is that answers there.
fn error_sentence(error: &RedisError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lock_mutex<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half way.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::is_lasting;

    #[test]
    fn what_a_script_could_not_write_just_now_is_no_answer() {
        assert!(is_lasting("unknown command"));
        assert!(is_lasting("user_script:3: Script attempted to access nonexistent global variable 'x'"));
        assert!(is_lasting("Error running script (call to f_1): @user_script:7: -WRONGTYPE Operation against a key"));
        let full =
            "Error running script (call to f_1): @user_script:7: @user_script: 7: -MISCONF Redis is configured to save";
        assert!(!is_lasting(full));
    }
}
