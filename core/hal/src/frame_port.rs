//! What a network card is to a network stack.

use base::Instant;
use mbuf::{RxFrame, TxFrame};

use crate::{PortCounters, Stall};

/// Work that a card does in the stack's stead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Fills in the checksums that a [`TxFrame`] asks for.
    pub checksum: bool,
    /// Cuts TCP over IPv4 into segments.
    pub tso4: bool,
    /// Cuts TCP over IPv6 into segments.
    pub tso6: bool,
    /// Verifies checksums of received frames, or leaves those of neighbours partial.
    pub guest_checksum: bool,
    /// May join received TCP segments into one frame.
    pub guest_coalesce: bool,
    /// Takes VLAN tags out of received frames and puts them into those to send. Without it they
    /// stay in the bytes.
    pub tags: bool,
}

/// One pair of queues of a network card. Frames begin with the Ethernet header and have
/// no FCS.
///
/// Nothing here waits. While the machine is busy its owner polls; before it halts it
/// [`arm`](Self::arm)s the doorbell.
pub trait FramePort {
    /// The card's Ethernet address.
    fn mac(&self) -> [u8; 6];

    /// The largest payload of an Ethernet frame, in bytes.
    fn mtu(&self) -> u16;

    /// What the card does for the stack.
    fn capabilities(&self) -> Capabilities;

    /// Queues a frame; while the queue is full, or no buffer is free for it, it comes back with the
    /// same bytes, to be sent later. One that the card can never send is dropped and counted
    /// ([`PortCounters::tx_unsupported`]). The card hears of frames with [`kick`](Self::kick).
    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame>;

    /// Tells the card of everything that was queued since the last time.
    fn kick(&mut self);

    /// Passes on up to `budget` received frames; returns how many there were.
    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize;

    /// Frames that were queued and that the card has not sent yet.
    fn unsent(&mut self) -> usize;

    /// Gives back the buffers of frames that have been sent. Also happens by itself, when
    /// the queue runs full.
    fn reclaim(&mut self);

    /// Whether received frames are waiting. A look at memory, which may be taken again and again.
    fn has_received(&mut self) -> bool;

    /// Asks for an interrupt when the next frame arrives. Returns whether frames are
    /// waiting already, for which none may come: receive them and arm again.
    fn arm(&mut self) -> bool;

    /// Asks for no more interrupts; a late one may still come.
    fn disarm(&mut self);

    /// What happened so far.
    fn counters(&mut self) -> PortCounters;

    /// Looks after the transmit queue; called every few seconds. One that stands still is
    /// reset, and reported.
    fn watch(&mut self, now: Instant) -> Option<Stall>;

    /// Brings frames for other stations too, or no longer, as far as this end of a shared wire may
    /// see them. Of a card, its control half is asked ([`NicControl::set_promiscuous`](crate::NicControl)).
    fn listen_to_all(&mut self, _on: bool) {}
}
