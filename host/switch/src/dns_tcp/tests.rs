use super::*;
use crate::network::tests::network;

const MEMBER: MemberId = 7;

fn address() -> Ipv4Addr {
    let mut addresses = network().member_addresses().collect::<Vec<_>>().into_iter();
    addresses.next().expect("a network has members")
}

/// A member's machine, whose stack is of the same make.
struct Machine {
    stack: Stack,
    world: World,
}

impl Machine {
    fn new(now: Instant) -> Self {
        let mut world = World {
            begin: now,
            now,
            chance: RandomState::new(),
            drawn: 0,
            sent: Vec::new(),
            pool: HeapPool::with_reserve(BUFFERS, BUFFERS_RESERVED),
        };
        let secret = [world.bits(), world.bits()];
        // Pieces are to come as pieces.
        let mut config = Config::default();
        config.stream.no_delay = true;
        let mut stack = Stack::new(config, secret).expect("memory");
        let lease = network().lease(address());
        stack.attach(Port {
            mac: MacAddr(lease.mac),
            mtu: MTU,
            offloads: Offloads::default(),
        });
        stack.set_address(Cidr::new(lease.address, network().prefix_len));
        Self { stack, world }
    }

    fn connect(&mut self) -> SocketId {
        let socket = self.stack.open(Transport::Tcp).expect("memory");
        let to = Endpoint::v4(network().name_server(), DNS_PORT);
        let begun = self.stack.connect(&mut self.world, socket, to);
        assert!(
            matches!(begun, Ok(()) | Err(Error::WouldBlock | Error::InProgress)),
            "{begun:?}"
        );
        socket
    }

    fn send(&mut self, socket: SocketId, bytes: &[u8]) {
        let mut rest = bytes;
        let sent = self
            .stack
            .send_with(&mut self.world, socket, bytes.len(), &mut |space| {
                let count = space.len().min(rest.len());
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                count
            });
        assert_eq!(sent, Ok(bytes.len()));
    }

    /// All that has come on a connection.
    fn read(&mut self, socket: SocketId) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        let take = &mut |bytes: &[u8]| {
            all.extend_from_slice(bytes);
            bytes.len()
        };
        match self.stack.recv_with(&mut self.world, socket, 1 << 20, take) {
            Ok(_) | Err(Error::WouldBlock) => Ok(all),
            Err(error) => Err(error),
        }
    }

    fn receive(&mut self, frame: &[u8]) {
        let mut buffer = self.world.alloc().expect("memory");
        assert_eq!(buffer.append(frame), frame.len());
        let mut chain = Chain::new();
        chain.push_back(buffer);
        let frame = RxFrame {
            chain,
            ..RxFrame::default()
        };
        self.stack.receive(&mut self.world, frame);
        self.stack.flush(&mut self.world);
    }
}

/// Brings frames to and fro until none is under way; what was asked meanwhile.
fn exchange(server: &mut Server, machine: &mut Machine, now: Instant) -> Vec<Asked> {
    let mut asked = Vec::new();
    machine.world.now = now;
    for _ in 0..1000 {
        let sent = std::mem::take(&mut machine.world.sent);
        let is_quiet = sent.is_empty();
        for frame in sent {
            let bytes: Vec<u8> = frame.chain.slices().flatten().copied().collect();
            let ether = EthernetRepr::parse(&bytes).expect("a frame");
            match ether.ether_type {
                // As the fabric answers.
                EtherType::Arp => {
                    let question = ArpRepr::parse(&bytes[ETHERNET_HEADER_BYTES..]).expect("ARP");
                    machine.receive(&arp_reply(&question, network().switch_station()));
                }
                _ => server.receive(&bytes, now),
            }
        }
        asked.extend(server.turn(now, |own| (own == address()).then_some(MEMBER)));
        let lease = network().lease(address());
        let station_of = |own| (own == address()).then_some(MacAddr(lease.mac));
        let frames = server.frames(station_of);
        if frames.is_empty() && is_quiet && machine.world.sent.is_empty() {
            return asked;
        }
        for (station, frame) in frames {
            assert_eq!(station.0, lease.mac);
            machine.receive(&frame);
        }
    }
    panic!("there is no end of frames");
}

