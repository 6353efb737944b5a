//! Messages of other processes to this one: two Redis streams, its own box and one for all.
//!
//! Constraints: nothing is lost while this process is away for a moment, since streams are read from where it was; what did go
//! (boxes are bounded, in number and in bytes, there and here) is counted by the messages' numbers, and said by
//! [`Received::renewed`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mcpace_serve::store::{Post, Received};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisResult, Value};
use tokio::sync::mpsc;

use crate::link::{Outage, RedisLink};
use crate::scripts::script_call;

/// How long Redis holds the question for news. Then it is asked again: a connection that died silently is found so.
const HOLD: Duration = Duration::from_secs(1);
/// Messages taken at a time, at most; fewer while they are too long to come in time.
const MOST: usize = 32;
/// Bytes of messages that are read and that nobody took yet.
const HELD: usize = 32 << 20;
/// How many messages of its own box are read, or how many bytes of them, before they are taken out of it.
const TAKEN: (usize, usize) = (64, 256 << 10);

/// Before all entries of a stream.
const BEGINNING: &str = "0-0";

/// Messages, and their length in bytes.
pub(crate) type Letters = (Received, usize);

/// Reader of the two streams.
pub(crate) struct Mailbox {
    link: Arc<RedisLink>,
    own: PostSource,
    all: PostSource,
    received: mpsc::Sender<Letters>,
    /// How many messages are asked for.
    count: usize,
    /// Something may have been missed, and nobody knows yet.
    renewed: bool,
}

struct PostSource {
    key: String,
    /// The id of the last message read; `None` before the first look.
    last: Option<String>,
    /// Its number.
    number: Option<u64>,
    /// Messages, and their bytes, since it was last said that they were read.
    read: (usize, usize),
}

/// Reply of `XREAD`: each stream's name, and its entries of an id with fields.
type Streams = Vec<(String, Vec<(String, Vec<Vec<u8>>)>)>;

impl Mailbox {
    pub(crate) fn new(link: Arc<RedisLink>, received: mpsc::Sender<Letters>) -> Self {
        let prefix = &link.options.prefix;
        let source = |key: String, number| PostSource { key, last: None, number, read: (0, 0) };
        let own = source(format!("{prefix}box:{}", link.number), Some(0));
        let all = source(format!("{prefix}all"), None);
        Self { link, own, all, received, count: MOST, renewed: false }
    }

    /// Before anything is read on a new connection: what is there already for all is for those who were here.
    pub(crate) async fn begin_reading(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let is_first = self.own.last.is_none();
        self.own.last.get_or_insert_with(|| BEGINNING.to_owned());
        if self.all.last.is_none() {
            let mut newest = redis::cmd("XREVRANGE");
            newest.arg(&self.all.key).arg("+").arg("-").arg("COUNT").arg(1);
            let entries: Vec<(String, Value)> = newest.query_async(connection).await?;
            self.all.last = Some(entries.into_iter().next().map_or_else(|| BEGINNING.to_owned(), |(id, _)| id));
        }
        if !is_first {
            self.find_place(connection).await?;
        }
        self.renewed |= !is_first;
        Ok(())
    }

    /// Finds the position to read on from. Ids are times: if an emptied Redis is replaced by one whose clock is behind,
    /// nothing would be read until that clock has caught up. An entry older than the last message read therefore
    /// belongs to a new stream, which is read from its beginning.
    async fn find_place(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        for source in [&mut self.own, &mut self.all] {
            let mut newest = redis::cmd("XREVRANGE");
            newest.arg(&source.key).arg("+").arg("-").arg("COUNT").arg(1);
            let entries: Vec<(String, Value)> = newest.query_async(connection).await?;
            let newest = entries.first().map(|(id, _)| id_parts(id));
            if newest.is_none_or(|newest| source.last.as_deref().map(id_parts) > Some(newest)) {
                source.last = Some(BEGINNING.to_owned());
            }
        }
        Ok(())
    }

