//! The kernel's side of an [`Exchange`] in the program itself, for tests of what stands above: the same
//! rings ([`xdp::Receiver`], [`xdp::Sender`]) over memory of the heap.

use std::cell::RefCell;
use std::io;
use std::ptr;
use std::rc::Rc;

use base::SharedMemory;
use xdp::{Descriptor, Entry, Geometry, Receiver, Sender, UmemRequest};

use crate::exchange::{Exchange, Rings};
use crate::umem::{CHUNK_BYTES, Umem};

/// Ring memory of the heap.
#[derive(Clone, Debug)]
pub struct SimulatedRing(Rc<RefCell<Vec<u8>>>);

impl SimulatedRing {
    fn new(geometry: Geometry) -> Self {
        Self(Rc::new(RefCell::new(vec![0; geometry.bytes()])))
    }
}

impl SharedMemory for SimulatedRing {
    fn load(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        self.read(at, &mut word);
        u32::from_ne_bytes(word)
    }

    fn store(&self, at: usize, value: u32) {
        self.write(at, &value.to_ne_bytes());
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }
}

/// What stands in the kernel's place.
pub struct SimulatedKernel {
    rings: Rings<SimulatedRing>,
    receiver: Receiver,
    sender: Sender,
}

impl SimulatedKernel {
    /// A kernel and the exchange of its program, with so many chunks and entries of each ring.
    ///
    /// Errors: `InvalidInput` for numbers that cannot be; those of [`Umem::new`].
    pub fn new(
        chunks: usize,
        reserve: usize,
        entries: u32,
    ) -> io::Result<(Self, Exchange<SimulatedRing>)> {
        let umem = Umem::new(chunks, reserve)?;
        let request = UmemRequest {
            address: umem.address() as u64,
            bytes: umem.bytes() as u64,
            chunk_bytes: CHUNK_BYTES as u32,
            headroom: 0,
            flags: 0,
        };
        let shape = xdp::Umem::check(&request).map_err(|_| io::ErrorKind::InvalidInput)?;
        let of = |entry| Geometry::check(entries, entry).ok_or(io::ErrorKind::InvalidInput);
        let (addresses, frames) = (of(Entry::Address)?, of(Entry::Descriptor)?);
        let rings = Rings {
            fill: SimulatedRing::new(addresses),
            rx: SimulatedRing::new(frames),
            tx: SimulatedRing::new(frames),
            completion: SimulatedRing::new(addresses),
        };
        let ends = Rings {
            fill: rings.fill.clone(),
            rx: rings.rx.clone(),
            tx: rings.tx.clone(),
            completion: rings.completion.clone(),
        };
        let exchange = Exchange::new(umem, ends, entries);
        let exchange = exchange.ok_or(io::ErrorKind::InvalidInput)?;
        let kernel = Self {
            rings,
            receiver: Receiver::new(shape, addresses, frames),
            sender: Sender::new(shape, frames, addresses),
        };
        kernel.sender.ask_for_calls(&kernel.rings.tx);
        Ok((kernel, exchange))
    }

    fn check(&self, exchange: &Exchange<SimulatedRing>) {
        let is_ours = Rc::ptr_eq(&self.rings.fill.0, &exchange.fill.memory().0);
        assert!(
            is_ours,
            "a kernel serves the exchange that it was made with"
        );
    }

    /// A frame comes for the program; false if it is dropped.
    pub fn deliver(&mut self, exchange: &mut Exchange<SimulatedRing>, frame: &[u8]) -> bool {
        self.check(exchange);
        let (fill, rx) = (&self.rings.fill, &self.rings.rx);
        let placed = self.receiver.place(fill, rx, frame.len());
        if let Ok(address) = placed {
            let to = exchange.umem().at(address, frame.len());
            // SAFETY: `at` has checked the bounds. Kept: the exchange has posted the chunk, for it is
            // from its fill ring, and has not taken it back, for it is not shown yet.
            unsafe { ptr::copy_nonoverlapping(frame.as_ptr(), to.as_ptr(), frame.len()) };
        }
        self.receiver.publish(fill, rx);
        placed.is_ok()
    }

    /// The program's call: takes some of the frames that it has submitted.
    pub fn transmit(&mut self, exchange: &Exchange<SimulatedRing>, most: usize) -> Vec<Vec<u8>> {
        self.check(exchange);
        let (tx, completion) = (&self.rings.tx, &self.rings.completion);
        self.sender.kick(tx);
        let mut sent = Vec::new();
        let turn = self.sender.read(tx, completion, |frame| {
            let is_taken = sent.len() < most;
            if is_taken {
                sent.push(bytes_of(exchange, frame));
            }
            is_taken
        });
        self.sender.complete(tx, completion, &turn);
        sent
    }
}

fn bytes_of(exchange: &Exchange<SimulatedRing>, frame: Descriptor) -> Vec<u8> {
    let len = frame.len as usize;
    let mut bytes = vec![0; len];
    let from = exchange.umem().at(frame.address, len);
    // SAFETY: `at` has checked the bounds. Kept: the frame is in flight, so nobody writes its bytes.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), bytes.as_mut_ptr(), len) };
    bytes
}
