//! A link that several programs have at once: which of its queues each received frame is for.
//!
//! # Problem
//! A server of several processes has a stack and a queue of the link in each. A connection is known to one of
//! these stacks only, and any other would refuse its segments; new ones are to be spread over those who want
//! some; and neither a peer nor a program may make the link remember without bound.
//!
//! # Idea
//! A frame that is a fragment of nothing and has ports goes to one queue, by the first of these that holds:
//!
//! 1. It belongs to a *flow* that a queue has begun: learned from the SYN or SYN-ACK that the queue sent ([`flows`]). A flow, or
//!    what else comes to a port, may have been given to the link's network [`stack`].
//! 2. It opens a connection: over the queues that *take new flows*, in turns. The table remembers whose turn it was, for a SYN
//!    that comes again, while it has places to spare; without these it goes by the hash of its flow. If no queue takes any it is
//!    dropped, as by a listener with a full backlog: the peer asks again in a second.
//! 3. It is for a *port* of a queue's own [`share`] of the ephemeral ports, from which that queue's stack connects and
//!    asks: an answer.
//! 4. It is TCP, and some queue was the link's only one before: what began then nobody has learned, so it is that
//!    *elder's*, whose stack refuses what it does not know.
//! 5. Whatever else, datagrams and segments of forgotten flows: by the hash, as 2; if none takes new flows, the lowest
//!    queue.
//!
//! Everything else is of the host and not of a flow. All queues get a copy: answers of ARP, errors of ICMP, datagrams to
//! groups, fragments behind the first (whoever has the first can put them together; the others forget them). But what
//! all would answer goes to the lowest queue alone: questions of ARP and echo requests.
//!
//! A queue *with a filter* ([`filters`](crate::filters)) is outside of all this: it gets what its filter admits, and
//! copies of messages between neighbours that concern it, before anybody else is asked. While all queues are such, what no
//! filter admits is the stack's.
//!
//! Turns and not hashes, because a server has few connections that last: of fifty a hash gives one of two processes 28, and the
//! other waits for it.
//!
//! Hashes are compared queue by queue (rendezvous hashing), so a queue that comes or goes moves no flow but those that
//! it gets or had.
//!
//! # Invariants
//! - Only what a queue *sends*, or its program asks for ([`Queues::move_flow`]), begins, moves or ends a flow: who guesses
//!   a flow's ports can do none of it. (The stack is such a queue: a kernel's socket has been given to it by who had one.)
//! - While there is one queue, it has no filter and the stack nothing, nothing is looked at and nothing remembered.
//!
//! # Bounds
//! [`QUEUES_MAX`] queues; [`flows::FLOWS_MAX`] flows, and what becomes of more stands there.
//!
//! # Not here
//! The queues' frames and locks (the shell). Several queues of a *card* are [`rss`](crate::rss)'s.

mod flows;
mod share;
mod stack;
#[cfg(test)]
mod tests;
mod turns;

use core::net::SocketAddr;

use base::{Instant, NoMemory};
use mbuf::Chain;
use wire::{ArpOperation, ArpRepr, EtherType, TcpFlags};

use crate::dispatch::{self, Dispatch};
use crate::filters::{Message, Predicate, innermost};
use crate::headers::{Header, ICMP, Packet, Piece, TCP, number_of, with_window};
pub use flows::FLOWS_MAX;
use flows::{Flow, Flows};
pub use share::share;
pub use stack::STACK;
use stack::StackPart;
use turns::Turns;

/// Queues of a link at most.
pub const QUEUES_MAX: u16 = 16;

/// Where a received frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// To this queue.
    Queue(u16),
    /// A copy to each that has no filter.
    All,
    /// To the link's stack: it was given the flow, or its port; or each queue has a filter, and none admits it.
    Stack,
    /// A copy to each of these.
    Copies(Listeners),
    /// To nobody: it opens a connection, and no queue takes new ones.
    Nobody,
}

