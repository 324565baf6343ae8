//! A host with two interfaces, each with a stack and a network of its own: what the host opens
//! goes by the one that leads there, and what is open on both answers on both.

use std::net::{IpAddr, Ipv4Addr};

use base::Duration;
use inet::{Cidr, Egress, Endpoint, Error, Offloads, SocketId, State, Transport};
use sim::{Host, Side, Weather, World};

const CARD: u32 = 2;
const VNIC: u32 = 3;
const PORT: u16 = 6379;
/// The VNIC's network is 10.0.1.0/24, and the host has this address there.
const ON_VNIC: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const PEER_ON_VNIC: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

/// Our host is the left one of both worlds: the card's shard in one, the VNIC's in the other.
struct Networks {
    worlds: [World; 2],
    egress: Egress,
}

impl Networks {
    fn new() -> Self {
        let world = |seed| World::new(seed, Weather::FAIR, Offloads::default());
        let (card, mut vnic) = (world(1), world(2));
        vnic.left.stack.set_address(Cidr::new(ON_VNIC, 24));
        vnic.right.stack.set_address(Cidr::new(PEER_ON_VNIC, 24));
        let mut egress = Egress::new();
        egress.set(card.left.stack.reach(CARD));
        egress.set(vnic.left.stack.reach(VNIC));
        Self {
            worlds: [card, vnic],
            egress,
        }
    }

    fn world(&mut self, interface: u32) -> &mut World {
        &mut self.worlds[(interface - CARD) as usize]
    }

    fn run(&mut self) {
        for world in &mut self.worlds {
            world.run_for(Duration::from_millis(200));
        }
    }

    /// A listener at one side of a network.
    fn listen(&mut self, interface: u32, side: Side, local: Endpoint) -> SocketId {
        let Host { stack, .. } = self.world(interface).host(side);
        let socket = stack.open(Transport::Tcp).expect("a socket");
        stack.bind(socket, local).expect("a free port");
        stack.listen(socket, 4).expect("a bound socket");
        socket
    }

    /// A connection of a side of a network.
    fn connect(&mut self, interface: u32, side: Side, to: IpAddr) -> SocketId {
        let Host { stack, env } = self.world(interface).host(side);
        let socket = stack.open(Transport::Tcp).expect("a socket");
        let peer = Endpoint::new(to, PORT);
        stack.connect(env, socket, peer).expect("a way");
        self.run();
        socket
    }

    fn state(&mut self, interface: u32, side: Side, socket: SocketId) -> Result<State, Error> {
        self.world(interface).host(side).stack.state(socket)
    }
}

#[test]
fn a_connection_is_opened_by_the_shard_whose_interface_leads_to_the_peer() {
    let mut networks = Networks::new();
    for (interface, peer, own) in [
        (CARD, Host::address(2), Host::address(1)),
        (VNIC, PEER_ON_VNIC, ON_VNIC),
    ] {
        networks.listen(interface, Side::Right, Endpoint::new(peer.into(), PORT));
        let chosen = networks.egress.choose(None, peer.into());
        assert_eq!(chosen, Some(interface));
        let socket = networks.connect(interface, Side::Left, peer.into());
        let state = networks.state(interface, Side::Left, socket);
        assert_eq!(state, Ok(State::Established));
        let stack = &networks.world(interface).left.stack;
        let local = stack.local(socket).map(|local| local.addr);
        assert_eq!(local, Ok(own.into()), "its own interface's address");
    }
}

#[test]
fn a_listener_without_an_address_is_heard_on_both_networks() {
    let mut networks = Networks::new();
    let any = Endpoint::v4(Ipv4Addr::UNSPECIFIED, PORT);
    for (interface, own) in [(CARD, Host::address(1)), (VNIC, ON_VNIC)] {
        networks.listen(interface, Side::Left, any);
        let socket = networks.connect(interface, Side::Right, own.into());
        let state = networks.state(interface, Side::Right, socket);
        assert_eq!(state, Ok(State::Established));
    }
}

