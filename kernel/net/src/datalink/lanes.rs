//! The lane of a port's ring, wherever it is: a card's is beside its pair of queues, and under
//! that one's lock ([`crate::device::pair`]); an etherstub's has a lock of its own.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;

use hal::{Capabilities, FramePort};
use link::lane::Place;
use link::{Lane, LinkId, StreamId, TxChain};
use mach::sync::Spin;
use mbuf::TxFrame;

use super::nic::Nic;
use super::port_lane::PortLane;
use super::wire;
use crate::stack;
use crate::stack::env::Port;

/// See the module. An etherstub has one, a card one for each pair of queues.
pub(super) struct Lanes {
    port: LinkId,
    owner: Owner,
}

/// Who has it locked.
enum Owner {
    /// Beside this ring of the card.
    Card(u16),
    Etherstub(Spin<Box<PortLane>>),
}

impl Lanes {
    /// A lane beside a ring of the card, whose stack has the stream `own`; `None` without a port
    /// or ring.
    pub fn beside_card(port: LinkId, ring: u16, own: StreamId) -> Option<Arc<Self>> {
        let lane = PortLane::boxed(port, ring, Some(own))?;
        stack::first().with_pair(ring, |pair, _| pair.put_lane(lane))?;
        Some(Arc::new(Self {
            port,
            owner: Owner::Card(ring),
        }))
    }

    /// The lane of an etherstub; `None` if there is no such port.
    pub fn of_etherstub(port: LinkId) -> Option<Arc<Self>> {
        let lane = PortLane::boxed(port, 0, None)?;
        Some(Arc::new(Self {
            port,
            owner: Owner::Etherstub(Spin::new(lane)),
        }))
    }

    /// The ring of the card.
    pub fn ring(&self) -> Option<u16> {
        match self.owner {
            Owner::Card(ring) => Some(ring),
            Owner::Etherstub(_) => None,
        }
    }

    /// The port.
    pub fn port(&self) -> LinkId {
        self.port
    }

    /// Calls `work` with the lane and the card, if there is one; `None` if the lane is gone.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut PortLane, Option<&mut Port>) -> R) -> Option<R> {
        let ring = match &self.owner {
            Owner::Card(ring) => *ring,
            Owner::Etherstub(lane) => return Some(work(&mut lane.lock(), None)),
        };
        let done = stack::first().with_pair(ring, |pair, _| {
            pair.with_lane(|lane, card| {
                let lane: &mut dyn Any = lane;
                Some(work(lane.downcast_mut()?, Some(card)))
            })
        });
        done.flatten().flatten()
    }

    /// From now on `nic` gets what is for its stream.
    pub fn lead_to(&self, nic: Arc<Nic>) {
        self.with(|lane, _| lane.shell.nics.push(nic));
    }

    /// And no longer.
    pub fn lead_no_more_to(&self, stream: StreamId) {
        self.with(|lane, _| lane.shell.nics.retain(|nic| nic.stream != stream));
    }

    /// Sends a frame of the client that was at `place`, past the lane; it stays where the lane must
    /// see it.
    #[inline]
    pub fn send_past(&self, place: Place, frame: &mut Option<TxFrame>) {
        if let Owner::Card(ring) = self.owner {
            stack::first().with_pair(ring, |pair, _| pair.transmit_of(place, frame));
        }
    }

    /// Sends a frame of `link`; it comes back while the link was told to wait. Says by which place
    /// the next ones may pass.
    pub fn send(&self, link: LinkId, frame: TxFrame) -> (Result<(), TxFrame>, Option<Place>) {
        let sent = self.with(|lane, card| {
            let sent = lane.send(link, frame, card);
            (sent, lane.lane().place_of(link))
        });
        sent.unwrap_or((Ok(()), None))
    }

    /// Sends frames of `link`; false if they are left because it was told to wait.
    pub fn send_all(&self, link: LinkId, frames: &mut TxChain) -> bool {
        let sent = self.with(|lane, card| lane.send_all(link, frames, card));
        sent.unwrap_or_else(|| {
            frames.clear();
            true
        })
    }

    /// Tells the card of frames that [passed the lane](Self::send_past).
    pub fn kick(&self) {
        if let Owner::Card(ring) = self.owner {
            stack::first().with_pair(ring, |pair, _| wire::Wire(pair.port()).kick());
        }
    }

    /// The lane's own work: what waits for limits and for room.
    pub fn run(&self) {
        self.with(PortLane::run);
    }

    /// What the card does for its stack, if there is one.
    pub fn capabilities(&self) -> Option<Capabilities> {
        self.with(|_, card| card.map(|card| card.capabilities()))?
    }

    /// Shows the lane.
    pub fn look(&self, look: impl FnOnce(&Lane)) {
        self.with(|lane, _| lane.unsettle());
        self.with(|lane, _| look(lane.lane()));
    }

    /// Takes the lane away from its card; false while something waits for its stack or to be
    /// sent.
    pub fn remove(&self) -> bool {
        let is_empty = self.with(|lane, card| {
            lane.run(card);
            lane.is_empty()
        });
        if is_empty != Some(true) {
            return false;
        }
        let Owner::Card(ring) = self.owner else {
            return true;
        };
        let mut counts = None;
        self.look(|lane| counts = Some(lane.ring_counts().clone()));
        stack::first().with_pair(ring, |pair, pulls| {
            counts.iter().for_each(|counts| pulls.take_over(counts));
            pair.remove_lane();
        });
        true
    }
}
