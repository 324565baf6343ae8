//! Reading entries, each of which is checked again as it comes from the disk.

use alloc::vec::Vec;

use block::Failure;

use crate::area::Area;
use crate::entry::{HEADER_BYTES, Header};
use crate::shape::{Place, Shape};

/// Where somebody reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    pub(crate) id: u64,
    pub(crate) shape: Shape,
    pub(crate) place: Place,
    /// Entries from this place on are not read.
    pub(crate) end: Place,
}

/// An entry that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Where it begins.
    pub place: Place,
    /// Where the next one begins.
    pub end: Place,
    /// What the layer above takes it for.
    pub tag: u8,
}

/// Why there is no entry to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// The disk says so.
    Device(Failure),
    /// What is there is not the entry that was durable there.
    Corrupt(Place),
}

impl Cursor {
    /// The next entry, whose bytes replace what is in `into`; nothing at the end.
    pub fn next(
        &mut self,
        area: &mut dyn Area,
        into: &mut Vec<u8>,
    ) -> Result<Option<Item>, ReadError> {
        if self.place.sequence >= self.end.sequence {
            return Ok(None);
        }
        let place = self.place;
        let header = read(area, self.id, self.shape, place, into).map_err(ReadError::Device)?;
        let header = header.ok_or(ReadError::Corrupt(place))?;
        self.place = header.end(place, self.shape);
        Ok(Some(Item {
            place,
            end: self.place,
            tag: header.tag,
        }))
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        self.place
    }
}

/// The entry behind `place`, and its bytes in `into`; nothing if there is none.
pub(crate) fn read(
    area: &mut dyn Area,
    id: u64,
    shape: Shape,
    place: Place,
    into: &mut Vec<u8>,
) -> Result<Option<Header>, Failure> {
    read_ring(area, shape, place.position, 1, into)?;
    let header = Header::decode(into, id).filter(|header| header.is_at(place, shape));
    let Some(header) = header else {
        return Ok(None);
    };
    let bytes = header.bytes as usize;
    read_ring(area, shape, place.position, shape.blocks_of(bytes), into)?;
    // It is read twice: what is looked at is what is handed out.
    let is_same = Header::decode(into, id) == Some(header);
    into.drain(..HEADER_BYTES);
    into.truncate(bytes);
    Ok((is_same && header.is_of(into)).then_some(header))
}

/// `count` blocks at a position of the ring, of which there are not more.
pub(crate) fn read_ring(
    area: &mut dyn Area,
    shape: Shape,
    position: u64,
    count: u64,
    into: &mut Vec<u8>,
) -> Result<(), Failure> {
    let (block, behind) = shape.block_at(position);
    let size = shape.block_bytes() as usize;
    into.clear();
    into.resize(count as usize * size, 0);
    let (front, back) = into.split_at_mut(behind.min(count) as usize * size);
    area.read(block, front)?;
    if !back.is_empty() {
        area.read(shape.block_at(0).0, back)?;
    }
    Ok(())
}
