//! Processor time of a server's process for each exchange, from readings of the process's clock.
//!
//! A reading while the process runs may be up to one timer tick too low (`crates/net/src/processor_clock.rs`). Where the next
//! request follows soon, its reading is therefore the end of the exchange before it: the process sleeps by then, and what
//! it does after a reply belongs to that reply. Time is known of exchanges that were alone at their process only.

use std::collections::{BTreeMap, HashMap};

use mcpace_record::{EventKind, ExchangeId, Nanos, Peer};

use super::{Exchange, Positions, Process};

/// A reading this long after the moment that it is for says nothing of that moment.
const SOON: Nanos = Nanos::from_millis(1);

/// The next request's reading ends an exchange where that request comes within this time of the reply, or within the time that
/// the exchange took.
const NEXT_REQUEST: Nanos = Nanos::from_millis(20);

/// One reading of a clock.
#[derive(Clone, Copy)]
struct Reading {
    at: Nanos,
    used: Nanos,
}

#[derive(Default)]
pub(super) struct ProcessorJoin(BTreeMap<u32, Vec<Reading>>);

impl ProcessorJoin {
    pub(super) fn join_event(&mut self, at: Nanos, kind: &EventKind) {
        if let EventKind::ProcessorTime { of: Peer::Server, pid, cpu } = *kind {
            self.0.entry(pid).or_default().push(Reading { at, used: cpu });
        }
    }

    /// Processor time of each exchange for which it is known.
    pub(super) fn finish_times(
        self,
        exchanges: &[Exchange<'_>],
        index: &Positions,
        processes: &[Process<'_>],
    ) -> HashMap<ExchangeId, Nanos> {
        let mut times = HashMap::new();
        for (pid, readings) in &self.0 {
            let own = processes.iter().find(|process| process.pid == *pid);
            // Over HTTP one process is watched; of several, nobody knows which one served.
            if own.is_none() && self.0.len() > 1 {
                continue;
            }
            let mut stays: Vec<Stay> = match own {
                Some(process) => {
                    let own = process.exchanges.iter().filter_map(|id| index.get(id.0));
                    own.filter_map(|at| Stay::of_exchange(&exchanges[at])).collect()
                }
                None => exchanges.iter().filter_map(Stay::of_exchange).collect(),
            };
            stays.sort_by_key(|stay| stay.from);
            times.extend(processor_times(readings, &stays));
        }
        times
    }
}

/// An exchange's time at the server.
struct Stay {
    exchange: ExchangeId,
    from: Nanos,
    /// `None` where no reply came, so that nobody knows how long the server worked.
    until: Option<Nanos>,
}

impl Stay {
    fn of_exchange(exchange: &Exchange<'_>) -> Option<Self> {
        let back = exchange.back()?;
        let from = back.request_end?.at;
        let until = back.result_end.map(|end| end.at.max(from));
        (!exchange.is_standalone_stream()).then_some(Self { exchange: exchange.id, from, until })
    }
}

fn processor_times<'r>(readings: &'r [Reading], stays: &'r [Stay]) -> impl Iterator<Item = (ExchangeId, Nanos)> + 'r {
    let mut busy_until = Nanos::ZERO;
    stays.iter().enumerate().filter_map(move |(number, stay)| {
        let is_first = busy_until <= stay.from;
        busy_until = busy_until.max(stay.until.unwrap_or(stay.from));
        let next = stays.get(number + 1).map(|next| next.from);
        let until = stay.until.filter(|until| is_first && next.is_none_or(|next| next >= *until))?;
        let limit = NEXT_REQUEST.max(until.since(stay.from));
        let end = next.filter(|next| next.since(until) <= limit).and_then(|next| reading_at(readings, next));
        let begin = reading_at(readings, stay.from)?;
        Some((stay.exchange, end.or_else(|| reading_at(readings, until))?.used.since(begin.used)))
    })
}

/// The first reading from a moment on, where it was taken soon after that moment.
fn reading_at(readings: &[Reading], moment: Nanos) -> Option<Reading> {
    let reading = *readings.get(readings.partition_point(|reading| reading.at < moment))?;
    (reading.at.since(moment) <= SOON).then_some(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(number: u64, from: u64, until: u64) -> Stay {
        Stay { exchange: ExchangeId(number), from: Nanos::from_millis(from), until: Some(Nanos::from_millis(until)) }
    }

    /// Readings at (milliseconds, milliseconds of processor time).
    fn times(readings: &[(u64, u64)], stays: &[Stay]) -> Vec<(u64, u64)> {
        let reading =
            |(at, used): &(u64, u64)| Reading { at: Nanos::from_millis(*at), used: Nanos::from_millis(*used) };
        let readings: Vec<Reading> = readings.iter().map(reading).collect();
        processor_times(&readings, stays).map(|(exchange, time)| (exchange.0, time.0 / 1_000_000)).collect()
    }

    #[test]
    fn the_reading_at_the_next_request_ends_an_exchange() {
        let readings = [(0, 100), (10, 103), (12, 107), (20, 108)];
        assert_eq!(times(&readings, &[stay(1, 0, 10), stay(2, 12, 20)]), [(1, 7), (2, 1)]);
    }

    #[test]
    fn work_of_a_long_pause_belongs_to_no_exchange() {
        let readings = [(0, 100), (10, 103), (500, 190), (510, 191)];
        assert_eq!(times(&readings, &[stay(1, 0, 10), stay(2, 500, 510)]), [(1, 3), (2, 1)]);
    }

    #[test]
    fn exchanges_that_overlap_have_no_time_of_their_own() {
        let readings = [(0, 100), (5, 101), (10, 103), (15, 104), (30, 105), (31, 106)];
        assert_eq!(times(&readings, &[stay(1, 0, 10), stay(2, 5, 15), stay(3, 30, 31)]), [(3, 1)]);
    }

    #[test]
    fn a_moment_without_a_reading_leaves_the_time_unknown() {
        assert_eq!(times(&[(5, 100), (10, 103)], &[stay(1, 0, 10)]), []);
    }
}