    /// Reads until the connection fails; why it did.
    pub(crate) async fn read_posts(&mut self, mut connection: MultiplexedConnection) -> Outage {
        loop {
            if self.link.emptied.swap(false, Relaxed) {
                self.renewed = true;
                let finding = tokio::time::timeout(self.link.options.limit, self.find_place(&mut connection));
                match finding.await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Outage::of(&error),
                    Err(_) => return Outage::late(),
                }
            }
            if self.renewed {
                self.hand_over(Vec::new(), 0);
            }
            let mut read = redis::cmd("XREAD");
            read.arg("COUNT").arg(self.count).arg("BLOCK").arg(u64::try_from(HOLD.as_millis()).unwrap_or(1));
            read.arg("STREAMS").arg(&self.own.key).arg(&self.all.key).arg(&self.own.last).arg(&self.all.last);
            let answer =
                tokio::time::timeout(HOLD + self.link.options.limit, read.query_async::<Value>(&mut connection));
            let streams = match answer.await {
                Ok(Ok(Value::Nil)) => continue,
                Ok(Ok(value)) => match Streams::from_redis_value(value) {
                    Ok(streams) => streams,
                    Err(error) => return Outage::of(&error.into()),
                },
                Ok(Err(error)) => return Outage::of(&error),
                Err(_) => {
                    // They may be too much for this line at once: the same again would be as late.
                    self.count = (self.count / 2).max(1);
                    return Outage::late();
                }
            };
            self.count = (self.count * 2).min(MOST);
            let (mut posts, mut bytes) = (Vec::new(), 0);
            for (key, entries) in streams {
                let source = if key == self.own.key { &mut self.own } else { &mut self.all };
                for (id, fields) in entries {
                    bytes += fields.iter().map(Vec::len).sum::<usize>();
                    self.renewed |= source.take_entry(id, &fields, &self.link, &mut posts);
                }
            }
            self.hand_over(posts, bytes);
            self.take_out();
        }
    }

    /// Where nobody takes messages for long they are dropped: whoever takes the next learns that some are missing.
    fn hand_over(&mut self, posts: Vec<Post>, bytes: usize) {
        let count = posts.len() as u64;
        let held = self.link.held.fetch_add(bytes, Relaxed);
        let fits = held == 0 || held + bytes <= HELD;
        if fits && self.received.try_send((Received { posts, renewed: self.renewed }, bytes)).is_ok() {
            self.renewed = false;
            return;
        }
        self.link.held.fetch_sub(bytes, Relaxed);
        self.link.missed.fetch_add(count, Relaxed);
        self.renewed = true;
    }

    /// Removes the messages that were read from the process's own box, which has no other reader. Does not wait for
    /// Redis.
    fn take_out(&mut self) {
        if self.own.read.0 < TAKEN.0 && self.own.read.1 < TAKEN.1 {
            return;
        }
        self.own.read = (0, 0);
        let link = Arc::clone(&self.link);
        let mut taken = script_call(&link.scripts.box_taken, &link.options.prefix);
        taken.arg(link.number).arg(&self.own.last);
        self.link.runtime.spawn(async move {
            let taking = |mut connection| async move { taken.query_async::<Value>(&mut connection).await };
            // Where Redis is away they go with the next.
            let _ = link.run_limited(taking).await;
        });
    }
}

/// Parts of an id, which compare in the order of ids.
fn id_parts(id: &str) -> (u64, u64) {
    let (time, number) = id.split_once('-').unwrap_or((id, "0"));
    (time.parse().unwrap_or_default(), number.parse().unwrap_or_default())
}

impl PostSource {
    /// Takes an entry in; whether others before it are missing.
    fn take_entry(&mut self, id: String, fields: &[Vec<u8>], link: &RedisLink, posts: &mut Vec<Post>) -> bool {
        self.last = Some(id);
        self.read = (self.read.0 + 1, self.read.1 + fields.iter().map(Vec::len).sum::<usize>());
        let field = |name: &[u8]| fields.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_slice());
        let number = |name| std::str::from_utf8(field(name)?).ok()?.parse::<u64>().ok();
        let (numbered, from) = (number(b"n"), number(b"f"));
        let missing = match (self.number, numbered) {
            (Some(before), Some(number)) => number.saturating_sub(before.saturating_add(1)),
            _ => 0,
        };
        if missing > 0 {
            link.missed.fetch_add(missing, Relaxed);
            tracing::warn!(missing, "messages of other processes were dropped before they were read");
        }
        self.number = numbered.or(self.number);
        if from != Some(u64::from(link.number)) || self.key.ends_with(&format!("box:{}", link.number)) {
            match field(b"p").map(serde_json::from_slice) {
                Some(Ok(post)) => posts.push(post),
                // Perhaps a message of another release.
                Some(Err(error)) => tracing::warn!(%error, "a message of another process can't be read"),
                None => {}
            }
        }
        missing > 0
    }
}
