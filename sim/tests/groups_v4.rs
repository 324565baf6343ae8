//! What a host tells IPv4 routers of the groups that it listens to.

use std::net::{IpAddr, Ipv4Addr};

use base::Duration;
use inet::{Count, DropReason, Endpoint, Offloads, SocketId, Transport};
use sim::lan::station;
use sim::{Host, Side, Weather, World, frame};
use wire::{
    ETHERNET_HEADER_BYTES, IGMP_ROUTERS, Ipv4Repr, Ipv4View, MacAddr, Protocol, RecordKind, Sum,
    igmp_records,
};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);

fn member(host: &mut Host) -> SocketId {
    let Host { stack, env } = host;
    let socket = stack.open(Transport::Udp).expect("a socket");
    stack.bind(socket, Endpoint::ANY).expect("a port");
    stack
        .join_group(env, socket, IpAddr::V4(GROUP))
        .expect("room");
    socket
}

fn query(ttl: u8, len: usize) -> Vec<u8> {
    let mut message = vec![0; len];
    (message[0], message[1]) = (0x11, 10);
    let sum = Sum::new().bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let all = Ipv4Addr::new(224, 0, 0, 1);
    let header = Ipv4Repr {
        ttl,
        ..frame::header(ROUTER, all, Protocol::Igmp)
    };
    frame::ipv4(MacAddr::of_group_v4(all), station(0x99), header, &message)
}

/// Reports that the left host has sent: where to, and their records.
fn reports(host: &mut Host) -> Vec<(Ipv4Addr, Vec<(RecordKind, Ipv4Addr)>)> {
    let sent = std::mem::take(&mut host.env.sent);
    let read = |frame: &mbuf::TxFrame| {
        let bytes: Vec<u8> = frame.chain.slices().flatten().copied().collect();
        let packet = &bytes[ETHERNET_HEADER_BYTES..];
        let ip = Ipv4View::parse(packet, packet.len()).ok()?;
        assert_eq!(
            (ip.ttl(), ip.header().len()),
            (1, 24),
            "an alert and one hop"
        );
        let message = &packet[ip.header().len()..];
        Some((ip.dst(), igmp_records(message).collect()))
    };
    sent.iter().filter_map(read).collect()
}

/// Runs the left host alone, so that what it sends stays in its queue.
fn wait(world: &mut World, time: Duration) {
    world.now += time;
    let host = world.host(Side::Left);
    host.stack.expire(&mut host.env);
}

#[test]
fn joining_answering_and_leaving_are_reported_once_each_and_repeated_once() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let socket = member(world.host(Side::Left));
    let told = |kind| vec![(IGMP_ROUTERS, vec![(kind, GROUP)])];
    assert_eq!(reports(world.host(Side::Left)), told(RecordKind::ToExclude));
    wait(&mut world, Duration::from_secs(2));
    assert_eq!(reports(world.host(Side::Left)), told(RecordKind::IsExclude));
    wait(&mut world, Duration::from_secs(100));
    assert_eq!(reports(world.host(Side::Left)), []);
    world.host(Side::Left).receive(&query(1, 12));
    wait(&mut world, Duration::from_secs(3));
    assert_eq!(reports(world.host(Side::Left)), told(RecordKind::IsExclude));
    let Host { stack, env } = world.host(Side::Left);
    stack.close(env, socket).expect("our socket");
    assert_eq!(reports(world.host(Side::Left)), told(RecordKind::ToInclude));
}

#[test]
fn an_old_router_is_told_in_its_own_words() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let socket = member(world.host(Side::Left));
    wait(&mut world, Duration::from_secs(2));
    reports(world.host(Side::Left));
    world.host(Side::Left).receive(&query(1, 8));
    wait(&mut world, Duration::from_secs(3));
    let answer = vec![(GROUP, vec![(RecordKind::IsExclude, GROUP)])];
    assert_eq!(reports(world.host(Side::Left)), answer);
    let Host { stack, env } = world.host(Side::Left);
    stack.close(env, socket).expect("our socket");
    let all_routers = Ipv4Addr::new(224, 0, 0, 2);
    let leave = vec![(all_routers, vec![(RecordKind::ToInclude, GROUP)])];
    assert_eq!(reports(world.host(Side::Left)), leave);
}

#[test]
fn a_question_from_beyond_a_router_is_not_answered() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    member(world.host(Side::Left));
    wait(&mut world, Duration::from_secs(2));
    let before = world
        .left
        .stack
        .stats()
        .counts
        .get(Count::MembershipReports);
    world.host(Side::Left).receive(&query(64, 12));
    wait(&mut world, Duration::from_secs(20));
    let stats = world.left.stack.stats();
    assert_eq!(stats.counts.get(Count::MembershipReports), before);
    assert_eq!(stats.drops.get(DropReason::BadMembership), 1);
}

#[test]
fn the_port_lets_a_group_through_from_its_first_member_to_its_last() {
    let mut world = World::new(1, Weather::FAIR, Offloads::default());
    let host = world.host(Side::Left);
    let before = host.env.groups.clone();
    let members = [member(host), member(host)];
    let joined = MacAddr::of_group_v4(GROUP);
    assert_eq!(host.env.groups, [&before[..], &[joined]].concat());
    let listed: Vec<MacAddr> = host.stack.group_stations().collect();
    assert_eq!(listed, host.env.groups);
    let Host { stack, env } = host;
    stack.close(env, members[0]).expect("our socket");
    assert!(env.groups.contains(&joined));
    let group = IpAddr::V4(GROUP);
    stack.leave_group(env, members[1], group).expect("a member");
    assert_eq!(env.groups, before);
}
