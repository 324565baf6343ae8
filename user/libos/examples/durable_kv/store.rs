//! The map on the log, and values of which memory has a copy.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use plog::{AppendError, Compacted, Found, Limits, MAP_HEADER_BYTES, Map, MapError, Ticket};
use sietch_io::storage::{self, BUFFER_BYTES, Looks, Pump, open_or_format};

use crate::resp::Command;

const LIMITS: Limits = Limits {
    keys: 4 << 20,
    key_bytes: 256 << 20,
};
/// Bytes of values of which there are copies.
const CACHE_BYTES_MAX: usize = 64 << 20;
const COMPACTION_STEPS: usize = 256;
/// So long who wants to be a client may have to wait for the disk.
const PATIENCE: Duration = Duration::from_millis(10);

/// An answer, and how many entries of the log must be durable before it is said.
pub struct Reply {
    pub bytes: Cow<'static, [u8]>,
    pub needs: u64,
}

impl Reply {
    fn now(bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        Self {
            bytes: bytes.into(),
            needs: 0,
        }
    }
}

/// See the module.
pub struct Store {
    map: Map,
    pump: Pump,
    /// At least those of entries that are not durable.
    cache: HashMap<Vec<u8>, Vec<u8>>,
    cached_bytes: usize,
    read: Vec<u8>,
}

impl Store {
    pub fn open(area: &Path) -> io::Result<Self> {
        let (queue, _) = storage::open(area, BUFFER_BYTES)?;
        let mut pump = Pump::new(queue);
        let mut log = open_or_format(&mut pump)?;
        log.force_lone_writes();
        let map = Map::open(log, &mut pump, LIMITS);
        Ok(Self {
            map: map.map_err(|why| io::Error::other(format!("{why:?}")))?,
            pump,
            cache: HashMap::new(),
            cached_bytes: 0,
            read: Vec::new(),
        })
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Entries that a loss of power leaves.
    pub fn durable(&mut self) -> u64 {
        self.map.log().durable().sequence()
    }

    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.pump.doorbell()
    }

    /// Whether the disk is at anything.
    pub fn is_busy(&self) -> bool {
        self.pump.is_busy()
    }

    pub fn arm(&mut self) -> bool {
        self.pump.arm()
    }

    /// Whether who waits for the disk should begin with looks, by [`turn`](Self::turn).
    pub fn are_looks_due(&mut self) -> bool {
        self.pump.are_looks_due()
    }

    /// Who waits for the disk does so asleep from now on.
    pub fn note_sleep(&mut self) {
        self.pump.note_sleep();
    }

    /// Of the disk.
    pub fn looks(&mut self) -> &mut Looks {
        self.pump.looks()
    }

    /// Tells the disk what was asked for, and learns what has ended.
    ///
    /// Errors: the log's device has failed.
    pub fn turn(&mut self) -> io::Result<()> {
        self.pump.turn(self.map.log());
        self.check()
    }

    /// The same, and waits for what the disk is at, but not for long.
    ///
    /// Errors: the log's device has failed.
    pub fn turn_and_wait(&mut self) -> io::Result<()> {
        let log = self.map.log();
        self.pump.turn_and_wait(log, Some(PATIENCE))?;
        self.check()
    }

    fn check(&mut self) -> io::Result<()> {
        match self.map.log().failure() {
            Some(failure) => Err(io::Error::other(format!("{failure:?}"))),
            None => Ok(()),
        }
    }

