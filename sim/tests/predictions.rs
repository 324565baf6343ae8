//! Datagrams of a flow that came before go to its socket by their headers alone
//! (`core/inet/src/input/prediction.rs`). Here they must fare as on a host that has never seen the
//! flow, whatever a peer changes in them, and whatever changes between two of them.

use inet::{Cidr, Config, DropReason, Endpoint, Offloads, SocketId, Stats, Transport};
use sim::{Host, Random, frame};
use wire::{Protocol, Sum, UDP_HEADER_BYTES, UdpRepr};

const PORT: u16 = 4433;
const PEER_PORT: u16 = 50_000;
const BUFFERS: usize = 256;
/// Where the IP header begins, its sum, and where the UDP header begins.
const IP_AT: usize = 14;
const IP_SUM_AT: usize = IP_AT + 10;
const UDP_AT: usize = IP_AT + 20;

struct Server {
    host: Host,
    socket: SocketId,
}

fn any(port: u16) -> Endpoint {
    let any = Endpoint::any_of(Host::address(2).into());
    Endpoint { port, ..any }
}

fn frame_of(payload: &[u8]) -> Vec<u8> {
    let (src, dst) = (Host::address(1), Host::address(2));
    let mut datagram = vec![0; UDP_HEADER_BYTES];
    let header = UdpRepr {
        src_port: PEER_PORT,
        dst_port: PORT,
        payload_len: payload.len() as u16,
    };
    header.emit(&mut datagram, 0);
    datagram.extend_from_slice(payload);
    let pseudo = Sum::pseudo_v4(src, dst, Protocol::Udp, datagram.len() as u32);
    let sum = pseudo.bytes(&datagram).checksum();
    header.emit(&mut datagram, sum);
    frame::between(1, 2, Protocol::Udp, &datagram)
}

/// What a program reads: the sender's port, hops, the type of service and the bytes.
type Read = (u16, u8, u8, Vec<u8>);

impl Server {
    fn new() -> Self {
        let mut host = Host::new(2, 7, Offloads::default(), Config::default(), BUFFERS);
        let socket = bound(&mut host, any(PORT)).expect("a free port");
        Self { host, socket }
    }

    /// One that knows the flow.
    fn warm() -> Self {
        let mut server = Self::new();
        for len in [9, 64, 0] {
            server.host.receive(&frame_of(&vec![5; len]));
            assert_eq!(server.read(server.socket).len(), 1);
        }
        server
    }

    fn read(&mut self, socket: SocketId) -> Vec<Read> {
        let stack = &mut self.host.stack;
        let datagrams = std::iter::from_fn(|| stack.recv_from(socket).ok());
        datagrams
            .map(|datagram| {
                let bytes = datagram.payload.slices().flatten().copied().collect();
                let (hops, tos) = (datagram.hop_limit, datagram.tos);
                (datagram.from.port, hops, tos, bytes)
            })
            .collect()
    }

    fn stats(&self) -> Stats {
        self.host.stack.stats().clone()
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.host.stack.stats().drops.get(reason)
    }

    fn receive(&mut self, frame: &[u8], is_verified: bool) -> Vec<Read> {
        match is_verified {
            true => self.host.receive_verified(frame),
            false => self.host.receive(frame),
        }
        self.read(self.socket)
    }
}

fn bound(host: &mut Host, local: Endpoint) -> Option<SocketId> {
    let socket = host.stack.open(Transport::Udp).ok()?;
    host.stack.bind(socket, local).ok()?;
    Some(socket)
}

/// What counts of a frame's fate: why frames were dropped, and how many were delivered.
pub fn fate(before: &Stats, after: &Stats) -> Vec<(&'static str, u64)> {
    let all = |stats: &Stats| -> Vec<(&'static str, u64)> {
        let drops = stats.drops.iter();
        drops.chain(stats.counts.iter()).collect()
    };
    let (before, after) = (all(before), all(after));
    let pairs = before.iter().zip(&after);
    let differs = pairs.filter(|(before, after)| before.1 != after.1);
    differs
        .map(|(before, after)| (after.0, after.1 - before.1))
        .collect()
}

/// Changes a frame of the flow as a peer, or a wire, might; the header's sum is made right again in two
/// cases of three.
fn change(frame: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
        let at = random.below(UDP_AT as u64 + 12) as usize;
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
    }
    match random.below(6) {
        0 => frame.truncate(random.below(frame.len() as u64) as usize),
        1 => frame.extend_from_slice(&[0; 7]),
        _ => {}
    }
    if random.below(3) != 0 && frame.len() >= UDP_AT {
        sum_header(frame);
    }
}

