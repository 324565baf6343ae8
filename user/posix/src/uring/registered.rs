//! What a program registers with a ring: files, buffers, groups of buffers that it lends; as
//! `kernel/uring/src/registered.rs`.
//!
//! A registered file is a number of the library's own, so it stays what it is whatever the program closes. Files that were
//! registered before the ring was ours are the kernel's, under the same index.

use ::uring::{BufferRing, RingBuffer};

use super::world::{Memory, Target, World};
use crate::errno::{Errno, Result};

/// Files that a ring may have.
pub const FILES_MAX: usize = 1 << 16;
/// Buffers that a ring may have, and groups of such that it is lent.
const BUFFERS_MAX: usize = 1 << 14;
const GROUPS_MAX: usize = 1 << 10;
/// IORING_REGISTER_FILES_SKIP.
const SKIP: i32 = -2;
const PAGE_BYTES: u64 = 4096;

/// A place for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// None is there.
    Empty,
    /// The kernel's ring has one there.
    Kernels,
    /// A number of the library's own.
    Number(i32),
}

#[derive(Debug)]
struct Group {
    number: u16,
    address: u64,
    ring: BufferRing,
}

/// See the module.
#[derive(Default, Debug)]
pub struct Registered {
    files: Option<Vec<Place>>,
    buffers: Option<Vec<(u64, u64)>>,
    groups: Vec<Group>,
}

impl Registered {
    /// Takes `count` files; none are there, or those of the list at an address.
    ///
    /// Errors: `BUSY` if there are some; `INVALID`, `TOO_MANY`, `BAD_NUMBER`.
    pub fn set_files(&mut self, world: &mut impl World, at: u64, count: u32) -> Result<()> {
        self.check_files(count)?;
        let mut files = Vec::with_capacity(count as usize);
        for index in 0..u64::from(count) {
            let number = if at == 0 {
                -1
            } else {
                world.number(at + index * 4)
            };
            match place_of(world, number) {
                Ok(place) => files.push(place),
                Err(error) => {
                    files.into_iter().for_each(|place| leave(world, place));
                    return Err(error);
                }
            }
        }
        self.files = Some(files);
        Ok(())
    }

    /// The kernel's ring has taken so many.
    pub fn note_files(&mut self, count: u32) {
        self.files = Some(vec![Place::Kernels; count as usize]);
    }

    /// And has them no longer.
    pub fn note_no_files(&mut self) {
        self.files = None;
    }

    fn check_files(&self, count: u32) -> Result<()> {
        match count as usize {
            _ if self.files.is_some() => Err(Errno::BUSY),
            0 => Err(Errno::INVALID),
            count if count > FILES_MAX => Err(Errno::TOO_MANY),
            _ => Ok(()),
        }
    }

    /// Gives them back.
    ///
    /// Errors: `NO_DEVICE` if there are none.
    pub fn clear_files(&mut self, world: &mut impl World) -> Result<()> {
        let files = self.files.take().ok_or(Errno::NO_DEVICE)?;
        files.into_iter().for_each(|place| leave(world, place));
        Ok(())
    }