/// Who get copies of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listeners {
    /// A bit for each queue.
    pub queues: u16,
    /// The link's stack too.
    pub with_stack: bool,
}

impl Listeners {
    /// Whether a queue is one of them.
    pub const fn has(self, queue: u16) -> bool {
        self.queues & bit(queue) != 0
    }
}

probes::counters! {
    /// By what a queue got a frame.
    pub enum Steered => SteeredCounts {
        /// It belongs to a flow that the queue has begun.
        Flow = "steered_flow",
        /// Its port is of the queue's share.
        Port = "steered_port",
        /// It opens a connection, and it was the queue's turn.
        Turn = "steered_turn",
        /// By its hash.
        Hash = "steered_hash",
        /// It belongs to nobody's flow, and the queue was there before all others.
        Elder = "steered_elder",
        /// It asks the host, and this is the lowest queue.
        Lowest = "steered_lowest",
        /// All queues got it.
        All = "steered_all",
        /// Its filter admits it.
        Filter = "steered_filter",
        /// It is between neighbours, and concerns the queue's filter.
        Heard = "steered_heard",
    }
}

/// A connection's ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Ours.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

/// Why a flow stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotMoved {
    /// Nobody has that queue, or it has a filter.
    NoSuchQueue,
    /// It was not known, and the table has no place for it.
    NoRoom,
}

/// See the module.
#[derive(Debug)]
pub struct Queues {
    key: [u64; 2],
    /// Filters, by queue.
    filters: [Option<Predicate>; QUEUES_MAX as usize],
    /// A bit for each queue with a filter.
    filtered: u16,
    /// A bit for each queue without one.
    members: u16,
    /// And for those that take new flows.
    takers: u16,
    turns: Turns,
    /// The one that was alone when another came.
    elder: Option<u16>,
    stack: StackPart,
    flows: Flows,
    counts: [SteeredCounts; QUEUES_MAX as usize],
    unwanted: u64,
}

const fn bit(queue: u16) -> u16 {
    match queue < QUEUES_MAX {
        true => 1 << queue,
        false => 0,
    }
}

fn members_of(queues: u16) -> impl Iterator<Item = u16> {
    (0..QUEUES_MAX).filter(move |queue| queues & bit(*queue) != 0)
}

impl Queues {
    /// Without queues, and with a secret that peers cannot guess.
    pub fn new(key: [u64; 2]) -> Result<Self, NoMemory> {
        Ok(Self {
            key,
            filters: [None; QUEUES_MAX as usize],
            filtered: 0,
            members: 0,
            takers: 0,
            turns: Turns::default(),
            elder: None,
            stack: StackPart::default(),
            flows: Flows::new()?,
            counts: core::array::from_fn(|_| SteeredCounts::default()),
            unwanted: 0,
        })
    }

    /// A queue has come, and takes new flows, or does not.
    pub fn join(&mut self, queue: u16, is_taker: bool) {
        if let Some(only) = self.only() {
            self.elder = Some(only);
        }
        self.members |= bit(queue);
        self.take_new_flows(queue, is_taker);
        self.reset_counts(queue);
    }

    /// A queue has come that has a filter. No other filter of the link may cross it.
    pub fn join_filtered(&mut self, queue: u16, receives: Predicate) {
        if let Some(place) = self.filters.get_mut(usize::from(queue)) {
            *place = Some(receives);
            self.filtered |= bit(queue);
            self.reset_counts(queue);
        }
    }

    fn reset_counts(&mut self, queue: u16) {
        if let Some(counts) = self.counts.get_mut(usize::from(queue)) {
            *counts = SteeredCounts::default();
        }
    }

    /// Whether each queue that there is has a filter.
    pub fn are_all_filtered(&self) -> bool {
        self.members == 0
    }