#[test]
fn a_name_kept_for_another_shard_hears_nothing_and_nobody_else_gets_it() {
    let mut networks = Networks::new();
    let name = Endpoint::new(ON_VNIC.into(), PORT);
    let first = &mut networks.world(CARD).left.stack;
    let sockets = [(); 2].map(|()| first.open(Transport::Tcp).expect("a socket"));
    let refused = first.bind(sockets[0], name);
    assert_eq!(refused, Err(Error::AddressNotAvailable), "it is not here");
    assert_eq!(first.bind_elsewhere(sockets[0], name), Ok(()));
    assert_eq!(first.listen(sockets[0], 4), Ok(()));
    let taken = first.bind_elsewhere(sockets[1], name);
    assert_eq!(taken, Err(Error::AddressInUse));
    let other = Endpoint::new(Host::address(1).into(), PORT);
    assert_eq!(
        first.bind(sockets[1], other),
        Ok(()),
        "beside it on the card"
    );

    networks.listen(VNIC, Side::Left, name);
    let on_vnic = networks.connect(VNIC, Side::Right, ON_VNIC.into());
    let on_card = networks.connect(CARD, Side::Right, Host::address(1).into());
    let state = networks.state(VNIC, Side::Right, on_vnic);
    assert_eq!(state, Ok(State::Established));
    let state = networks.state(CARD, Side::Right, on_card);
    assert_eq!(state, Ok(State::Closed), "nobody listens there");
}

#[test]
fn an_address_of_a_device_is_reached_by_it_though_the_packet_does_not_leave_us() {
    let mut networks = Networks::new();
    let Host { stack, env } = &mut networks.world(CARD).left;
    let own = Endpoint::new(Host::address(1).into(), PORT);
    let devices = [
        inet::Device::Port,
        inet::Device::Port,
        inet::Device::Loopback,
    ];
    let [here, sender, elsewhere] = devices.map(|device| {
        let socket = stack.open(Transport::Udp).expect("a socket");
        let bind = |options: &mut inet::Options| options.device = device;
        stack.configure(env, socket, bind).expect("our socket");
        socket
    });
    assert_eq!(stack.bind(elsewhere, own), Ok(()));
    let fill = &mut |space: &mut [u8]| space.len();
    assert_eq!(stack.send_to(env, sender, Some(own), 4, fill), Ok(4));
    assert!(stack.recv_from(elsewhere).is_err(), "it is of loopback");
    assert_eq!(stack.bind(here, own), Ok(()), "they do not meet");
    assert_eq!(stack.send_to(env, sender, Some(own), 4, fill), Ok(4));
    let heard = stack.recv_from(here).map(|datagram| datagram.from.addr);
    assert_eq!(heard, Ok(own.addr));
    let loopback = Endpoint::v4(Ipv4Addr::LOCALHOST, PORT);
    let refused = stack.send_to(env, sender, Some(loopback), 4, fill);
    assert_eq!(refused, Err(Error::NetworkUnreachable));
}

#[test]
fn sockets_of_two_devices_share_a_port_in_the_shard_that_keeps_the_names() {
    let mut networks = Networks::new();
    let Host { stack, env } = &mut networks.world(CARD).left;
    let any = Endpoint::v4(Ipv4Addr::UNSPECIFIED, PORT);
    let devices = [
        inet::Device::Port,
        inet::Device::Other(VNIC),
        inet::Device::Other(VNIC),
    ];
    let named = devices.map(|device| {
        let socket = stack.open(Transport::Udp).expect("a socket");
        let bind = |options: &mut inet::Options| options.device = device;
        stack.configure(env, socket, bind).expect("our socket");
        stack.bind(socket, any)
    });
    assert_eq!(named, [Ok(()), Ok(()), Err(Error::AddressInUse)]);
}