    /// Exchanges `count` files from `first` on; how many before one failed.
    ///
    /// Errors: `NO_DEVICE`, `INVALID`, `BAD_NUMBER`.
    pub fn update_files(
        &mut self,
        world: &mut impl World,
        first: u32,
        at: u64,
        count: u32,
    ) -> Result<usize> {
        let files = self.files.as_mut().ok_or(Errno::NO_DEVICE)?;
        let end = first.checked_add(count).ok_or(Errno::INVALID)?;
        let places = files.get_mut(first as usize..end as usize);
        let mut done = 0;
        for (index, place) in (0u64..).zip(places.ok_or(Errno::INVALID)?) {
            let number = world.number(at + index * 4);
            let new = match number {
                SKIP => Ok(*place),
                number => place_of(world, number),
            };
            match new {
                Ok(new) if new != *place => leave(world, core::mem::replace(place, new)),
                Ok(_) => {}
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            done += 1;
        }
        Ok(done)
    }

    /// Frees a place.
    ///
    /// Errors: `NO_DEVICE` without files, `INVALID`, `BAD_NUMBER`.
    pub fn close(&mut self, world: &mut impl World, index: u32) -> Result<()> {
        let files = self.files.as_mut().ok_or(Errno::NO_DEVICE)?;
        let place = files.get_mut(index as usize).ok_or(Errno::INVALID)?;
        match core::mem::replace(place, Place::Empty) {
            Place::Empty => Err(Errno::BAD_NUMBER),
            place => {
                leave(world, place);
                Ok(())
            }
        }
    }

    /// Who has the file at an index.
    ///
    /// Errors: `BAD_NUMBER`.
    pub fn file(&self, world: &mut impl World, index: i32) -> Result<Target> {
        let files = self.files.as_ref().ok_or(Errno::BAD_NUMBER)?;
        let place = usize::try_from(index).ok().and_then(|at| files.get(at));
        match place {
            Some(Place::Number(number)) => world.target(*number),
            Some(Place::Kernels) => Ok(Target::KernelFixed(index)),
            _ => Err(Errno::BAD_NUMBER),
        }
    }

    /// Takes buffers: the addresses and lengths of the list at an address, or empty ones.
    ///
    /// Errors: `BUSY` if there are some; `INVALID`, `BAD_ADDRESS`.
    pub fn set_buffers(&mut self, world: &impl Memory, at: u64, count: u32) -> Result<()> {
        if self.buffers.is_some() {
            return Err(Errno::BUSY);
        }
        if count == 0 || count as usize > BUFFERS_MAX {
            return Err(Errno::INVALID);
        }
        let all = (0..u64::from(count)).map(|index| match at {
            0 => [0, 0],
            at => world.words(at + index * 16),
        });
        self.buffers = Some(all.map(|[start, len]| (start, len)).collect());
        Ok(())
    }

    /// Gives them back.
    ///
    /// Errors: `NO_DEVICE` if there are none.
    pub fn clear_buffers(&mut self) -> Result<()> {
        self.buffers.take().map(drop).ok_or(Errno::NO_DEVICE)
    }

    /// Whether a range lies within the buffer `index`.
    ///
    /// Errors: `BAD_ADDRESS`.
    pub fn within(&self, index: u16, address: u64, len: u32) -> Result<()> {
        let buffers = self.buffers.as_ref().ok_or(Errno::BAD_ADDRESS)?;
        let &(start, bytes) = buffers.get(usize::from(index)).ok_or(Errno::BAD_ADDRESS)?;
        let from = address.checked_sub(start);
        let end = from.and_then(|from| from.checked_add(len.into()));
        match end.is_some_and(|end| bytes != 0 && end <= bytes) {
            true => Ok(()),
            false => Err(Errno::BAD_ADDRESS),
        }
    }

    /// Takes a ring of buffers at `address`.
    ///
    /// Errors: `EXISTS`, `INVALID`, `NO_BUFFERS`.
    pub fn add_group(&mut self, number: u16, address: u64, entries: u32) -> Result<()> {
        let ring = BufferRing::new(entries).ok_or(Errno::INVALID)?;
        if address == 0 || !address.is_multiple_of(PAGE_BYTES) {
            return Err(Errno::INVALID);
        }
        if self.groups.iter().any(|one| one.number == number) {
            return Err(Errno::EXISTS);
        }
        if self.groups.len() >= GROUPS_MAX {
            return Err(Errno::NO_BUFFERS);
        }
        self.groups.push(Group {
            number,
            address,
            ring,
        });
        Ok(())
    }

    /// Forgets one.
    ///
    /// Errors: `NOT_FOUND`.
    pub fn remove_group(&mut self, number: u16) -> Result<()> {
        let at = self.groups.iter().position(|one| one.number == number);
        self.groups.swap_remove(at.ok_or(Errno::NOT_FOUND)?);
        Ok(())
    }

    fn group(&mut self, number: u16) -> Result<&mut Group> {
        let mut groups = self.groups.iter_mut();
        let found = groups.find(|one| one.number == number);
        found.ok_or(Errno::NO_BUFFERS)
    }

    /// The address of a group's next buffer, its length, at most `len` if that is not 0, and its number.
    ///
    /// Errors: `NO_BUFFERS`.
    pub fn next_buffer(
        &mut self,
        world: &impl World,
        number: u16,
        len: u32,
    ) -> Result<(u64, u32, u16)> {
        let group = self.group(number)?;
        let tail = world.half(group.address + group.ring.tail_offset());
        let lent = group.ring.next(tail).ok_or(Errno::NO_BUFFERS)?;
        let buffer = RingBuffer::from_words(world.words(group.address + lent.offset));
        let bytes = match len {
            0 => buffer.len,
            len => len.min(buffer.len),
        };
        Ok((buffer.address, bytes, buffer.number))
    }

    /// That one is used.
    pub fn use_buffer(&mut self, number: u16) {
        if let Ok(group) = self.group(number) {
            group.ring.advance();
        }
    }
}

fn place_of(world: &mut impl World, number: i32) -> Result<Place> {
    match number {
        -1 => Ok(Place::Empty),
        number => world.duplicate(number).map(Place::Number),
    }
}

fn leave(world: &mut impl World, place: Place) {
    if let Place::Number(number) = place {
        world.give_back(number);
    }
}

impl Errno {
    /// A wait was limited, and is over.
    pub const TIME_IS_UP: Self = Self::from_number(libc::ETIME);
    /// There are some already.
    pub const BUSY: Self = Self::from_number(libc::EBUSY);
    /// There are none.
    pub const NO_DEVICE: Self = Self::from_number(libc::ENXIO);
    /// There is one of that name.
    pub const EXISTS: Self = Self::from_number(libc::EEXIST);
}