fn pair() -> (Server, Machine, Instant) {
    let now = Instant::now();
    let server = Server::new(&network(), now).expect("a server");
    (server, Machine::new(now), now)
}

#[test]
fn questions_come_one_after_the_other_and_long_answers_whole() {
    let (mut server, mut machine, now) = pair();
    let socket = machine.connect();
    assert_eq!(exchange(&mut server, &mut machine, now), []);
    // The first one in pieces, and the second one behind it.
    machine.send(socket, b"\0");
    assert_eq!(exchange(&mut server, &mut machine, now), []);
    machine.send(socket, b"\x03ab");
    assert_eq!(exchange(&mut server, &mut machine, now), []);
    machine.send(socket, b"c\0\x01d");
    let asked = exchange(&mut server, &mut machine, now);
    let messages: Vec<&[u8]> = asked.iter().map(|asked| &asked.message[..]).collect();
    assert_eq!(messages, [b"abc"]);
    assert_eq!(asked[0].member, MEMBER);
    let answer = vec![9; 20_000];
    server.answer(asked[0].stream, &answer, now);
    let asked = exchange(&mut server, &mut machine, now);
    assert_eq!(asked[0].message, b"d");
    let mut expected = 20_000_u16.to_be_bytes().to_vec();
    expected.extend(&answer);
    assert_eq!(machine.read(socket), Ok(expected));
    // It has asked all: its end is answered by ours.
    server.answer(asked[0].stream, b"e", now);
    exchange(&mut server, &mut machine, now);
    machine
        .stack
        .close(&mut machine.world, socket)
        .expect("open");
    exchange(&mut server, &mut machine, now);
    assert!(server.connections.is_empty());
}

#[test]
fn connections_are_bounded_in_number_and_time() {
    let (mut server, mut machine, now) = pair();
    let sockets: Vec<SocketId> = (0..CONNECTIONS_OF_MEMBER_MAX + 2)
        .map(|_| {
            let socket = machine.connect();
            exchange(&mut server, &mut machine, now);
            socket
        })
        .collect();
    assert_eq!(server.connections.len(), CONNECTIONS_OF_MEMBER_MAX);
    let is_reset = |machine: &mut Machine, socket| machine.read(socket).is_err();
    let refused = sockets
        .iter()
        .filter(|socket| is_reset(&mut machine, **socket));
    assert_eq!(refused.count(), 2);
    // Who asks lives on, and who sends only a part of a question does not.
    machine.send(sockets[1], b"\0\x09abc");
    let later = now + PATIENCE / 2;
    machine.send(sockets[0], b"\0\x01a");
    assert_eq!(exchange(&mut server, &mut machine, later).len(), 1);
    let at_last = now + PATIENCE;
    exchange(&mut server, &mut machine, at_last);
    assert_eq!(server.connections.len(), 1);
    assert!(
        server
            .patience(at_last)
            .is_some_and(|left| left <= PATIENCE / 2)
    );
    server.forget(MEMBER);
    assert!(server.connections.is_empty());
}

#[test]
fn a_question_that_is_too_long_or_none_ends_its_connection() {
    for begin in [&[0xff, 0xff, 1][..], &[0, 0]] {
        let (mut server, mut machine, now) = pair();
        let socket = machine.connect();
        exchange(&mut server, &mut machine, now);
        machine.send(socket, begin);
        assert_eq!(exchange(&mut server, &mut machine, now), []);
        assert!(server.connections.is_empty());
    }
}

#[test]
fn a_connection_whose_question_has_no_answer_ends() {
    let (mut server, mut machine, now) = pair();
    let socket = machine.connect();
    assert_eq!(exchange(&mut server, &mut machine, now), []);
    machine.send(socket, b"\0\x01a");
    let asked = exchange(&mut server, &mut machine, now);
    server.answer(asked[0].stream, &[], now);
    exchange(&mut server, &mut machine, now);
    assert!(server.connections.is_empty());
}
