//! Two hosts with IPv6, and the packets that a router or a liar on their link sends.

use base::Duration;
use inet::{
    AddressState, Config, DropReason, Endpoint, Error, Ipv6Config, Offloads, Snmp6, SocketId,
    Transport,
};
use sim::{Host, Side, Weather, World, frame};
use std::net::Ipv6Addr;
use wire::{
    Ipv6Repr, MacAddr, NdpOption, NdpRepr, PrefixInfo, RouterAdvert, RouterPreference,
    fill_icmpv6_checksum, next_header,
};

pub const OFFLOADS: Offloads = Offloads {
    checksum: true,
    segment_v4: true,
    segment_v6: true,
};
pub const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);
pub const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, 0);
/// Longer than probes and solicitations take.
pub const SETTLED: Duration = Duration::from_secs(20);

pub fn link_local(side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, side as u16 + 1)
}

pub fn start(world: &mut World, side: Side, config: Ipv6Config) {
    let Host { stack, env } = world.host(side);
    stack.start_ipv6(env, config);
}

pub fn world_with(seed: u64, weather: Weather, offloads: Offloads) -> World {
    let mut world = World::with_config(seed, weather, offloads, Config::default());
    for side in [Side::Left, Side::Right] {
        start(&mut world, side, Ipv6Config::default());
    }
    world.run_for(SETTLED);
    world
}

pub fn world() -> World {
    world_with(1, Weather::FAIR, OFFLOADS)
}

pub fn drops(host: &Host, reason: DropReason) -> u64 {
    host.stack.stats().drops.get(reason)
}

pub fn snmp6(host: &Host, what: Snmp6) -> u64 {
    host.stack.stats().snmp6.get(what)
}

pub fn udp(host: &mut Host, port: u16) -> SocketId {
    let socket = host.stack.open(Transport::Udp).expect("a socket");
    let local = Endpoint::v6(Ipv6Addr::UNSPECIFIED, port);
    host.stack.bind(socket, local).expect("a free port");
    socket
}

pub fn send_to(
    host: &mut Host,
    socket: SocketId,
    to: Endpoint,
    len: usize,
) -> Result<usize, Error> {
    let mut at = 0;
    host.stack
        .send_to(&mut host.env, socket, Some(to), len, &mut |space| {
            for byte in space.iter_mut() {
                *byte = at as u8;
                at += 1;
            }
            space.len()
        })
}

/// Frames to us carry packets made like this.
pub fn packet(src: Ipv6Addr, dst: Ipv6Addr, next: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let station = match dst.is_multicast() {
        true => MacAddr::of_group_v6(dst),
        false => MacAddr([2, 0, 0, 0, 0, 1]),
    };
    let header = Ipv6Repr {
        hop_limit,
        ..frame::header_v6(src, dst, next)
    };
    frame::ipv6(station, ROUTER_MAC, header, payload)
}

pub fn ndp(src: Ipv6Addr, dst: Ipv6Addr, repr: NdpRepr, options: &[NdpOption]) -> Vec<u8> {
    let mut message = vec![0; 512];
    let len = repr.emit(&mut message, options);
    fill_icmpv6_checksum(&mut message[..len], src, dst);
    packet(src, dst, next_header::ICMPV6, 255, &message[..len])
}

pub fn advert(lifetime_secs: u16) -> NdpRepr {
    NdpRepr::RouterAdvert(RouterAdvert {
        hop_limit: 64,
        is_managed: false,
        has_other: false,
        preference: RouterPreference::Medium,
        lifetime_secs,
        reachable_ms: 0,
        retrans_ms: 0,
    })
}

pub fn prefix(prefix: Ipv6Addr, valid_secs: u32, preferred_secs: u32) -> NdpOption {
    NdpOption::Prefix(PrefixInfo {
        prefix,
        prefix_len: 64,
        is_on_link: true,
        is_autonomous: true,
        valid_secs,
        preferred_secs,
    })
}

pub fn announce(world: &mut World, lifetime_secs: u16, options: &[NdpOption]) {
    let link = NdpOption::SourceLink(ROUTER_MAC);
    let options: Vec<_> = [link].into_iter().chain(options.iter().copied()).collect();
    let frame = ndp(ROUTER, ALL_NODES, advert(lifetime_secs), &options);
    world.host(Side::Left).receive(&frame);
}

pub fn own(world: &World, network: Ipv6Addr) -> Option<(Ipv6Addr, AddressState)> {
    let of_network = |addr: Ipv6Addr| addr.segments()[..4] == network.segments()[..4];
    let mut addresses = world.left.stack.addresses_v6();
    let found = addresses.find(|own| of_network(own.addr))?;
    Some((found.addr, found.state))
}
