//! A host gets its address from a server, keeps it, and loses it.

use std::net::Ipv4Addr;

use base::Duration;
use inet::{Cidr, Config, Endpoint, Offloads, SocketId, Transport};
use sim::{Host, Side, Weather, World};
use wire::DhcpRepr;

const GRANTED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);
const LEASE_SECS: u32 = 600;
const OPTIONS_AT: usize = 240;

/// A server's answer to a client's message: an offer, or the address itself.
fn answer(request: &[u8]) -> Vec<u8> {
    let mut reply = request[..OPTIONS_AT].to_vec();
    reply[0] = 2;
    reply[16..20].copy_from_slice(&GRANTED.octets());
    // The message type is a client's first option: a discovery is 1, a request 3.
    let kind = if request[OPTIONS_AT + 2] == 1 { 2 } else { 5 };
    reply.extend([
        53, 1, kind, 54, 4, 10, 0, 0, 2, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 0, 2, 51, 4,
    ]);
    reply.extend(LEASE_SECS.to_be_bytes());
    reply.push(255);
    reply
}

/// Lets the server on the right answer for so long; says how many times it did.
fn serve(world: &mut World, server: SocketId, time: Duration) -> u32 {
    let end = world.now + time;
    let mut answers = 0;
    while world.now < end {
        world.run_for(Duration::from_millis(500));
        let Host { stack, env } = world.host(Side::Right);
        while let Ok(datagram) = stack.recv_from(server) {
            let mut request = vec![0; datagram.payload.len()];
            datagram.payload.copy_to_slice(0, &mut request);
            assert_eq!(request.len(), DhcpRepr::BYTES);
            let (reply, mut at) = (answer(&request), 0);
            let to = Endpoint::v4(Ipv4Addr::BROADCAST, 68);
            let sent = stack.send_to(env, server, Some(to), reply.len(), &mut |space| {
                space.copy_from_slice(&reply[at..at + space.len()]);
                at += space.len();
                space.len()
            });
            assert_eq!(sent, Ok(reply.len()));
            answers += 1;
        }
    }
    answers
}

/// A client on the left that asks, and a server on the right with its socket.
fn client_and_server() -> (World, SocketId) {
    let offloads = Offloads::default();
    let mut world = World::with_config(1, Weather::FAIR, offloads, Config::default());
    let Host { stack, env } = world.host(Side::Right);
    let server = stack.open(Transport::Udp).expect("a socket");
    stack
        .bind(
            server,
            Endpoint {
                port: 67,
                ..Endpoint::ANY
            },
        )
        .expect("a free port");
    stack
        .configure(env, server, |options| options.broadcast = true)
        .expect("our socket");
    let Host { stack, env } = world.host(Side::Left);
    stack.set_address(None);
    stack.start_dhcp(env);
    (world, server)
}

#[test]
fn an_address_that_is_set_by_hand_stays_when_its_owner_ends_dhcp() {
    let (mut world, server) = client_and_server();
    serve(&mut world, server, Duration::from_secs(10));
    let own = Cidr::new(Ipv4Addr::new(10, 0, 0, 5), 24);
    world.left.stack.stop_dhcp();
    world.left.stack.set_address(own);
    let answers = serve(&mut world, server, Duration::from_secs(700));
    assert_eq!(answers, 0, "nobody asks any more");
    assert_eq!(world.left.stack.address(), own);
    assert_eq!(world.left.stack.lease(), None);
}

#[test]
fn an_address_is_asked_for_renewed_and_given_up() {
    let (mut world, server) = client_and_server();
    serve(&mut world, server, Duration::from_secs(10));
    let lease = *world.left.stack.lease().expect("a lease");
    assert_eq!(
        (lease.address.addr(), lease.gateway),
        (GRANTED, Some(Host::address(2)))
    );
    assert_eq!(world.left.stack.address(), Some(lease.address));

    assert!(
        serve(&mut world, server, Duration::from_secs(590)) >= 1,
        "it is renewed"
    );
    assert!(
        world
            .left
            .stack
            .lease()
            .is_some_and(|renewed| renewed.expires > lease.expires)
    );

    world.run_for(Duration::from_secs(1200));
    assert_eq!(
        (world.left.stack.lease(), world.left.stack.address()),
        (None, None)
    );
    serve(&mut world, server, Duration::from_secs(200));
    assert!(world.left.stack.lease().is_some(), "and found again");
}
