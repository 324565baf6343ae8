//! A lane with its pair of queues, behind one lock.
//!
//! The card's stack takes its frames where it polls, from [`Lanes::receive`]; NICs from their
//! inboxes.

use alloc::sync::Arc;

use base::{Duration, Instant};
use hal::FramePort;
use link::lane::{Blocked, TxFlags};
use link::{Lane, LinkId, Outlook, StreamId, TxChain};
use mach::sync::{Spin, SpinGuard};
use mbuf::{RxFrame, TxFrame};

use super::nic::Nic;
use super::shell::Shell;
use super::wire::{self, Wire};
use super::{control, wake};
use crate::stack::env::Port;

/// A lane that has more to do, or whose card has no room, runs again after this.
const PAUSE: Duration = Duration::from_micros(200);

/// The lane of a port's ring. An etherstub has one, a card one for each pair of queues.
pub(super) struct Lanes {
    port: LinkId,
    ring: u16,
    state: Spin<State>,
}

struct State {
    lane: Lane,
    /// None of an etherstub.
    card: Option<Wire>,
    shell: Shell,
    /// Room for what is sent; empty between calls.
    outgoing: TxChain,
    /// The card has frames that it was not told of.
    is_unannounced: bool,
}

impl Lanes {
    /// For a ring of a port, without a card yet; `None` if there is no such port. `own` is
    /// the stream of the card's stack.
    pub fn new(port: LinkId, ring: u16, own: Option<StreamId>) -> Option<Arc<Self>> {
        let (generation, table) = control::with_links(|links| links.table(port))?;
        Some(Arc::new(Self {
            port,
            ring,
            state: Spin::new(State {
                lane: Lane::new(0, true, generation, table),
                card: None,
                shell: Shell::new(ring, own),
                outgoing: TxChain::new(),
                is_unannounced: false,
            }),
        }))
    }

    /// The ring.
    pub fn ring(&self) -> u16 {
        self.ring
    }

    /// From now on the lane has its card.
    pub fn put_card(&self, card: Port) {
        self.state.lock().card = Some(Wire(card));
    }

    /// The port.
    pub fn port(&self) -> LinkId {
        self.port
    }

    /// From now on `nic` gets what is for its stream.
    pub fn lead_to(&self, nic: Arc<Nic>) {
        self.state.lock().shell.nics.push(nic);
    }

    /// And no longer.
    pub fn lead_no_more_to(&self, stream: StreamId) {
        let mut state = self.state.lock();
        state.shell.nics.retain(|nic| nic.stream != stream);
    }

    /// Sends a frame of `link`; it comes back while the link was told to wait.
    pub fn send(&self, link: LinkId, frame: TxFrame) -> Result<(), TxFrame> {
        let bytes = frame.chain.len();
        match self.send_past(link, frame) {
            Ok(()) => {
                wire::others_sent(bytes);
                Ok(())
            }
            Err(frame) => self.send_by_lane(link, frame),
        }
    }

    /// [`send`](Self::send) for the card's own stack.
    pub fn send_own(&self, frame: TxFrame) -> Result<(), TxFrame> {
        let Err(frame) = self.send_past(self.port, frame) else {
            return Ok(());
        };
        let bytes = frame.chain.len();
        self.send_by_lane(self.port, frame)?;
        wire::stack_sent(bytes);
        Ok(())
    }

    /// Gives the card a frame that the lane need not see, past what counts beside its stack.
    #[inline]
    fn send_past(&self, link: LinkId, frame: TxFrame) -> Result<(), TxFrame> {
        let state = &mut *self.state.lock();
        match &mut state.card {
            Some(Wire(card)) if state.shell.blocked.is_empty() && !state.lane.is_stale() => {
                state.lane.transmit_past(link, frame, &mut **card)?;
                state.is_unannounced = true;
                Ok(())
            }
            _ => Err(frame),
        }
    }

    fn send_by_lane(&self, link: LinkId, frame: TxFrame) -> Result<(), TxFrame> {
        let mut state = self.refreshed();
        let State {
            lane,
            card,
            shell,
            outgoing,
            ..
        } = &mut *state;
        if shell.blocked.contains(&link) {
            return Err(frame);
        }
        outgoing.push(frame);
        match lane.transmit(link, outgoing, TxFlags::empty(), card.as_mut(), shell) {
            Ok(outlook) => come_back(&outlook, shell.now),
            Err(Blocked) => {
                shell.blocked.push(link);
                wake::at(shell.now + PAUSE);
            }
        }
        Ok(())
    }

