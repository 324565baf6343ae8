//! A port with the lane beside it: what whoever has the port's lock sends and receives by.
//!
//! # Problem
//! The link layer has to see frames for and of others than the stack that has the card. Were it in
//! the way of that stack's own frames as well, an idle VNIC would raise the price of all of them.
//!
//! # Idea
//! The lane stands beside the port, not before it. The port's owner tells the frames that are its
//! own by a number or two ([`Bypass`]); only the others go to the lane, a batch at a time. While the
//! lane must see all (a limit, protection, somebody who watches), or anything waits there, the
//! bypass is shut, and it has the port to itself.
//!
//! # Invariants
//! - A lane has no lock of its own: it is used under its port's, so by one CPU at a time.
//! - [`Bypass`] is brought in step after each use of the lane.
//!
//! # Not here
//! What lanes do (`core/link`), and whom they belong to (`datalink`).

use alloc::boxed::Box;
use core::any::Any;

use link::lane::{Bypass, Place};
use link::tx_queue::TxQueue;
use mbuf::{RxFrame, TxFrame};

use super::memory;
use crate::stack::env::Port;

/// A lane, as the owner of the port beside it sees it.
pub(crate) trait SideLane: Any + Send {
    /// A received frame that did not pass it by; [`end_batch`](Self::end_batch) follows.
    fn sort(&mut self, frame: RxFrame);

    /// The batch is over: so many frames and bytes.
    fn end_batch(&mut self, port: &mut Port, frames: usize, bytes: u64);

    /// Takes frames from the port as it sees fit.
    fn pull(&mut self, port: &mut Port);

    /// Gives `sink` up to `budget` frames for the port's own stack; returns how many there were.
    fn take(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize;

    /// Whether there are such frames.
    fn has_frames(&self) -> bool;

    /// Sends a frame of the port's own stack; it comes back while that was told to wait.
    fn send_own(&mut self, port: &mut Port, frame: TxFrame) -> Result<(), TxFrame>;

    /// Before an interrupt is asked for: true if the lane polls the port itself.
    fn is_polling(&mut self, port: &mut Port) -> bool;

    /// Frames that wait to be sent.
    fn unsent(&self) -> usize;

    /// Brings `bypass` in step, and counts what it let pass, if anything has changed.
    fn settle(&mut self, bypass: &mut Bypass);
}

/// See the module.
pub(crate) struct Pair {
    port: Port,
    /// What a card has no room for, while there is no lane for that.
    queue: TxQueue,
    beside: Option<Box<Beside>>,
}

struct Beside {
    bypass: Bypass,
    lane: Box<dyn SideLane>,
}

/// What [`Pair::receive`] brought.
#[derive(Clone, Copy, Default)]
pub(crate) struct Batch {
    /// Frames that were taken, for whomever.
    pub frames: usize,
    /// Their bytes, unless the lane counts them.
    pub bytes: u64,
    /// The lane took them from the port, and counts that.
    pub is_by_lane: bool,
}

impl Pair {
    /// A card's port alone.
    pub fn of_card(port: Port) -> Self {
        Self::new(port, TxQueue::new())
    }

    /// The port of a link over a card, in whose lane its frames wait.
    pub fn of_link(port: Port) -> Self {
        Self::new(port, TxQueue::none())
    }

    fn new(port: Port, queue: TxQueue) -> Self {
        Self {
            port,
            queue,
            beside: None,
        }
    }

    /// The port.
    pub fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    /// From now on there is a lane, which also has what waits for room.
    pub fn put_lane(&mut self, lane: Box<dyn SideLane>) {
        let mut beside = Box::new(Beside {
            bypass: Bypass::default(),
            lane,
        });
        for frame in self.queue.take() {
            let taken = beside.lane.send_own(&mut self.port, frame);
            debug_assert!(taken.is_ok(), "a lane has room for as many");
        }
        beside.lane.settle(&mut beside.bypass);
        self.beside = Some(beside);
    }

    /// And no longer.
    pub fn remove_lane(&mut self) {
        self.beside = None;
    }

    /// Calls `work` with the lane, if there is one, and the port.
    #[inline]
    pub fn with_lane<R>(
        &mut self,
        work: impl FnOnce(&mut dyn SideLane, &mut Port) -> R,
    ) -> Option<R> {
        let Beside { bypass, lane } = self.beside.as_deref_mut()?;
        let done = work(&mut **lane, &mut self.port);
        lane.settle(bypass);
        Some(done)
    }

    /// Sends a frame, or has it wait for room; it comes back where too many do.
    #[inline]
    pub fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        let Some(beside) = &mut self.beside else {
            return self.queue.send(&mut *self.port, frame, memory::is_scarce);
        };
        if beside.bypass.sends(&frame) {
            let bytes = frame.chain.len();
            let Err(back) = self.port.transmit(frame) else {
                beside.bypass.note_sent(bytes);
                return Ok(());
            };
            return self.send_by_lane(back);
        }
        self.send_by_lane(frame)
    }

