//! What this process asked a session's client, and waits to hear.
//!
//! Constraint: it is all under the session's lock, so nothing here wakes anybody: who is to be woken is handed back.

use std::collections::HashMap;

use mcpace_wire::jsonrpc::Id;
use tokio::sync::oneshot;

/// Questions of one process in one session are numbered in so many bits; above them stands which process asks.
pub(crate) const QUESTION_BITS: u32 = 20;

/// A client's answer to a request of ours: the result's text, or its error.
pub(crate) type Answer = Result<Box<str>, ClientError>;

/// A client's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// Who waits for answers, by the question's number.
pub(super) type Waiting = HashMap<u64, oneshot::Sender<Answer>>;

/// See the module. Takes nothing until something is asked.
#[derive(Default)]
pub(super) struct Questions {
    waiting: Waiting,
    /// What each number has in its upper bits, and the lower ones of the last.
    process: u64,
    last: u64,
    /// Whether no answers can come any more.
    is_deaf: bool,
}

impl Questions {
    /// From now on questions have these upper bits.
    pub(super) fn of_process(&mut self, process: u64) {
        self.process = process;
    }

    /// `None` when `limit` of them wait already.
    pub(super) fn ask(&mut self, limit: usize) -> Option<(u64, oneshot::Receiver<Answer>)> {
        // Those that nobody waits for any more don't count.
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

    pub(super) fn forget(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    /// No answers can come any more: whoever waits, now or later, learns so by losing the sender.
    pub(super) fn expect_none(&mut self) -> Waiting {
        self.is_deaf = true;
        std::mem::take(&mut self.waiting)
    }

    /// Who waits for the answer of this id.
    pub(super) fn answered(&mut self, id: &Id<'_>) -> Option<oneshot::Sender<Answer>> {
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
        let (first, _held) = questions.ask(4).unwrap();
        assert_eq!(first, 7 << QUESTION_BITS | 1);
        questions.last = (1 << QUESTION_BITS) - 2;
        assert_eq!(questions.ask(4).unwrap().0, (8 << QUESTION_BITS) - 1);
        // The first still waits.
        assert_eq!(questions.ask(4).unwrap().0, 7 << QUESTION_BITS | 2);
        assert!(questions.answered(&Id::Integer(i64::try_from(first).unwrap())).is_some());
    }
}
