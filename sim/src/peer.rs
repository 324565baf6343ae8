//! A peer whose segments a test writes one by one, in the manner of packetdrill.
//!
//! The stack under test is 10.0.0.1 and listens; the peer is 10.0.0.2. Sequence numbers of the
//! peer are counted from its SYN, which is number zero, and the stack's from its own.

use std::net::IpAddr;

use base::{Duration, Instant};
use inet::{Config, Endpoint, Offloads, SocketId, Transport};
use wire::{
    ETHERNET_HEADER_BYTES, Ipv4View, MacAddr, Protocol, SackBlock, Seq, TcpFlags, TcpOptions,
    TcpRepr, TcpView, Timestamps,
};

use crate::frame;
use crate::host::Host;

const PORT: u16 = 80;
const PEER_PORT: u16 = 4000;
/// The peer's SYN: near the end of the numbers, so that they wrap.
const FIRST: u32 = 0xffff_ff00;
const BUFFERS: usize = 512;
/// What the handshake takes.
const ROUND_TRIP: Duration = Duration::from_millis(40);
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// A segment of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// From the stack's SYN on.
    pub seq: u32,
    /// From the peer's SYN on.
    pub ack: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// Unscaled.
    pub window: u16,
    /// Bytes of payload.
    pub len: usize,
    /// The stack's clock, and the peer's that it echoes.
    pub timestamps: Option<Timestamps>,
    /// Blocks `[start, end)`, from the peer's SYN on.
    pub sack: Vec<(u32, u32)>,
}

/// A stack, and the peer that a test plays.
pub struct Peer {
    /// The stack under test.
    pub host: Host,
    /// Its end of the connection.
    pub socket: SocketId,
    /// What the peer says about its window, unscaled.
    pub window: u16,
    /// The peer's clock; `None` for no timestamps.
    pub clock: Option<u32>,
    has_sack: bool,
    first: Seq,
    clock_heard: u32,
}

impl Peer {
    /// A connection that the peer has opened, with a segment size of 1000 bytes (12 fewer with
    /// timestamps), SACK, no window scaling, and timestamps that begin at `clock`. The round
    /// trip is 40 ms.
    pub fn connected(clock: Option<u32>) -> Self {
        Self::open(clock, true, TcpFlags::SYN)
    }

