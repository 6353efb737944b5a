//! Handling of incoming bytes, closed connections and time-outs. Each becomes one [`Verdict`].

use std::borrow::Cow;
use std::io;

use super::Worker;
use crate::judge::{Awaited, Verdict};
use crate::outcome::ErrorKind;
use crate::program::{Program, What};
use crate::user::{State, User};

/// Reads of 64 KiB that one socket may take in a turn: a peer that sends without end must not keep its thread from the
/// clock and from all other users.
const READS_A_TURN: usize = 16;

impl Worker {
    /// Reads what has come; what is too much for a turn, in the next.
    pub(super) fn readable(&mut self, index: u32, is_closed: bool, scratch: &mut [u8]) {
        let generation = self.users[index as usize].generation;
        for _ in 0..READS_A_TURN {
            let user = &mut self.users[index as usize];
            if user.generation != generation {
                return;
            }
            let Some(link) = &mut user.link else { return };
            match link.read(scratch) {
                Ok(0) => return self.closed(index),
                Ok(length) => {
                    if self.program.plan.quick_ack {
                        link.acknowledge();
                    }
                    let is_last = length < scratch.len() && !is_closed && link.short_read_is_last();
                    self.bytes(index, &scratch[..length]);
                    if is_last {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.reset(index, &error),
            }
        }
        self.unread.push(User::event_number(index, generation));
    }

    fn bytes(&mut self, index: u32, data: &[u8]) {
        let limit = self.program.plan.limits.body_bytes;
        let is_http = self.program.is_http();
        let user = &mut self.users[index as usize];
        match user.state {
            State::Awaiting => {}
            State::Draining => {
                let keep = match user.reader.feed(data, limit) {
                    Ok(Some(fed)) if fed.ended => !fed.excess,
                    Ok(_) => return user.reader.discard(),
                    Err(_) => false,
                };
                let now = self.clock.now();
                return self.drained(index, keep, now);
            }
            // Over stdio a server may say something unasked; over HTTP it may not.
            _ if !is_http => return,
            _ => return self.hang_up(index),
        }
        user.request.received_bytes += data.len() as u64;
        if !is_http {
            return self.lines(index, data);
        }
        let awaited = awaited(&self.program, user);
        let verdict = match user.reader.feed(data, limit) {
            Err(wrong) => Some(Verdict::wrong(&wrong, limit)),
            Ok(None) => None,
            Ok(Some(fed)) => awaited.reply(&fed, &mut user.scan, &mut self.joined),
        };
        match verdict {
            Some(verdict) => {
                let now = self.clock.now();
                self.complete(index, verdict, now);
            }
            None => {
                let done = user.scan.done();
                if user.reader.forget(done) {
                    user.scan.forget(done);
                }
            }
        }
    }

    fn lines(&mut self, index: u32, data: &[u8]) {
        let limit = self.program.plan.limits.body_bytes;
        let mut rest = data;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let user = &mut self.users[index as usize];
            // An answer may have been the process's last: then nothing more is read.
            if user.link.is_none() {
                return;
            }
            let whole;
            let line = if user.line.is_empty() {
                &rest[..end]
            } else {
                user.line.extend_from_slice(&rest[..end]);
                whole = std::mem::take(&mut user.line);
                whole.as_slice()
            };
            rest = &rest[end + 1..];
            let line = line.trim_ascii();
            if user.state != State::Awaiting || line.is_empty() {
                continue;
            }
            if let Some(verdict) = awaited(&self.program, user).line(line) {
                let now = self.clock.now();
                self.complete(index, verdict, now);
            }
        }
        let user = &mut self.users[index as usize];
        user.line.extend_from_slice(rest);
        if user.line.len() > limit {
            let words = format!("a line of more than {limit} bytes");
            self.broken(index, ErrorKind::TooLarge, words.into());
        }
    }

    /// The target has closed the connection, or the program its output.
    fn closed(&mut self, index: u32) {
        self.tally.connections.closed_by_peer += 1;
        let now = self.clock.now();
        let is_http = self.program.is_http();
        let user = &mut self.users[index as usize];
        match user.state {
            State::Awaiting if !is_http => {
                self.broken(index, ErrorKind::ProcessExit, "the program ended before its reply".into());
            }
            State::Awaiting => {
                let awaited = awaited(&self.program, user);
                let verdict = match user.reader.close() {
                    Some(fed) => awaited.reply(&fed, &mut user.scan, &mut self.joined),
                    None => None,
                };
                let verdict = match verdict {
                    Some(verdict) => Verdict { keep: false, ..verdict },
                    None if user.reader.has_begun() => {
                        Verdict::broken(ErrorKind::NotMcp, "half a reply, then the connection's end")
                    }
                    None => Verdict::broken(ErrorKind::Reset, "the connection was closed before the reply"),
                };
                self.complete(index, verdict, now);
            }
            State::Draining => self.drained(index, false, now),
            State::Connecting => self.not_connected(index, &io::ErrorKind::ConnectionReset.into(), now),
            State::Idle | State::Pausing | State::Parked => self.hang_up(index),
        }
    }

    /// The connection broke.
    pub(super) fn reset(&mut self, index: u32, error: &io::Error) {
        let now = self.clock.now();
        match self.users[index as usize].state {
            State::Connecting => self.not_connected(index, error, now),
            _ if !self.program.is_http() => {
                self.broken(index, ErrorKind::ProcessExit, format!("the program's pipe broke: {error}").into());
            }
            _ => self.broken(index, ErrorKind::Reset, format!("the connection broke: {error}").into()),
        }
    }

    /// Fails the current request of a user whose connection broke.
    fn broken(&mut self, index: u32, kind: ErrorKind, words: Cow<'static, str>) {
        let now = self.clock.now();
        match self.users[index as usize].state {
            State::Awaiting => self.complete(index, Verdict::broken(kind, words), now),
            State::Draining => self.drained(index, false, now),
            State::Connecting | State::Idle | State::Pausing | State::Parked => self.hang_up(index),
        }
    }

    /// A time limit has passed.
    pub(super) fn timed_out(&mut self, index: u32, now: u64) {
        let seconds = self.program.plan.timeout_s;
        match self.users[index as usize].state {
            State::Awaiting => {
                let words = format!("no whole reply within {seconds} s");
                self.complete(index, Verdict::broken(ErrorKind::Timeout, words), now);
            }
            State::Connecting => {
                self.users[index as usize].disconnect();
                let words = format!("no connection within {seconds} s");
                self.unconnected(index, (ErrorKind::Timeout, words.into()), now);
            }
            State::Draining => {
                self.held_open += 1;
                self.drained(index, false, now);
            }
            State::Idle | State::Pausing | State::Parked => {}
        }
    }
}

fn awaited<'a>(program: &'a Program, user: &User) -> Awaited<'a> {
    let expect = match user.request.what {
        What::Operation(number) => program.calls[usize::from(number)].expect.as_ref(),
        _ => None,
    };
    Awaited { what: user.request.what, id: user.request.id, in_session: user.has_session_id, expect }
}
