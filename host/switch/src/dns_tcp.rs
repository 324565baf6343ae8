//! The switch's own end of TCP: port 53 at the name server's address (RFC 7766).
//!
//! The stack is the project's own (`core/inet`), which has no clock and no device: frames of members come by
//! [`Server::receive`] once the fabric has found that they are the sender's, and what the stack sends is taken out with
//! [`Server::frames`]. Its questions for stations are answered here, of what the fabric knows: no member hears them.
//!
//! A connection has one question under way at a time; what it sends behind that waits in its window. All is bounded:
//! [`CONNECTIONS_MAX`] connections, [`CONNECTIONS_OF_MEMBER_MAX`] of one member, each closed when it has brought no whole question
//! for [`PATIENCE`], or its answer is not taken for as long; questions of [`QUESTION_BYTES_MAX`]; and the stack's
//! buffers are a pool. The server is made with the first frame for it, as most networks never see one.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use inet::{
    Cidr, Config, Endpoint, Env, Error, Events, Offloads, Port, SocketId, Stack, Transport,
};
use mbuf::{BLOCK_CAPACITY, Chain, HeapPool, Mbuf, RxFrame, TxFrame};
use wire::{ArpOperation, ArpRepr, ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, MacAddr};

use crate::fabric::{MemberId, arp_reply};
use crate::names::{LENGTH_BYTES, missing};
use crate::network::Network;

/// The port of name servers.
pub const DNS_PORT: u16 = 53;
/// Connections at once.
pub const CONNECTIONS_MAX: usize = 64;
/// Connections of one member at once.
pub const CONNECTIONS_OF_MEMBER_MAX: usize = 8;
/// How long a connection may bring no whole question, or take no answer.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The longest question.
pub const QUESTION_BYTES_MAX: usize = 4096;
/// Connections that nobody has accepted yet.
const BACKLOG: usize = 16;
/// Packet buffers, and those of them that are for what passes through.
const BUFFERS: usize = 512;
const BUFFERS_RESERVED: usize = 64;
const MTU: u16 = 1500;

/// What the stack sees of the world.
struct World {
    begin: Instant,
    now: Instant,
    chance: RandomState,
    drawn: u64,
    sent: Vec<TxFrame>,
    pool: HeapPool,
}

impl World {
    fn bits(&mut self) -> u64 {
        self.drawn += 1;
        self.chance.hash_one(self.drawn)
    }
}

impl Env for World {
    fn now(&self) -> base::Instant {
        base::Instant::START + self.now.saturating_duration_since(self.begin).into()
    }

    fn random(&mut self) -> u64 {
        self.bits()
    }

    fn alloc(&mut self) -> Option<Mbuf> {
        mbuf::Pool::alloc(&self.pool)
    }

    fn alloc_to_queue(&mut self) -> Option<Mbuf> {
        self.pool.alloc_to_queue()
    }

    fn is_scarce(&self) -> bool {
        self.pool.is_scarce()
    }

    fn transmit(&mut self, frame: TxFrame) {
        self.sent.push(frame);
    }

    /// All sockets are looked at in each turn.
    fn wake(&mut self, _socket: SocketId, _events: Events) {}
}

/// A member's connection.
struct Connection {
    member: MemberId,
    until: Instant,
    /// Bytes that came, a whole question at most.
    inbox: Vec<u8>,
    /// Bytes of the answer that are not sent yet.
    outbox: Vec<u8>,
    /// Whether a question is under way.
    is_asking: bool,
    /// Whether nothing more will come.
    is_at_end: bool,
}

/// What a connection asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The connection.
    pub stream: SocketId,
    /// Whose it is.
    pub member: MemberId,
    /// The whole message.
    pub message: Vec<u8>,
}

/// See the module.
pub struct Server {
    // Before the pool in which its buffers lie.
    stack: Stack,
    connections: BTreeMap<SocketId, Connection>,
    world: World,
    listener: SocketId,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connections = self.connections.len();
        write!(f, "Server({connections} connections)")
    }
}

