//! The first items, by sort key, of what several threads find in any order. Items that can't be among the first are
//! rejected before they are examined. So a page is found without searching everything, and is the same each time.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

use crate::support::cursor::SortKey;

/// The first items by their keys, up to a total weight.
pub(crate) struct TopItems<T> {
    /// The total weight to keep.
    most: usize,
    kept: Mutex<WeightedItems<T>>,
}

struct WeightedItems<T> {
    items: BTreeMap<SortKey, (usize, T)>,
    weight: usize,
}

impl<T> TopItems<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::new(WeightedItems { items: BTreeMap::new(), weight: 0 }) }
    }

    /// Whether an item with this key could still be among the first; in path order, also whether an item beneath this
    /// directory could.
    pub(crate) fn accepts(&self, key: &SortKey) -> bool {
        let kept = self.lock();
        kept.weight < self.most || kept.items.last_key_value().is_none_or(|(last, _)| key < last)
    }

    /// Adds an item that counts for `weight`, and drops items that are no longer among the first.
    pub(crate) fn add(&self, key: SortKey, weight: usize, item: T) {
        let mut kept = self.lock();
        kept.weight += weight;
        kept.items.insert(key, (weight, item));
        while let Some(last) = kept.items.last_entry() {
            let last_weight = last.get().0;
            if kept.weight - last_weight < self.most {
                break;
            }
            kept.items.pop_last();
            kept.weight -= last_weight;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// The kept items, in order.
    pub(crate) fn into_ordered(self) -> impl Iterator<Item = (SortKey, T)> {
        let kept = self.kept.into_inner();
        kept.items.into_iter().map(|(key, (_, item))| (key, item))
    }

    fn lock(&self) -> MutexGuard<'_, WeightedItems<T>> {
        self.kept.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(most: usize, found: &[(&str, usize)]) -> Vec<String> {
        let first = TopItems::new(most);
        for (path, weight) in found {
            if first.accepts(&SortKey::by_path(path)) {
                first.add(SortKey::by_path(path), *weight, ());
            }
        }
        first.into_ordered().map(|(key, ())| key.path).collect()
    }

    #[test]
    fn the_first_are_kept_whatever_the_order_they_come_in() {
        assert_eq!(kept(2, &[("d", 1), ("b", 1), ("c", 1), ("a", 1)]), ["a", "b"]);
        assert_eq!(kept(2, &[("a", 1), ("b", 1), ("c", 1), ("d", 1)]), ["a", "b"]);
        assert_eq!(kept(9, &[("b", 1), ("a", 1)]), ["a", "b"]);
    }

    #[test]
    fn weights_count() {
        assert_eq!(kept(5, &[("c", 3), ("b", 3), ("a", 1)]), ["a", "b", "c"]);
        assert_eq!(kept(4, &[("c", 3), ("b", 3), ("a", 1)]), ["a", "b"]);
    }
}