    /// Tells the card what it was given, unless the lane has done so.
    pub fn kick(&self) {
        let mut state = self.state.lock();
        if core::mem::take(&mut state.is_unannounced)
            && let Some(card) = &mut state.card
        {
            card.kick();
        }
    }

    /// Polls the card, and passes up to `budget` frames on to its stack.
    pub fn receive(&self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        let mut state = self.current();
        let State {
            lane, card, shell, ..
        } = &mut *state;
        let mut count = 0;
        // What the lane sorted earlier comes first.
        let card_alone = card.as_mut().filter(|_| shell.arrived.len() == 0);
        let passed = card_alone.and_then(|Wire(card)| {
            lane.interrupt_past(self.port, &mut **card, budget, shell, sink)
        });
        let outlook = match passed {
            Some(passed) => {
                wire::others_received(passed.others, passed.others_bytes);
                count = passed.taken;
                passed.has_more.then(|| {
                    shell.now = mach::time::now();
                    lane.run(card.as_mut(), shell)
                })
            }
            None => {
                shell.now = mach::time::now();
                Some(lane.interrupt(card.as_mut(), shell))
            }
        };
        if let Some(outlook) = outlook {
            come_back(&outlook, shell.now);
        }
        while count < budget
            && let Some(frame) = shell.arrived.take()
        {
            wire::stack_received(frame.chain.len());
            sink(frame);
            count += 1;
        }
        count
    }

    /// The lane's own work: what waits for limits and for room.
    pub fn run(&self) {
        let mut state = self.refreshed();
        let State {
            lane, card, shell, ..
        } = &mut *state;
        let outlook = lane.run(card.as_mut(), shell);
        come_back(&outlook, shell.now);
    }

    /// Whether there is something for the card's own stack, or for the lane to sort.
    pub fn has_received(&self) -> bool {
        let State { card, shell, .. } = &mut *self.state.lock();
        let has_frames = card.as_mut().is_some_and(FramePort::has_received);
        has_frames || shell.arrived.len() != 0
    }

    /// Arms the card's doorbell; true if there is something for its stack already. A lane that
    /// polls because frames wait for others has its alarm instead: asking it again and again would
    /// keep its lock from the CPU that is to take them.
    pub fn arm(&self) -> bool {
        let mut state = self.state.lock();
        if state.lane.is_polling() {
            drop(state);
            self.run();
            state = self.state.lock();
        }
        let State {
            lane, card, shell, ..
        } = &mut *state;
        let is_armed = lane.is_polling() || !card.as_mut().is_some_and(FramePort::arm);
        shell.arrived.len() != 0 || !is_armed
    }

    /// Calls `work` with the card, if there is one.
    pub fn with_card<R>(&self, work: impl FnOnce(&mut Wire) -> R) -> Option<R> {
        self.state.lock().card.as_mut().map(work)
    }

    /// Frames that wait in the lane and the card.
    pub fn unsent(&self) -> usize {
        let mut state = self.state.lock();
        let in_card = state.card.as_mut().map_or(0, FramePort::unsent);
        state.lane.unsent() + in_card
    }

    /// Takes the card out; `None` while something waits for its stack or to be sent.
    pub fn release_card(&self) -> Option<Port> {
        let mut state = self.refreshed();
        let State {
            lane, card, shell, ..
        } = &mut *state;
        lane.run(card.as_mut(), shell);
        let is_empty = lane.unsent() == 0 && lane.waiting(shell) == 0;
        is_empty.then(|| card.take()).flatten().map(|wire| wire.0)
    }

    /// Shows the lane.
    pub fn look(&self, look: impl FnOnce(&Lane)) {
        look(&self.state.lock().lane);
    }

    /// The state, with the time and the newest table.
    fn refreshed(&self) -> SpinGuard<'_, State> {
        let mut state = self.current();
        state.shell.now = mach::time::now();
        state
    }

    /// The state with the newest table.
    fn current(&self) -> SpinGuard<'_, State> {
        let mut state = self.state.lock();
        if state.lane.is_stale()
            && let Some((_, table)) = control::with_links(|links| links.table(self.port))
        {
            state.lane.adopt(table);
        }
        state
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