    /// A queue has gone, and its flows are nobody's.
    pub fn leave(&mut self, queue: u16) {
        if self.filtered & bit(queue) != 0 {
            self.filtered &= !bit(queue);
            self.filters.get_mut(usize::from(queue)).map(Option::take);
            return;
        }
        self.members &= !bit(queue);
        self.takers &= !bit(queue);
        self.elder = self.elder.filter(|elder| *elder != queue);
        match self.only() {
            // Whatever comes is its own, learned or not.
            Some(_) if !self.stack.is_here => self.flows.clear(),
            only => {
                self.flows.forget_queue(queue);
                self.elder = only.or(self.elder);
            }
        }
    }

    /// Whether a queue gets new flows from now on.
    pub fn take_new_flows(&mut self, queue: u16, is_taker: bool) {
        let before = self.takers;
        match is_taker {
            true => self.takers |= bit(queue) & self.members,
            false => self.takers &= !bit(queue),
        }
        if before & !self.takers != 0 {
            self.flows.forget_asked(queue);
        }
        self.turns = Turns::default();
    }

    /// The queue, if there is but one.
    fn only(&self) -> Option<u16> {
        let is_one = self.members.is_power_of_two();
        is_one.then(|| self.members.trailing_zeros() as u16)
    }

    /// By what a queue got its frames.
    pub fn counts(&self, queue: u16) -> Option<&SteeredCounts> {
        self.counts.get(usize::from(queue))
    }

    /// Connections that were not opened because no queue takes new flows.
    pub fn unwanted(&self) -> u64 {
        self.unwanted
    }

    /// Flows that there was no room to learn.
    pub fn unlearned(&self) -> u64 {
        self.flows.unlearned()
    }

    /// Says for whom a received frame is.
    pub fn receive(&mut self, frame: &Chain, now: Instant) -> Target {
        if self.filtered == 0
            && let Some(all) = self.whole_target()
        {
            return all;
        }
        let len = frame.len();
        with_window(frame, |bytes| match self.filtered {
            0 => self.target_of(bytes, len, now),
            _ => self.target_among_filters(bytes, len, now),
        })
    }

    /// Where all goes that no filter admits, if it need not be looked at.
    fn whole_target(&self) -> Option<Target> {
        match self.only() {
            _ if self.members == 0 => Some(Target::Stack),
            Some(only) if self.members == self.takers && !self.stack.is_here => {
                Some(Target::Queue(only))
            }
            _ => None,
        }
    }

    /// A queue sends a frame, or the [`STACK`]. There is nothing to learn of one that does not [begin or end](begins_or_ends) a flow.
    pub fn send(&mut self, queue: u16, frame: &Chain, now: Instant) {
        let is_known = self.members & bit(queue) != 0 || queue == STACK;
        if is_known && (self.stack.is_here || self.only().is_none()) {
            let len = frame.len();
            with_window(frame, |bytes| self.learn(queue, bytes, len, now));
        }
    }

    fn learn(&mut self, queue: u16, bytes: &[u8], len: usize, now: Instant) {
        let Some((packet, flags)) = beginning_or_end(bytes, len) else {
            return;
        };
        let flow = self.flow_of(&packet.reversed());
        if flags.has(TcpFlags::RST) {
            self.flows.forget(flow);
        } else if flags.has(TcpFlags::SYN) {
            self.flows.begin(flow, queue, now);
        } else {
            self.flows.end(flow);
        }
    }

    fn target_among_filters(&mut self, bytes: &[u8], len: usize, now: Instant) -> Target {
        let header = Header::parse(bytes).filter(|header| !header.is_tagged);
        let packet = header.and_then(|header| Packet::parse(&header, bytes, len));
        if let Some(queue) = packet.and_then(|packet| self.admitting(&packet, bytes, len)) {
            return self.to(queue, Steered::Filter);
        }
        let message = header.and_then(|header| Message::parse(&header, packet.as_ref(), bytes));
        let heard = message.map_or(0, |message| self.hearing(&message));
        let rest = match self.whole_target() {
            Some(all) => all,
            None => self.target_of(bytes, len, now),
        };
        self.with_listeners(rest, heard)
    }

