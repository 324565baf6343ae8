//! An ordered map on a log.
//!
//! Keys are in memory, each with the place of its newest entry; values are on the disk. A change is an
//! append: of key and value, or of the key alone to forget it. The map is built by reading the log once from its
//! head, so opening takes as long as reading the ring.
//!
//! # Compaction
//! The oldest entry is looked at: if its key has a newer one, or it forgets a key, it is of no use; else it is
//! appended again. Then the head moves behind it, as soon as the copy is durable. Nothing older is
//! left of a key when an entry that forgets it comes to the head, so it need not be kept. One step
//! needs the room of one entry, which changes leave free ([`MapError::Full`]), and changes that put leave
//! room for those that forget: so a map that is full can be compacted, and what is in it be forgotten.
//!
//! # Bounds
//! [`Limits`]: keys, and bytes of all keys. Memory is at most 120 bytes a key and its bytes.
//!
//! A value that is not accepted yet is in the caller's buffer and cannot be read from the area;
//! [`Map::find`] says so.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::RangeBounds;

use crate::area::Area;
use crate::cursor::{self, ReadError};
use crate::entry::HEADER_BYTES;
use crate::log::{AppendError, Log, Promise, Ticket};
use crate::shape::Place;

/// Bytes of a key.
pub const KEY_MAX: usize = 1024;
/// Bytes in front of the key: the entry's header and the key's length.
pub const MAP_HEADER_BYTES: usize = HEADER_BYTES + LEN_BYTES;
const LEN_BYTES: usize = 2;
const PUT: u8 = 1;
const FORGET: u8 = 2;

/// How much memory the map may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Keys.
    pub keys: usize,
    /// Bytes of all keys together.
    pub key_bytes: usize,
}

/// Why a map cannot be opened, changed or read. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The log refuses.
    Append(AppendError),
    /// The log has room for compaction only.
    Full,
    /// There would be more keys, or more bytes of keys, than memory may be taken for.
    TooManyKeys,
    /// The key is longer than [`KEY_MAX`].
    KeyTooLong,
    /// An entry cannot be read.
    Read(ReadError),
    /// An entry is none of a map's.
    NotAMap(Place),
}

impl From<AppendError> for MapError {
    fn from(error: AppendError) -> Self {
        Self::Append(error)
    }
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// In the buffers of the append behind this place.
    UnderWay(Place),
    /// On the area: for [`Map::read`].
    Stored(Place),
}

/// What a step of compaction did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Compacted {
    /// The head moves as soon as the last copy is durable.
    Waits,
    /// The oldest entry was of no use, and is trimmed.
    Trimmed,
    /// The oldest entry was appended again: header and bytes, which stay as they are until it is accepted.
    Moved(Ticket, Vec<u8>),
    /// The log is empty.
    Empty,
}

/// The map. Commands and their ends go through its [`log`](Self::log).
#[derive(Debug)]
pub struct Map {
    log: Log,
    index: BTreeMap<Box<[u8]>, Place>,
    key_bytes: usize,
    limits: Limits,
    /// The oldest entry was copied: it ends at the first place, its copy at the second.
    moving: Option<(Place, Place)>,
    /// Behind the last entry that forgot a key.
    forgotten: Place,
}

/// Key and value of an entry.
fn split(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = entry.split_first_chunk::<LEN_BYTES>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))
}

impl Map {
    /// Reads the log, which is the map's from now on.
    pub fn open(log: Log, area: &mut dyn Area, limits: Limits) -> Result<Self, MapError> {
        let mut cursor = log.cursor();
        let mut map = Self {
            forgotten: log.head(),
            log,
            index: BTreeMap::new(),
            key_bytes: 0,
            limits,
            moving: None,
        };
        let mut entry = Vec::new();
        while let Some(item) = cursor.next(area, &mut entry).map_err(MapError::Read)? {
            let (key, _) = split(&entry).ok_or(MapError::NotAMap(item.place))?;
            match item.tag {
                PUT => {
                    map.check_room(key)?;
                    map.insert(key, item.place);
                }
                FORGET => map.remove(key),
                _ => return Err(MapError::NotAMap(item.place)),
            }
        }
        Ok(map)
    }

