//! End of a request. Each request, successful or not, ends in [`LoadWorker::complete_request`], which counts it. A call that
//! has begun ends exactly once.
//!
//! Constraint: the latency of a call counts from the time at which the call was due. In the open model this is the time in the
//! schedule, so a call that is sent late because of earlier slow replies has this delay in its latency. In the closed model
//! it is the time at which the user was free, or the time of sending where the call needs a session first. `service_ns`
//! counts from the time of sending, as does the latency of the requests that open or end a session.

use super::LoadWorker;
use crate::judge::{ReplyFailure, Verdict};
use crate::outcome::ErrorKind;
use crate::plan::SessionMode;
use crate::program::RequestPurpose;
use crate::tally::EndedCall;
use crate::user::{SentRequest, UserActivity};

/// How long a stream may go on after the result before the connection is given up.
const GRACE_NS: u64 = 50_000_000;

impl LoadWorker {
    /// Counts a request that has ended in any way.
    pub(super) fn complete_request(&mut self, index: u32, verdict: Verdict, now: u64) {
        let user = &mut self.users[index as usize];
        let SentRequest { what, sent_ns, sent_bytes, received_bytes, .. } = user.request;
        let kind = verdict.failure.as_ref().map(|(kind, _)| *kind);
        match kind {
            None | Some(ErrorKind::ToolError | ErrorKind::JsonrpcError | ErrorKind::Assertion) => user.failures = 0,
            Some(ErrorKind::Reset | ErrorKind::ProcessExit) => user.failures = user.failures.saturating_add(1),
            Some(_) => {}
        }
        match (what, kind) {
            (RequestPurpose::Initialize, None) => {
                let version = verdict.agreed.as_deref().unwrap_or(self.program.plan.revision.as_str());
                user.has_session_id = user.reader.session_id().is_some();
                user.session = Some(session_lines(user.reader.session_id(), version));
            }
            (RequestPurpose::Initialized, None) => user.has_greeted = true,
            (RequestPurpose::Delete | RequestPurpose::Initialize, _) | (_, Some(ErrorKind::SessionLost)) => {
                user.forget_session()
            }
            _ => {}
        }
        match what {
            RequestPurpose::Operation(_) => {
                if let Some(job) = user.job.take() {
                    let ended = EndedCall {
                        latency_ns: now.saturating_sub(job.due_ns),
                        service_ns: now - sent_ns,
                        at_ns: now,
                        sent_bytes,
                        received_bytes,
                        form: verdict.form,
                        failure: verdict.failure,
                    };
                    self.count_call(what, job.due_ns, ended);
                }
            }
            _ => {
                let failure = verdict.failure.clone();
                if self.program.plan.session == SessionMode::User || self.program.is_measured(sent_ns) {
                    let time = now - sent_ns;
                    let ended = EndedCall {
                        latency_ns: time,
                        service_ns: time,
                        at_ns: now,
                        sent_bytes,
                        received_bytes,
                        form: verdict.form,
                        failure: verdict.failure,
                    };
                    self.tally.count_call(self.program.request_row(what), ended);
                }
                if let Some(failure) = failure {
                    self.fail_job(index, failure, now);
                }
            }
        }
        let user = &mut self.users[index as usize];
        if verdict.keep && !verdict.ended {
            user.state = UserActivity::Draining;
            user.reader.discard_body();
            self.drained += 1;
            // A target that holds its streams open would hold each user up.
            let holds = self.held_open > 3 && self.held_open * 10 > self.drained;
            self.deadlines.set_deadline(index, now + if holds { 0 } else { GRACE_NS });
            return;
        }
        self.reply_drained(index, verdict.keep, now);
    }

    /// The reply is over, too.
    pub(super) fn reply_drained(&mut self, index: u32, keep: bool, now: u64) {
        let user = &mut self.users[index as usize];
        // A reply that came before all of its request was sent leaves a connection that no next one can use.
        let is_cut = self.program.is_http() && (!user.unsent.is_empty() || self.program.plan.new_connections);
        if !keep || user.reader.closes_connection() || is_cut {
            self.hang_up(index);
        } else {
            user.reader.reset_reply();
            user.scan = Default::default();
        }
        self.users[index as usize].state = UserActivity::Idle;
        self.proceed_user(index, now);
    }

    /// The call fails before it could be sent.
    pub(super) fn fail_job(&mut self, index: u32, failure: ReplyFailure, now: u64) {
        let user = &mut self.users[index as usize];
        let Some(job) = user.job.take() else { return };
        let is_first = std::mem::take(&mut user.is_fresh);
        self.starting -= u32::from(is_first);
        let is_unsent = !self.program.is_open() && (is_first || self.program.plan.session == SessionMode::Call);
        let due = if is_unsent { job.begun_ns } else { job.due_ns };
        let ended = EndedCall {
            latency_ns: now.saturating_sub(due),
            service_ns: 0,
            at_ns: now,
            sent_bytes: 0,
            received_bytes: 0,
            form: None,
            failure: Some(failure),
        };
        self.count_call(RequestPurpose::Operation(job.operation), due, ended);
    }

    /// Counts a call of the plan's.
    fn count_call(&mut self, what: RequestPurpose, due: u64, ended: EndedCall) {
        if ended.failure.is_none() {
            self.part.ok += 1;
            self.part.latency.record(ended.latency_ns);
        } else {
            self.part.errors += 1;
        }
        if self.program.is_measured(due) {
            self.tally.begun += u64::from(!self.program.is_open());
            self.tally.count_call(self.program.request_row(what), ended);
        }
    }
}

/// The header lines that a session adds to each request.
fn session_lines(id: Option<&str>, version: &str) -> Box<[u8]> {
    let mut lines = String::new();
    if let Some(id) = id {
        lines.push_str(&format!("mcp-session-id: {id}\r\n"));
    }
    // The header came with 2025-06-18; revisions are named by their dates.
    if version >= "2025-06-18" {
        lines.push_str(&format!("mcp-protocol-version: {version}\r\n"));
    }
    lines.into_bytes().into_boxed_slice()
}
