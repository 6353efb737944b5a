//! Samples of the server's process and of the connections.

use mcpace_record::{EventKind, Peer};

use super::{MEBIBYTE, SERVER, Traffic};
use crate::script::ms;

impl Traffic<'_> {
    /// Samples of the server's process over the whole time.
    pub(super) fn add_samples(&mut self) {
        let Some(period) = self.habits.sampled else { return };
        let period = period.max(self.end / 400.0);
        self.served.sort_by(f64::total_cmp);
        self.begun.sort_by(f64::total_cmp);
        let mut at = 1.0;
        while at < self.end + period {
            let served = self.served.partition_point(|time| *time <= at) as f64;
            let begun = self.begun.partition_point(|time| *time <= at) as f64;
            let kept =
                served * self.faults.request_leak.unwrap_or(0.0) + begun * self.faults.session_leak.unwrap_or(0.0);
            // An allocator grows at first, and garbage comes and goes.
            let garbage = 6.0 * (1.0 - (-served / 40.0).exp()) + self.dice.uniform(0.0, 2.0);
            let memory = 60.0 + garbage + kept / MEBIBYTE;
            let (cpu, resident) = (ms(200.0 + served * self.habits.processor), (memory * MEBIBYTE) as u64);
            self.script
                .event(at, EventKind::ProcessSample { of: Peer::Server, pid: SERVER, cpu, resident, threads: 4 });
            at += period;
        }
        self.add_processor_times();
    }

    /// Processor time of a server over stdio, read as each line passes. A request costs its time when it is answered.
    fn add_processor_times(&mut self) {
        self.lines.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut readings = vec![(0.0, 200.0)];
        let mut used = 200.0;
        for (_, done, cost) in &self.lines {
            used += cost;
            readings.push((*done, used));
        }
        let used_at = |at: f64| readings[readings.partition_point(|(moment, _)| *moment <= at) - 1].1;
        for (at, done, _) in std::mem::take(&mut self.lines) {
            for moment in [at, done] {
                let cpu = ms(used_at(moment));
                self.script.event(moment + 0.01, EventKind::ProcessorTime { of: Peer::Server, pid: SERVER, cpu });
            }
        }
    }

    /// Each connection is sampled when it is closed.
    pub(super) fn add_last_samples(&mut self) {
        let mut open: Vec<u64> = self.sockets.keys().copied().collect();
        open.sort_unstable();
        for conn in open {
            if let Some(sockets) = self.sockets.get_mut(&conn) {
                sockets.sampled = None;
            }
            self.sample_sockets(conn, self.end + 1.0);
        }
    }
}
