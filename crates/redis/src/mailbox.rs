//! What other processes tell this one: two Redis streams, its own box and one for all.
//!
//! Constraint: nothing is lost while this process is away for a moment, since streams are read from where it was; what did go
//! (boxes are bounded) is counted by the messages' numbers, and said by [`Received::renewed`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mcpace_serve::store::{Post, Received};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisError, RedisResult, Value};
use tokio::sync::mpsc;

use crate::link::Link;

/// How long Redis holds the question for news. Then it is asked again: a connection that died silently is found so.
const HOLD: Duration = Duration::from_secs(1);
/// Messages taken at a time.
const MOST: usize = 256;

/// See the module.
pub(crate) struct Mailbox {
    link: Arc<Link>,
    own: Source,
    all: Source,
    received: mpsc::Sender<Received>,
    /// Something may have been missed, and nobody knows yet.
    renewed: bool,
}

struct Source {
    key: String,
    /// The id of the last message read; `None` before the first look.
    last: Option<String>,
    /// Its number.
    number: Option<u64>,
}

/// Of one stream: its name, and entries of an id with fields.
type Streams = Vec<(String, Vec<(String, Vec<Vec<u8>>)>)>;

impl Mailbox {
    pub(crate) fn new(link: Arc<Link>, received: mpsc::Sender<Received>) -> Self {
        let prefix = &link.options.prefix;
        let source = |key: String, number| Source { key, last: None, number };
        let own = source(format!("{prefix}box:{}", link.number), Some(0));
        let all = source(format!("{prefix}all"), None);
        Self { link, own, all, received, renewed: false }
    }

    /// Before anything is read on a new connection: what is there already for all is for those who were here.
    pub(crate) async fn begin(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let is_first = self.own.last.is_none();
        self.own.last.get_or_insert_with(|| "0-0".to_owned());
        if self.all.last.is_none() {
            let mut newest = redis::cmd("XREVRANGE");
            newest.arg(&self.all.key).arg("+").arg("-").arg("COUNT").arg(1);
            let entries: Vec<(String, Value)> = newest.query_async(connection).await?;
            self.all.last = Some(entries.into_iter().next().map_or_else(|| "0-0".to_owned(), |(id, _)| id));
        }
        self.renewed |= !is_first;
        Ok(())
    }

    /// Reads until the connection fails.
    pub(crate) async fn read(&mut self, mut connection: MultiplexedConnection) -> RedisError {
        loop {
            if self.renewed {
                self.hand_over(Vec::new());
            }
            let mut read = redis::cmd("XREAD");
            read.arg("COUNT").arg(MOST).arg("BLOCK").arg(u64::try_from(HOLD.as_millis()).unwrap_or(1));
            read.arg("STREAMS").arg(&self.own.key).arg(&self.all.key).arg(&self.own.last).arg(&self.all.last);
            let answer =
                tokio::time::timeout(HOLD + self.link.options.limit, read.query_async::<Value>(&mut connection));
            let streams = match answer.await {
                Ok(Ok(Value::Nil)) => continue,
                Ok(Ok(value)) => match Streams::from_redis_value(value) {
                    Ok(streams) => streams,
                    Err(error) => return error.into(),
                },
                Ok(Err(error)) => return error,
                Err(_) => return std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
            };
            let mut posts = Vec::new();
            for (key, entries) in streams {
                let source = if key == self.own.key { &mut self.own } else { &mut self.all };
                for (id, fields) in entries {
                    self.renewed |= source.take(id, &fields, &self.link, &mut posts);
                }
            }
            self.hand_over(posts);
        }
    }

    /// Where nobody takes messages for long they are dropped: whoever takes the next learns that some are missing.
    fn hand_over(&mut self, posts: Vec<Post>) {
        let count = posts.len() as u64;
        match self.received.try_send(Received { posts, renewed: self.renewed }) {
            Ok(()) => self.renewed = false,
            Err(_) => {
                self.link.missed.fetch_add(count, Relaxed);
                self.renewed = true;
            }
        }
    }
}

impl Source {
    /// Takes an entry in; whether others before it are missing.
    fn take(&mut self, id: String, fields: &[Vec<u8>], link: &Link, posts: &mut Vec<Post>) -> bool {
        self.last = Some(id);
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
                // Of another release, perhaps.
                Some(Err(error)) => tracing::warn!(%error, "a message of another process can't be read"),
                None => {}
            }
        }
        missing > 0
    }
}
