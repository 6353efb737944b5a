//! Where the connection, the exchange, the call of a number stands in its list.

use std::collections::HashMap;

/// Positions by number. Instruments count up, so that a table holds nearly all; numbers far past those before them, which a
/// hostile recording may have, are in a map.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    table: Vec<u32>,
    strays: HashMap<u64, u32>,
    inserted: u64,
}

/// No position: lists are shorter than the events that they are made of, of which there are fewer.
const NOWHERE: u32 = u32::MAX;

/// Numbers that a table may leave out at its beginning.
const GAP: u64 = 1024;

/// Places of the table for each number that was inserted. Not for each place there is: numbers just below what there is room
/// for would double it each time.
const SPREAD: u64 = 4;

impl Positions {
    pub(crate) fn get(&self, number: u64) -> Option<usize> {
        let in_table = usize::try_from(number).ok().and_then(|at| self.table.get(at)).filter(|at| **at != NOWHERE);
        let found = in_table.or_else(|| self.strays.get(&number).filter(|_| !self.strays.is_empty()));
        found.map(|at| *at as usize)
    }

    pub(crate) fn insert(&mut self, number: u64, position: usize) {
        let position = u32::try_from(position).unwrap_or(NOWHERE);
        let room = self.inserted.saturating_mul(SPREAD).saturating_add(GAP);
        self.inserted += 1;
        match usize::try_from(number) {
            Ok(at) if number < room => {
                if at >= self.table.len() {
                    self.table.resize(at + 1, NOWHERE);
                }
                self.table[at] = position;
            }
            _ => {
                self.strays.insert(number, position);
            }
        }
    }
}

impl FromIterator<u64> for Positions {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut positions = Self::default();
        for (position, number) in numbers.into_iter().enumerate() {
            positions.insert(number, position);
        }
        positions
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn every_number_is_found_wherever_it_is_kept() {
        let numbers = [0, 1, 5_000, u64::MAX, 2, 900, 1_900, 5_001, u64::MAX - 1];
        let positions: Positions = numbers.into_iter().collect();
        for (position, number) in numbers.into_iter().enumerate() {
            assert_eq!(positions.get(number), Some(position), "{number}");
        }
        assert_eq!((positions.get(3), positions.get(6_000)), (None, None));
        assert!(positions.table.len() < 4_000, "a stray number takes no table");
    }

    #[test]
    fn numbers_just_below_what_there_is_room_for_take_no_more_than_was_inserted() {
        let doubling = iter::successors(Some(GAP - 1), |number| Some(number * 2 + GAP + 1)).take(20);
        let past_the_last = (0..500).map(|nth| GAP + nth * SPREAD - 1);
        for numbers in [doubling.collect::<Vec<u64>>(), past_the_last.collect()] {
            let positions: Positions = numbers.iter().copied().collect();
            let (places, inserted) = (positions.table.len() as u64, numbers.len() as u64);
            assert!(places <= inserted * SPREAD + GAP, "{places} places for {inserted} numbers");
            for (position, number) in numbers.into_iter().enumerate() {
                assert_eq!(positions.get(number), Some(position), "{number}");
            }
        }
    }

    #[test]
    fn a_number_keeps_its_last_position() {
        let mut positions: Positions = [7].into_iter().collect();
        positions.insert(7, 3);
        assert_eq!(positions.get(7), Some(3));
    }
}
