//! A lane with what it sees of the kernel, and the calls of those who send by it.
//!
//! The card is lent to each call by whoever has it locked; an etherstub has none.

use alloc::boxed::Box;

use base::{Duration, Instant};
use link::lane::{Blocked, Bypass, TxFlags};
use link::{Lane, LinkId, Outlook, StreamId, TxChain};
use mbuf::{RxFrame, TxFrame};

use super::shell::Shell;
use super::wire::{self, Wire};
use super::{control, wake};
use crate::device::pair::SideLane;
use crate::stack::env::Port;

/// A lane that has more to do, or whose card has no room, runs again after this.
const PAUSE: Duration = Duration::from_micros(200);

/// See the module.
pub(super) struct PortLane {
    port: LinkId,
    lane: Lane,
    pub shell: Shell,
    /// Room for what is sent; empty between calls.
    outgoing: TxChain,
    /// Something has changed since [`settle`](SideLane::settle).
    is_unsettled: bool,
}

impl PortLane {
    /// For a ring of a port; `None` if there is no such port. `own` is the stream of the card's
    /// stack. A lane is large, and made where nothing else is on the kernel's stack.
    #[inline(never)]
    pub fn boxed(port: LinkId, ring: u16, own: Option<StreamId>) -> Option<Box<Self>> {
        let (generation, table) = control::with_links(|links| links.table(port))?;
        Some(Box::new(Self {
            port,
            lane: Lane::new(0, true, generation, table),
            shell: Shell::new(ring, own),
            outgoing: TxChain::new(),
            is_unsettled: true,
        }))
    }

    /// The lane.
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Counts what the bypass let pass before anybody looks.
    pub fn unsettle(&mut self) {
        self.is_unsettled = true;
    }

    /// Sends a frame of `link`; it comes back while the link was told to wait.
    pub fn send(
        &mut self,
        link: LinkId,
        frame: TxFrame,
        card: Option<&mut Port>,
    ) -> Result<(), TxFrame> {
        self.refresh();
        if self.shell.blocked.contains(&link) {
            return Err(frame);
        }
        self.outgoing.push(frame);
        self.transmit(link, card);
        Ok(())
    }

    /// Sends frames of `link`; false if they are left because it was told to wait.
    pub fn send_all(
        &mut self,
        link: LinkId,
        frames: &mut TxChain,
        card: Option<&mut Port>,
    ) -> bool {
        self.refresh();
        if self.shell.blocked.contains(&link) {
            return false;
        }
        self.outgoing.append(frames);
        self.transmit(link, card);
        true
    }

    fn transmit(&mut self, link: LinkId, card: Option<&mut Port>) {
        let Self {
            lane,
            shell,
            outgoing,
            ..
        } = self;
        let mut card = card.map(Wire);
        match lane.transmit(link, outgoing, TxFlags::empty(), card.as_mut(), shell) {
            Ok(outlook) => come_back(&outlook, shell.now),
            Err(Blocked) => {
                shell.blocked.push(link);
                wake::at(shell.now + PAUSE);
            }
        }
    }

    /// The lane's own work: what waits for limits and for room.
    pub fn run(&mut self, card: Option<&mut Port>) {
        self.refresh();
        let outlook = self.lane.run(card.map(Wire).as_mut(), &mut self.shell);
        come_back(&outlook, self.shell.now);
    }

    /// Whether nothing waits for the card's stack or to be sent.
    pub fn is_empty(&self) -> bool {
        self.lane.unsent() == 0 && self.lane.waiting(&self.shell) == 0
    }

    /// Takes the newest table, and the time.
    fn refresh(&mut self) {
        self.is_unsettled = true;
        self.shell.now = mach::time::now();
        if self.lane.is_stale()
            && let Some((_, table)) = control::with_links(|links| links.table(self.port))
        {
            self.lane.adopt(table);
        }
    }
}

impl SideLane for PortLane {
    #[inline]
    fn sort(&mut self, frame: RxFrame) {
        self.lane.sort(frame);
    }

    fn end_batch(&mut self, card: &mut Port, frames: usize, bytes: u64) {
        wire::others_received(frames as u64, bytes);
        if self.lane.end_batch(&mut self.shell) {
            self.run(Some(card));
        }
    }

    fn pull(&mut self, card: &mut Port) {
        self.refresh();
        let outlook = self.lane.interrupt(Some(&mut Wire(card)), &mut self.shell);
        come_back(&outlook, self.shell.now);
    }

    fn take(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        if self.shell.arrived.len() == 0 {
            return 0;
        }
        self.is_unsettled = true;
        self.shell.arrived.drain(budget, &mut |frame| {
            wire::stack_received(frame.chain.len());
            sink(frame);
        })
    }

    fn has_frames(&self) -> bool {
        self.shell.arrived.len() != 0
    }

    fn send_own(&mut self, card: &mut Port, frame: TxFrame) -> Result<(), TxFrame> {
        let bytes = frame.chain.len();
        self.send(self.port, frame, Some(card))?;
        wire::stack_sent(bytes);
        Ok(())
    }

    fn is_polling(&mut self, card: &mut Port) -> bool {
        if self.lane.is_polling() {
            self.run(Some(card));
        }
        self.lane.is_polling()
    }

    fn unsent(&self) -> usize {
        self.lane.unsent()
    }

    #[inline]
    fn settle(&mut self, bypass: &mut Bypass) {
        if !core::mem::take(&mut self.is_unsettled) {
            return;
        }
        let is_clear = self.shell.arrived.len() == 0;
        self.lane.settle(self.port, is_clear, bypass);
    }
}

/// Has the lane run again when it says so.
fn come_back(outlook: &Outlook, now: Instant) {
    let soon = match outlook.is_busy || outlook.awaits_card {
        true => now + PAUSE,
        false => Instant::NEVER,
    };
    wake::at(outlook.at.min(soon));
}