impl Server {
    /// One that listens.
    ///
    /// Errors: what the stack refuses; no network is so that it does.
    pub fn new(network: &Network, now: Instant) -> Result<Self, Error> {
        let mut world = World {
            begin: now,
            now,
            chance: RandomState::new(),
            drawn: 0,
            sent: Vec::new(),
            pool: HeapPool::with_reserve(BUFFERS, BUFFERS_RESERVED),
        };
        let mut config = Config {
            sockets_max: 2 * CONNECTIONS_MAX,
            time_waits_max: CONNECTIONS_MAX,
            orphans_max: CONNECTIONS_MAX,
            half_open_max: CONNECTIONS_MAX,
            ..Config::default()
        };
        // Whoever asked waits for the end of an answer, and sends nothing that an acknowledgement could ride on.
        config.stream.no_delay = true;
        let mut stack = Stack::new(config, [world.bits(), world.bits()])?;
        stack.attach(Port {
            mac: network.switch_station(),
            mtu: MTU,
            offloads: Offloads::default(),
        });
        let address = network.name_server();
        stack.set_address(Cidr::new(address, network.prefix_len));
        let listener = stack.open(Transport::Tcp)?;
        stack.bind(listener, Endpoint::v4(address, DNS_PORT))?;
        stack.listen(listener, BACKLOG)?;
        Ok(Self {
            stack,
            connections: BTreeMap::new(),
            world,
            listener,
        })
    }

    /// A frame of a member; without buffers it is lost, as on a wire.
    pub fn receive(&mut self, frame: &[u8], now: Instant) {
        self.world.now = now;
        let mut chain = Chain::new();
        for piece in frame.chunks(BLOCK_CAPACITY) {
            let Some(mut buffer) = self.world.alloc() else {
                return;
            };
            buffer.append(piece);
            chain.push_back(buffer);
        }
        let frame = RxFrame {
            chain,
            ..RxFrame::default()
        };
        self.stack.receive(&mut self.world, frame);
    }

    /// Does what is due, and returns what was asked. `member_of` says who has an address.
    pub fn turn(
        &mut self,
        now: Instant,
        member_of: impl Fn(Ipv4Addr) -> Option<MemberId>,
    ) -> Vec<Asked> {
        self.world.now = now;
        self.stack.flush(&mut self.world);
        self.stack.expire(&mut self.world);
        self.accept(now, member_of);
        let streams: Vec<SocketId> = self.connections.keys().copied().collect();
        let asked = streams.into_iter().filter_map(|stream| {
            let asked = self.serve(stream, now);
            if self.is_over(stream, now) {
                self.drop_connection(stream);
                return None;
            }
            asked
        });
        asked.collect()
    }

    /// The answer to what a connection asked, if that is still there.
    pub fn answer(&mut self, stream: SocketId, answer: &[u8], now: Instant) {
        let Some(own) = self.connections.get_mut(&stream) else {
            return;
        };
        own.is_asking = false;
        own.until = now + PATIENCE;
        match u16::try_from(answer.len()) {
            Ok(len) if len > 0 => {
                own.outbox.extend_from_slice(&len.to_be_bytes());
                own.outbox.extend_from_slice(answer);
            }
            // There is none: who asked sees the end.
            _ => own.is_at_end = true,
        }
        self.world.now = now;
        self.send(stream);
    }

    /// A member has left, whose address another one may have soon.
    pub fn forget(&mut self, member: MemberId) {
        let own = self
            .connections
            .iter()
            .filter(|(_, own)| own.member == member);
        let streams: Vec<SocketId> = own.map(|(stream, _)| *stream).collect();
        streams
            .into_iter()
            .for_each(|stream| self.drop_connection(stream));
    }

    /// What the stack sends, with the stations to which it goes. `station_of` says who has an address.
    pub fn frames(
        &mut self,
        station_of: impl Fn(Ipv4Addr) -> Option<MacAddr>,
    ) -> Vec<(MacAddr, Vec<u8>)> {
        let mut frames = Vec::new();
        // An answer about a station lets those go that waited for it.
        while !self.world.sent.is_empty() {
            for frame in std::mem::take(&mut self.world.sent) {
                let bytes: Vec<u8> = frame.chain.slices().flatten().copied().collect();
                let Ok(ether) = EthernetRepr::parse(&bytes) else {
                    continue;
                };
                match ether.ether_type {
                    EtherType::Arp => self.tell_station(&bytes, &station_of),
                    _ => frames.push((ether.dst, bytes)),
                }
            }
        }
        frames
    }

