//! Datagrams that are gathered from several sends (MSG_MORE, UDP_CORK).
//!
//! # Problem
//! A program may give a datagram piece by piece: a header from here, a body from there. Each
//! piece sent by itself would be another datagram than the program means.
//!
//! # Idea
//! The pieces wait here, with what the first of them said of the address; later ones are not
//! asked. The send that says no more takes all of them away. As on Linux a piece that is refused
//! takes what was gathered with it, and what is gathered when the socket is closed is lost.
//!
//! # Bounds
//! The largest datagram, and twice the send buffer, which is what Linux allows. The memory is
//! the kernel's, and may be refused.
//!
//! Lock order: `gathered`, then what lies behind `start` and `check`: a socket's names, a shard.
//! Not here: TCP's cork, which is the stack's.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use mm::io::Source;
use sync::{Error, Result};

/// No packet has more bytes.
const PIECE_BYTES_MAX: usize = u16::MAX as usize;

/// What was gathered so far of one socket's datagram, whose header says `H`.
pub struct Cork<H> {
    /// Each send is a piece (UDP_CORK).
    is_on: AtomicBool,
    /// Whether there is something in `gathered`; written only while that is locked.
    has_pieces: AtomicBool,
    gathered: Spin<Option<Gathered<H>>>,
}

/// The pieces of one datagram.
pub struct Gathered<H> {
    /// What it says.
    pub header: H,
    /// All pieces, one behind the other.
    pub bytes: Vec<u8>,
}

impl<H> Default for Cork<H> {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            has_pieces: AtomicBool::new(false),
            gathered: Spin::new(None),
        }
    }
}

impl<H> Cork<H> {
    /// Whether each send is a piece.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Each send is a piece from now on, or no more.
    pub fn turn(&self, on: bool) {
        self.is_on.store(on, Relaxed);
    }

    /// Whether a send that has no more to come is a datagram by itself.
    #[inline]
    pub fn is_idle(&self) -> bool {
        !self.is_on() && !self.has_pieces.load(Relaxed)
    }

    /// Bytes that wait for the rest of their datagram.
    pub fn gathered_bytes(&self) -> usize {
        self.gathered
            .lock()
            .as_ref()
            .map_or(0, |all| all.bytes.len())
    }

    /// Adds a piece; the first asks `start` for the header, and `check` whether a datagram of so
    /// many bytes may be.
    ///
    /// Errors: theirs, `NoBuffers` beyond `bytes_max`; nothing is gathered any more then.
    pub fn add(
        &self,
        piece: &[u8],
        bytes_max: usize,
        start: impl FnOnce() -> Result<H>,
        check: impl FnOnce(&H, usize) -> Result<()>,
    ) -> Result<()> {
        let mut gathered = self.gathered.lock();
        let mut all = match gathered.take() {
            Some(all) => all,
            None => Gathered::new(start()?),
        };
        self.has_pieces.store(false, Relaxed);
        check(&all.header, all.bytes.len() + piece.len())?;
        all.push(piece, bytes_max)?;
        *gathered = Some(all);
        self.has_pieces.store(true, Relaxed);
        Ok(())
    }

    /// Takes what was gathered.
    pub fn take(&self) -> Option<Gathered<H>> {
        let mut gathered = self.gathered.lock();
        self.has_pieces.store(false, Relaxed);
        gathered.take()
    }
}

impl<H> Gathered<H> {
    fn new(header: H) -> Self {
        Self {
            header,
            bytes: Vec::new(),
        }
    }

    fn push(&mut self, piece: &[u8], bytes_max: usize) -> Result<()> {
        if !self.bytes.is_empty() && self.bytes.len() + piece.len() > bytes_max {
            return Err(Error::NoBuffers);
        }
        let room = self.bytes.make_room(piece.len());
        room.map_err(|_| Error::NoBuffers)?;
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// The bytes of a piece, in the kernel's memory. May block.
///
/// Errors: `MessageTooLong` for more than any packet has.
pub fn piece_of(from: &mut Source<'_>) -> Result<Vec<u8>> {
    if from.remaining() > PIECE_BYTES_MAX {
        return Err(Error::MessageTooLong);
    }
    let mut piece = fallible::zeroed(from.remaining())?;
    from.take_whole(&mut piece)?;
    Ok(piece)
}
