//! A card that counts what it carries, and what of that the card's own stack has counted.
//!
//! On the plain path the stack's counters are the card's. Beside a lane they are not: the
//! stack counts frames that stay in the machine, and does not see those of stations. The
//! difference is kept for the life of the machine, so the card's counters never jump.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::Instant;
use hal::{Capabilities, CardCounters, FramePort, PortCounters, Stall};
use mbuf::{RxFrame, TxFrame};

use crate::device::watchdog;
use crate::stack;
use crate::stack::env::Port;
use crate::stack::interface::Traffic;

/// What cards count and stacks do not see: a frame's check sequence.
const FCS_BYTES: u64 = 4;

/// Frames and bytes; differences wrap.
struct Difference {
    frames: AtomicU64,
    bytes: AtomicU64,
}

impl Difference {
    const fn new() -> Self {
        Self {
            frames: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    fn add(&self, frames: u64, bytes: u64) {
        self.frames.fetch_add(frames, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.frames.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes as u64, Relaxed);
    }

    fn apply(&self, frames: u64, bytes: u64) -> (u64, u64) {
        let frames = frames.wrapping_add(self.frames.load(Relaxed));
        let bytes = bytes.wrapping_add(self.bytes.load(Relaxed));
        (frames, bytes + frames * FCS_BYTES)
    }
}

/// What the card's counters say too much of the wire: the card is the machine's.
static IN: Difference = Difference::new();
/// Likewise.
static OUT: Difference = Difference::new();

/// The card's stack got a frame from a lane.
pub(super) fn stack_received(bytes: usize) {
    IN.subtract(bytes);
}

/// The card's stack sent a frame by a lane.
pub(super) fn stack_sent(bytes: usize) {
    OUT.subtract(bytes);
}

/// Frames for others than the card's stack came past what counts them ([`Wire`]).
pub(super) fn others_received(frames: u64, bytes: u64) {
    if frames != 0 {
        IN.add(frames, bytes);
    }
}

/// A frame of another than the card's stack left past it.
pub(super) fn others_sent(bytes: usize) {
    OUT.add(1, bytes as u64);
}

/// The card's stack had no room for so many frames of a lane.
pub(super) fn stack_lost(frames: u64) {
    stack::first().shared.lost.fetch_add(frames, Relaxed);
}

/// What the card has carried, by what its stack has counted.
pub(super) fn counters(stack: &Traffic) -> CardCounters {
    let (rx_frames, rx_bytes) = IN.apply(stack.frames_in, stack.bytes_in);
    let (tx_frames, tx_bytes) = OUT.apply(stack.frames_out, stack.bytes_out);
    CardCounters {
        rx_frames,
        rx_bytes,
        tx_frames,
        tx_bytes,
        ..CardCounters::default()
    }
}

/// The card of a lane.
pub(super) struct Wire<'c>(pub &'c mut Port);

impl FramePort for Wire<'_> {
    fn mac(&self) -> [u8; 6] {
        self.0.mac()
    }

    fn mtu(&self) -> u16 {
        self.0.mtu()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        let bytes = frame.chain.len();
        self.0.transmit(frame)?;
        OUT.add(1, bytes as u64);
        Ok(())
    }

    fn kick(&mut self) {
        self.0.kick();
        watchdog::kicked();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        self.0.receive(budget, &mut |frame| {
            IN.add(1, frame.chain.len() as u64);
            sink(frame);
        })
    }

    fn unsent(&mut self) -> usize {
        self.0.unsent()
    }

    fn reclaim(&mut self) {
        self.0.reclaim();
    }

    fn has_received(&mut self) -> bool {
        self.0.has_received()
    }

    fn arm(&mut self) -> bool {
        self.0.arm()
    }

    fn disarm(&mut self) {
        self.0.disarm();
    }

    fn counters(&mut self) -> PortCounters {
        self.0.counters()
    }

    fn watch(&mut self, now: Instant) -> Option<Stall> {
        self.0.watch(now)
    }
}
