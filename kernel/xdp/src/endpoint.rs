//! A link's frames on their way to and from the rings.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use link::counters::Kstat;
use link::{RxChain, TxChain};
use mach::sync::{Once, Spin};
use mbuf::TxFrame;
use mm::shared_pages::SharedPages;
use net::{Doorbell, FrameOwner, Outgoing, OwnedLink};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use vfs::socket::XdpStatistics;
use xdp::{Dropped, Receiver, Sender, TURN_FRAMES};

use crate::ring::Ring;
use crate::setup::Setup;
use crate::umem::Umem;

/// The rings in use.
pub struct Endpoint {
    pollee: Arc<Pollee>,
    umem: Arc<Umem>,
    /// Without a ring what comes is dropped.
    receiving: Option<Receiving>,
    sending: Option<Sending>,
    /// What may be sent; set once, and then never more than that.
    filter: Once<Outgoing>,
    is_gone: AtomicBool,
    /// The process that made it.
    process: u32,
    /// How often somebody who waited was woken for frames.
    wakes: AtomicU64,
    /// Frames that came without a ring for them.
    unheard: Spin<Unheard>,
}

#[derive(Default)]
struct Unheard {
    frames: RxChain,
    count: u64,
}

struct Receiving {
    fill: Arc<SharedPages>,
    ring: Arc<SharedPages>,
    state: Spin<ReceivingState>,
}

struct ReceivingState {
    receiver: Receiver,
    /// Room for a batch; empty between batches.
    batch: RxChain,
}

struct Sending {
    ring: Arc<SharedPages>,
    completion: Arc<SharedPages>,
    state: Spin<SendingState>,
}

struct SendingState {
    sender: Sender,
    /// Room for a turn; empty between turns.
    frames: TxChain,
}

/// What became of a turn of sending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// All that was asked for.
    All,
    /// There is more.
    Some,
    /// Nothing: the link takes none, the completion ring is full, or there is no memory.
    Nothing,
}

impl Endpoint {
    /// Over what was set up.
    ///
    /// Errors: `Invalid` if that does not suffice.
    pub fn new(setup: &Setup, pollee: Arc<Pollee>) -> Result<Self> {
        let (umem, fill, completion) = match (&setup.umem, &setup.fill, &setup.completion) {
            (Some(umem), Some(fill), Some(completion)) => (umem, fill, completion),
            _ => return Err(Error::Invalid),
        };
        if setup.receive.is_none() && setup.send.is_none() {
            return Err(Error::Invalid);
        }
        let receiving = setup.receive.as_ref();
        let sending = setup.send.as_ref();
        Ok(Self {
            pollee,
            umem: umem.clone(),
            receiving: receiving.map(|ring| Receiving::new(umem, fill, ring)),
            sending: sending.map(|ring| Sending::new(umem, ring, completion)),
            filter: Once::new(),
            is_gone: AtomicBool::new(false),
            process: task::current().process.id(),
            wakes: AtomicU64::new(0),
            unheard: Spin::default(),
        })
    }

    /// From now on it sends what the filter admits.
    ///
    /// Errors: `Busy` if it has another one.
    pub fn narrow(&self, filter: Outgoing) -> Result<()> {
        self.filter.set(filter).map_err(|_| Error::Busy)?;
        // What is being sent was looked at before.
        self.settle();
        Ok(())
    }

    /// Waits until nobody moves frames who began before.
    fn settle(&self) {
        if let Some(half) = &self.receiving {
            drop(half.state.lock());
        }
        if let Some(half) = &self.sending {
            drop(half.state.lock());
        }
    }

    /// Sends what is in the ring now.
    ///
    /// However many threads and processes do so at once, each takes as many turns as it asked for.
    ///
    /// Errors: `NoBuffers` without a ring, `NetworkDown` without the link, `WouldBlock` where some
    /// of it stays in the ring: the link sends it later, or the program calls again.
    pub fn kick(&self, link: &OwnedLink) -> Result<()> {
        let sending = self.sending.as_ref().ok_or(Error::NoBuffers)?;
        self.check()?;
        for _ in 0..sending.ask() {
            match self.turn(sending, link) {
                Sent::All => return Ok(()),
                Sent::Nothing => break,
                Sent::Some => sched::resched_point(),
            }
        }
        Err(Error::WouldBlock)
    }