fn sum_header(frame: &mut [u8]) {
    frame[IP_SUM_AT..IP_SUM_AT + 2].fill(0);
    let sum = Sum::new().bytes(&frame[IP_AT..UDP_AT]).checksum();
    frame[IP_SUM_AT..IP_SUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn a_changed_frame_fares_as_on_a_host_that_has_never_seen_its_flow() {
    let mut delivered = 0;
    sim::for_each_seed(400, |seed| {
        let mut random = Random::new(seed);
        let mut warm = Server::warm();
        for _ in 0..10 {
            let mut frame = frame_of(&vec![seed as u8; random.below(40) as usize]);
            change(&mut frame, &mut random);
            let is_verified = random.below(2) == 0;
            let mut fresh = Server::new();
            let before = [warm.stats(), fresh.stats()];
            let read = warm.receive(&frame, is_verified);
            assert_eq!(read, fresh.receive(&frame, is_verified), "{frame:02x?}");
            let after = [warm.stats(), fresh.stats()];
            let fates = [0, 1].map(|side: usize| fate(&before[side], &after[side]));
            assert_eq!(fates[0], fates[1], "{frame:02x?}");
            delivered += read.len();
        }
    });
    assert!(delivered > 400, "only {delivered} datagrams arrived");
}

#[test]
fn a_closed_socket_gets_no_more_of_its_flow() {
    let mut server = Server::warm();
    let Host { stack, env } = &mut server.host;
    stack.close(env, server.socket).expect("our socket");
    server.host.receive(&frame_of(b"late"));
    assert_eq!(server.drops(DropReason::NoSocket), 1);
}

#[test]
fn a_socket_that_names_more_takes_a_flow_over_and_gives_it_back() {
    let mut server = Server::warm();
    let own = Endpoint::new(Host::address(2).into(), PORT);
    let Host { stack, env } = &mut server.host;
    let exact = stack.open(Transport::Udp).expect("a socket");
    for socket in [server.socket, exact] {
        stack
            .configure(env, socket, |options| options.reuse_address = true)
            .expect("our socket");
    }
    stack.bind(exact, own).expect("shared");
    for _ in 0..3 {
        server.host.receive(&frame_of(b"to the exact one"));
        assert_eq!(server.read(exact).len(), 1);
    }
    let Host { stack, env } = &mut server.host;
    stack.close(env, exact).expect("our socket");
    server.host.receive(&frame_of(b"to the first one"));
    assert_eq!(server.read(server.socket).len(), 1);
}

#[test]
fn a_socket_that_is_connected_elsewhere_gets_no_more_of_a_flow() {
    let mut server = Server::warm();
    let Host { stack, env } = &mut server.host;
    let other = Endpoint::new(Host::address(9).into(), PEER_PORT);
    stack
        .connect(env, server.socket, other)
        .expect("a reachable peer");
    assert_eq!(server.receive(&frame_of(b"stray"), false), []);
    assert_eq!(server.drops(DropReason::NoSocket), 1);
}

#[test]
fn a_host_with_another_address_takes_no_more_of_a_flow() {
    let mut server = Server::warm();
    let moved = Cidr::new(Host::address(77), 24);
    server.host.stack.set_address(moved);
    assert_eq!(server.receive(&frame_of(b"stray"), false), []);
    assert_eq!(server.drops(DropReason::WrongAddress), 1);
}

#[test]
fn a_first_fragment_is_no_datagram_however_often_it_comes() {
    let mut server = Server::new();
    let mut frame = frame_of(b"more follows ...");
    frame[IP_AT + 6] |= 0x20;
    for packet in 1..5 {
        frame[IP_AT + 5] = packet;
        sum_header(&mut frame);
        assert_eq!(server.receive(&frame, true), []);
    }
}

#[test]
fn flows_that_share_a_place_all_arrive() {
    let mut server = Server::new();
    let mut count = 0;
    for round in 0..4 {
        for port in (PEER_PORT..PEER_PORT + 4096).step_by(256) {
            let mut frame = frame_of(&[round]);
            frame[UDP_AT..UDP_AT + 2].copy_from_slice(&port.to_be_bytes());
            server.host.receive_verified(&frame);
            let read = server.read(server.socket);
            assert_eq!(read.first().map(|read| read.0), Some(port));
            count += read.len();
        }
    }
    assert_eq!(count, 64);
}
