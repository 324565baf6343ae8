//! A host under a hostile IPv6 link, driven by arbitrary bytes.
//!
//! Noise is refused by the first header, so frames here are well-formed: their lengths and
//! checksums are right, and what they carry (extension headers, fragments, neighbour
//! discovery, announcements, queries, errors about what the host has sent) is made of the
//! script's bytes. Nothing may panic, loop or leak, and every table stays within its bounds.
//!
//! A second stack of the host follows the first one and hears the same. It has what the first has
//! after each event, and says nothing of addresses, routers and groups whatever it hears.

use std::net::{IpAddr, Ipv6Addr};

use base::{Duration, Instant};
use inet::{
    AddressState, Config, Endpoint, Ipv6Config, Offloads, Prefix, SocketId, Stack, Transport, Via,
};
use mbuf::TxFrame;
use wire::{
    ETHERNET_HEADER_BYTES, IPV6_HEADER_BYTES, Icmpv6Repr, Ipv6Fragment, Ipv6Repr, Ipv6View,
    MacAddr, NdpOption, NdpRepr, PrefixInfo, RouterAdvert, RouterPreference, Sum, Unreachable6,
    fill_icmpv6_checksum, next_header,
};

use crate::frame;
use crate::host::Host;
use crate::lan::station;

const BUFFERS: usize = 256;
const SOCKETS_MAX: usize = 8;
/// Bounds of what others can make the host keep.
const ADDRESSES_MAX: usize = 16;
const ROUTES_MAX: usize = 300;
const NEIGHBORS_MAX: usize = 512;
const GROUPS_MAX: usize = 256;

/// Arbitrary bytes, taken from the front; zeros when they have run out.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self) -> &'a [u8] {
        let len = match self.byte() {
            len @ 0..=31 => usize::from(len) * 8,
            len => usize::from(len % 32),
        };
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// An address that means something to the host, mostly.
    fn addr(&mut self, host: &Host) -> Ipv6Addr {
        let which = self.byte();
        match which % 8 {
            0 => Ipv6Addr::UNSPECIFIED,
            1 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1 + u16::from(which / 8)),
            2 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1),
            3 => Ipv6Addr::LOCALHOST,
            4 => Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(which), 0, 0, 0, 1),
            5 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::from(which)),
            _ => own_address(host, usize::from(which / 8)),
        }
    }

    /// Where a frame of the link comes from, mostly.
    fn source(&mut self, host: &Host) -> Ipv6Addr {
        match self.byte() {
            0..16 => self.addr(host),
            16..32 => Ipv6Addr::UNSPECIFIED,
            which => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::from(which % 16)),
        }
    }

    /// Where a frame goes that the host takes, mostly.
    fn destination(&mut self, host: &Host) -> Ipv6Addr {
        match self.byte() {
            0..32 => self.addr(host),
            32..96 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
            96..128 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1),
            which => own_address(host, usize::from(which % 16)),
        }
    }

    fn mac(&mut self) -> MacAddr {
        MacAddr([self.byte(), 0, 0, 0, 0, self.byte()])
    }
}

fn own_address(host: &Host, which: usize) -> Ipv6Addr {
    let count = host.stack.addresses_v6().count().max(1);
    let own = host.stack.addresses_v6().nth(which % count);
    own.map_or(Ipv6Addr::LOCALHOST, |own| own.addr)
}

/// Lets time pass for a host; `look` takes what it sends.
fn run(host: &mut Host, time: Duration, mut look: impl FnMut(&mut Vec<TxFrame>)) {
    let Host { stack, env } = host;
    let end = env.now + time;
    let mut turns = 0;
    while let Some(due) = stack.next_deadline().filter(|due| *due <= end) {
        env.now = env.now.max(due);
        stack.expire(env);
        look(&mut env.sent);
        turns += 1;
        let limit = 1000 + 100 * (time.as_secs() + 1);
        assert!(turns < limit, "timers never rest");
    }
    env.now = end;
}

/// What packets of IPv6 need of a stack.
#[derive(PartialEq, Debug)]
struct Known {
    /// Addresses that are used.
    addresses: Vec<(Ipv6Addr, AddressState)>,
    /// Each with its metric.
    routes: Vec<(Prefix, Via, u32)>,
    /// What the link takes.
    mtu: u32,
}

