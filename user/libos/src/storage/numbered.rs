//! What is under way, by numbers that are given out in order.
//!
//! A tree makes and frees a node for each thing that is alone in it, which is most of what one transfer at a time costs. What is
//! under way is little, comes in the order of its numbers and goes nearly so: a queue in order needs no memory once it was full.

use std::collections::VecDeque;

/// Values by number.
#[derive(Debug)]
pub struct Numbered<V>(VecDeque<(u64, V)>);

impl<V> Numbered<V> {
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Under a number that nothing has; the higher it is the sooner it is done.
    pub fn insert(&mut self, number: u64, value: V) {
        let at = match self.0.back() {
            Some((last, _)) if *last >= number => self.0.partition_point(|(of, _)| *of < number),
            _ => self.0.len(),
        };
        self.0.insert(at, (number, value));
    }

    pub fn remove(&mut self, number: u64) -> Option<V> {
        let at = self.0.binary_search_by_key(&number, |(of, _)| *of).ok()?;
        self.0.remove(at).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_went_in_comes_out_by_its_number_in_any_order() {
        let (mut numbered, mut tree) = (Numbered::new(), BTreeMap::new());
        let mut chance = 1_u64;
        for next in 0..2000 {
            numbered.insert(next, next * 3);
            tree.insert(next, next * 3);
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let back = (chance >> 33) % 40;
            let number = next.saturating_sub(back);
            let (one, other) = (numbered.remove(number), tree.remove(&number));
            assert_eq!(one, other);
            // One that is put back is where it was.
            if let Some(value) = one.filter(|_| back.is_multiple_of(3)) {
                numbered.insert(number, value);
                tree.insert(number, value);
            }
            assert_eq!(numbered.is_empty(), tree.is_empty());
        }
        let left = numbered.0.into_iter().collect::<Vec<_>>();
        assert_eq!(left, tree.into_iter().collect::<Vec<_>>());
    }
}