    /// How long nothing is to be done without a frame.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        let due = self.stack.next_deadline();
        let due = due.map(|due| {
            let passed = now.saturating_duration_since(self.world.begin);
            let due = due.since(base::Instant::START + passed.into());
            Duration::from_nanos(due.as_nanos())
        });
        let untils = self.connections.values().map(|own| own.until);
        let untils = untils.map(|until| until.saturating_duration_since(now));
        due.into_iter().chain(untils).min()
    }

    fn tell_station(&mut self, frame: &[u8], station_of: &impl Fn(Ipv4Addr) -> Option<MacAddr>) {
        let payload = frame.get(ETHERNET_HEADER_BYTES..).unwrap_or_default();
        let Ok(question) = ArpRepr::parse(payload) else {
            return;
        };
        let is_question = question.operation == ArpOperation::Request;
        if let Some(station) = station_of(question.target_ip).filter(|_| is_question) {
            let now = self.world.now;
            self.receive(&arp_reply(&question, station), now);
            self.stack.flush(&mut self.world);
        }
    }

    fn accept(&mut self, now: Instant, member_of: impl Fn(Ipv4Addr) -> Option<MemberId>) {
        while let Ok(stream) = self.stack.accept(&mut self.world, self.listener) {
            let member = match self.stack.remote(stream).map(|remote| remote.addr) {
                Ok(IpAddr::V4(address)) => member_of(address),
                _ => None,
            };
            let of_member = |own: &&Connection| Some(own.member) == member;
            let has = self.connections.values().filter(of_member).count();
            let is_full = self.connections.len() >= CONNECTIONS_MAX;
            let Some(member) = member.filter(|_| !is_full && has < CONNECTIONS_OF_MEMBER_MAX)
            else {
                self.stack.abort(&mut self.world, stream).ok();
                continue;
            };
            let connection = Connection {
                member,
                until: now + PATIENCE,
                inbox: Vec::new(),
                outbox: Vec::new(),
                is_asking: false,
                is_at_end: false,
            };
            self.connections.insert(stream, connection);
        }
    }

    /// Sends what waits, and reads on if no question is under way; the next one, if it is whole.
    fn serve(&mut self, stream: SocketId, now: Instant) -> Option<Asked> {
        self.send(stream);
        let own = self.connections.get_mut(&stream)?;
        if own.is_asking || !own.outbox.is_empty() {
            return None;
        }
        // Of a pipelined question as much as makes one whole.
        let lacks = |inbox: &[u8]| missing(inbox, QUESTION_BYTES_MAX);
        while let Some(room) = lacks(&own.inbox).filter(|room| *room > 0) {
            let inbox = &mut own.inbox;
            let taken = self
                .stack
                .recv_with(&mut self.world, stream, room, &mut |bytes| {
                    inbox.extend_from_slice(bytes);
                    bytes.len()
                });
            match taken {
                Ok(1..) => {}
                Err(Error::WouldBlock) => return None,
                Ok(0) | Err(_) => {
                    own.is_at_end = true;
                    return None;
                }
            }
        }
        if lacks(&own.inbox).is_none() {
            // No question is so long.
            own.is_at_end = true;
            return None;
        }
        own.is_asking = true;
        own.until = now + PATIENCE;
        let message = std::mem::take(&mut own.inbox).split_off(LENGTH_BYTES);
        Some(Asked {
            stream,
            member: own.member,
            message,
        })
    }

    fn send(&mut self, stream: SocketId) {
        let Some(own) = self.connections.get_mut(&stream) else {
            return;
        };
        while !own.outbox.is_empty() {
            let mut sent = 0;
            let outbox = &own.outbox;
            let done = self
                .stack
                .send_with(&mut self.world, stream, outbox.len(), &mut |space| {
                    let rest = outbox.get(sent..).unwrap_or_default();
                    let count = space.len().min(rest.len());
                    if let (Some(to), Some(from)) = (space.get_mut(..count), rest.get(..count)) {
                        to.copy_from_slice(from);
                    }
                    sent += count;
                    count
                });
            match done {
                Ok(count @ 1..) => drop(own.outbox.drain(..count.min(own.outbox.len()))),
                Ok(0) | Err(Error::WouldBlock) => return,
                Err(_) => {
                    own.outbox.clear();
                    own.is_at_end = true;
                }
            }
        }
    }

    /// Whether a connection is to be closed: all is said, or nothing was for too long.
    fn is_over(&self, stream: SocketId, now: Instant) -> bool {
        self.connections.get(&stream).is_some_and(|own| {
            let has_ended = own.is_at_end && own.outbox.is_empty() && !own.is_asking;
            has_ended || own.until <= now
        })
    }

    /// Closes a connection; one that has something left to send, or to say, is reset.
    fn drop_connection(&mut self, stream: SocketId) {
        let Some(own) = self.connections.remove(&stream) else {
            return;
        };
        // One that is gone has no name any more.
        let _ = match own.is_at_end && own.outbox.is_empty() {
            true => self.stack.close(&mut self.world, stream),
            false => self.stack.abort(&mut self.world, stream),
        };
    }
}

#[cfg(test)]
mod tests;