fn known(stack: &Stack) -> Known {
    let used = [AddressState::Preferred, AddressState::Deprecated];
    let addresses = stack.addresses_v6().map(|own| (own.addr, own.state));
    let routes = stack
        .routes()
        .filter(|line| line.destination.network().is_ipv6());
    let link = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xffff);
    Known {
        addresses: addresses.filter(|own| used.contains(&own.1)).collect(),
        routes: routes
            .map(|line| (line.destination, line.via, line.metric))
            .collect(),
        mtu: stack.path_mtu(link.into()),
    }
}

/// Of neighbour discovery and group reports a follower sends nothing but questions for
/// neighbours, from addresses of its own.
fn check_silence(sent: &mut Vec<TxFrame>) {
    for frame in sent.drain(..) {
        let bytes: Vec<u8> = frame.chain.slices().flatten().copied().collect();
        let Some(packet) = bytes.get(ETHERNET_HEADER_BYTES..) else {
            continue;
        };
        let Ok(header) = Ipv6View::parse(packet, packet.len()) else {
            continue;
        };
        let kind = packet.get(IPV6_HEADER_BYTES).copied().unwrap_or(0);
        match header.next_header() {
            next_header::HOP_BY_HOP => panic!("it reports a group"),
            next_header::ICMPV6 if (130..=143).contains(&kind) => {
                assert_eq!(kind, 135, "it says more than it may");
                assert!(!header.src().is_unspecified(), "it looks for duplicates");
            }
            _ => {}
        }
    }
}

struct Siege {
    host: Host,
    follower: Host,
    /// Of what the follower has.
    version: u32,
    sockets: Vec<SocketId>,
}

/// Runs a program to its end, and until the host is quiet.
pub fn besiege_v6(program: &[u8]) {
    let mut siege = Siege::new();
    let mut script = Script(program);
    while !script.0.is_empty() {
        siege.step(&mut script);
        siege.follow();
        siege.check();
        siege.host.env.sent.clear();
    }
    siege.end();
}

impl Siege {
    fn new() -> Self {
        let mut host = Host::new(1, 1, Offloads::default(), Config::default(), BUFFERS);
        host.stack.start_ipv6(&mut host.env, Ipv6Config::default());
        let mut siege = Self {
            host,
            follower: Host::new(1, 2, Offloads::default(), Config::default(), BUFFERS),
            version: 0,
            sockets: Vec::new(),
        };
        siege.open(7);
        siege
    }

    fn open(&mut self, port: u16) {
        let Host { stack, env } = &mut self.host;
        let Ok(socket) = stack.open(Transport::Udp) else {
            return;
        };
        stack
            .configure(env, socket, |options| options.reuse_port = true)
            .expect("our socket");
        stack
            .bind(socket, Endpoint::v6(Ipv6Addr::UNSPECIFIED, port))
            .expect("a shared port");
        self.sockets.push(socket);
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() % 10 {
            0 => self.wait(Duration::from_millis(u64::from(script.byte()) * 20)),
            1 => self.wait(Duration::from_secs(u64::from(script.word()))),
            2 => self.act(script),
            3 => self.receive_fragment(script),
            4 => {
                let (first, payload) = (script.byte(), script.bytes().to_vec());
                self.receive(script, first, &payload);
            }
            5 => self.receive_error(script),
            6 => self.receive_query(script),
            7 => self.receive_datagram(script),
            _ => self.receive_discovery(script),
        }
    }

    fn wait(&mut self, time: Duration) {
        run(&mut self.host, time, |sent| sent.clear());
        self.follow();
        run(&mut self.follower, time, check_silence);
    }

    /// Has the other stack follow, as a shell does, and compares what they have.
    fn follow(&mut self) {
        let first = &self.host.stack;
        if self.version != first.routes_version() {
            self.version = first.routes_version();
            let shown = first.ipv6_snapshot();
            self.follower.stack.follow_ipv6(shown.as_ref());
        }
        assert_eq!(known(first), known(&self.follower.stack));
    }

