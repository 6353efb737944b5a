//! Handling of incoming bytes, closed connections and time-outs. Each becomes one [`Verdict`].

use std::borrow::Cow;
use std::io;

use super::LoadWorker;
use crate::judge::{Awaited, Verdict};
use crate::outcome::ErrorKind;
use crate::program::{Program, RequestPurpose};
use crate::user::{User, UserActivity};

/// Reads of 64 KiB that one socket may take in a turn: a peer that sends without end must not keep its thread from the
/// clock and from all other users.
const READS_A_TURN: usize = 16;

impl LoadWorker {
    /// Reads what has come; what is too much for a turn, in the next.
    pub(super) fn read_ready(&mut self, index: u32, is_closed: bool, scratch: &mut [u8]) {
        let generation = self.users[index as usize].generation;
        for _ in 0..READS_A_TURN {
            let user = &mut self.users[index as usize];
            if user.generation != generation {
                return;
            }
            let Some(link) = &mut user.link else { return };
            match link.read(scratch) {
                Ok(0) => return self.peer_closed(index),
                Ok(length) => {
                    if self.program.plan.quick_ack {
                        link.acknowledge_now();
                    }
                    let is_last = length < scratch.len() && !is_closed && link.short_read_is_last();
                    self.take_bytes(index, &scratch[..length]);
                    if is_last {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.connection_reset(index, &error),
            }
        }
        self.unread.push(User::event_number(index, generation));
    }

    fn take_bytes(&mut self, index: u32, data: &[u8]) {
        let limit = self.program.plan.limits.body_bytes;
        let is_http = self.program.is_http();
        let user = &mut self.users[index as usize];
        match user.state {
            UserActivity::Awaiting => {}
            UserActivity::Draining => {
                let keep = match user.reader.feed_bytes(data, limit) {
                    Ok(Some(fed)) if fed.ended => !fed.excess,
                    Ok(_) => return user.reader.discard_body(),
                    Err(_) => false,
                };
                let now = self.clock.now();
                return self.reply_drained(index, keep, now);
            }
            // Over stdio a server may say something unasked; over HTTP it may not.
            _ if !is_http => return,
            _ => return self.hang_up(index),
        }
        user.request.received_bytes += data.len() as u64;
        if !is_http {
            return self.take_lines(index, data);
        }
        let awaited = awaited_reply(&self.program, user);
        let verdict = match user.reader.feed_bytes(data, limit) {
            Err(wrong) => Some(Verdict::malformed_reply(&wrong, limit)),
            Ok(None) => None,
            Ok(Some(fed)) => awaited.judge_reply(&fed, &mut user.scan, &mut self.joined),
        };
        match verdict {
            Some(verdict) => {
                let now = self.clock.now();
                self.complete_request(index, verdict, now);
            }
            None => {
                let done = user.scan.done_bytes();
                if user.reader.forget_bytes(done) {
                    user.scan.forget_bytes(done);
                }
            }
        }
    }

    fn take_lines(&mut self, index: u32, data: &[u8]) {
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
            if user.state != UserActivity::Awaiting || line.is_empty() {
                continue;
            }
            if let Some(verdict) = awaited_reply(&self.program, user).judge_line(line) {
                let now = self.clock.now();
                self.complete_request(index, verdict, now);
            }
        }
        let user = &mut self.users[index as usize];
        user.line.extend_from_slice(rest);
        if user.line.len() > limit {
            let words = format!("a line of more than {limit} bytes");
            self.fail_current(index, ErrorKind::TooLarge, words.into());
        }
    }

    /// The target has closed the connection, or the program its output.
    fn peer_closed(&mut self, index: u32) {
        self.tally.connections.closed_by_peer += 1;
        let now = self.clock.now();
        let is_http = self.program.is_http();
        let user = &mut self.users[index as usize];
        match user.state {
            UserActivity::Awaiting if !is_http => {
                self.fail_current(index, ErrorKind::ProcessExit, "the program ended before its reply".into());
            }
            UserActivity::Awaiting => {
                let awaited = awaited_reply(&self.program, user);
                let verdict = match user.reader.close_reply() {
                    Some(fed) => awaited.judge_reply(&fed, &mut user.scan, &mut self.joined),
                    None => None,
                };
                let verdict = match verdict {
                    Some(verdict) => Verdict { keep: false, ..verdict },
                    None if user.reader.has_begun() => {
                        Verdict::broken_connection(ErrorKind::NotMcp, "half a reply, then the connection's end")
                    }
                    None => Verdict::broken_connection(ErrorKind::Reset, "the connection was closed before the reply"),
                };
                self.complete_request(index, verdict, now);
            }
            UserActivity::Draining => self.reply_drained(index, false, now),
            UserActivity::Connecting => self.not_connected(index, &io::ErrorKind::ConnectionReset.into(), now),
            UserActivity::Idle | UserActivity::Pausing | UserActivity::Parked => self.hang_up(index),
        }
    }

    /// The connection broke.
    pub(super) fn connection_reset(&mut self, index: u32, error: &io::Error) {
        let now = self.clock.now();
        match self.users[index as usize].state {
            UserActivity::Connecting => self.not_connected(index, error, now),
            _ if !self.program.is_http() => {
                self.fail_current(index, ErrorKind::ProcessExit, format!("the program's pipe broke: {error}").into());
            }
            _ => self.fail_current(index, ErrorKind::Reset, format!("the connection broke: {error}").into()),
        }
    }

    /// Fails the current request of a user whose connection broke.
    fn fail_current(&mut self, index: u32, kind: ErrorKind, words: Cow<'static, str>) {
        let now = self.clock.now();
        match self.users[index as usize].state {
            UserActivity::Awaiting => self.complete_request(index, Verdict::broken_connection(kind, words), now),
            UserActivity::Draining => self.reply_drained(index, false, now),
            UserActivity::Connecting | UserActivity::Idle | UserActivity::Pausing | UserActivity::Parked => {
                self.hang_up(index)
            }
        }
    }

    /// A time limit has passed.
    pub(super) fn timed_out(&mut self, index: u32, now: u64) {
        let seconds = self.program.plan.timeout_s;
        match self.users[index as usize].state {
            UserActivity::Awaiting => {
                let words = format!("no whole reply within {seconds} s");
                self.complete_request(index, Verdict::broken_connection(ErrorKind::Timeout, words), now);
            }
            UserActivity::Connecting => {
                self.users[index as usize].drop_connection();
                let words = format!("no connection within {seconds} s");
                self.connection_failed(index, (ErrorKind::Timeout, words.into()), now);
            }
            UserActivity::Draining => {
                self.held_open += 1;
                self.reply_drained(index, false, now);
            }
            UserActivity::Idle | UserActivity::Pausing | UserActivity::Parked => {}
        }
    }
}

fn awaited_reply<'a>(program: &'a Program, user: &User) -> Awaited<'a> {
    let expect = match user.request.what {
        RequestPurpose::Operation(number) => program.calls[usize::from(number)].expect.as_ref(),
        _ => None,
    };
    Awaited { what: user.request.what, id: user.request.id, in_session: user.has_session_id, expect }
}
