//! A log on blocks that the program owns: `core/plog` and the queue that carries it out.
//!
//! ```no_run
//! use sietch_io::storage::{DirectFile, Log};
//! let disk = DirectFile::open("/dev/vdb".as_ref(), 1 << 20)?;
//! let mut log = Log::open(Box::new(disk))?;
//! let ticket = log.append(1, &[b"record"])?;
//! log.wait_durable(ticket.end)?;
//! # std::io::Result::Ok(())
//! ```

use std::io;
use std::os::fd::BorrowedFd;

use plog::{AppendError, Cursor, HEADER_BYTES, Item, Place, Promise, Ticket};

use super::{BlockQueue, Buffer, Pump};

/// Opens the log that is there. Blocks that begin with zeroes only become one.
///
/// Errors: something else is there, it lost what was durable, or the device fails.
pub fn open_or_format(pump: &mut Pump) -> io::Result<plog::Log> {
    match plog::open(pump) {
        Err(plog::OpenError::NotALog) if is_blank(pump)? => {
            let id = some_id()?;
            plog::format(pump, id).map_err(|why| said(&why))
        }
        opened => opened.map_err(|why| said(&why)),
    }
}

/// Whether both anchors' blocks are zeroes: nothing is overwritten that may be somebody's.
fn is_blank(pump: &mut Pump) -> io::Result<bool> {
    let mut bytes = vec![0; 2 * plog::Area::block_bytes(pump) as usize];
    plog::Area::read(pump, 0, &mut bytes).map_err(|why| said(&why))?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}

fn some_id() -> io::Result<u64> {
    let mut id = [0; 8];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut id)?;
    Ok(u64::from_ne_bytes(id))
}

/// An error that says what a core has said.
pub(crate) fn said(why: &dyn std::fmt::Debug) -> io::Error {
    io::Error::other(format!("the log: {why:?}"))
}

/// See the module.
pub struct Log {
    log: plog::Log,
    pump: Pump,
}

impl Log {
    /// Opens the log on a queue's blocks, or makes one if they begin with zeroes.
    pub fn open(queue: Box<dyn BlockQueue + Send>) -> io::Result<Self> {
        let mut pump = Pump::new(queue);
        let mut log = open_or_format(&mut pump)?;
        log.force_lone_writes();
        Ok(Self { log, pump })
    }

    /// A buffer for [`append_buffer`](Self::append_buffer) with so many bytes of an entry: they begin at
    /// [`HEADER_BYTES`]. `None` while all memory is under way.
    pub fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        let block_bytes = self.log.shape().block_bytes() as usize;
        let whole = (HEADER_BYTES + bytes).next_multiple_of(block_bytes);
        self.pump.buffer(whole)
    }

    /// Appends the first `bytes` behind the header's room of a [`buffer`](Self::buffer), without a copy, and tells the device.
    ///
    /// Errors: the buffer comes back.
    pub fn append_buffer(
        &mut self,
        tag: u8,
        mut buffer: Buffer,
        bytes: usize,
    ) -> Result<Ticket, (AppendError, Buffer)> {
        let parts = buffer.split_first_chunk_mut();
        let parts = parts.and_then(|(header, rest)| Some((header, rest.get(..bytes)?)));
        let Some((header, rest)) = parts else {
            return Err((AppendError::TooLong, buffer));
        };
        match self.log.append(tag, header, &[rest], Promise::Durable) {
            Ok(ticket) => {
                self.pump.keep(ticket, buffer);
                self.pump.turn(&mut self.log);
                Ok(ticket)
            }
            Err(why) => {
                self.pump.turn(&mut self.log);
                Err((why, buffer))
            }
        }
    }

    /// The same of bytes from elsewhere, which are copied. Waits while too much is under way.
    ///
    /// Errors: the entry is too long, the log is full, or its device failed.
    pub fn append(&mut self, tag: u8, parts: &[&[u8]]) -> io::Result<Ticket> {
        let bytes = parts.concat();
        loop {
            let Some(mut buffer) = self.buffer(bytes.len()) else {
                self.pump.wait(&mut self.log, None)?;
                continue;
            };
            if let Some(to) = buffer.get_mut(HEADER_BYTES..HEADER_BYTES + bytes.len()) {
                to.copy_from_slice(&bytes);
            }
            match self.append_buffer(tag, buffer, bytes.len()) {
                Ok(ticket) => return Ok(ticket),
                Err((AppendError::Busy, _)) => self.pump.wait(&mut self.log, None)?,
                Err((AppendError::Full, _)) => return Err(io::ErrorKind::StorageFull.into()),
                Err((why, _)) => return Err(said(&why)),
            }
        }
    }

    /// Entries before survive.
    pub fn durable(&self) -> Place {
        self.log.durable()
    }

    /// Does what can be done without waiting; then what is [`durable`](Self::durable).
    pub fn poll(&mut self) -> Place {
        self.pump.turn(&mut self.log);
        self.log.durable()
    }

    /// Until all entries before a place are durable.
    ///
    /// Errors: the device failed, and the log is appended to no more.
    pub fn wait_durable(&mut self, place: Place) -> io::Result<()> {
        self.pump.wait_durable(&mut self.log, place)
    }

    /// Can be read when [`poll`](Self::poll) has something to do, after [`arm`](Self::arm) was true.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.pump.doorbell()
    }

    /// Asks for the doorbell; false if there is something to do already.
    pub fn arm(&mut self) -> bool {
        self.pump.arm()
    }

    /// Entries before are not needed any more.
    ///
    /// Errors: they are not durable yet.
    pub fn trim(&mut self, place: Place) -> io::Result<()> {
        self.log.trim(place).map_err(|why| said(&why))?;
        self.log.anchor_soon();
        self.pump.turn(&mut self.log);
        Ok(())
    }

    /// What is durable, from the oldest entry on.
    pub fn cursor(&self) -> Cursor {
        self.log.cursor()
    }

    /// The entry at a cursor, which goes on; its bytes replace what is in `into`.
    pub fn read(&mut self, cursor: &mut Cursor, into: &mut Vec<u8>) -> io::Result<Option<Item>> {
        let read = cursor.next(&mut self.pump, into);
        read.map_err(|why| said(&why))
    }
}