    /// What a local program does.
    fn act(&mut self, script: &mut Script<'_>) {
        let (what, which) = (script.byte(), usize::from(script.byte()));
        let to = Endpoint::v6(script.addr(&self.host), 1 + u16::from(script.byte()));
        let len = usize::from(script.word()) % 9000;
        if what.is_multiple_of(5) && self.sockets.len() < SOCKETS_MAX {
            self.open(7 + which as u16 % 2);
            return;
        }
        let Some(at) = which.checked_rem(self.sockets.len()) else {
            return;
        };
        let socket = self.sockets[at];
        let Host { stack, env } = &mut self.host;
        // Every error is an answer.
        match what % 5 {
            1 => drop(stack.send_to(env, socket, Some(to), len, &mut |space| space.len())),
            2 => drop(stack.join_group(env, socket, to.addr)),
            3 => drop(stack.leave_group(env, socket, to.addr)),
            4 => drop(stack.connect(env, socket, to)),
            _ => {
                self.sockets.swap_remove(at);
                stack.close(env, socket).expect("our socket");
            }
        }
    }

    fn receive(&mut self, script: &mut Script<'_>, next_header: u8, payload: &[u8]) {
        let (src, dst) = (script.source(&self.host), script.destination(&self.host));
        let hop_limit = [255, 1, 64, script.byte()][usize::from(script.byte() % 4)];
        self.put(src, dst, next_header, hop_limit, payload);
    }

    fn put(&mut self, src: Ipv6Addr, dst: Ipv6Addr, next: u8, hop_limit: u8, payload: &[u8]) {
        let to = match dst.is_multicast() {
            true => MacAddr::of_group_v6(dst),
            false => station(1),
        };
        let header = Ipv6Repr {
            hop_limit,
            ..frame::header_v6(src, dst, next)
        };
        let frame = frame::ipv6(to, station(2), header, payload);
        for host in [&mut self.host, &mut self.follower] {
            host.receive_torn(&frame);
            host.stack.flush(&mut host.env);
        }
        check_silence(&mut self.follower.env.sent);
    }

    fn receive_icmpv6(&mut self, script: &mut Script<'_>, message: &mut [u8], alert: bool) {
        let (src, dst) = (script.source(&self.host), script.destination(&self.host));
        let hop_limit = match script.byte() {
            255 => 64,
            _ if alert => 1,
            _ => 255,
        };
        fill_icmpv6_checksum(message, src, dst);
        if alert {
            let alerted = [&wire::MLD_HOP_BY_HOP[..], message].concat();
            self.put(src, dst, next_header::HOP_BY_HOP, hop_limit, &alerted);
        } else {
            self.put(src, dst, next_header::ICMPV6, hop_limit, message);
        }
    }

    fn receive_discovery(&mut self, script: &mut Script<'_>) {
        let target = script.addr(&self.host);
        let flags = script.byte();
        let repr = match script.byte() % 5 {
            0 => NdpRepr::RouterSolicit,
            1 => NdpRepr::NeighborSolicit { target },
            2 => NdpRepr::NeighborAdvert {
                target,
                is_router: flags & 1 != 0,
                is_solicited: flags & 2 != 0,
                is_override: flags & 4 != 0,
            },
            3 => NdpRepr::RouterAdvert(RouterAdvert {
                hop_limit: flags,
                is_managed: flags & 1 != 0,
                has_other: flags & 2 != 0,
                preference: RouterPreference::Medium,
                lifetime_secs: script.word(),
                reachable_ms: u32::from(script.word()) << 4,
                retrans_ms: u32::from(script.word()),
            }),
            _ => NdpRepr::Redirect {
                target,
                destination: script.addr(&self.host),
            },
        };
        let options: Vec<NdpOption> = (0..script.byte() % 6)
            .map(|_| match script.byte() % 5 {
                0 => NdpOption::SourceLink(script.mac()),
                1 => NdpOption::TargetLink(script.mac()),
                2 => NdpOption::Mtu(u32::from(script.word())),
                3 => NdpOption::Nonce([script.byte(); 6]),
                _ => NdpOption::Prefix(PrefixInfo {
                    prefix: script.addr(&self.host),
                    prefix_len: [64, script.byte()][usize::from(script.byte() % 2)],
                    is_on_link: flags & 8 != 0,
                    is_autonomous: flags & 16 != 0,
                    valid_secs: u32::from(script.word()) << (script.byte() % 17),
                    preferred_secs: u32::from(script.word()),
                }),
            })
            .collect();
        let mut message = vec![0; 256];
        let len = repr.emit(&mut message, &options);
        self.receive_icmpv6(script, &mut message[..len], false);
    }

