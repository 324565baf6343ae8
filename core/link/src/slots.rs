//! Things with names that never come back: an index and a generation.

use alloc::vec::Vec;

/// At most so many things, each found in one step.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    limit: u16,
    next_generation: u32,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub fn new(limit: u16) -> Self {
        Self {
            slots: Vec::new(),
            limit,
            next_generation: 0,
        }
    }

    /// The new thing's index and generation; `None` at the limit.
    pub fn insert(&mut self, value: T) -> Option<(u16, u32)> {
        let free = self.slots.iter().position(|slot| slot.value.is_none());
        let index = free.unwrap_or(self.slots.len());
        if index >= usize::from(self.limit) {
            return None;
        }
        self.next_generation = self.next_generation.wrapping_add(1);
        let slot = Slot {
            generation: self.next_generation,
            value: Some(value),
        };
        match self.slots.get_mut(index) {
            Some(old) => *old = slot,
            None => self.slots.push(slot),
        }
        Some((index as u16, self.next_generation))
    }

    fn slot(&self, index: u16, generation: u32) -> Option<usize> {
        let slot = self.slots.get(usize::from(index))?;
        (slot.generation == generation).then_some(index.into())
    }

    pub fn get(&self, index: u16, generation: u32) -> Option<&T> {
        self.slots[self.slot(index, generation)?].value.as_ref()
    }

    pub fn get_mut(&mut self, index: u16, generation: u32) -> Option<&mut T> {
        let at = self.slot(index, generation)?;
        self.slots[at].value.as_mut()
    }

    pub fn remove(&mut self, index: u16, generation: u32) -> Option<T> {
        let at = self.slot(index, generation)?;
        self.slots[at].value.take()
    }

    /// Index, generation and thing, in the order of indexes.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u32, &T)> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| {
            let value = slot.value.as_ref()?;
            Some((index, slot.generation, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_but_its_old_name_finds_nothing() {
        let mut slots = Slots::new(2);
        let (first, old) = slots.insert('a').expect("room");
        slots.insert('b').expect("room");
        assert_eq!(slots.insert('c'), None);
        assert_eq!(slots.remove(first, old), Some('a'));
        let (again, new) = slots.insert('c').expect("room");
        assert_eq!(again, first);
        assert_eq!(slots.get(first, old), None);
        assert_eq!(slots.get(again, new), Some(&'c'));
        assert_eq!(slots.remove(first, old), None);
    }
}