    /// The program has given chunks, or wants the network to be looked at.
    ///
    /// Errors: `NoBuffers` without a ring, `NetworkDown` without the link.
    pub fn wake(&self) -> Result<()> {
        let receiving = self.receiving.as_ref().ok_or(Error::NoBuffers)?;
        self.check()?;
        receiving.state.lock().receiver.wake(&*receiving.fill);
        net::poll_now();
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match self.is_gone.load(Relaxed) {
            true => Err(Error::NetworkDown),
            false => Ok(()),
        }
    }

    /// What the program need not wait for.
    pub fn ready(&self) -> Events {
        let mut events = Events::empty();
        if self.is_gone.load(Relaxed) {
            events |= Events::ERR;
        }
        let is_readable = |half: &Receiving| half.state.lock().receiver.is_readable(&*half.ring);
        if self.receiving.as_ref().is_some_and(is_readable) {
            events |= Events::READABLE;
        }
        let is_writable = |half: &Sending| half.state.lock().sender.is_writable(&*half.ring);
        if self.sending.as_ref().is_some_and(is_writable) {
            events |= Events::WRITABLE;
        }
        events
    }

    /// What went wrong so far.
    pub fn statistics(&self) -> XdpStatistics {
        let mut told = XdpStatistics {
            rx_dropped: self.unheard.lock().count,
            ..XdpStatistics::default()
        };
        if let Some(half) = &self.receiving {
            let state = half.state.lock();
            let dropped = |reason| state.receiver.dropped(reason);
            told.rx_dropped += dropped(Dropped::TooLong);
            told.rx_invalid_descs = dropped(Dropped::InvalidAddress);
            told.rx_ring_full = dropped(Dropped::RingFull);
            told.rx_fill_ring_empty_descs = dropped(Dropped::NoChunk);
        }
        if let Some(half) = &self.sending {
            let state = half.state.lock();
            told.tx_invalid_descs = state.sender.invalid();
            told.tx_ring_empty_descs = state.sender.empty();
        }
        told
    }

    /// Sends some of what was asked for.
    fn turn(&self, half: &Sending, link: &OwnedLink) -> Sent {
        half.turn(&self.umem, link, &self.is_gone, self.filter.get())
    }

    fn wake_readers(&self) {
        self.wakes
            .fetch_add(u64::from(self.pollee.is_observed()), Relaxed);
        self.pollee.notify(Events::READABLE);
    }

    fn drop_batch(&self, link: &OwnedLink) {
        let mut unheard = self.unheard.lock();
        link.take(&mut unheard.frames);
        unheard.count += unheard.frames.len() as u64;
        unheard.frames.clear();
    }
}

impl FrameOwner for Endpoint {
    fn run(&self, link: &OwnedLink) -> bool {
        match &self.receiving {
            None => self.drop_batch(link),
            Some(half) if half.take_batch(&self.umem, link, &self.is_gone) => self.wake_readers(),
            Some(_) => {}
        }
        let Some(half) = self.sending.as_ref().filter(|half| half.is_asked()) else {
            return false;
        };
        let sent = self.turn(half, link);
        if sent != Sent::Nothing {
            self.pollee.notify(Events::WRITABLE);
        }
        sent == Sent::Some
    }

    fn counts(&self) -> Vec<Kstat> {
        let received = |half: &Receiving| half.state.lock().receiver.placed();
        let sent = |half: &Sending| half.state.lock().sender.sent();
        let frames = [
            ("ipackets", self.receiving.as_ref().map_or(0, received)),
            ("opackets", self.sending.as_ref().map_or(0, sent)),
        ];
        let refused = self.filter.get().map(|filter| filter.refused());
        let refused = refused.map(|count| ("tx_filtered", count));
        let told = self.statistics();
        frames
            .into_iter()
            .chain(told.named())
            .chain(refused)
            .collect()
    }

