//! Members of groups, and routers that ask for them.

use base::Duration;
use inet::{Count, DropReason, Endpoint, Error, Snmp6, Transport};
use sim::{Host, Side, World};
use std::net::{IpAddr, Ipv6Addr};
use wire::{fill_icmpv6_checksum, next_header};

use super::place::*;

#[test]
fn members_of_a_group_hear_what_is_sent_to_it_until_they_leave() {
    let mut world = world();
    for group in [
        IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb)),
        IpAddr::from([239, 1, 2, 3]),
    ] {
        let local = Endpoint {
            port: 5353,
            ..Endpoint::any_of(group)
        };
        let Host { stack, env } = world.host(Side::Right);
        let members = [(); 3].map(|()| {
            let socket = stack.open(Transport::Udp).expect("a socket");
            stack
                .configure(env, socket, |options| options.reuse_port = true)
                .expect("our socket");
            stack.bind(socket, local).expect("a shared port");
            socket
        });
        for member in &members[..2] {
            stack.join_group(env, *member, group).expect("room");
        }
        let again = stack.join_group(env, members[0], group);
        assert_eq!(again, Err(Error::AddressInUse));
        let client = {
            let stack = &mut world.host(Side::Left).stack;
            stack.open(Transport::Udp).expect("a socket")
        };
        let heard = |world: &mut World| {
            let to = Endpoint::new(group, 5353);
            assert_eq!(send_to(world.host(Side::Left), client, to, 9), Ok(9));
            world.run_for(Duration::from_millis(10));
            let stack = &mut world.host(Side::Right).stack;
            members.map(|member| stack.recv_from(member).is_ok())
        };
        assert_eq!(heard(&mut world), [true, true, false]);
        let Host { stack, env } = world.host(Side::Right);
        stack.leave_group(env, members[0], group).expect("a member");
        assert_eq!(heard(&mut world), [false, true, false]);
        let Host { stack, env } = world.host(Side::Right);
        stack.close(env, members[1]).expect("our socket");
        let before = drops(&world.right, DropReason::NotMember);
        assert_eq!(heard(&mut world), [false, false, false]);
        assert!(!world.right.stack.groups().any(|known| known == group));
        assert_eq!(drops(&world.right, DropReason::NotMember) - before, 1);
    }
    let reports = world
        .right
        .stack
        .stats()
        .counts
        .get(Count::MembershipReports);
    assert!(reports >= 4, "{reports} reports");
}

#[test]
fn a_router_that_asks_hears_of_our_groups() {
    let mut world = world();
    let before = snmp6(&world.left, Snmp6::IcmpOutMldV2Reports);
    let mut query = vec![0; 28];
    query[0] = 130;
    fill_icmpv6_checksum(&mut query, ROUTER, ALL_NODES);
    let plain = packet(ROUTER, ALL_NODES, next_header::ICMPV6, 1, &query);
    world.host(Side::Left).receive(&plain);
    assert_eq!(drops(&world.left, DropReason::BadMembership), 1, "no alert");
    let alerted = [&wire::MLD_HOP_BY_HOP[..], &query].concat();
    let frame = packet(ROUTER, ALL_NODES, next_header::HOP_BY_HOP, 1, &alerted);
    world.host(Side::Left).receive(&frame);
    world.run_for(SETTLED);
    assert_eq!(snmp6(&world.left, Snmp6::IcmpOutMldV2Reports) - before, 1);
}
