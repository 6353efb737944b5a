//! A map that forgets its oldest entries, for everything that peers can make a target remember.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// At most `capacity` entries; one more pushes out the oldest.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    capacity: usize,
    entries: HashMap<K, V>,
    /// Keys in the order of their insertion. Removed keys stay until they reach the front or until
    /// the order has grown to twice the capacity.
    order: VecDeque<K>,
}

impl<K: Clone + Eq + Hash, V> Bounded<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.entries.len() > self.capacity {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.entries.remove(&oldest);
        }
        if self.order.len() > 2 * self.capacity {
            self.order.retain(|key| self.entries.contains_key(key));
        }
    }

    pub(crate) fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)
    }

    pub(crate) fn find_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key)
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_memory_stays_bounded() {
        let mut map = Bounded::new(3);
        for number in 0..5 {
            map.insert(number, number);
        }
        assert_eq!((map.find(&1), map.find(&2)), (None, Some(&2)));
        for number in 0..1000 {
            map.insert(number, number);
            map.remove(&number);
        }
        assert!(map.order.len() <= 7);
    }
}
