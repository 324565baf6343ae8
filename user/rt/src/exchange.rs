//! Packet buffers go to the kernel and come back, by four rings.
//!
//! Each ring is shown to the kernel once a batch; a caller's order is [`complete`](Exchange::complete),
//! [`take`](Exchange::take) until it has enough, [`received`](Exchange::received),
//! [`stage_frame`](Exchange::stage_frame) as often as it likes, [`submit`](Exchange::submit).

use base::SharedMemory;
use mbuf::{Chain, Mbuf, Pool};
use xdp::{Descriptor, Entry, Geometry, ProgramConsumer, ProgramProducer};

use crate::loans::Loans;
use crate::umem::{CHUNK_BYTES, Umem};

probes::counters! {
    /// What happened to frames and chunks.
    pub enum Count => Counts {
        /// Frames received.
        Received = "received",
        /// Frames given to the kernel to send.
        Sent = "sent",
        /// Of these, frames of several parts or of foreign memory, which were copied into one chunk.
        Gathered = "gathered",
        /// Frames not sent: as many are in flight as the rings take.
        TxFull = "tx_full",
        /// Frames not sent: no chunk was free to gather them in.
        NoChunk = "no_chunk",
        /// Frames not sent: longer than a chunk, or without a header.
        BadLength = "bad_length",
        /// Entries of the kernel's that name no chunk that it has.
        BadEntry = "bad_entry",
    }
}

/// The memory of the rings, all of the same number of entries.
#[derive(Debug)]
pub struct Rings<M> {
    /// Chunks that may be written to.
    pub fill: M,
    /// Chunks with a frame in them.
    pub rx: M,
    /// Frames to send.
    pub tx: M,
    /// Chunks whose frames are sent.
    pub completion: M,
}

/// Bytes of the shortest frame: an Ethernet header.
const FRAME_BYTES_MIN: usize = 14;

/// The program's side of an AF_XDP socket, but for its system calls.
pub struct Exchange<M> {
    pub(crate) fill: ProgramProducer<M>,
    rx: ProgramConsumer<M>,
    tx: ProgramProducer<M>,
    completion: ProgramConsumer<M>,
    entries: u32,
    loans: Loans,
    /// Frames that the kernel was not shown yet.
    staged: u32,
    counts: Counts,
    /// Last: buffers go home before it is dropped.
    umem: Umem,
}

impl<M: SharedMemory> Exchange<M> {
    /// Over empty rings; `None` if they cannot have so many entries.
    pub fn new(umem: Umem, rings: Rings<M>, entries: u32) -> Option<Self> {
        let addresses = Geometry::check(entries, Entry::Address)?;
        let frames = Geometry::check(entries, Entry::Descriptor)?;
        Some(Self {
            fill: ProgramProducer::new(rings.fill, addresses),
            rx: ProgramConsumer::new(rings.rx, frames),
            tx: ProgramProducer::new(rings.tx, frames),
            completion: ProgramConsumer::new(rings.completion, addresses),
            entries,
            loans: Loans::new(umem.chunks()),
            staged: 0,
            counts: Counts::default(),
            umem,
        })
    }

    /// Its packet memory.
    #[inline]
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// What happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Frames that the kernel is not done with, those not submitted included.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.loans.in_flight()
    }

    /// Gives the kernel as many chunks to write to as the ring takes and the pool has.
    pub fn supply(&mut self) {
        let mut is_changed = false;
        while self.fill.has_room() {
            let Some(buffer) = self.umem.alloc() else {
                break;
            };
            let address = buffer.device_addr().0;
            self.loans.post(chunk_of(address), buffer);
            self.fill.put_address(address);
            is_changed = true;
        }
        if is_changed {
            self.fill.submit();
        }
    }

    /// Takes the next received frame.
    #[inline]
    pub fn take(&mut self) -> Option<Mbuf> {
        while let Some(frame) = self.rx.take_frame() {
            match self.buffer_of(frame) {
                Some(buffer) => {
                    self.counts.count(Count::Received);
                    return Some(buffer);
                }
                None => self.counts.count(Count::BadEntry),
            }
        }
        None
    }

    /// Whether there is one to take.
    #[inline]
    pub fn has_received(&mut self) -> bool {
        self.rx.has_one()
    }

    /// The buffer that was posted for a frame, with the frame in it.
    #[inline]
    fn buffer_of(&mut self, frame: Descriptor) -> Option<Mbuf> {
        let mut buffer = self.loans.take(chunk_of(frame.address))?;
        let headroom = frame.address.checked_sub(buffer.device_addr().0)?;
        buffer.reserve(headroom as usize);
        (buffer.device_addr().0 == frame.address).then_some(())?;
        buffer.extend(frame.len as usize)?;
        Some(buffer)
    }

    /// Ends a batch of [`take`](Self::take): the kernel may use the places in the ring.
    #[inline]
    pub fn received(&mut self) {
        self.rx.release();
    }

    /// Stages a frame to be sent: where it lies if it is in one piece, else from a copy. One that
    /// cannot be is dropped and counted, as a wire would.
    #[inline]
    pub fn stage_frame(&mut self, mut frame: Chain) {
        let placed = match frame.parts() {
            1 => frame.front().and_then(|part| self.umem.offset_of(part)),
            _ => None,
        };
        let sent = match placed.and_then(|address| Some((address, frame.pop_front()?))) {
            Some((address, part)) => self.stage(address, part),
            None => self.gather(&frame),
        };
        self.counts.count(sent);
    }

    fn gather(&mut self, frame: &Chain) -> Count {
        if self.loans.in_flight() >= self.entries {
            return Count::TxFull;
        }
        let Some(mut copy) = self.umem.alloc() else {
            return Count::NoChunk;
        };
        match copy.extend(frame.len()) {
            Some(space) => frame.copy_to_slice(0, space),
            None => return Count::BadLength,
        };
        self.counts.count(Count::Gathered);
        self.stage(copy.device_addr().0, copy)
    }

    #[inline]
    fn stage(&mut self, address: u64, part: Mbuf) -> Count {
        if part.len() < FRAME_BYTES_MIN {
            return Count::BadLength;
        }
        let frame = Descriptor {
            address,
            len: part.len() as u32,
            options: 0,
        };
        // The completion ring has a place for each frame in flight, so the kernel never waits for one.
        if self.loans.in_flight() >= self.entries || !self.tx.put_frame(frame) {
            return Count::TxFull;
        }
        self.loans.fly(chunk_of(address), part);
        self.staged += 1;
        Count::Sent
    }

    /// Shows the kernel the frames that were staged; true if it wants to be called for them.
    #[inline]
    pub fn submit(&mut self) -> bool {
        if self.staged == 0 {
            return false;
        }
        self.staged = 0;
        self.tx.submit();
        self.tx.needs_wakeup()
    }

    /// Takes back what the kernel is done with.
    #[inline]
    pub fn complete(&mut self) {
        if self.loans.in_flight() == 0 {
            return;
        }
        let mut is_changed = false;
        while let Some(address) = self.completion.take_address() {
            if !self.loans.land(chunk_of(address)) {
                self.counts.count(Count::BadEntry);
            }
            is_changed = true;
        }
        if is_changed {
            self.completion.release();
        }
    }
}

#[inline]
fn chunk_of(address: u64) -> usize {
    (address / CHUNK_BYTES as u64) as usize
}
