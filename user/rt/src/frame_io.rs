//! How a program's frames come and go, whoever moves them: the kernel over shared rings
//! ([`Exchange`](crate::Exchange)), or a driver in the program ([`Card`](crate::Card)).

use base::{Instant, SharedMemory};
use hal::{Capabilities, PortCounters};
use mbuf::{Chain, Mbuf, Pool, RxFrame, TxFrame};

use crate::card::Card;
use crate::exchange::{Counts, Exchange};
use crate::ring::RingMemory;

/// Frames and packet memory. A turn is [`begin`](Self::begin), [`receive`](Self::receive), [`end`](Self::end); frames are sent at any time, and leave with [`flush`](Self::flush).
pub trait FrameIo {
    /// What it does in a stack's stead.
    fn capabilities(&self) -> Capabilities;

    /// An empty buffer, for what passes through.
    fn alloc(&self) -> Option<Mbuf>;

    /// An empty buffer for what waits; `None` while memory is scarce.
    fn alloc_to_queue(&self) -> Option<Mbuf>;

    /// Whether only the reserve is left.
    fn is_scarce(&self) -> bool;

    /// Takes back what is sent.
    fn reclaim(&mut self);

    /// Begins a turn, and takes back what is sent.
    fn begin(&mut self, now: Instant);

    /// Puts received frames at the end of `frames`, at most `most`.
    fn receive(&mut self, most: usize, frames: &mut Vec<RxFrame>);

    /// Whether there are any: a look at memory.
    fn has_received(&mut self) -> bool;

    /// Gives buffers for the next ones.
    fn end(&mut self);

    /// Queues a frame. One that cannot be is dropped and counted, as a wire would.
    fn send(&mut self, frame: TxFrame);

    /// Lets go what was queued; true if the kernel is to be called for it.
    fn flush(&mut self) -> bool;

    /// Whether what was queued may wait for the answers to frames that come, because each time that some leave costs
    /// much and the first has not waited for long.
    fn may_gather(&mut self, _now: Instant) -> bool {
        false
    }

    /// If so, looks for such frames for as long as some are likely to come; true if there are any.
    fn finds_more(&mut self) -> bool {
        false
    }

    /// Frames that are not sent yet, queued ones included.
    fn in_flight(&mut self) -> u32;

    /// Whether that are `least` or more: asked for each frame, where the answer is hardly ever yes.
    #[inline]
    fn has_in_flight(&mut self, least: u32) -> bool {
        self.in_flight() >= least
    }

    /// Asks to be told of the next frame; true if frames are waiting already, for which nobody may tell. Who is told by an
    /// interrupt's eventfd itself, and not by its edges, forgets before this what has come.
    fn arm(&mut self) -> bool;

    /// The same, without a look for frames before: for who waits for something else as well, which would come meanwhile.
    fn arm_at_once(&mut self) -> bool {
        self.arm()
    }
}

impl<M: SharedMemory> FrameIo for Exchange<M> {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        self.umem().alloc()
    }

    #[inline]
    fn alloc_to_queue(&self) -> Option<Mbuf> {
        self.umem().alloc_to_queue()
    }

    #[inline]
    fn is_scarce(&self) -> bool {
        self.umem().is_scarce()
    }

    #[inline]
    fn reclaim(&mut self) {
        self.complete();
    }

    #[inline]
    fn begin(&mut self, _: Instant) {
        self.complete();
    }

    #[inline]
    fn receive(&mut self, most: usize, frames: &mut Vec<RxFrame>) {
        let taken = (0..most).map_while(|_| self.take());
        frames.extend(taken.map(|frame| RxFrame {
            chain: Chain::from(frame),
            ..RxFrame::default()
        }));
    }

    #[inline]
    fn has_received(&mut self) -> bool {
        Self::has_received(self)
    }

    /// Also after a turn without a frame: there are none while no chunk is there, and one may have come home.
    #[inline]
    fn end(&mut self) {
        self.received();
        self.supply();
    }

    #[inline]
    fn send(&mut self, frame: TxFrame) {
        self.stage_frame(frame.chain);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.submit()
    }

    #[inline]
    fn in_flight(&mut self) -> u32 {
        Self::in_flight(self)
    }

    /// Who polls the socket is told.
    fn arm(&mut self) -> bool {
        false
    }
}

/// Either.
pub enum AnyIo {
    /// By the kernel.
    Rings(Exchange<RingMemory>),
    /// By a driver here.
    Card(Card),
}

/// The same call on whichever it is.
macro_rules! of_either {
    ($self:expr, $io:ident => $call:expr) => {
        match $self {
            Self::Rings($io) => $call,
            Self::Card($io) => $call,
        }
    };
}

impl AnyIo {
    /// What the driver of a card counted.
    pub fn port_counters(&mut self) -> Option<PortCounters> {
        match self {
            Self::Rings(_) => None,
            Self::Card(card) => Some(card.port_counters()),
        }
    }

    /// What happened to frames so far.
    pub fn counts(&self) -> &Counts {
        of_either!(self, io => io.counts())
    }
}

impl FrameIo for AnyIo {
    fn capabilities(&self) -> Capabilities {
        of_either!(self, io => io.capabilities())
    }

    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        of_either!(self, io => io.alloc())
    }

    #[inline]
    fn alloc_to_queue(&self) -> Option<Mbuf> {
        of_either!(self, io => io.alloc_to_queue())
    }

    #[inline]
    fn is_scarce(&self) -> bool {
        of_either!(self, io => io.is_scarce())
    }

    #[inline]
    fn reclaim(&mut self) {
        of_either!(self, io => io.reclaim());
    }

    #[inline]
    fn begin(&mut self, now: Instant) {
        of_either!(self, io => io.begin(now));
    }

    #[inline]
    fn receive(&mut self, most: usize, frames: &mut Vec<RxFrame>) {
        of_either!(self, io => io.receive(most, frames));
    }

    #[inline]
    fn has_received(&mut self) -> bool {
        of_either!(self, io => io.has_received())
    }

    #[inline]
    fn end(&mut self) {
        of_either!(self, io => io.end());
    }

    #[inline]
    fn send(&mut self, frame: TxFrame) {
        of_either!(self, io => io.send(frame));
    }

    #[inline]
    fn flush(&mut self) -> bool {
        of_either!(self, io => io.flush())
    }

    #[inline]
    fn may_gather(&mut self, now: Instant) -> bool {
        of_either!(self, io => io.may_gather(now))
    }

    fn finds_more(&mut self) -> bool {
        of_either!(self, io => io.finds_more())
    }

    #[inline]
    fn in_flight(&mut self) -> u32 {
        of_either!(self, io => io.in_flight())
    }

    #[inline]
    fn has_in_flight(&mut self, least: u32) -> bool {
        of_either!(self, io => io.has_in_flight(least))
    }

    fn arm(&mut self) -> bool {
        of_either!(self, io => io.arm())
    }

    fn arm_at_once(&mut self) -> bool {
        of_either!(self, io => io.arm_at_once())
    }
}
