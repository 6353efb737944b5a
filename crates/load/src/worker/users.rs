//! Life of users: they come, begin their calls, pause between them, and go.
//!
//! Constraint: nothing here knows what a call is made of; a call that has begun is `connecting`'s and `sending`'s.

use super::LoadWorker;
use crate::schedule::thread_share;
use crate::user::{Job, User, UserActivity};

/// Users of a thread that may be on the way to their first call at the same time. More would overflow the target's
/// backlog, and each refused connection would wait a second for its next attempt.
const MOST_STARTING: u32 = 64;

impl LoadWorker {
    /// The closed model: as many users as there should be.
    pub(super) fn populate_users(&mut self, now: u64) {
        if self.program.is_open() || (self.is_flat && self.staying >= self.most_users) {
            return;
        }
        let wanted = thread_share(self.profile.level_at(now).round() as u64, self.thread, self.threads);
        while self.staying < wanted && self.starting < MOST_STARTING && self.budget > 0 {
            let index = self.enter_user();
            self.starting += 1;
            self.begin_call(index, now, now);
        }
    }

    /// Whether the closed model has one user too many.
    fn has_too_many(&self, now: u64) -> bool {
        !self.is_flat
            && self.staying > thread_share(self.profile.level_at(now).round() as u64, self.thread, self.threads)
    }

    /// The open model: begins what is due. Gives the time, which has gone on.
    pub(super) fn begin_arrivals(&mut self) -> u64 {
        let mut now = self.clock.now();
        // Calls that the warm-up couldn't begin end with it: its backlog does not belong to the measured part.
        while now >= self.program.warm_up_ns && self.next_due.is_some_and(|due| due < self.program.warm_up_ns) {
            self.next_due = self.due.next();
        }
        while let Some(due) = self.next_due.filter(|due| *due <= now) {
            if self.budget == 0 {
                self.next_due = None;
                break;
            }
            let index = match self.idle.pop() {
                Some(index) => index,
                None if self.alive < self.most_users => {
                    self.starting += 1;
                    self.enter_user()
                }
                None => {
                    self.is_full = true;
                    break;
                }
            };
            if due <= self.full_until {
                self.tally.late += u64::from(self.program.is_measured(due));
            } else if due >= self.program.warm_up_ns {
                self.tally.lateness.record(now - due);
            }
            self.next_due = self.due.next();
            self.tally.begun += u64::from(self.program.is_measured(due));
            self.begin_call(index, due, now);
            now = self.clock.now();
        }
        now
    }

    /// A user comes, or comes back.
    fn enter_user(&mut self) -> u32 {
        self.alive += 1;
        self.staying += 1;
        let index = self.parked.pop().unwrap_or_else(|| {
            let index = self.users.len() as u32;
            self.users.push(User::new(self.thread as u64 + u64::from(index) * self.threads as u64));
            self.deadlines.add_user();
            index
        });
        let user = &mut self.users[index as usize];
        (user.state, user.is_fresh, user.is_leaving, user.failures) = (UserActivity::Idle, true, false, 0);
        index
    }

    /// Begins a call.
    fn begin_call(&mut self, index: u32, due_ns: u64, now: u64) {
        if self.budget != u64::MAX && now >= self.program.warm_up_ns {
            self.budget -= 1;
        }
        if !self.program.is_open() {
            self.part.intended += 1;
        }
        let user = &mut self.users[index as usize];
        let operation = self.program.choose_operation(&mut self.random, &mut user.turn);
        user.job = Some(Job { operation, due_ns, begun_ns: now });
        self.proceed_user(index, now);
    }

    /// A user has nothing to do.
    pub(super) fn rest_user(&mut self, index: u32, now: u64) {
        let is_open = self.program.is_open();
        let is_over = self.is_ending || (!is_open && (self.budget == 0 || self.has_too_many(now)));
        let user = &mut self.users[index as usize];
        user.state = UserActivity::Idle;
        if is_over {
            self.dismiss_user(index, now);
        } else if is_open {
            self.idle.push(index);
            if std::mem::take(&mut self.is_full) {
                self.full_until = now;
            }
        } else if user.failures > 0 || self.program.think_ns > 0 {
            // A target that refuses connections is not asked a hundred thousand times a second.
            let back_off = if user.failures > 0 { 5_000_000u64 << user.failures.min(7) } else { 0 };
            user.pause_ns = now + self.program.think_ns.max(back_off);
            user.state = UserActivity::Pausing;
            self.pauses.add_pause(index, user.pause_ns);
        } else {
            self.schedule_next(index, now, now);
        }
    }

    /// The closed model's next call, of a user that is idle.
    pub(super) fn schedule_next(&mut self, index: u32, due: u64, now: u64) {
        if self.is_ending || self.budget == 0 || self.has_too_many(now) {
            self.dismiss_user(index, now);
        } else if due < self.program.end_ns {
            // Otherwise this thread is late, and the user leaves in `drain_users`.
            self.begin_call(index, due, now);
        }
    }

    /// A user is to go, and ends its session first.
    pub(super) fn dismiss_user(&mut self, index: u32, now: u64) {
        let user = &mut self.users[index as usize];
        if !std::mem::replace(&mut user.is_leaving, true) {
            self.staying -= 1;
        }
        self.proceed_user(index, now);
    }

    /// A user has gone.
    pub(super) fn park_user(&mut self, index: u32) {
        let user = &mut self.users[index as usize];
        user.state = UserActivity::Parked;
        if std::mem::take(&mut user.is_fresh) {
            self.starting = self.starting.saturating_sub(1);
        }
        self.deadlines.clear_deadline(index);
        self.alive -= 1;
        self.parked.push(index);
    }
}
