//! A user's way to a connection, and what it does next once it has one.
//!
//! A user always knows what comes next ([`LoadWorker::proceed_user`]).

use std::io;

use super::LoadWorker;
use crate::judge::ReplyFailure;
use crate::link::{TargetLink, opening_error};
use crate::outcome::ErrorKind;
use crate::plan::SessionMode;
use crate::program::RequestPurpose;
use crate::user::{User, UserActivity};

impl LoadWorker {
    /// Does what the user is to do next.
    pub(super) fn proceed_user(&mut self, index: u32, now: u64) {
        let is_http = self.program.is_http();
        let user = &self.users[index as usize];
        let ends_session = user.job.is_none()
            && user.has_session_id
            && (self.program.plan.session == SessionMode::Call || user.is_leaving);
        if user.job.is_none() && !ends_session {
            if user.is_leaving {
                self.user_left(index);
            } else {
                if self.program.plan.session == SessionMode::Call {
                    self.users[index as usize].forget_session();
                }
                self.rest_user(index, now);
            }
        } else if user.link.is_none() {
            self.connect_user(index, now);
        } else if ends_session {
            if is_http {
                self.send_request(index, RequestPurpose::Delete, now);
            }
        } else if self.program.has_sessions() && user.session.is_none() {
            self.send_request(index, RequestPurpose::Initialize, now);
        } else if self.program.has_sessions() && !user.has_greeted {
            self.send_request(index, RequestPurpose::Initialized, now);
        } else if let Some(job) = user.job {
            self.send_request(index, RequestPurpose::Operation(job.operation), now);
        }
    }

    fn connect_user(&mut self, index: u32, now: u64) {
        self.deadlines.set_deadline(index, now + self.program.timeout_ns);
        let user = &mut self.users[index as usize];
        user.state = UserActivity::Connecting;
        let number = User::event_number(index, user.generation);
        let program = &self.program;
        let opened = match &program.address {
            None => TargetLink::spawn_program(&program.plan.target, &self.poller, number),
            Some(address) => {
                let to = program.addresses[(self.address + user.tried) % program.addresses.len()];
                let tls = program.tls.as_ref().map(|config| (config, address.host.as_str()));
                TargetLink::connect(to, tls, &self.poller, number)
            }
        };
        match opened {
            Ok(link) => {
                let is_process = matches!(link, TargetLink::Process(_));
                user.link = Some(link);
                if is_process {
                    self.connection_made(index, now);
                }
            }
            Err(error) => self.not_connected(index, &error, now),
        }
    }

    /// Something happened to a connection that is being made.
    pub(super) fn continue_connecting(&mut self, index: u32, is_writable: bool) {
        let Some(link) = &mut self.users[index as usize].link else { return };
        match link.is_connected(is_writable) {
            Ok(None) => {}
            Ok(Some(())) => self.connection_made(index, self.clock.now()),
            Err(error) => self.not_connected(index, &error, self.clock.now()),
        }
    }

    fn connection_made(&mut self, index: u32, now: u64) {
        self.tally.connections.opened += 1;
        let user = &mut self.users[index as usize];
        if user.tried > 0 {
            self.address = (self.address + user.tried) % self.program.addresses.len();
            user.tried = 0;
        }
        self.proceed_user(index, now);
    }

    pub(super) fn not_connected(&mut self, index: u32, error: &io::Error, now: u64) {
        let user = &mut self.users[index as usize];
        user.drop_connection();
        user.tried += 1;
        if user.tried < self.program.addresses.len() {
            return self.connect_user(index, now);
        }
        user.tried = 0;
        let failure = match opening_error(error) {
            ErrorKind::Connect if !self.program.is_http() => {
                (ErrorKind::ProcessExit, format!("the program can't be started: {error}").into())
            }
            kind => (kind, format!("no connection: {error}").into()),
        };
        self.connection_failed(index, failure, now);
    }

    /// There is no connection, and there won't be one for this call.
    pub(super) fn connection_failed(&mut self, index: u32, failure: ReplyFailure, now: u64) {
        self.tally.connections.failed += 1;
        let user = &mut self.users[index as usize];
        user.failures = user.failures.saturating_add(1);
        if user.job.is_some() {
            self.fail_job(index, failure, now);
        } else {
            // It only wanted to end its session.
            user.forget_session();
        }
        self.proceed_user(index, now);
    }

    pub(super) fn hang_up(&mut self, index: u32) {
        self.users[index as usize].drop_connection();
    }

    /// The user has nothing to do any more, and its session is over.
    fn user_left(&mut self, index: u32) {
        if let Some(TargetLink::Process(process)) = self.users[index as usize].drop_connection() {
            self.children.extend(process.ask_to_end());
        }
        self.users[index as usize].forget_session();
        self.park_user(index);
    }
}