    fn receive_query(&mut self, script: &mut Script<'_>) {
        let len = [24, 28, usize::from(script.byte() % 64)][usize::from(script.byte() % 3)];
        let mut message = vec![0; len.max(8)];
        (message[0], message[4], message[5]) = (130, script.byte(), script.byte());
        if let Some(group) = message.get_mut(8..24) {
            let addr = script.addr(&self.host);
            group.copy_from_slice(&addr.octets());
        }
        self.receive_icmpv6(script, &mut message, true);
    }

    /// An error about a datagram that one of the sockets may have sent.
    fn receive_error(&mut self, script: &mut Script<'_>) {
        let mut message = vec![0; 8 + 40 + 8];
        let repr = match script.byte() % 3 {
            0 => Icmpv6Repr::PacketTooBig(u32::from(script.word())),
            1 => Icmpv6Repr::Unreachable(Unreachable6::Port),
            _ => Icmpv6Repr::HopLimitExceeded,
        };
        repr.emit(&mut message);
        Ipv6Repr {
            src: script.destination(&self.host),
            dst: script.source(&self.host),
            next_header: [17, 6, 44, script.byte()][usize::from(script.byte() % 4)],
            payload_len: script.word(),
            hop_limit: 1,
            traffic_class: 0,
            flow_label: 0,
        }
        .emit(&mut message[8..]);
        message[48..50].copy_from_slice(&7_u16.to_be_bytes());
        message[50..52].copy_from_slice(&u16::from(script.byte()).to_be_bytes());
        message.extend_from_slice(script.bytes());
        self.receive_icmpv6(script, &mut message, false);
    }

    fn receive_datagram(&mut self, script: &mut Script<'_>) {
        let payload = script.bytes();
        let mut datagram = vec![0, 9, 0, 7, 0, 0, 0, 0];
        datagram.extend_from_slice(payload);
        let len = datagram.len() as u16;
        datagram[4..6].copy_from_slice(&len.to_be_bytes());
        let sum = Sum::new().bytes(&datagram).checksum();
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        self.receive(script, 17, &datagram);
    }

    /// A piece of one of a few packets, so that some are put together.
    fn receive_fragment(&mut self, script: &mut Script<'_>) {
        let mut packet = vec![0; 8];
        let place = script.byte();
        Ipv6Fragment {
            ident: u32::from(place % 2),
            offset: u16::from(script.byte() % 3) * 8,
            has_more: place & 0x40 != 0,
            next_header: [17, 17, 60, 58][usize::from(place >> 4 & 3)],
        }
        .emit(&mut packet);
        match place & 0x80 {
            0 => packet.extend([17, 0, 1, 4, 0, 0, 0, 0]),
            _ => packet.extend_from_slice(script.bytes()),
        }
        let src = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::from(place >> 1 & 1));
        let dst = own_address(&self.host, 0);
        self.put(src, dst, next_header::FRAGMENT, 64, &packet);
    }

    fn check(&self) {
        for Host { stack, .. } in [&self.host, &self.follower] {
            assert!(stack.addresses_v6().count() <= ADDRESSES_MAX);
            assert!(stack.routes().count() <= ROUTES_MAX);
            assert!(stack.neighbors_v6().count() <= NEIGHBORS_MAX);
            assert!(stack.groups().count() <= GROUPS_MAX);
        }
        let stack = &self.host.stack;
        let far = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9));
        assert!((1280..=1500).contains(&stack.path_mtu(far)));
    }

    /// All programs end and the link falls silent; then the host forgets everything that
    /// is not for ever.
    fn end(mut self) {
        let Host { stack, env } = &mut self.host;
        for socket in std::mem::take(&mut self.sockets) {
            stack.close(env, socket).expect("our socket");
        }
        self.wait(Duration::from_secs(200_000));
        self.host.env.sent.clear();
        let stack = &self.host.stack;
        let soon = self.host.env.now + Duration::from_secs(1);
        assert_eq!(stack.sockets_used(), 0, "sockets are left");
        for host in [&self.host, &self.follower] {
            assert_eq!(host.env.pool.used(), 0, "buffers are left");
        }
        assert!(
            stack.next_deadline().unwrap_or(Instant::NEVER) > soon,
            "timers are left"
        );
    }
}
