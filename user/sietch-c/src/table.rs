//! The data that a program has, by names that are never given twice.
//!
//! A name is a place in the table below and the serial number of the giving above, so one whose data is gone
//! finds none, or somebody else's serial. Serials have 40 bits: at a million a second they last for
//! twelve days, and then a name would have to be that old. Data without bytes needs no place: it is the name zero.

use std::mem;

use sietch_io::{Chain, Mbuf};

use crate::failure::{Failure, Result};

const PLACE_BITS: u32 = 24;
const PLACES_MAX: usize = 1 << PLACE_BITS;
const SERIAL_MASK: u64 = u64::MAX >> PLACE_BITS;

/// What a name stands for.
pub enum Held {
    /// Nothing, and which place is free next.
    Nothing(Option<u32>),
    /// Bytes to be read or sent.
    Data(Chain),
    /// Bytes that the program still writes.
    Buffer(Mbuf),
}

struct Slot {
    serial: u64,
    held: Held,
}

/// See the module.
#[derive(Default)]
pub struct Table {
    slots: Vec<Slot>,
    free: Option<u32>,
    /// The last one given.
    serial: u64,
}

impl Table {
    /// Whether one more has a place.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.free.is_some() || self.slots.len() < PLACES_MAX
    }

    /// A name for data; zero if there are no bytes.
    #[inline]
    pub fn add_data(&mut self, data: Chain) -> Result<u64> {
        match data.is_empty() {
            true => Ok(0),
            false => self.add(Held::Data(data)),
        }
    }

    /// A name for what is not [`Held::Nothing`].
    ///
    /// Errors: there are too many.
    #[inline]
    pub fn add(&mut self, held: Held) -> Result<u64> {
        let place = match self.free {
            Some(place) => place,
            None => self.add_slot()?,
        };
        let slot = self.slots.get_mut(place as usize);
        let slot = slot.ok_or(Failure::NO_BUFFERS)?;
        if let Held::Nothing(next) = mem::replace(&mut slot.held, held) {
            self.free = next;
        }
        // Never zero, or a name could be.
        self.serial = (self.serial % SERIAL_MASK) + 1;
        slot.serial = self.serial;
        Ok(self.serial << PLACE_BITS | u64::from(place))
    }

    #[cold]
    fn add_slot(&mut self) -> Result<u32> {
        if !self.has_room() {
            return Err(Failure::NO_BUFFERS);
        }
        let place = self.slots.len() as u32;
        self.slots.push(Slot {
            serial: 0,
            held: Held::Nothing(None),
        });
        self.free = Some(place);
        Ok(place)
    }

    #[inline]
    fn slot(&mut self, name: u64) -> Result<&mut Slot> {
        let slot = self.slots.get_mut(place_of(name) as usize);
        let slot = slot.filter(|slot| slot.serial == name >> PLACE_BITS && slot.serial != 0);
        slot.ok_or(Failure::BAD_NAME)
    }

    /// What a name stands for.
    #[inline]
    pub fn get(&mut self, name: u64) -> Result<&mut Held> {
        self.slot(name).map(|slot| &mut slot.held)
    }

    /// The bytes of a name, to be sent: of a buffer, what was written so far; it is none from now on.
    #[inline]
    pub fn data(&mut self, name: u64) -> Result<&mut Chain> {
        let held = self.get(name)?;
        if let Held::Buffer(_) = held {
            *held = Held::Data(mem::replace(held, Held::Nothing(None)).into_data());
        }
        match held {
            Held::Data(data) => Ok(data),
            _ => Err(Failure::BAD_NAME),
        }
    }

    /// Takes the bytes; the name is dead.
    #[inline]
    pub fn take(&mut self, name: u64) -> Result<Chain> {
        if name == 0 {
            return Ok(Chain::new());
        }
        let free = self.free;
        let slot = self.slot(name)?;
        slot.serial = 0;
        let held = mem::replace(&mut slot.held, Held::Nothing(free));
        self.free = Some(place_of(name));
        Ok(held.into_data())
    }
}

impl Held {
    #[inline]
    fn into_data(self) -> Chain {
        match self {
            Self::Data(data) => data,
            Self::Buffer(buffer) => {
                let mut data = Chain::new();
                data.push_back(buffer);
                data
            }
            Self::Nothing(_) => Chain::new(),
        }
    }
}

#[inline]
fn place_of(name: u64) -> u32 {
    name as u32 & (PLACES_MAX as u32 - 1)
}

#[cfg(test)]
mod tests {
    use mbuf::{HeapPool, Pool};

    use super::*;

    fn buffer(pool: &HeapPool, bytes: &[u8]) -> Held {
        let mut buffer = pool.alloc().expect("the pool is large enough");
        buffer.append(bytes);
        Held::Buffer(buffer)
    }

    #[test]
    fn a_name_finds_its_data_until_that_is_taken_and_then_nothing() {
        let pool = HeapPool::new(8);
        let mut table = Table::default();
        let first = table.add(buffer(&pool, b"first")).unwrap();
        let second = table.add(buffer(&pool, b"second")).unwrap();
        assert_eq!(table.data(first).unwrap().len(), 5);
        assert_eq!(table.take(first).unwrap().len(), 5);
        // In the same place.
        let third = table.add(buffer(&pool, b"the third")).unwrap();
        assert_eq!(place_of(third), place_of(first));
        assert_ne!(third, first);
        assert_eq!(table.take(first).err(), Some(Failure::BAD_NAME));
        assert_eq!(table.take(second).unwrap().len(), 6);
        assert_eq!(table.take(third).unwrap().len(), 9);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn what_was_never_named_is_not_found() {
        let mut table = Table::default();
        for name in [1, 1 << PLACE_BITS, u64::MAX] {
            assert_eq!(table.take(name).err(), Some(Failure::BAD_NAME));
            assert!(table.get(name).is_err() && table.data(name).is_err());
        }
    }

    #[test]
    fn data_without_bytes_is_the_name_zero() {
        let mut table = Table::default();
        assert_eq!(table.add_data(Chain::new()), Ok(0));
        assert!(table.take(0).unwrap().is_empty());
        assert!(table.slots.is_empty());
    }
}
