//! Pings, options that must be known, and what a path reports of its width.

use base::Duration;
use inet::{DropReason, Endpoint, Snmp6};
use sim::{Host, Side, World};
use std::net::IpAddr;
use wire::{
    ETHERNET_HEADER_BYTES, ICMPV6_HEADER_BYTES, IPV6_HEADER_BYTES, Icmpv6Repr,
    fill_icmpv6_checksum, next_header,
};

use super::place::*;

#[test]
fn a_ping_is_answered_and_pings_to_a_group_are_not() {
    let mut world = world();
    let here = link_local(Side::Left);
    for dst in [here, ALL_NODES] {
        let mut message = vec![7; ICMPV6_HEADER_BYTES + 1000];
        Icmpv6Repr::EchoRequest {
            ident: 1,
            sequence: 2,
        }
        .emit(&mut message);
        fill_icmpv6_checksum(&mut message, link_local(Side::Right), dst);
        let frame = packet(
            link_local(Side::Right),
            dst,
            next_header::ICMPV6,
            64,
            &message,
        );
        world.host(Side::Left).receive(&frame);
    }
    world.run_for(Duration::from_millis(10));
    assert_eq!(snmp6(&world.left, Snmp6::IcmpOutEchoReplies), 1);
    assert_eq!(snmp6(&world.right, Snmp6::IcmpInEchoReplies), 1);
}

#[test]
fn a_narrow_path_is_learned_from_what_we_sent_and_from_nothing_else() {
    let mut world = world();
    let right = link_local(Side::Right);
    let server = udp(world.host(Side::Right), 53);
    let client = udp(world.host(Side::Left), 4000);
    let mut quote = packet(link_local(Side::Left), right, 17, 64, &[0; 1408]);
    let at = ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES;
    let mut too_big = |world: &mut World, port: u16, mtu: u32| {
        quote[at..at + 2].copy_from_slice(&port.to_be_bytes());
        quote[at + 2..at + 4].copy_from_slice(&53_u16.to_be_bytes());
        let mut message = vec![0; ICMPV6_HEADER_BYTES];
        Icmpv6Repr::PacketTooBig(mtu).emit(&mut message);
        message.extend_from_slice(&quote[ETHERNET_HEADER_BYTES..][..1200]);
        fill_icmpv6_checksum(&mut message, ROUTER, link_local(Side::Left));
        let frame = packet(
            ROUTER,
            link_local(Side::Left),
            next_header::ICMPV6,
            64,
            &message,
        );
        world.host(Side::Left).receive(&frame);
        world.left.stack.path_mtu(IpAddr::V6(right))
    };
    assert_eq!(too_big(&mut world, 4001, 1300), 1500, "no such socket");
    assert_eq!(too_big(&mut world, 4000, 900), 1500, "no such link");
    assert_eq!(too_big(&mut world, 4000, 9000), 1500, "no narrower");
    assert_eq!(too_big(&mut world, 4000, 1300), 1300);
    let to = Endpoint::v6(right, 53);
    assert_eq!(send_to(world.host(Side::Left), client, to, 1400), Ok(1400));
    world.run_for(Duration::from_millis(10));
    let got = world
        .host(Side::Right)
        .stack
        .recv_from(server)
        .expect("one");
    assert_eq!(got.payload.len(), 1400);
    assert_eq!(snmp6(&world.left, Snmp6::FragCreates), 2);
    world.run_for(Duration::from_secs(601));
    assert_eq!(
        world.left.stack.path_mtu(IpAddr::V6(right)),
        1500,
        "tried anew"
    );
    let Host { stack, env } = world.host(Side::Left);
    stack.report_black_hole(env, IpAddr::V6(right));
    assert_eq!(stack.path_mtu(IpAddr::V6(right)), 1280);
}

#[test]
fn an_option_that_must_be_known_is_reported_with_its_place() {
    let mut world = world();
    let options = [17, 0, 0x9e, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 8, 0, 0];
    let dst = link_local(Side::Left);
    let frame = packet(
        link_local(Side::Right),
        dst,
        next_header::DESTINATION,
        64,
        &options,
    );
    world.host(Side::Left).receive(&frame);
    assert_eq!(drops(&world.left, DropReason::BadExtension), 1);
    world.carry();
    // The report waits for the neighbour's station; look at it when it comes out.
    world.run_for(Duration::from_millis(10));
    assert_eq!(snmp6(&world.right, Snmp6::IcmpInParmProblems), 1);
}