    /// The queue whose filter admits a packet, or what it is about.
    fn admitting(&self, packet: &Packet, frame: &[u8], len: usize) -> Option<u16> {
        let of = |packet: &Packet| {
            let by_queue = (0..).zip(&self.filters);
            let there = by_queue.filter_map(|(queue, filter)| Some((queue, (*filter)?)));
            innermost(there, |filter| filter.admits_received(packet))
        };
        match dispatch::of_bytes(frame, len, |_| false) {
            Dispatch::IcmpError(quoted) if quoted.dst == packet.dst => of(&quoted),
            _ => None,
        }
        .or_else(|| of(packet))
    }

    /// A bit for each queue whose filter hears a message.
    fn hearing(&mut self, message: &Message) -> u16 {
        let mut heard = 0;
        for ((queue, filter), counts) in (0..).zip(&self.filters).zip(&mut self.counts) {
            if filter.is_some_and(|filter| filter.hears(message)) {
                counts.count(Steered::Heard);
                heard |= bit(queue);
            }
        }
        heard
    }

    /// The same, with copies to more queues.
    fn with_listeners(&self, target: Target, heard: u16) -> Target {
        let (queues, with_stack) = match target {
            // Those without a filter, while others have one.
            Target::All => (self.members, false),
            _ if heard == 0 => return target,
            Target::Queue(queue) => (bit(queue), false),
            Target::Stack => (0, true),
            Target::Nobody => (0, false),
            Target::Copies(others) => (others.queues, others.with_stack),
        };
        let queues = queues | heard;
        Target::Copies(Listeners { queues, with_stack })
    }

    fn target_of(&mut self, bytes: &[u8], len: usize, now: Instant) -> Target {
        let Some(header) = Header::parse(bytes) else {
            return self.all();
        };
        if header.ether_type == number_of(EtherType::Arp) {
            return match asks(bytes.get(header.packet_at()..).unwrap_or_default()) {
                true => self.lowest(),
                false => self.all(),
            };
        }
        match Packet::parse(&header, bytes, len) {
            Some(packet) if packet.protocol == TCP && packet.ports.is_some() => {
                self.target_of_segment(&packet, flags_of(&packet, bytes), now)
            }
            Some(packet) if packet.ports.is_some() && !header.dst.is_multicast() => {
                self.target_of_datagram(&packet)
            }
            Some(packet) if is_echo_request(&packet, bytes) => self.lowest(),
            _ => self.all(),
        }
    }