    /// Sends a frame of another client that needs no look; otherwise it stays.
    #[inline]
    pub fn transmit_of(&mut self, client: Place, frame: &mut Option<TxFrame>) {
        let Some(Beside { bypass, .. }) = self.beside.as_deref_mut() else {
            return;
        };
        let Some(taken) = frame.take_if(|frame| bypass.sends_of(client, frame)) else {
            return;
        };
        let bytes = taken.chain.len();
        match self.port.transmit(taken) {
            Ok(()) => bypass.note_sent_of(client, bytes),
            Err(back) => *frame = Some(back),
        }
    }

    #[cold]
    fn send_by_lane(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        match &mut self.beside {
            None => Err(frame),
            Some(beside) => {
                let sent = beside.lane.send_own(&mut self.port, frame);
                beside.lane.settle(&mut beside.bypass);
                sent
            }
        }
    }

    /// Gives `sink` up to `budget` frames for the port's own stack.
    #[inline]
    pub fn receive(&mut self, budget: usize, mut sink: impl FnMut(RxFrame)) -> Batch {
        let Some(beside) = self.beside.as_deref_mut() else {
            let mut bytes = 0;
            let frames = self.port.receive(budget, &mut |frame| {
                bytes += frame.chain.len() as u64;
                sink(frame);
            });
            return Batch {
                frames,
                bytes,
                is_by_lane: false,
            };
        };
        match beside.bypass.is_open() {
            true => beside.receive(&mut self.port, budget, &mut sink),
            false => beside.receive_by_lane(&mut self.port, budget, &mut sink),
        }
    }

    /// Tells the port of what it was given.
    #[inline]
    pub fn kick(&mut self) {
        self.port.kick();
    }

    /// Gives the port what waits for room; true if that is something to [tell](Self::kick) of.
    #[inline]
    pub fn flush(&mut self) -> bool {
        self.queue.flush(&mut *self.port)
    }

    /// Frames that [`flush`](Self::flush) is to be called for again.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Frames that were not sent yet.
    pub fn unsent(&mut self) -> usize {
        let in_lane = self
            .beside
            .as_ref()
            .map_or(0, |beside| beside.lane.unsent());
        in_lane + self.queue.len() + self.port.unsent()
    }

    /// Whether frames are there.
    #[inline]
    pub fn has_received(&mut self) -> bool {
        self.has_sorted() || self.port.has_received()
    }

    /// Asks for an interrupt for the next frame; true if there are some already.
    #[inline]
    pub fn arm(&mut self) -> bool {
        if let Some(beside) = &self.beside
            && !beside.bypass.is_open()
        {
            return self.arm_by_lane();
        }
        self.port.arm()
    }

    /// A lane that has the port to itself for a while has an alarm for that: to ask it again and
    /// again would keep its lock from the CPU that is to take its frames.
    #[cold]
    fn arm_by_lane(&mut self) -> bool {
        let is_polling = self.with_lane(|lane, port| lane.is_polling(port));
        let is_armed = is_polling == Some(true) || !self.port.arm();
        self.has_sorted() || !is_armed
    }

    /// Asks for no more interrupts.
    #[inline]
    pub fn disarm(&mut self) {
        self.port.disarm();
    }

    #[inline]
    fn has_sorted(&self) -> bool {
        let mut beside = self.beside.iter();
        beside.any(|beside| !beside.bypass.is_open() && beside.lane.has_frames())
    }
}

impl Beside {
    /// A batch of which most frames are the own stack's.
    #[inline]
    fn receive(&mut self, port: &mut Port, budget: usize, sink: &mut impl FnMut(RxFrame)) -> Batch {
        let Self { bypass, lane } = self;
        let (mut own, mut own_bytes, mut bytes) = (0, 0, 0);
        let frames = port.receive(budget, &mut |frame| {
            let len = frame.chain.len() as u64;
            if bypass.receives(&frame) {
                own += 1;
                own_bytes += len;
                sink(frame);
            } else {
                bytes += len;
                lane.sort(frame);
            }
        });
        bypass.note_received(own, own_bytes);
        if frames != own {
            lane.end_batch(port, frames - own, bytes);
            lane.take(budget, sink);
            lane.settle(bypass);
        }
        Batch {
            frames,
            bytes: own_bytes + bytes,
            is_by_lane: false,
        }
    }

    #[cold]
    fn receive_by_lane(
        &mut self,
        port: &mut Port,
        budget: usize,
        sink: &mut dyn FnMut(RxFrame),
    ) -> Batch {
        let Self { bypass, lane } = self;
        lane.pull(port);
        let frames = lane.take(budget, sink);
        lane.settle(bypass);
        Batch {
            frames,
            bytes: 0,
            is_by_lane: true,
        }
    }
}
