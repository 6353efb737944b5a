//! Requests of this process to the client of a session, which wait for a response.
//!
//! Constraint: the session's lock is held here, so nothing here wakes a task: senders are returned to the caller, which uses
//! them after it has released the lock.

use std::collections::HashMap;

use mcpace_wire::jsonrpc::Id;
use tokio::sync::oneshot;

/// Number of bits for the questions of one process in one session. The bits above them identify the process.
pub(crate) const QUESTION_BITS: u32 = 20;

/// A client's answer to a request of ours: the result's text, or its error.
pub(crate) type ClientReply = Result<Box<str>, ClientRefusal>;

/// A client's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientRefusal {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// Senders to the tasks that wait for answers, by the number of the question.
pub(super) type ReplySenders = HashMap<u64, oneshot::Sender<ClientReply>>;

/// Open questions of one session. Allocates nothing until the first question.
#[derive(Default)]
pub(super) struct Questions {
    waiting: ReplySenders,
    /// Upper bits of all numbers of this process.
    process: u64,
    /// Lower bits of the last number.
    last: u64,
    /// Whether no answers can come any more.
    is_deaf: bool,
}

impl Questions {
    /// Sets the upper bits of the numbers of later questions.
    pub(super) fn of_process(&mut self, process: u64) {
        self.process = process;
    }

    /// Opens a question. `None` when `limit` questions wait already.
    pub(super) fn open_question(&mut self, limit: usize) -> Option<(u64, oneshot::Receiver<ClientReply>)> {
        // Questions that no task waits for any more don't count.
        self.waiting.retain(|_, sender| !sender.is_closed());
        if self.waiting.len() >= limit {
            return None;
        }
        let id = loop {
            // Within its bits, or it would be another process's; those that wait are few.
            self.last = self.last % ((1 << QUESTION_BITS) - 1) + 1;
            let id = self.process | self.last;
            if !self.waiting.contains_key(&id) {
                break id;
            }
        };
        let (sender, receiver) = oneshot::channel();
        if !self.is_deaf {
            self.waiting.insert(id, sender);
        }
        Some((id, receiver))
    }

    pub(super) fn forget_question(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    /// Ends all questions, present and later: no answers can come any more. A waiting task learns so when its sender is dropped.
    pub(super) fn expect_none(&mut self) -> ReplySenders {
        self.is_deaf = true;
        std::mem::take(&mut self.waiting)
    }

    /// Removes the question of this id and returns the sender to its waiting task.
    pub(super) fn take_answered(&mut self, id: &Id<'_>) -> Option<oneshot::Sender<ClientReply>> {
        let Id::Integer(id) = id else { return None };
        self.waiting.remove(&u64::try_from(*id).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use mcpace_wire::jsonrpc::Id;

    use super::{QUESTION_BITS, Questions};

    #[test]
    fn questions_keep_to_their_processs_numbers() {
        let mut questions = Questions::default();
        questions.of_process(7 << QUESTION_BITS);
        let (first, _held) = questions.open_question(4).unwrap();
        assert_eq!(first, 7 << QUESTION_BITS | 1);
        questions.last = (1 << QUESTION_BITS) - 2;
        assert_eq!(questions.open_question(4).unwrap().0, (8 << QUESTION_BITS) - 1);
        // The first still waits.
        assert_eq!(questions.open_question(4).unwrap().0, 7 << QUESTION_BITS | 2);
        assert!(questions.take_answered(&Id::Integer(i64::try_from(first).unwrap())).is_some());
    }
}
