//! A peer that says exactly what a test wants, and hears what the host answers.

use std::net::IpAddr;

use base::Duration;
use inet::{Config, Count, DropReason, Endpoint, Offloads, SocketId, State, Transport};
use sim::{Host, cut, frame};
use wire::{
    ETHERNET_HEADER_BYTES, Ipv4View, MacAddr, Protocol, Seq, TcpFlags, TcpOptions, TcpRepr,
    TcpView, Timestamps,
};

pub const HOST_PORT: u16 = 80;
pub const PEER_PORT: u16 = 4000;
pub const SYN_ACK: TcpFlags = TcpFlags::SYN.with(TcpFlags::ACK);
/// The peer's usual first number, and its clock.
pub const FIRST: Seq = Seq(1_000_000);
pub const CLOCK: u32 = 5000;
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// What the host has said.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    pub src_port: u16,
    pub flags: TcpFlags,
    pub seq: Seq,
    pub ack: Seq,
    pub options: TcpOptions,
}

/// Host 1 with a listener, and the peer at 10.0.0.2.
pub struct Peer {
    pub host: Host,
    pub listener: SocketId,
}

impl Peer {
    pub fn new(config: Config) -> Self {
        Self::with_secret(9, config)
    }

    /// The host's secret comes from `seed`.
    pub fn with_secret(seed: u64, config: Config) -> Self {
        let offloads = Offloads {
            checksum: true,
            ..Offloads::default()
        };
        let mut host = Host::new(1, seed, offloads, config, 256);
        host.env.now = base::Instant::from_millis(1_000_000);
        let listener = host.stack.open(Transport::Tcp).expect("a socket");
        let name = Endpoint {
            port: HOST_PORT,
            ..Endpoint::ANY
        };
        host.stack.bind(listener, name).expect("a free port");
        host.stack.listen(listener, 4).expect("a bound socket");
        let mut peer = Self { host, listener };
        peer.greet();
        peer
    }

    /// Lets the host know our station for good: we answer no questions.
    fn greet(&mut self) {
        let Host { stack, env } = &mut self.host;
        let peer = IpAddr::V4(Host::address(2));
        stack.set_neighbor(env, peer, PEER).expect("room");
    }

    fn receive(&mut self, frame: &[u8]) {
        self.host.receive_verified(frame);
        self.host.stack.flush(&mut self.host.env);
    }

    /// Sends a segment to `port`; the window is 1000 bytes.
    pub fn say_to(&mut self, port: u16, flags: TcpFlags, numbers: (Seq, Seq), clock: Option<u32>) {
        let timestamps = clock.map(|value| Timestamps { value, echo: 0 });
        let options = TcpOptions {
            timestamps,
            ..TcpOptions::default()
        };
        self.send(port, flags, numbers, options);
    }

    /// The same with an echo of the host's clock.
    pub fn echo(&mut self, port: u16, flags: TcpFlags, numbers: (Seq, Seq), echo: u32) {
        let options = TcpOptions {
            timestamps: Some(Timestamps { value: 1, echo }),
            ..TcpOptions::default()
        };
        self.send(port, flags, numbers, options);
    }

    /// Bytes for the listener's port.
    pub fn say_bytes(&mut self, seq: Seq, ack: Seq, bytes: &[u8]) {
        let numbers = (seq, ack);
        self.put(
            HOST_PORT,
            TcpFlags::ACK,
            numbers,
            TcpOptions::default(),
            bytes,
        );
    }

    /// A segment with any options.
    pub fn send(&mut self, port: u16, flags: TcpFlags, numbers: (Seq, Seq), options: TcpOptions) {
        self.put(port, flags, numbers, options, &[]);
    }

    fn put(
        &mut self,
        port: u16,
        flags: TcpFlags,
        numbers: (Seq, Seq),
        options: TcpOptions,
        bytes: &[u8],
    ) {
        let repr = TcpRepr {
            src_port: PEER_PORT,
            dst_port: port,
            seq: numbers.0,
            ack: numbers.1,
            flags,
            window: 1000,
            options,
        };
        let segment = frame::segment(&repr, bytes);
        self.receive(&frame::between(2, 1, Protocol::Tcp, &segment));
    }

    /// The same to the listener's port; what the host answers.
    pub fn say(&mut self, flags: TcpFlags, seq: Seq, ack: Seq, clock: Option<u32>) -> Vec<Heard> {
        self.say_to(HOST_PORT, flags, (seq, ack), clock);
        self.hear()
    }

    /// What the host has said since the last time.
    pub fn hear(&mut self) -> Vec<Heard> {
        let sent = std::mem::take(&mut self.host.env.sent);
        sent.iter().flat_map(cut).filter_map(read).collect()
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) {
        let Host { stack, env } = &mut self.host;
        let end = env.now + time;
        while let Some(due) = stack.next_deadline().filter(|due| *due <= end) {
            env.now = env.now.max(due);
            stack.expire(env);
        }
        env.now = end;
    }

    /// Goes through a connection that the host closes first. Says which numbers the host
    /// remembers: what it would send next, and what it expects.
    pub fn finish_one(&mut self, first: Seq, clock: Option<u32>) -> (Seq, Seq) {
        let syn_ack = self.say(TcpFlags::SYN, first, Seq(0), clock);
        let ours = first + 1;
        let theirs = syn_ack[0].seq + 1;
        assert!(self.say(TcpFlags::ACK, ours, theirs, clock).is_empty());
        let Host { stack, env } = &mut self.host;
        let socket = stack.accept(env, self.listener).expect("a connection");
        stack.close(env, socket).expect("it is ours");
        assert!(self.hear()[0].flags.has(TcpFlags::FIN));
        let fin_ack = TcpFlags::FIN.with(TcpFlags::ACK);
        let last = self.say(fin_ack, ours, theirs + 1, clock);
        assert_eq!(last[0].ack, ours + 1);
        assert_eq!(self.host.stack.time_waits(), 1);
        (theirs + 1, ours + 1)
    }

    /// One connection from another program of the host is enough for a backlog of zero.
    pub fn fill_accept_queue(&mut self) {
        let Host { stack, env } = &mut self.host;
        stack.listen(self.listener, 0).expect("it listens");
        let socket = stack.open(Transport::Tcp).expect("a socket");
        let to = Endpoint::v4(std::net::Ipv4Addr::LOCALHOST, HOST_PORT);
        stack.connect(env, socket, to).expect("a way to ourselves");
        assert_eq!(stack.state(socket), Ok(State::Established));
    }

    /// Connections from the peer that are not over.
    pub fn open_connections(&self) -> usize {
        let is_open = |state| !matches!(state, State::TimeWait | State::Closed | State::Listen);
        let connections = self.host.stack.connections();
        connections.filter(|entry| is_open(entry.state)).count()
    }
}

pub fn count(peer: &Peer, what: Count) -> u64 {
    peer.host.stack.stats().counts.get(what)
}

pub fn drops(peer: &Peer, why: DropReason) -> u64 {
    peer.host.stack.stats().drops.get(why)
}

fn read(frame: Vec<u8>) -> Option<Heard> {
    let packet = frame.get(ETHERNET_HEADER_BYTES..)?;
    let ip = Ipv4View::parse(packet, packet.len()).ok()?;
    let segment = packet.get(ip.header().len()..)?;
    let header = TcpView::parse(segment).ok()?;
    Some(Heard {
        src_port: header.src_port(),
        flags: header.flags(),
        seq: header.seq(),
        ack: header.ack(),
        options: header.options(),
    })
}
