//! The receiving half of a packet socket: what it wants, and where that goes.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};

use capture::{Frame, Now, RingRequest, View};
use mach::sync::Spin;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::PROTOCOL_ALL;
use super::drops::{self, DropReason};
use super::queue::{Packet, Queue};
use super::ring::{Layout, MappedRing};
use super::tap::{Entry, PACKET_OUTGOING};
use mm::shared_pages::SharedPages;
use sockets::{CommonOptions, SocketFilter};
use vfs::socket::{AncillaryData, MessageFlags, OptionName, PacketStatistics, StampUnit};

/// Where a socket listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// 0 for all interfaces.
    pub interface: u32,
    /// 0 for none.
    pub protocol: u16,
}

/// See the module.
pub struct Listener {
    /// Who waits for a packet.
    pub pollee: Pollee,
    /// Options that all sockets have.
    pub common: CommonOptions,
    /// The socket's number.
    pub number: u64,
    /// What the program sees of a packet.
    pub view: View,
    /// Which packets it wants, and how much of them.
    pub filter: SocketFilter,
    state: Spin<State>,
    me: Weak<Listener>,
}

struct State {
    binding: Binding,
    ignores_outgoing: bool,
    queue: Queue,
    ring: Option<MappedRing>,
    /// Of the queue; a ring counts for itself.
    statistics: PacketStatistics,
}