    /// For commands, their ends, and what is durable.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    fn insert(&mut self, key: &[u8], place: Place) {
        // A key that is there already needs no memory.
        if let Some(newest) = self.index.get_mut(key) {
            *newest = place;
            return;
        }
        self.index.insert(key.into(), place);
        self.key_bytes += key.len();
    }

    fn remove(&mut self, key: &[u8]) {
        if self.index.remove(key).is_some() {
            self.key_bytes -= key.len();
        }
    }

    /// Refuses a new key beyond what memory may be taken for.
    fn check_room(&self, key: &[u8]) -> Result<(), MapError> {
        let has_room = self.index.len() < self.limits.keys
            && self.key_bytes + key.len() <= self.limits.key_bytes;
        match has_room || self.index.contains_key(key) {
            true => Ok(()),
            false => Err(MapError::TooManyKeys),
        }
    }

    fn change(
        &mut self,
        tag: u8,
        header: &mut [u8; MAP_HEADER_BYTES],
        key: &[u8],
        value: &[&[u8]],
    ) -> Result<Ticket, MapError> {
        if key.len() > KEY_MAX {
            return Err(MapError::KeyTooLong);
        }
        let len = (key.len() as u16).to_le_bytes();
        let bytes = LEN_BYTES + key.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let shape = self.log.shape();
        // A step of compaction; and before that, what forgets.
        let reserve = match tag {
            FORGET => shape.window_blocks(),
            _ => 2 * shape.window_blocks(),
        };
        if shape.blocks_of(bytes) + reserve > self.log.free_blocks() {
            return Err(MapError::Full);
        }
        let (entry, prefix) = header.split_at_mut(HEADER_BYTES);
        prefix.copy_from_slice(&len);
        let entry = entry.first_chunk_mut().ok_or(MapError::KeyTooLong)?;
        let mut parts: Vec<&[u8]> = Vec::with_capacity(2 + value.len());
        parts.extend([&len[..], key]);
        parts.extend(value);
        Ok(self.log.append(tag, entry, &parts, Promise::Durable)?)
    }

    /// Gives a key a value. What is written are `header`, `key`, and `value`, which stay as they are until
    /// the entry is accepted.
    pub fn put(
        &mut self,
        header: &mut [u8; MAP_HEADER_BYTES],
        key: &[u8],
        value: &[&[u8]],
    ) -> Result<Ticket, MapError> {
        self.check_room(key)?;
        let ticket = self.change(PUT, header, key, value)?;
        self.insert(key, ticket.place);
        Ok(ticket)
    }

    /// Forgets a key; nothing is written if there is no such key. What is written are `header` and `key`.
    pub fn forget(
        &mut self,
        header: &mut [u8; MAP_HEADER_BYTES],
        key: &[u8],
    ) -> Result<Option<Ticket>, MapError> {
        if !self.index.contains_key(key) {
            return Ok(None);
        }
        let ticket = self.change(FORGET, header, key, &[])?;
        self.remove(key);
        self.forgotten = ticket.end;
        Ok(Some(ticket))
    }

    fn found(&self, place: Place) -> Found {
        match place.sequence() < self.log.accepted().sequence() {
            true => Found::Stored(place),
            false => Found::UnderWay(place),
        }
    }

    /// Where a key's value is.
    pub fn find(&self, key: &[u8]) -> Option<Found> {
        self.index.get(key).map(|place| self.found(*place))
    }

    /// Keys in order, and where their values are.
    pub fn range<'a>(
        &'a self,
        keys: impl RangeBounds<[u8]> + 'a,
    ) -> impl Iterator<Item = (&'a [u8], Found)> {
        let keys = (keys.start_bound(), keys.end_bound());
        let bounds = (keys.0.map(Box::from), keys.1.map(Box::from));
        let found = self.index.range::<Box<[u8]>, _>(bounds);
        found.map(|(key, place)| (&**key, self.found(*place)))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Reads a value that is stored into `into`.
    pub fn read(
        &self,
        area: &mut dyn Area,
        place: Place,
        into: &mut Vec<u8>,
    ) -> Result<(), MapError> {
        let (id, shape) = (self.log.id(), self.log.shape());
        let corrupt = MapError::Read(ReadError::Corrupt(place));
        let read = cursor::read(area, id, shape, place, into);
        let header = read.map_err(|failure| MapError::Read(ReadError::Device(failure)))?;
        header.ok_or(corrupt)?;
        let (key, _) = split(into).ok_or(corrupt)?;
        let before = LEN_BYTES + key.len();
        into.drain(..before);
        Ok(())
    }

    /// One step towards more room: to be called until there is enough, with the commands of the log
    /// carried out in between.
    pub fn compact(&mut self, area: &mut dyn Area) -> Result<Compacted, MapError> {
        if let Some((end, copied)) = self.moving {
            if copied > self.log.durable() {
                return Ok(Compacted::Waits);
            }
            self.moving = None;
            return Ok(self.trim(end));
        }
        let mut entry = Vec::new();
        let mut cursor = self.log.cursor();
        let item = cursor.next(area, &mut entry).map_err(MapError::Read)?;
        let Some(item) = item else {
            return Ok(Compacted::Empty);
        };
        let (key, value) = split(&entry).ok_or(MapError::NotAMap(item.place))?;
        let newest = self.index.get(key);
        let is_newest = newest.is_some_and(|newest| newest.sequence() == item.place.sequence());
        let is_forgetting = item.tag == FORGET;
        if is_forgetting || !is_newest {
            return Ok(match is_forgetting || self.is_superseded(key) {
                true => self.trim(item.end),
                false => Compacted::Waits,
            });
        }
        let mut bytes = alloc::vec![0; MAP_HEADER_BYTES];
        bytes.extend(key);
        bytes.extend(value);
        let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
        let (len, _) = rest.split_at_mut(LEN_BYTES);
        len.copy_from_slice(&(key.len() as u16).to_le_bytes());
        let header = header.first_chunk_mut().ok_or(MapError::KeyTooLong)?;
        let ticket = self.log.append(PUT, header, &[&*rest], Promise::Durable)?;
        self.insert(key, ticket.place);
        self.moving = Some((item.end, ticket.end));
        Ok(Compacted::Moved(ticket, bytes))
    }

    /// Whether what made older entries of a key useless survives a loss of power.
    fn is_superseded(&self, key: &[u8]) -> bool {
        let durable = self.log.durable();
        match self.index.get(key) {
            Some(newest) => newest.sequence() < durable.sequence(),
            None => self.forgotten.sequence() <= durable.sequence(),
        }
    }

    fn trim(&mut self, end: Place) -> Compacted {
        match self.log.trim(end) {
            Ok(()) => {
                self.log.anchor_soon();
                Compacted::Trimmed
            }
            Err(_) => Compacted::Waits,
        }
    }
}