    /// The same with a peer that understands marks (RFC 3168 6.1.1).
    pub fn connected_with_ecn() -> Self {
        let asks = TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR);
        Self::open(None, true, asks)
    }

    /// The same without timestamps and SACK.
    pub fn connected_without_sack() -> Self {
        Self::open(None, false, TcpFlags::SYN)
    }

    fn open(clock: Option<u32>, has_sack: bool, syn: TcpFlags) -> Self {
        let mut host = Host::new(1, 1, Offloads::default(), Config::default(), BUFFERS);
        host.env.now = Instant::from_millis(1000);
        let listener = host.stack.open(Transport::Tcp).expect("a socket");
        let local = Endpoint {
            port: PORT,
            ..Endpoint::ANY
        };
        host.stack.bind(listener, local).expect("a free port");
        host.stack.listen(listener, 4).expect("a bound socket");
        let mut peer = Self {
            host,
            socket: listener,
            window: 60_000,
            clock,
            has_sack,
            first: Seq(0),
            clock_heard: 0,
        };
        peer.introduce();
        peer.send(0, 0, syn, 0);
        peer.wait(ROUND_TRIP);
        peer.send(1, 1, TcpFlags::ACK, 0);
        let Host { stack, env } = &mut peer.host;
        peer.socket = stack.accept(env, listener).expect("a connection");
        peer
    }

    /// The stack is told the peer's station for good: the peer answers no questions.
    fn introduce(&mut self) {
        let Host { stack, env } = &mut self.host;
        let peer = IpAddr::V4(Host::address(2));
        stack.set_neighbor(env, peer, MAC).expect("room");
    }

    /// The peer sends a segment; returns what the stack answers at once.
    pub fn send(&mut self, seq: u32, ack: u32, flags: TcpFlags, len: usize) -> Vec<Heard> {
        self.send_with(seq, ack, flags, len, &[])
    }

    /// The same with blocks `[start, end)`, counted from the stack's SYN on.
    pub fn send_with(
        &mut self,
        seq: u32,
        ack: u32,
        flags: TcpFlags,
        len: usize,
        blocks: &[(u32, u32)],
    ) -> Vec<Heard> {
        let frame = self.frame_with(seq, ack, flags, len, blocks);
        self.receive(&frame, true)
    }

    /// The frame of such a segment, its checksum left out.
    pub fn frame_with(
        &self,
        seq: u32,
        ack: u32,
        flags: TcpFlags,
        len: usize,
        blocks: &[(u32, u32)],
    ) -> Vec<u8> {
        let mut options = TcpOptions {
            timestamps: self.clock.map(|value| Timestamps {
                value,
                echo: self.clock_heard,
            }),
            ..TcpOptions::default()
        };
        if flags.has(TcpFlags::SYN) {
            options.mss = Some(1000);
            options.sack_permitted = self.has_sack;
        }
        for (start, end) in blocks {
            options.sack.push(SackBlock {
                start: self.first + *start,
                end: self.first + *end,
            });
        }
        let repr = TcpRepr {
            src_port: PEER_PORT,
            dst_port: PORT,
            seq: Seq(FIRST) + seq,
            ack: self.first + ack,
            flags,
            window: self.window,
            options,
        };
        let segment = frame::segment(&repr, &vec![0; len]);
        frame::between(2, 1, Protocol::Tcp, &segment)
    }

    /// A frame comes, whoever sent it; returns what the stack answers at once.
    pub fn receive(&mut self, frame: &[u8], is_verified: bool) -> Vec<Heard> {
        match is_verified {
            true => self.host.receive_verified(frame),
            false => self.host.receive(frame),
        }
        self.host.stack.flush(&mut self.host.env);
        self.heard()
    }

    /// The program writes so many bytes; returns what leaves at once.
    pub fn write(&mut self, len: usize) -> Vec<Heard> {
        let Host { stack, env } = &mut self.host;
        let fill = &mut |space: &mut [u8]| space.len();
        stack
            .send_with(env, self.socket, len, fill)
            .expect("room to send");
        self.heard()
    }

    /// Lets time pass, and the peer's clock with it; returns what the stack sends meanwhile.
    pub fn wait(&mut self, time: Duration) -> Vec<Heard> {
        let end = self.host.env.now + time;
        while let Some(next) = self.host.stack.next_deadline().filter(|next| *next <= end) {
            self.host.env.now = self.host.env.now.max(next);
            self.host.stack.expire(&mut self.host.env);
        }
        self.host.env.now = end;
        if let Some(clock) = &mut self.clock {
            *clock = clock.wrapping_add(time.as_millis() as u32);
        }
        self.heard()
    }

    /// What the stack has sent since the last look.
    pub fn heard(&mut self) -> Vec<Heard> {
        let sent = std::mem::take(&mut self.host.env.sent);
        let frames = sent.iter().map(|frame| {
            let mut bytes = vec![0; frame.chain.len()];
            frame.chain.copy_to_slice(0, &mut bytes);
            bytes
        });
        let frames: Vec<_> = frames.collect();
        frames
            .iter()
            .filter_map(|bytes| self.parse(bytes))
            .collect()
    }

    fn parse(&mut self, frame: &[u8]) -> Option<Heard> {
        let packet = frame.get(ETHERNET_HEADER_BYTES..)?;
        let ip = Ipv4View::parse(packet, packet.len()).ok()?;
        let tcp = TcpView::parse(packet.get(ip.header().len()..)?).ok()?;
        let options = tcp.options();
        if tcp.flags().has(TcpFlags::SYN) {
            self.first = tcp.seq();
        }
        if let Some(stamp) = options.timestamps {
            self.clock_heard = stamp.value;
        }
        let from_first = |seq: Seq| seq.0.wrapping_sub(FIRST);
        let blocks = options.sack.as_slice().iter();
        Some(Heard {
            seq: tcp.seq().0.wrapping_sub(self.first.0),
            ack: from_first(tcp.ack()),
            flags: tcp.flags(),
            window: tcp.window(),
            len: packet.len() - ip.header().len() - tcp.header_len(),
            timestamps: options.timestamps,
            sack: blocks
                .map(|block| (from_first(block.start), from_first(block.end)))
                .collect(),
        })
    }
}