    fn target_of_segment(&mut self, packet: &Packet, flags: TcpFlags, now: Instant) -> Target {
        let flow = self.flow_of(packet);
        let opens = flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK);
        match self.flows.find(flow, flags, now) {
            Some(STACK) => return Target::Stack,
            Some(queue) => return self.to(queue, Steered::Flow),
            None => {}
        }
        if opens && self.stack.has_port_of(packet) {
            return Target::Stack;
        }
        if opens {
            return match self.next_taker(flow, now) {
                Some((queue, why)) => self.to(queue, why),
                None => {
                    self.unwanted += 1;
                    Target::Nobody
                }
            };
        }
        match (self.owner_of_port(packet), self.elder) {
            // Its flow was forgotten, for it found no place.
            (None, None) if self.stack.has_port_of(packet) => Target::Stack,
            (Some(queue), _) => self.to(queue, Steered::Port),
            (None, Some(elder)) => self.to(elder, Steered::Elder),
            (None, None) => self.by_hash(flow),
        }
    }

    fn target_of_datagram(&mut self, packet: &Packet) -> Target {
        if self.stack.has_port_of(packet) {
            return Target::Stack;
        }
        match self.owner_of_port(packet) {
            Some(queue) => self.to(queue, Steered::Port),
            None => self.by_hash(self.flow_of(packet)),
        }
    }

    /// The queue of whose share a packet's port is, if there is one.
    fn owner_of_port(&self, packet: &Packet) -> Option<u16> {
        let (_, port) = packet.ports?;
        let queue = share::queue_of(port)?;
        (self.members & bit(queue) != 0).then_some(queue)
    }

    fn by_hash(&mut self, flow: Flow) -> Target {
        match self.taker(flow) {
            Some(queue) => self.to(queue, Steered::Hash),
            None => self.lowest(),
        }
    }

    /// The queue that takes a connection which a peer opens, and why.
    fn next_taker(&mut self, flow: Flow, now: Instant) -> Option<(u16, Steered)> {
        if self.takers.count_ones() > 1 {
            let key = self.key;
            let next = self
                .turns
                .next(self.takers, |queue| flow.with(key, queue))?;
            if self.flows.ask(flow, next, now) {
                self.turns.note(self.takers, next);
                return Some((next, Steered::Turn));
            }
        }
        Some((self.taker(flow)?, Steered::Hash))
    }

    /// The one whose hash with a flow is the highest.
    fn taker(&self, flow: Flow) -> Option<u16> {
        members_of(self.takers).max_by_key(|queue| flow.with(self.key, *queue))
    }

    fn flow_of(&self, packet: &Packet) -> Flow {
        Flow::new(self.key, (packet.src, packet.dst), packet.ports)
    }

    fn lowest(&mut self) -> Target {
        match self.members {
            0 => Target::Nobody,
            members => self.to(members.trailing_zeros() as u16, Steered::Lowest),
        }
    }

    fn to(&mut self, queue: u16, why: Steered) -> Target {
        if let Some(counts) = self.counts.get_mut(usize::from(queue)) {
            counts.count(why);
        }
        Target::Queue(queue)
    }

    fn all(&mut self) -> Target {
        for (queue, counts) in (0..).zip(&mut self.counts) {
            if self.members & bit(queue) != 0 {
                counts.count(Steered::All);
            }
        }
        match self.stack.is_here {
            true => Target::Copies(Listeners {
                queues: self.members,
                with_stack: true,
            }),
            false => Target::All,
        }
    }
}

/// Whether a frame begins or ends a flow of TCP. Nearly none does, so who sends looks here first, and needs the lock of
/// the link's [`Queues`] for hardly any.
pub fn begins_or_ends(frame: &Chain) -> bool {
    let len = frame.len();
    with_window(frame, |bytes| beginning_or_end(bytes, len).is_some())
}

fn beginning_or_end(bytes: &[u8], len: usize) -> Option<(Packet, TcpFlags)> {
    const BEGINS_OR_ENDS: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
    let header = Header::parse(bytes)?;
    let packet = Packet::parse(&header, bytes, len)?;
    if packet.protocol != TCP || packet.piece == Piece::Later {
        return None;
    }
    let flags = flags_of(&packet, bytes);
    (flags.0 & BEGINS_OR_ENDS != 0).then_some((packet, flags))
}

/// None where the header is cut off: a stack drops that, whichever has it.
fn flags_of(packet: &Packet, bytes: &[u8]) -> TcpFlags {
    const FLAGS_AT: usize = 13;
    let flags = bytes.get(packet.transport_at + FLAGS_AT);
    TcpFlags(flags.copied().unwrap_or(0))
}

/// Whether ARP asks for an address. Who tells its own (RFC 5227 1.1) is to be heard by all, and answered by nobody.
fn asks(packet: &[u8]) -> bool {
    ArpRepr::parse(packet)
        .is_ok_and(|arp| arp.operation == ArpOperation::Request && arp.sender_ip != arp.target_ip)
}

fn is_echo_request(packet: &Packet, bytes: &[u8]) -> bool {
    const ECHO_REQUEST: u8 = 8;
    packet.protocol == ICMP
        && packet.piece != Piece::Later
        && bytes.get(packet.transport_at) == Some(&ECHO_REQUEST)
}
