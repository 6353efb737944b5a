//! A request on its way out.
//!
//! Constraint: a request is one `write` where the socket takes it whole, and nothing on its way allocates.

use std::io;

use super::LoadWorker;
use crate::judge::Verdict;
use crate::plan::SessionMode;
use crate::program::RequestPurpose;
use crate::template::Fill;
use crate::user::{SentRequest, UserActivity};

impl LoadWorker {
    pub(super) fn send_request(&mut self, index: u32, what: RequestPurpose, now: u64) {
        let program = &self.program;
        let user = &mut self.users[index as usize];
        let id = program.plan.fixed_id.unwrap_or(self.next_id);
        self.next_id += self.threads as u64;
        self.body.clear();
        self.out.clear();
        let call = match what {
            RequestPurpose::Operation(number) => {
                self.counters[usize::from(number)] += 1;
                Some(&program.calls[usize::from(number)])
            }
            RequestPurpose::Initialize => Some(&program.initialize),
            RequestPurpose::Initialized => Some(&program.initialized),
            RequestPurpose::Delete => None,
        };
        let counter = match what {
            RequestPurpose::Operation(number) => {
                (self.counters[usize::from(number)] - 1) * self.threads as u64 + self.thread as u64
            }
            _ => 0,
        };
        if let Some(call) = call {
            call.body.render_message(
                id,
                &mut Fill { counter, user: user.number, random: &mut self.random },
                &mut self.body,
            );
        }
        let session: &[u8] = user.session.as_deref().unwrap_or_default();
        match (call.and_then(|call| call.head.as_ref()), what, &program.delete) {
            (Some(head), ..) | (None, RequestPurpose::Delete, Some(head)) => {
                head.render_request(session, &self.body, &mut self.out)
            }
            _ => {
                self.out.extend_from_slice(&self.body);
                self.out.push(b'\n');
            }
        }
        let sent_bytes = self.out.len() as u64;
        user.request = SentRequest { what, id, sent_ns: now, sent_bytes, received_bytes: 0 };
        user.state = UserActivity::Awaiting;
        if std::mem::replace(&mut user.is_used, true) {
            self.tally.connections.reused_requests += 1;
        }
        if matches!(what, RequestPurpose::Operation(_)) {
            let is_first = std::mem::take(&mut user.is_fresh);
            self.starting -= u32::from(is_first);
            // A closed model's session is opened before its call, not as part of it.
            let is_opened_before = is_first || program.plan.session == SessionMode::Call;
            if let Some(job) = user.job.as_mut().filter(|_| !program.is_open() && is_opened_before) {
                job.due_ns = now;
            }
        }
        self.deadlines.set_deadline(index, now + program.timeout_ns);
        let Some(link) = &mut user.link else { return };
        if user.unsent.is_empty() {
            match link.write(&self.out) {
                Ok(length) if length == self.out.len() => {}
                Ok(length) => user.unsent.extend_from_slice(&self.out[length..]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => user.unsent.extend_from_slice(&self.out),
                Err(error) => return self.connection_reset(index, &error),
            }
        } else {
            // A pipe that was full before: in order.
            user.unsent.extend_from_slice(&self.out);
        }
        // A notification over stdio has no answer.
        if what == RequestPurpose::Initialized && !self.program.is_http() {
            let verdict = Verdict { failure: None, form: None, ended: true, keep: true, agreed: None };
            self.complete_request(index, verdict, now);
        }
    }

    /// Sends what the socket didn't take before. Whether the connection is still there.
    pub(super) fn flush_unsent(&mut self, index: u32) -> bool {
        let user = &mut self.users[index as usize];
        let Some(link) = &mut user.link else { return false };
        let mut sent = 0;
        let outcome = loop {
            if sent == user.unsent.len() {
                break link.flush();
            }
            match link.write(&user.unsent[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        user.unsent.drain(..sent);
        if user.unsent.is_empty() && user.unsent.capacity() > 4096 {
            user.unsent = Vec::new();
        }
        outcome.map_err(|error| self.connection_reset(index, &error)).is_ok()
    }
}
