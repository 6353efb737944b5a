//! Bounded inbox for the notifications of a server while Python is busy.
//!
//! Constraint: the server cannot make the inbox grow. A full inbox drops its oldest log messages and progress first, because
//! notifications of changes are rarer and are missed for longer.

use std::collections::VecDeque;

use pyo3::prelude::*;

use crate::log_line::{Level, log_line};

/// Largest number of messages. [`MOST_BYTES`] bounds their size; a single message may be larger.
const MOST: usize = 1024;
const MOST_BYTES: usize = 4 << 20;

/// Bounded inbox of messages.
pub(super) struct BoundedInbox<T> {
    entries: VecDeque<InboxEntry<T>>,
    bytes: usize,
    loss: Loss,
}

struct InboxEntry<T> {
    value: T,
    bytes: usize,
    is_little: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Loss {
    Nothing,
    Unsaid,
    Said,
}

impl<T> Default for BoundedInbox<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0, loss: Loss::Nothing }
    }
}

impl<T> BoundedInbox<T> {
    /// Adds one; whether it is the only one, so that somebody has to be told.
    pub(super) fn put_value(&mut self, value: T, bytes: usize, is_little: bool) -> bool {
        let was_empty = self.entries.is_empty();
        while !self.entries.is_empty() && (self.entries.len() >= MOST || self.bytes + bytes > MOST_BYTES) {
            if self.loss == Loss::Nothing {
                self.loss = Loss::Unsaid;
            }
            let oldest = match self.entries.iter().position(|entry| entry.is_little) {
                Some(position) => position,
                None if is_little => return false,
                None => 0,
            };
            self.bytes -= self.entries.remove(oldest).map_or(0, |entry| entry.bytes);
        }
        self.bytes += bytes;
        self.entries.push_back(InboxEntry { value, bytes, is_little });
        was_empty
    }

    /// All that is held, and whether it has to be said for the first time that something is missing.
    pub(super) fn take_values(&mut self) -> (Vec<T>, bool) {
        let says = self.loss == Loss::Unsaid;
        if says {
            self.loss = Loss::Said;
        }
        self.bytes = 0;
        (self.entries.drain(..).map(|entry| entry.value).collect(), says)
    }
}

/// Says that something was dropped, to Python's logger `mcpace.client`.
pub(super) fn say_dropped(py: Python<'_>, what: &str) -> PyResult<()> {
    let line =
        format!("the server sent {what} faster than they were taken: the oldest were dropped, which is said once");
    log_line(py, "mcpace.client", Level::Warning, &line)
}