    pub fn execute(&mut self, command: &Command<'_>) -> Reply {
        match command {
            Command::Set(key, value) => self.set(key, value),
            Command::Get(key) => self.get(key),
            Command::Forget(key) => self.forget(key),
            Command::Count => Reply::now(format!(":{}\r\n", self.len()).into_bytes()),
            Command::Ping => Reply::now(&b"+PONG\r\n"[..]),
            Command::Other => Reply::now(&b"-ERR unknown command\r\n"[..]),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Reply {
        match self.with_room(|store| store.put(key, value)) {
            Ok(ticket) => {
                self.remember(key, value);
                Reply {
                    bytes: b"+OK\r\n".into(),
                    needs: ticket.end.sequence(),
                }
            }
            Err(why) => refused(why),
        }
    }

    /// Copies key and value into memory that the disk reads.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Ticket, MapError> {
        let bytes = MAP_HEADER_BYTES + key.len() + value.len();
        let mut buffer = self.buffer(bytes)?;
        let (header, rest) = buffer.split_first_chunk_mut().ok_or(MapError::KeyTooLong)?;
        let (key_room, rest) = rest.split_at_mut(key.len());
        key_room.copy_from_slice(key);
        let (value_room, _) = rest.split_at_mut(value.len());
        value_room.copy_from_slice(value);
        let ticket = self.map.put(header, key_room, &[value_room])?;
        self.pump.keep(ticket, buffer);
        Ok(ticket)
    }

    fn buffer(&mut self, bytes: usize) -> Result<storage::Buffer, MapError> {
        let shape = self.map.log().shape();
        if bytes > shape.entry_bytes_max() {
            return Err(MapError::Append(AppendError::TooLong));
        }
        let whole = bytes.next_multiple_of(shape.block_bytes() as usize);
        let buffer = self.pump.buffer(whole);
        buffer.ok_or(MapError::Append(AppendError::Busy))
    }

    fn forget(&mut self, key: &[u8]) -> Reply {
        let forgotten = self.with_room(|store| {
            let mut buffer = store.buffer(MAP_HEADER_BYTES + key.len())?;
            let (header, rest) = buffer.split_first_chunk_mut().ok_or(MapError::KeyTooLong)?;
            rest[..key.len()].copy_from_slice(key);
            let ticket = store.map.forget(header, &rest[..key.len()])?;
            if let Some(ticket) = ticket {
                store.pump.keep(ticket, buffer);
            }
            Ok(ticket)
        });
        match forgotten {
            Ok(Some(ticket)) => {
                self.drop_copy(key);
                Reply {
                    bytes: b":1\r\n".into(),
                    needs: ticket.end.sequence(),
                }
            }
            Ok(None) => Reply::now(&b":0\r\n"[..]),
            Err(why) => refused(why),
        }
    }

    fn get(&mut self, key: &[u8]) -> Reply {
        if let Some(value) = self.cache.get(key) {
            return bulk(value);
        }
        let place = match self.map.find(key) {
            Some(Found::Stored(place) | Found::UnderWay(place)) => place,
            None => return Reply::now(&b"$-1\r\n"[..]),
        };
        match self.map.read(&mut self.pump, place, &mut self.read) {
            Ok(()) => bulk(&self.read),
            Err(why) => refused(why),
        }
    }

    /// Tries again where the log was full or too much was under way: once a lap of compaction has found no room it is so.
    fn with_room<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Self) -> Result<T, MapError>,
    ) -> Result<T, MapError> {
        let steps_max = 2 * self.map.log().shape().ring_blocks();
        for _ in 0..steps_max {
            match attempt(self) {
                Err(MapError::Append(AppendError::Busy)) => self.wait()?,
                Err(MapError::Full) => self.compact()?,
                done => return done,
            }
        }
        Err(MapError::Full)
    }

    fn wait(&mut self) -> Result<(), MapError> {
        let end = self.map.log().end();
        self.map.log().want_durable(end);
        self.pump.turn(self.map.log());
        let waited = self.pump.wait(self.map.log(), None);
        waited.or(match self.map.log().failure() {
            Some(failure) => Err(MapError::Append(AppendError::Failed(failure))),
            None => Ok(()),
        })
    }

    /// Some steps at once, so that the log's new beginning is written once for all of them.
    fn compact(&mut self) -> Result<(), MapError> {
        for _ in 0..COMPACTION_STEPS {
            match self.map.compact(&mut self.pump)? {
                Compacted::Moved(ticket, bytes) => {
                    let mut buffer = self.buffer(bytes.len())?;
                    buffer[..bytes.len()].copy_from_slice(&bytes);
                    self.pump.keep(ticket, buffer);
                }
                Compacted::Trimmed => {}
                Compacted::Waits => return self.wait(),
                Compacted::Empty => return Err(MapError::Full),
            }
        }
        self.pump.turn(self.map.log());
        Ok(())
    }

    /// Those that are durable can be read from the log instead.
    fn remember(&mut self, key: &[u8], value: &[u8]) {
        if self.cached_bytes > CACHE_BYTES_MAX {
            let map = &self.map;
            self.cache
                .retain(|key, _| matches!(map.find(key), Some(Found::UnderWay(_))));
            self.cached_bytes = self.cache.values().map(Vec::len).sum();
        }
        self.cached_bytes += value.len();
        match self.cache.get_mut(key) {
            // A short one does not keep the memory of a long one.
            Some(copy) if copy.capacity() <= 2 * value.len() => {
                self.cached_bytes -= copy.len();
                copy.clear();
                copy.extend_from_slice(value);
            }
            Some(copy) => self.cached_bytes -= std::mem::replace(copy, value.to_vec()).len(),
            None => drop(self.cache.insert(key.to_vec(), value.to_vec())),
        }
    }

    fn drop_copy(&mut self, key: &[u8]) {
        let old = self.cache.remove(key);
        self.cached_bytes -= old.map_or(0, |old| old.len());
    }
}

fn bulk(value: &[u8]) -> Reply {
    let mut bytes = format!("${}\r\n", value.len()).into_bytes();
    bytes.extend(value);
    bytes.extend(b"\r\n");
    Reply::now(bytes)
}

fn refused(why: MapError) -> Reply {
    Reply::now(format!("-ERR {why:?}\r\n").into_bytes())
}
