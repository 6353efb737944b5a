//! Bounds on the bytes of finished replies that no client has taken yet, for each connection and each session.
//!
//! How long a result is, is known when its call has ended; so a bound that only looks at new requests is passed by the calls under way.
//! Here a reply is counted when it is finished, and stays counted until the last buffer that holds it lets it go: the other slots of a
//! batch, an event log, a body, hyper, h2. One that doesn't fit is answered with an error in its place. Its session or connection then
//! takes no more requests until half of its bound is free.
//!
//! Constraint: replies shorter than [`COUNTED`] are not counted and cost nothing. The number of requests in progress bounds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use mcpace_wire::jsonrpc::{Id, code, write_error};
use serde::Deserialize;

use crate::exchange::{Reply, ReplyStatus};

/// Replies of this length and longer are counted.
pub(super) const COUNTED: usize = 16 << 10;

/// The unsent bytes of one connection, or of one session.
#[derive(Debug)]
pub(super) struct ReplyAccount {
    limit: usize,
    bytes: AtomicUsize,
    /// A reply did not fit, and less than half of the limit is free.
    closed: AtomicBool,
}

impl ReplyAccount {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, bytes: AtomicUsize::new(0), closed: AtomicBool::new(false) })
    }

    /// Whether new requests are refused.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    fn hold_bytes(self: &Arc<Self>, size: usize) -> Result<Hold, TooMuch> {
        let before = self.bytes.fetch_add(size, Relaxed);
        // Made first: dropping it takes the bytes back.
        let hold = Hold { account: Arc::clone(self), size };
        if before.saturating_add(size) <= self.limit {
            return Ok(hold);
        }
        if before > self.limit / 2 {
            self.closed.store(true, Relaxed);
        }
        Err(TooMuch { limit: self.limit })
    }
}

/// Bytes that an account counts.
#[derive(Debug)]
struct Hold {
    account: Arc<ReplyAccount>,
    size: usize,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let before = self.account.bytes.fetch_sub(self.size, Relaxed);
        if before - self.size <= self.account.limit / 2 {
            self.account.closed.store(false, Relaxed);
        }
    }
}

#[derive(Debug)]
struct TooMuch {
    limit: usize,
}

/// The right to keep a finished reply, in both accounts.
#[derive(Debug, Default)]
pub(super) struct Permit {
    _connection: Option<Hold>,
    _session: Option<Hold>,
}

impl Permit {
    /// Bytes that are counted for as long as a clone of them lives.
    pub(super) fn attach_to(self, bytes: Bytes) -> Bytes {
        match self {
            Permit { _connection: None, _session: None } => bytes,
            permit => Bytes::from_owner(CountedBytes { bytes, _permit: permit }),
        }
    }
}