    fn link_gone(&self) {
        self.is_gone.store(true, Relaxed);
        self.settle();
        self.pollee.notify(Events::ERR);
    }

    fn doorbell(&self) -> Doorbell {
        let received = self.receiving.as_ref().map(|half| {
            let state = half.state.lock();
            state.receiver.filled(&*half.fill, &*half.ring)
        });
        let sent = self.sending.as_ref().map(|half| {
            let state = half.state.lock();
            state.sender.filled(&*half.ring, &*half.completion)
        });
        let (rx, fill) = received.unzip();
        let (tx, completion) = sent.unzip();
        Doorbell {
            process: self.process,
            is_armed: self.pollee.is_observed(),
            wakes: self.wakes.load(Relaxed),
            filled: [rx, fill, tx, completion],
        }
    }
}

impl Receiving {
    fn new(umem: &Umem, fill: &Ring, ring: &Ring) -> Self {
        Self {
            fill: fill.memory.clone(),
            ring: ring.memory.clone(),
            state: Spin::new(ReceivingState {
                receiver: Receiver::new(umem.geometry, fill.geometry, ring.geometry),
                batch: RxChain::new(),
            }),
        }
    }

    /// Copies a batch of frames into chunks; false if the program got none.
    fn take_batch(&self, umem: &Umem, link: &OwnedLink, is_gone: &AtomicBool) -> bool {
        let ReceivingState { receiver, batch } = &mut *self.state.lock();
        if is_gone.load(Relaxed) {
            return false;
        }
        link.take(batch);
        let mut has_some = false;
        for frame in batch.drain() {
            // Who drops it has counted it.
            if let Ok(at) = receiver.place(&*self.fill, &*self.ring, frame.chain.len()) {
                umem.store(at, &frame.chain);
                has_some = true;
            }
        }
        receiver.publish(&*self.fill, &*self.ring);
        has_some
    }
}

impl Sending {
    fn new(umem: &Umem, ring: &Ring, completion: &Ring) -> Self {
        let sender = Sender::new(umem.geometry, ring.geometry, completion.geometry);
        sender.ask_for_calls(&*ring.memory);
        Self {
            ring: ring.memory.clone(),
            completion: completion.memory.clone(),
            state: Spin::new(SendingState {
                sender,
                frames: TxChain::new(),
            }),
        }
    }

    /// Asks for what is in the ring; returns how many turns that is, one at least.
    fn ask(&self) -> usize {
        let SendingState { sender, .. } = &mut *self.state.lock();
        sender.kick(&*self.ring);
        sender.asked() as usize / TURN_FRAMES + 1
    }

    fn is_asked(&self) -> bool {
        self.state.lock().sender.asked() != 0
    }

    /// Sends some of what was asked for and `filter` admits: it looks at the copy that leaves.
    fn turn(
        &self,
        umem: &Umem,
        link: &OwnedLink,
        is_gone: &AtomicBool,
        filter: Option<&Outgoing>,
    ) -> Sent {
        let SendingState { sender, frames } = &mut *self.state.lock();
        if is_gone.load(Relaxed) {
            return Sent::Nothing;
        }
        let mut refused = 0;
        let turn = sender.read(&*self.ring, &*self.completion, |frame| {
            let Some(chain) = umem.load(frame) else {
                return false;
            };
            if filter.is_some_and(|filter| !filter.admits(&chain)) {
                refused += 1;
                return true;
            }
            frames.push(TxFrame {
                chain,
                ..TxFrame::default()
            });
            true
        });
        let is_taken = !turn.is_empty() && (frames.is_empty() || link.send(frames));
        frames.clear();
        if is_taken {
            sender.complete(&*self.ring, &*self.completion, &turn);
            // Else they are read again.
            filter.inspect(|filter| filter.count_refused(refused));
        }
        match sender.asked() {
            0 => Sent::All,
            _ if is_taken => Sent::Some,
            _ => Sent::Nothing,
        }
    }
}
