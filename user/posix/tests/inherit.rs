//! What a child of a fork has of its parent's sockets, and which of the two gets new peers.

use std::cell::RefCell;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;

use base::Instant;
use posix::{
    Direction, Endpoint, Errno, Events, Gather, Host, InheritedSockets, Left, Link, Scatter,
    SendOptions, Transport, Trigger, UnconnectedSocket, Watch,
};
use rt::Exchange;
use rt::simulated::{SimulatedKernel, SimulatedRing};
use sietch_io::{Address, QueueConfig, Station};

const CHUNKS: usize = 256;
const ENTRIES: u32 = 64;
const HTTP: u16 = 80;
const DNS: u16 = 53;
const LISTENER: u32 = 3;
const COPY: u32 = 4;
const DATAGRAMS: u32 = 5;
const SET: u32 = 6;

/// What the kernel was told of new flows.
#[derive(Clone, Default)]
struct Told(Rc<RefCell<Vec<bool>>>);

impl Link for Told {
    type Io = Exchange<SimulatedRing>;

    fn kick(&mut self, _: &Exchange<SimulatedRing>) -> io::Result<()> {
        Ok(())
    }

    fn take_new_flows(&mut self, is_taker: bool) {
        self.0.borrow_mut().push(is_taker);
    }
}

impl Told {
    fn take(&self) -> Vec<bool> {
        self.0.take()
    }
}

