//! Both copies on the disk: which is believed, and in what order they are written.
//!
//! The one that is *steady* is whole, on the medium, and not older than what was last acknowledged. A
//! change goes to the other one first: body, flush, header, flush. Then that one is steady, the change
//! has happened, and the first one follows.
//!
//! ```text
//!              steady: newest, on the medium        the other one
//! at rest      generation g                          g
//! changing     g                                     torn, or g + 1
//! happened     g + 1 (it was the other one)          g, then torn, then g + 1
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::areas::Areas;
use crate::disk::{Disk, DiskError};
use crate::error::{OpenError, Refused};
use crate::layout::{self, COPY_BYTES, Decoded, HEADER_BYTES, NUMBERS_END, Shape};
use crate::planted::{Bug, planted};

/// How well the catalogue is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyState {
    /// Both copies are whole and say the same.
    Both,
    /// One is damaged or could not be written; the next change tries again.
    One,
}

/// Which copy is what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    shape: Shape,
    /// The number of the copy that is steady.
    steady: u32,
    /// The highest generation that may be on the disk.
    generation: u64,
    pub state: CopyState,
}

/// Whether a change has happened.
pub(crate) type Stored = Result<(), DiskError>;

pub(crate) fn shape_of(disk: &dyn Disk) -> Result<Shape, OpenError> {
    let shape = Shape {
        block_bytes: disk.block_bytes(),
        blocks: disk.blocks(),
    };
    shape.for_areas().map(|_| shape).ok_or(OpenError::Shape)
}

impl Copies {
    /// Neither is there yet.
    pub fn none(shape: Shape) -> Self {
        Self {
            shape,
            steady: 1,
            generation: 0,
            state: CopyState::One,
        }
    }

    /// Reads both, and takes the newer one of those that are whole.
    ///
    /// It is flushed first: what a machine that went down wrote may still be in the disk's cache, and
    /// must not be taken for steady there. A disk that has no catalogue is only asked for two headers.
    pub fn open(disk: &mut dyn Disk) -> Result<(Self, Areas), OpenError> {
        let shape = shape_of(disk)?;
        if ![0, 1].iter().any(|number| may_be_one(disk, shape, *number)) {
            return Err(OpenError::Refused([Some(Refused::NotCatalogue); 2]));
        }
        disk.flush().map_err(|_| OpenError::Disk)?;
        let read = [0, 1].map(|number| read(disk, shape, number));
        let generation = |number: usize| match read.get(number) {
            Some(Ok(Ok(decoded))) => Some(decoded.generation),
            _ => None,
        };
        let is_redundant = generation(0).is_some() && generation(0) == generation(1);
        let is_second_newer = generation(1) > generation(0);
        let second = match planted(Bug::OlderTaken) {
            true => !is_second_newer && generation(1).is_some(),
            false => is_second_newer,
        };
        let highest = generation(0).max(generation(1)).unwrap_or(0);
        let areas = chosen(read, usize::from(second))?;
        let copies = Self {
            shape,
            steady: u32::from(second),
            generation: highest,
            state: match is_redundant {
                true => CopyState::Both,
                false => CopyState::One,
            },
        };
        Ok((copies, areas))
    }

    /// Whether there is a generation for one more change.
    pub fn can_store(&self) -> bool {
        self.generation + 1 < NUMBERS_END
    }

    /// Writes both copies. When the first is written the change has happened, whatever becomes of
    /// the second.
    pub fn store(&mut self, disk: &mut dyn Disk, areas: &Areas) -> Stored {
        // Never twice: what a failed attempt left is told from what comes now.
        self.generation += 1;
        self.state = CopyState::One;
        let other = 1 - self.steady;
        let first = match planted(Bug::HeaderInPlace) {
            true => self.steady,
            false => other,
        };
        self.write(disk, areas, first)?;
        self.steady = first;
        let second = planted(Bug::NoSecondCopy) || self.write(disk, areas, 1 - first).is_ok();
        if second {
            self.state = CopyState::Both;
        }
        Ok(())
    }

    fn write(&self, disk: &mut dyn Disk, areas: &Areas, number: u32) -> Stored {
        let bytes = layout::encode(areas, self.shape, self.generation, number);
        let (header, body) = bytes.split_at(HEADER_BYTES);
        let first = u64::from(number) * self.shape.copy_blocks();
        let header_blocks = HEADER_BYTES as u64 / u64::from(self.shape.block_bytes);
        if !body.is_empty() {
            disk.write(first + header_blocks, body)?;
        }
        flush(disk)?;
        disk.write(first, header)?;
        flush(disk)
    }
}

fn flush(disk: &mut dyn Disk) -> Stored {
    match planted(Bug::FlushSkipped) {
        true => Ok(()),
        false => disk.flush(),
    }
}

/// Whether a copy begins as one, or cannot be read so far.
fn may_be_one(disk: &mut dyn Disk, shape: Shape, number: u32) -> bool {
    let mut header = vec![0; HEADER_BYTES];
    let read = disk.read(u64::from(number) * shape.copy_blocks(), &mut header);
    read.is_err() || layout::has_magic(&header)
}

type Read = Result<Result<Decoded, Refused>, DiskError>;

fn read(disk: &mut dyn Disk, shape: Shape, number: u32) -> Read {
    let mut bytes: Vec<u8> = vec![0; COPY_BYTES];
    disk.read(u64::from(number) * shape.copy_blocks(), &mut bytes)?;
    Ok(layout::decode(&bytes, shape, number))
}

/// What the copy says that was chosen, or why neither can be.
fn chosen(read: [Read; 2], at: usize) -> Result<Areas, OpenError> {
    let mut refused = [None; 2];
    let mut is_read = false;
    for (number, (copy, refused)) in read.into_iter().zip(&mut refused).enumerate() {
        is_read |= copy.is_ok();
        match copy {
            Ok(Ok(decoded)) if number == at => return Ok(decoded.areas),
            Ok(Err(reason)) => *refused = Some(reason),
            _ => {}
        }
    }
    Err(match is_read {
        true => OpenError::Refused(refused),
        false => OpenError::Disk,
    })
}