impl Listener {
    /// One that hears nothing yet.
    pub(crate) fn new(view: View) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            pollee: Pollee::new(),
            common: CommonOptions::default(),
            number: vfs::file::next_number(),
            view,
            filter: SocketFilter::default(),
            state: Spin::new(State {
                binding: Binding {
                    interface: 0,
                    protocol: 0,
                },
                ignores_outgoing: false,
                queue: Queue::default(),
                ring: None,
                statistics: PacketStatistics::default(),
            }),
            me: me.clone(),
        })
    }

    /// Shows it a frame.
    pub(crate) fn hear(&self, frame: &Frame<'_>, now: Now) {
        let skip = match self.view {
            View::Link => 0,
            View::Network => frame.network,
        };
        self.hear_from(frame, skip, skip, now);
    }

    /// Shows it a packet, headers and all, of which the filter sees what is behind the first
    /// `header` bytes.
    pub(crate) fn hear_whole(&self, packet: &Frame<'_>, header: usize, now: Now) {
        self.hear_from(packet, 0, header, now);
    }

    fn hear_from(&self, frame: &Frame<'_>, start: usize, judged: usize, now: Now) {
        if !self.state.lock().is_bound_to(frame) {
            return;
        }
        let wanted = self.filter.keep(frame, judged);
        if wanted == 0 {
            return;
        }
        let keep = wanted.saturating_add(judged - start);
        let mut state = self.state.lock();
        let limit = self.common.receive_bytes();
        let stored = match &mut state.ring {
            Some(ring) => ring.put(frame, keep, now),
            None => state.enqueue(frame, (start, keep), now, limit),
        };
        drop(state);
        match stored {
            Ok(true) => self.pollee.notify(Events::READABLE),
            Ok(false) => {}
            Err(reason) => drops::count(reason),
        }
    }

    /// The ring's timer fired.
    pub(super) fn expire(&self) {
        let is_ready = self.with_ring(MappedRing::expire).unwrap_or(false);
        if is_ready {
            self.pollee.notify(Events::READABLE);
        }
    }

    fn with_ring<R>(&self, work: impl FnOnce(&mut MappedRing) -> R) -> Option<R> {
        self.state.lock().ring.as_mut().map(work)
    }

    /// Where it listens.
    pub(crate) fn binding(&self) -> Binding {
        self.state.lock().binding
    }

    /// Listens there from now on, if it is shown packets at all.
    pub(crate) fn bind(&self, binding: Binding) {
        self.state.lock().binding = binding;
    }

    /// The oldest packet, by the rules of `flags`.
    pub fn receive(&self, flags: MessageFlags) -> Result<Packet> {
        let peek = flags.contains(MessageFlags::PEEK);
        let how = self.common.receive_wait(flags.blocking());
        match self.take(peek) {
            Some(packet) => Ok(packet),
            None => self
                .pollee
                .queue
                .wait(how.ok_or(Error::WouldBlock)?, || self.take(peek)),
        }
    }

    /// What is told beside a packet, where it was asked for.
    pub fn ancillary(&self, packet: &Packet, wants_auxiliary: bool) -> Option<Box<AncillaryData>> {
        let unit = if self.common.is_set(OptionName::TimestampNanos) {
            Some(StampUnit::Nanoseconds)
        } else {
            let is_set = self.common.is_set(OptionName::Timestamp);
            is_set.then_some(StampUnit::Microseconds)
        };
        let told = AncillaryData {
            stamp: unit.map(|unit| (packet.stamp, unit)),
            auxiliary: wants_auxiliary.then_some(packet.auxiliary),
        };
        (told != AncillaryData::default()).then(|| Box::new(told))
    }

    /// Takes the oldest packet of the queue, or looks at it.
    fn take(&self, peek: bool) -> Option<Packet> {
        self.state.lock().queue.take(peek)
    }

    /// Bytes of the oldest packet in the queue.
    pub fn first_len(&self) -> usize {
        self.state.lock().queue.first_len()
    }

    /// Whether a packet or an error waits.
    pub fn is_readable(&self) -> bool {
        let state = self.state.lock();
        !state.queue.is_empty() || state.ring.as_ref().is_some_and(MappedRing::is_readable)
    }

    /// Takes the ring's place: another one, or none.
    ///
    /// Errors: `Busy` while a program has it mapped; those of [`MappedRing::new`].
    pub(super) fn set_ring(&self, request: Option<(&RingRequest, Layout)>) -> Result<()> {
        let is_in_use = |ring: &mut MappedRing| request.is_some() || ring.is_mapped();
        if self.with_ring(is_in_use).unwrap_or(false) {
            return Err(Error::Busy);
        }
        let make = |(request, layout)| MappedRing::new(request, layout, self.view, self.me.clone());
        let new = request.map(make);
        let new = new.transpose()?;
        // Its pages are given back when the lock is free again.
        let old = core::mem::replace(&mut self.state.lock().ring, new);
        drop(old);
        Ok(())
    }

    /// The ring's memory.
    pub(super) fn ring_memory(&self) -> Option<Arc<SharedPages>> {
        self.with_ring(|ring| ring.pages().clone())
    }

    /// Whether there is a ring.
    pub(super) fn has_ring(&self) -> bool {
        self.with_ring(|_| ()).is_some()
    }

    /// What happened since the last call.
    pub(super) fn take_statistics(&self) -> PacketStatistics {
        let mut state = self.state.lock();
        let State {
            ring, statistics, ..
        } = &mut *state;
        match ring {
            None => core::mem::take(statistics),
            Some(ring) => ring.take_statistics(),
        }
    }

    pub(super) fn ignore_outgoing(&self, ignores: bool) {
        self.state.lock().ignores_outgoing = ignores;
    }

    pub(super) fn ignores_outgoing(&self) -> bool {
        self.state.lock().ignores_outgoing
    }

    /// What tools see of it.
    pub(super) fn entry(&self) -> Entry {
        let state = self.state.lock();
        Entry {
            number: self.number,
            kind: match self.view {
                View::Link => 3,
                View::Network => 2,
            },
            protocol: state.binding.protocol,
            interface: state.binding.interface,
            queued: state.queue.bytes(),
        }
    }
}

impl State {
    /// Whether the socket wants such frames. Of those that go out only who wants all types
    /// hears, as on Linux.
    fn is_bound_to(&self, frame: &Frame<'_>) -> bool {
        let Binding {
            interface,
            protocol,
        } = self.binding;
        let is_outgoing = frame.packet_type == PACKET_OUTGOING;
        let is_type = protocol == PROTOCOL_ALL || protocol == frame.protocol && !is_outgoing;
        let is_interface = interface == 0 || interface == frame.interface;
        is_type && is_interface && !(is_outgoing && self.ignores_outgoing)
    }

    fn enqueue(
        &mut self,
        frame: &Frame<'_>,
        part: (usize, usize),
        now: Now,
        limit: usize,
    ) -> core::result::Result<bool, DropReason> {
        let counted = &mut self.statistics;
        counted.packets = counted.packets.saturating_add(1);
        match self.queue.put(frame, part, now, limit) {
            Ok(()) => Ok(true),
            Err(reason) => {
                counted.drops = counted.drops.saturating_add(1);
                Err(reason)
            }
        }
    }
}