fn host() -> (Host<Told>, Told) {
    let (_, mut exchange) = SimulatedKernel::new(CHUNKS, 16, ENTRIES).unwrap();
    exchange.supply();
    let address = Address::new(Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
    let mut config = QueueConfig::new("wire", address);
    config.chunks = CHUNKS;
    let mut station = Station::new(exchange, [2, 0, 0, 0, 0, 1], 1500, config.stack(), [1, 2]);
    station.set_address(address, None);
    let told = Told::default();
    let host = Host::new(told.clone(), station, address, ENTRIES);
    (host, told)
}

/// A socket of this number with a name; a listener if it is for streams.
fn serve(host: &mut Host<Told>, number: u32, kind: Transport, port: u16) {
    host.add_socket(number, kind, true).unwrap();
    let open = host.socket(number).unwrap();
    host.bind(&open, Ipv4Addr::UNSPECIFIED, port).unwrap();
    if kind == Transport::Tcp {
        host.listen(&open, 17).unwrap();
    }
}

fn number_of(host: &mut Host<Told>, number: u32, level: i32, name: i32) -> i32 {
    let open = host.socket(number).unwrap();
    let value = host.option(&open, level, name).unwrap().unwrap();
    i32::from_ne_bytes(*value.first_chunk().unwrap())
}

#[test]
fn a_child_listens_under_the_same_numbers_by_the_same_name_and_options() {
    let (mut parent, _) = host();
    serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
    serve(&mut parent, DATAGRAMS, Transport::Udp, DNS);
    parent.duplicate(LISTENER, COPY).unwrap();
    let open = parent.socket(LISTENER).unwrap();
    let yes = 1_i32.to_ne_bytes();
    let second = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
    let level = libc::SOL_SOCKET;
    parent
        .set_option(&open, level, libc::SO_KEEPALIVE, &yes)
        .unwrap();
    parent
        .set_option(&open, level, libc::SO_RCVTIMEO, &second)
        .unwrap();

    let (mut child, _) = host();
    for socket in parent.unconnected() {
        child.inherit(&socket).unwrap();
    }
    for number in [LISTENER, COPY] {
        let open = child.socket(number).unwrap();
        assert_eq!(
            child.local(&open),
            Ok(Endpoint::v4(Ipv4Addr::UNSPECIFIED, HTTP))
        );
        assert_eq!(child.may_accept(&open), Err(Errno::AGAIN));
        assert!(open.is_nonblocking());
        assert_eq!(open.timeout_nanos(Direction::Receive), Some(1_000_000_000));
    }
    assert_eq!(
        number_of(&mut child, LISTENER, level, libc::SO_KEEPALIVE),
        1
    );
    assert_eq!(
        number_of(&mut child, LISTENER, level, libc::SO_ACCEPTCONN),
        1
    );
    let open = child.socket(DATAGRAMS).unwrap();
    assert_eq!(
        child.local(&open),
        Ok(Endpoint::v4(Ipv4Addr::UNSPECIFIED, DNS))
    );
    child.close(LISTENER);
    let open = child.socket(COPY).unwrap();
    assert_eq!(
        child.may_accept(&open),
        Err(Errno::AGAIN),
        "the other number has it still"
    );
}

#[test]
fn what_has_a_peer_is_the_parents_alone() {
    let (mut parent, _) = host();
    for (number, kind) in [(LISTENER, Transport::Tcp), (DATAGRAMS, Transport::Udp)] {
        parent.add_socket(number, kind, true).unwrap();
        let open = parent.socket(number).unwrap();
        let _ = parent.connect(&open, Ipv4Addr::new(10, 0, 0, 2), HTTP);
    }
    assert!(parent.unconnected().is_empty());
}

#[test]
fn sockets_of_one_name_are_told_from_others() {
    let (mut parent, _) = host();
    serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
    serve(&mut parent, DATAGRAMS, Transport::Udp, HTTP);
    parent.add_socket(COPY, Transport::Tcp, false).unwrap();
    let all = parent.unconnected();
    assert_eq!(all.len(), 3);
    for (index, one) in all.iter().enumerate() {
        let named = all.iter().filter(|other| other.is_named_as(one)).count();
        assert_eq!(named, usize::from(one.numbers != [COPY]), "{index}");
    }
}

#[test]
fn a_parent_that_watches_no_listener_gets_no_new_peers_until_it_does() {
    let (mut parent, told) = host();
    serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
    let open = parent.socket(LISTENER).unwrap();
    parent.note_watched(&open);
    assert_eq!(told.take(), [], "who never forked tells nothing");
    parent.share_with_child();
    assert_eq!(told.take(), [false]);
    assert_eq!(parent.may_accept(&open), Err(Errno::AGAIN));
    assert_eq!(told.take(), [true]);
    parent.share_with_child();
    assert_eq!(told.take(), [false], "for each child");
}

#[test]
fn a_parent_that_waits_for_its_listener_by_a_set_goes_on() {
    let (mut parent, told) = host();
    serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
    parent.add_set(SET).unwrap();
    let open = parent.socket(LISTENER).unwrap();
    let watch = Watch {
        interest: Events::READABLE,
        trigger: Trigger::empty(),
        data: 0,
    };
    let set = parent.set(SET).unwrap();
    set.add(LISTENER, &open, watch).unwrap();
    parent.share_with_child();
    assert_eq!(told.take(), []);
}

#[test]
fn who_closes_the_last_socket_that_serves_gets_no_new_peers() {
    let (mut parent, _) = host();
    serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
    serve(&mut parent, DATAGRAMS, Transport::Udp, DNS);
    let (mut child, told) = host();
    child.share_as_child();
    for socket in parent.unconnected() {
        child.inherit(&socket).unwrap();
    }
    let open = child.socket(LISTENER).unwrap();
    child.local(&open).unwrap();
    assert_eq!(told.take(), [], "it has not looked for peers");
    child.note_watched(&open);
    assert_eq!(told.take(), [true]);
    child.close(DATAGRAMS);
    assert_eq!(told.take(), []);
    child.close(LISTENER);
    assert_eq!(told.take(), [false]);
}

#[test]
fn who_peeks_at_datagrams_or_sends_one_gets_new_ones() {
    let looks: [fn(&mut Host<Told>); 2] = [
        |host| {
            let open = host.socket(DATAGRAMS).unwrap();
            let mut none = Scatter::new(&mut []);
            assert_eq!(host.peek_datagram(&open, &mut none), Err(Errno::AGAIN));
        },
        |host| {
            let open = host.socket(DATAGRAMS).unwrap();
            let to = SendOptions {
                to: Some(Endpoint::v4(Ipv4Addr::new(10, 0, 0, 2), DNS)),
                ..SendOptions::default()
            };
            host.put_datagram(&open, &mut Gather::new(&[]), to).unwrap();
        },
    ];
    for look in looks {
        let (mut parent, told) = host();
        serve(&mut parent, DATAGRAMS, Transport::Udp, DNS);
        parent.share_with_child();
        assert_eq!(told.take(), [false]);
        look(&mut parent);
        assert_eq!(told.take(), [true]);
    }
}

#[test]
fn a_parent_that_does_not_serve_does_not_after_an_exchange_either() {
    let (mut older, _) = host();
    serve(&mut older, LISTENER, Transport::Tcp, HTTP);
    older.share_with_child();
    let bytes = older.checkpoint().unwrap();
    let (mut newer, told) = host();
    newer.restore(&bytes, Instant::from_nanos(1)).unwrap();
    assert_eq!(told.take(), [false]);
    let open = newer.socket(LISTENER).unwrap();
    assert_eq!(newer.may_accept(&open), Err(Errno::AGAIN));
    assert_eq!(told.take(), [true]);
}

#[test]
fn a_closed_listener_that_a_child_may_ask_is_there_until_its_process_serves_again() {
    for is_serving in [false, true] {
        let (mut parent, _) = host();
        serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
        serve(&mut parent, DATAGRAMS, Transport::Udp, DNS);
        parent.share_with_child();
        let listener = parent.socket(LISTENER).unwrap();
        parent.hold(&listener);
        parent.close(LISTENER);
        assert!(parent.is_here(&listener));
        if is_serving {
            let datagrams = parent.socket(DATAGRAMS).unwrap();
            parent.note_watched(&datagrams);
        } else {
            parent.let_go_of(&listener);
        }
        assert!(!parent.is_here(&listener), "{is_serving}");
        parent.let_go_of(&listener);
    }
}

#[test]
fn a_parent_without_anything_that_serves_tells_nothing() {
    let (mut parent, told) = host();
    parent.add_socket(DATAGRAMS, Transport::Udp, true).unwrap();
    parent.share_with_child();
    parent.close(DATAGRAMS);
    assert_eq!(told.take(), []);
}

/// What is left of a host's sockets without a peer, each by its first number as an inode.
fn inherited(host: &mut Host<Told>) -> InheritedSockets {
    let left = |socket: UnconnectedSocket| Left {
        inode: socket.numbers[0].into(),
        what: socket,
    };
    InheritedSockets {
        unconnected: host.unconnected().into_iter().map(left).collect(),
        loans: vec![Left {
            inode: 77,
            what: (5, 3),
        }],
        connections: vec![Left {
            inode: 78,
            what: b"connection".to_vec(),
        }],
        queue: Some(9),
    }
}

#[test]
fn what_is_left_to_another_program_is_the_same_after_it_was_bytes() {
    let (mut parent, _) = host();
    serve(&mut parent, LISTENER, Transport::Tcp, HTTP);
    serve(&mut parent, DATAGRAMS, Transport::Udp, DNS);
    let left = inherited(&mut parent);
    assert_eq!(left.unconnected.len(), 2);
    assert!(!left.is_empty() && InheritedSockets::default().is_empty());
    let bytes = left.encode();
    assert_eq!(InheritedSockets::decode(&bytes), Some(left));
    for len in 0..bytes.len() {
        assert_eq!(InheritedSockets::decode(&bytes[..len]), None, "{len}");
    }
    let (mut successor, _) = host();
    for left in InheritedSockets::decode(&bytes).unwrap().unconnected {
        successor.inherit(&left.what).unwrap();
    }
    let open = successor.socket(LISTENER).unwrap();
    assert_eq!(successor.local(&open).unwrap().port, HTTP);
}