struct CountedBytes {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A reply that may be kept until its client takes it.
pub(super) struct Finished {
    pub(super) reply: Reply,
    pub(super) permit: Permit,
}

/// A session that counts its replies.
pub(super) trait SessionAccount: Send + Sync {
    /// Bytes of the session's replies that wait for the client, over all connections.
    fn unsent_replies(&self) -> &Arc<ReplyAccount>;
}

/// Accounts that count the replies of a request.
#[derive(Clone)]
pub(super) struct Accounts {
    pub(super) connection: Arc<ReplyAccount>,
    pub(super) session: Option<Arc<dyn SessionAccount>>,
}

impl Accounts {
    /// Counts a finished reply. One that doesn't fit is dropped, and an error takes its place.
    pub(super) fn finish_reply(&self, reply: Reply) -> Finished {
        finish_reply(&self.connection, self.session.as_deref(), reply)
    }
}

/// See [`Accounts::finish_reply`].
pub(super) fn finish_reply(
    connection: &Arc<ReplyAccount>,
    session: Option<&dyn SessionAccount>,
    mut reply: Reply,
) -> Finished {
    let size = reply.message.len();
    if size < COUNTED {
        return Finished { reply, permit: Permit::default() };
    }
    let held = connection.hold_bytes(size).map_err(|too_much| ("connection", too_much)).and_then(|connection| {
        let session = session.map(|session| session.unsent_replies().hold_bytes(size)).transpose();
        session.map(|session| (connection, session)).map_err(|too_much| ("session", too_much))
    });
    match held {
        Ok((connection, session)) => {
            Finished { reply, permit: Permit { _connection: Some(connection), _session: session } }
        }
        Err((what, TooMuch { limit })) => {
            tracing::debug!(size, limit, what, "a result was dropped: too many bytes wait for their client");
            reply.message = dropped_result(&reply.message, what, limit);
            reply.status = ReplyStatus::Ok;
            Finished { reply, permit: Permit::default() }
        }
    }
}

/// The error in the place of a reply.
fn dropped_result(message: &[u8], what: &str, limit: usize) -> Bytes {
    #[derive(Deserialize)]
    struct ReplyId {
        id: Option<Id<'static>>,
    }
    let head = serde_json::from_slice(message).unwrap_or(ReplyId { id: None });
    let reason = format!(
        "the result of {} bytes was dropped: at most {limit} bytes of results wait for the client of a {what}. Read results \
         as they come, or ask for less at a time",
        message.len()
    );
    let mut error = Vec::with_capacity(256);
    // Without data there is nothing that could fail to be written.
    let _ = write_error(&mut error, head.id.as_ref(), code::INTERNAL_ERROR, &reason, None::<&()>);
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(id: u32, size: usize) -> Reply {
        let text = "x".repeat(size);
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#).into();
        Reply { message, status: ReplyStatus::Ok, session: None, cancelled: false, timing: None, challenge: None }
    }

    fn is_error(finished: &Finished) -> bool {
        let reply: serde_json::Value = serde_json::from_slice(&finished.reply.message).unwrap();
        reply["error"]["code"] == code::INTERNAL_ERROR
    }

    #[test]
    fn replies_count_until_their_last_clone_is_gone_and_one_too_many_is_an_error_of_its_own_id() {
        let account = ReplyAccount::new(10 * COUNTED);
        let accounts = Accounts { connection: Arc::clone(&account), session: None };
        let mut held: Vec<Bytes> = Vec::new();
        let refused = (0..).map(|id| (id, accounts.finish_reply(reply(id, COUNTED)))).find_map(|(id, finished)| {
            if is_error(&finished) {
                return Some((id, finished));
            }
            let Finished { reply, permit } = finished;
            held.push(permit.attach_to(reply.message));
            None
        });
        let (id, refused) = refused.unwrap();
        let error: serde_json::Value = serde_json::from_slice(&refused.reply.message).unwrap();
        assert_eq!((error["id"].as_u64(), held.len()), (Some(u64::from(id)), 9));
        assert!(account.is_closed());
        let clone = held[0].slice(10..20);
        held.truncate(5);
        assert!(account.is_closed(), "more than half is held");
        held.truncate(1);
        assert!(!account.is_closed());
        drop(held);
        assert!(account.bytes.load(Relaxed) > 0, "a part of it is held");
        drop(clone);
        assert_eq!(account.bytes.load(Relaxed), 0);
    }

    #[test]
    fn short_replies_are_not_counted_and_one_that_never_fits_closes_nothing() {
        let account = ReplyAccount::new(COUNTED * 2);
        let accounts = Accounts { connection: Arc::clone(&account), session: None };
        let all: Vec<Finished> = (0..100).map(|id| accounts.finish_reply(reply(id, 100))).collect();
        assert!(all.iter().all(|finished| !is_error(finished)) && account.bytes.load(Relaxed) == 0);
        assert!(is_error(&accounts.finish_reply(reply(1, COUNTED * 3))));
        assert!(!account.is_closed() && account.bytes.load(Relaxed) == 0);
    }
}
