//! End of a run: no more calls begin, calls under way get their time, sessions are closed, and programs end.

use super::{LoadWorker, SECOND_NS, STOPPED_DRAIN_NS};
use crate::program_pipes::{end_program, is_running};
use crate::user::UserActivity;

impl LoadWorker {
    /// No more calls begin: those who are free leave. How long the others have.
    pub(super) fn drain_users(&mut self, now: u64, is_stopped: bool) -> u64 {
        self.is_ending = true;
        self.measured_end = now.min(self.program.end_ns);
        self.tally.measured_ns = self.measured_end.saturating_sub(self.program.warm_up_ns);
        self.idle.clear();
        for index in 0..self.users.len() as u32 {
            if matches!(self.users[index as usize].state, UserActivity::Idle | UserActivity::Pausing) {
                self.dismiss_user(index, now);
            }
        }
        self.program.drain_ns.min(if is_stopped { STOPPED_DRAIN_NS } else { u64::MAX })
    }

    /// Time is up for those who still wait for a reply.
    pub(super) fn abandon_waiting(&mut self, now: u64) {
        for index in 0..self.users.len() as u32 {
            let user = &mut self.users[index as usize];
            if !matches!(user.state, UserActivity::Connecting | UserActivity::Awaiting | UserActivity::Draining) {
                continue;
            }
            if let Some(job) = user.job.take() {
                let due = if user.is_fresh && !self.program.is_open() { job.begun_ns } else { job.due_ns };
                self.tally.unfinished += u64::from(self.program.is_measured(due));
                if !self.program.is_open() {
                    self.tally.begun += u64::from(self.program.is_measured(due));
                }
            } else if user.is_leaving && user.state != UserActivity::Draining {
                // Its session's end was under way already, and has this last second, too.
                continue;
            }
            user.drop_connection();
            self.dismiss_user(index, now);
        }
    }

    /// Whether no call is under way.
    pub(super) fn is_quiet(&self) -> bool {
        if self.program.is_open() { self.alive == self.idle.len() as u64 } else { self.alive == 0 }
    }

    /// Programs that were asked to end get a moment for it.
    pub(super) fn end_programs(&mut self) {
        let until = self.clock.now() + 2 * SECOND_NS;
        loop {
            self.children.retain_mut(is_running);
            if self.children.is_empty() || self.clock.now() >= until {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.children.iter_mut().for_each(end_program);
    }
}
