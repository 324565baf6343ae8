//! A new log on an area, and one that is there.
//!
//! # The end of a log
//! From the mark on entries are read until one is not there as it must be. That is the end, unless an
//! entry behind it knew that the missing one was durable: then something was lost, and the log is refused. Such an
//! entry begins within two windows, as no more than one window is ever not durable.
//!
//! # Why the epoch
//! Behind the end there may be entries that were written before the loss of power, and that nobody was
//! told to be durable. They are dropped; the next entries might be as long as those that are missing,
//! and lead right up to them. So each opening writes an anchor with a higher epoch before anything else, and epochs
//! of entries never fall.
//!
//! # Opening, in steps
//! flush (what is read is then durable) · both anchors, the newer one counts · scan · anchor with the
//! next epoch and its mark at the end, into the other block · flush · both anchors again. A loss of power between any two of them
//! leaves the log as it was.

use alloc::vec;
use alloc::vec::Vec;

use block::Failure;

use crate::anchor::Anchor;
use crate::area::Area;
use crate::cursor::{self, read_ring};
use crate::entry::Header;
use crate::log::Log;
use crate::planted::{Bug, planted};
use crate::shape::{Place, Sequence, Shape};

/// Why there is no log to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The area is too small, or its blocks have no size that we know.
    Shape,
    /// The disk says so.
    Device(Failure),
    /// Neither anchor is one.
    NotALog,
    /// This entry was durable and is not there.
    Lost(Sequence),
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Device(failure)
    }
}

fn shape_of(area: &dyn Area) -> Result<Shape, OpenError> {
    Shape::new(area.block_bytes(), area.blocks()).ok_or(OpenError::Shape)
}

/// Makes an empty log. `id` is a number that no log on these blocks ever had: by chance, or counted.
pub fn format(area: &mut dyn Area, id: u64) -> Result<Log, OpenError> {
    let shape = shape_of(area)?;
    let anchor = |generation| Anchor {
        id,
        generation,
        epoch: 1,
        head: Place::START,
        mark: Place::START,
    };
    // Both: an old log's anchor would be of a higher generation.
    for anchor in [anchor(1), anchor(2)] {
        area.write(anchor.block(), &anchor.encode(shape))?;
    }
    area.flush()?;
    confirm(area, shape, &anchor(2))?;
    Ok(Log::new(shape, anchor(2)))
}

/// Looks whether an anchor was written: an epoch that was lost would be used twice.
fn confirm(area: &mut dyn Area, shape: Shape, anchor: &Anchor) -> Result<(), OpenError> {
    match newest_anchor(area, shape)? {
        Some(found) if found == *anchor => Ok(()),
        _ => Err(OpenError::Device(Failure::Medium)),
    }
}

/// Opens the log that is there, at the end of what is whole.
pub fn open(area: &mut dyn Area) -> Result<Log, OpenError> {
    let shape = shape_of(area)?;
    if !planted(Bug::OpenNotFlushed) {
        area.flush()?;
    }
    let newest = newest_anchor(area, shape)?.ok_or(OpenError::NotALog)?;
    let end = find_end(area, shape, &newest)?;
    let epoch = match planted(Bug::EpochKept) {
        true => newest.epoch,
        false => newest.epoch.max(end.epoch) + 1,
    };
    let step = match planted(Bug::AnchorInPlace) {
        true => 2,
        false => 1,
    };
    let anchor = Anchor {
        generation: newest.generation + step,
        epoch,
        mark: Place { epoch, ..end },
        ..newest
    };
    area.write(anchor.block(), &anchor.encode(shape))?;
    area.flush()?;
    confirm(area, shape, &anchor)?;
    Ok(Log::new(shape, anchor))
}

fn newest_anchor(area: &mut dyn Area, shape: Shape) -> Result<Option<Anchor>, Failure> {
    let mut found: [Option<Anchor>; 2] = [None; 2];
    let mut failed = None;
    for (number, found) in (0..).zip(&mut found) {
        let mut bytes: Vec<u8> = vec![0; shape.block_bytes() as usize];
        match area.read(number, &mut bytes) {
            Ok(()) => *found = Anchor::decode(&bytes, number, shape),
            Err(failure) => failed = Some(failure),
        }
    }
    let newest = found
        .into_iter()
        .flatten()
        .max_by_key(|anchor| anchor.generation);
    match (newest, failed) {
        (None, Some(failure)) => Err(failure),
        _ => Ok(newest),
    }
}

fn find_end(area: &mut dyn Area, shape: Shape, anchor: &Anchor) -> Result<Place, OpenError> {
    let mut place = anchor.mark;
    let mut bytes = Vec::new();
    let room_ends = anchor.head.position + shape.ring_blocks();
    loop {
        let header = match place.position < room_ends {
            true => cursor::read(area, anchor.id, shape, place, &mut bytes)?,
            false => None,
        };
        let next = header.map(|header| header.end(place, shape));
        match next.filter(|next| next.position <= room_ends) {
            Some(next) => place = next,
            None => break,
        }
    }
    refuse_loss(area, shape, anchor.id, place)?;
    Ok(place)
}

/// Refuses an end behind which somebody knew better.
fn refuse_loss(area: &mut dyn Area, shape: Shape, id: u64, end: Place) -> Result<(), OpenError> {
    let reach = (2 * shape.window_blocks()).min(shape.ring_blocks());
    let mut block = Vec::new();
    for position in end.position..end.position + reach {
        read_ring(area, shape, position, 1, &mut block)?;
        let Some(header) = Header::decode(&block, id) else {
            continue;
        };
        let is_its = header.position >= position
            && (header.position - position).is_multiple_of(shape.ring_blocks());
        if is_its && header.durable > end.sequence && !planted(Bug::LossIgnored) {
            return Err(OpenError::Lost(end.sequence));
        }
    }
    Ok(())
}
