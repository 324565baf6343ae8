//! Two programs' stations on one wire, with the kernel's side of the rings simulated and a clock of the
//! test's own.

use std::net::Ipv4Addr;

use base::Instant;
use inet::Config;
use rt::simulated::{SimulatedKernel, SimulatedRing};
use rt::{Count, Exchange, FrameIo};
use sietch_io::{Chain, Connection, Endpoint, Error, Event, QueueConfig, Station};
use wire::{ArpOperation, ArpRepr, ETHERNET_HEADER_BYTES};

const PORT: u16 = 7;
const CHUNKS: usize = 512;
const STEP_NANOS: u64 = 1_000_000;

struct Host {
    kernel: SimulatedKernel,
    station: Station<Exchange<SimulatedRing>>,
}

impl Host {
    fn new(number: u8) -> Self {
        let (kernel, mut exchange) = SimulatedKernel::new(CHUNKS, 16, 64).unwrap();
        exchange.supply();
        let mac = [2, 0, 0, 0, 0, number];
        let seed = [number.into(), 7];
        let mut station = Station::new(exchange, mac, 1500, Config::default(), seed);
        let address = format!("10.0.0.{number}/24").parse().unwrap();
        station.set_address(address, None);
        Self { kernel, station }
    }

    /// What the program and its stack have sent.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        self.station.io().submit();
        self.kernel.transmit(self.station.io(), 64)
    }
}

struct Wire {
    hosts: [Host; 2],
    now: u64,
    frames: usize,
    /// Each so many-th frame is lost; zero for none.
    loss: usize,
}

impl Wire {
    fn new(loss: usize) -> Self {
        Self {
            hosts: [Host::new(1), Host::new(2)],
            now: STEP_NANOS,
            frames: 0,
            loss,
        }
    }

    /// A step of time: frames cross, and both hosts have a turn.
    fn step(&mut self) {
        self.now += STEP_NANOS;
        let sent = self.hosts.each_mut().map(Host::sent);
        let receivers = self.hosts.iter_mut().rev();
        for (frames, host) in sent.into_iter().zip(receivers) {
            for frame in frames {
                self.frames += 1;
                if self.loss == 0 || !self.frames.is_multiple_of(self.loss) {
                    host.kernel.deliver(host.station.io(), &frame);
                }
            }
        }
        for host in &mut self.hosts {
            host.station.turn(Instant::from_nanos(self.now));
        }
    }

    /// Steps until a host has an event.
    fn event(&mut self, host: usize) -> Event {
        for _ in 0..100_000 {
            if let Some(event) = self.hosts[host].station.receive() {
                return event;
            }
            self.step();
        }
        panic!("nothing happens");
    }

    fn station(&mut self, host: usize) -> &mut Station<Exchange<SimulatedRing>> {
        &mut self.hosts[host].station
    }

    /// A connection from the second host to the first: its ends.
    fn connected(&mut self) -> [Connection; 2] {
        self.station(0).listen(PORT, 8).unwrap();
        let ours = self.station(1).connect(address(1)).unwrap();
        let theirs = match self.event(0) {
            Event::Accepted { connection, .. } => connection,
            other => panic!("{other:?}"),
        };
        assert!(matches!(self.event(1), Event::Connected { connection } if connection == ours));
        [theirs, ours]
    }
}

fn address(number: u8) -> Endpoint {
    Endpoint::v4([10, 0, 0, number].into(), PORT)
}

fn bytes_of(data: &Chain) -> Vec<u8> {
    data.slices().flatten().copied().collect()
}

#[test]
fn a_datagram_comes_back_without_a_copy() {
    let mut wire = Wire::new(0);
    wire.station(0).bind(PORT).unwrap();
    let client = wire.station(1).bind(0).unwrap();
    for len in [0, 1, 64, 1472] {
        let sent: Vec<u8> = (0..len).map(|at| at as u8).collect();
        wire.station(1)
            .send_bytes_to(client, address(1), &sent)
            .unwrap();
        let Event::Datagram { socket, from, data } = wire.event(0) else {
            panic!("no datagram");
        };
        assert_eq!(bytes_of(&data), sent);
        wire.station(0).send_to(socket, from, data).unwrap();
        let Event::Datagram { from, data, .. } = wire.event(1) else {
            panic!("no datagram");
        };
        assert_eq!((from, bytes_of(&data)), (address(1), sent));
    }
    let gathered = wire.station(0).io().counts().get(Count::Gathered);
    assert_eq!(gathered, 0);
}

/// What came, as sender's port and number.
fn taken(wire: &mut Wire, most: usize) -> Vec<(u16, u32)> {
    let events = std::iter::from_fn(|| wire.station(0).receive()).take(most);
    let number = |event| match event {
        Event::Datagram { from, data, .. } => {
            let bytes = bytes_of(&data);
            let number = bytes.first_chunk().expect("a number");
            (from.port, u32::from_le_bytes(*number))
        }
        other => panic!("{other:?}"),
    };
    events.map(number).collect()
}

/// Two clients send, one of them also in fragments, to a program that takes some, or none for long.
fn datagrams_in_order(seed: u64) {
    let mut wire = Wire::new(0);
    wire.station(0).bind(PORT).unwrap();
    let clients = [0, 1].map(|_| wire.station(1).bind(0).unwrap());
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let (mut sent, mut got) = ([0_u32; 2], vec![]);
    for _ in 0..600 {
        // What its buffer takes is not lost.
        let are_few = sent.iter().sum::<u32>() < got.len() as u32 + 8;
        let is_asleep = are_few && below(20) == 0;
        for _ in 0..if is_asleep { 72 } else { 1 } {
            let client = below(2) as usize;
            let len = if client == 1 && below(8) == 0 {
                2000
            } else {
                64
            };
            let mut bytes = vec![0; len];
            bytes[..4].copy_from_slice(&sent[client].to_le_bytes());
            let station = wire.station(1);
            station
                .send_bytes_to(clients[client], address(1), &bytes)
                .unwrap();
            sent[client] += 1;
            wire.step();
        }
        got.extend(taken(&mut wire, below(7) as usize));
    }
    for _ in 0..10 {
        wire.step();
        got.extend(taken(&mut wire, usize::MAX));
    }
    let first = got[0].0;
    let (one, other): (Vec<_>, Vec<_>) = got.into_iter().partition(|(port, _)| *port == first);
    let mut counts = [one, other].map(|all| {
        let is_in_order = all
            .iter()
            .map(|(_, number)| *number)
            .eq(0..all.len() as u32);
        assert!(is_in_order, "seed {seed}: {all:?}");
        all.len() as u32
    });
    counts.sort_unstable();
    sent.sort_unstable();
    assert_eq!(counts, sent, "seed {seed}");
}

#[test]
fn datagrams_come_once_and_in_order_whenever_they_are_taken() {
    (1..=20).for_each(datagrams_in_order);
}

#[test]
fn a_socket_takes_its_datagrams_with_it() {
    let mut wire = Wire::new(0);
    let client = wire.station(1).bind(0).unwrap();
    let mut server = wire.station(0).bind(PORT).unwrap();
    for _ in 0..10 {
        for at in 0..9 {
            let station = wire.station(1);
            station.send_bytes_to(client, address(1), b"?").unwrap();
            wire.step();
            if at < 5 {
                while wire.station(0).receive().is_some() {}
            }
        }
        wire.station(0).unbind(server).unwrap();
        assert!(wire.station(0).receive().is_none());
        server = wire.station(0).bind(PORT).unwrap();
        wire.step();
        while wire.station(0).receive().is_some() {}
    }
}

#[test]
fn who_takes_no_datagrams_loses_those_that_its_buffer_does_not_hold() {
    let mut wire = Wire::new(0);
    let client = wire.station(1).bind(0).unwrap();
    wire.station(0).bind(PORT).unwrap();
    for at in 0..440 {
        let station = wire.station(1);
        station.send_bytes_to(client, address(1), &[0; 4]).unwrap();
        wire.step();
        if at < 20 {
            taken(&mut wire, usize::MAX);
        }
    }
    let held = taken(&mut wire, usize::MAX).len();
    assert!((64..350).contains(&held), "{held}");
}

#[test]
fn a_peer_without_a_socket_is_told_of() {
    let mut wire = Wire::new(0);
    let client = wire.station(1).bind(0).unwrap();
    for _ in 0..2 {
        // An unconnected socket hears nothing of it, as with the kernel's.
        wire.station(1)
            .send_bytes_to(client, address(1), b"?")
            .unwrap();
    }
    let connection = wire.station(1).connect(address(1)).unwrap();
    let Event::Lost {
        connection: lost,
        error,
    } = wire.event(1)
    else {
        panic!("the connection is not lost");
    };
    assert_eq!((lost, error), (connection, Error::ConnectionRefused));
    assert_eq!(
        wire.station(1).send_bytes(lost, b"?"),
        Err(Error::BadSocket)
    );
}

/// Sends `bytes` from the second host and gives back what the first received.
fn transfer(wire: &mut Wire, [theirs, ours]: [Connection; 2], bytes: &[u8]) -> Vec<u8> {
    let (mut received, mut sent) = (Vec::new(), 0);
    let mut may_send = true;
    loop {
        while may_send && sent < bytes.len() {
            match wire.station(1).send_bytes(ours, &bytes[sent..]) {
                Ok(count) => sent += count,
                Err(Error::WouldBlock) => may_send = false,
                Err(error) => panic!("{error:?}"),
            }
        }
        if sent == bytes.len() && may_send {
            wire.station(1).close(ours).unwrap();
            may_send = false;
            sent += 1;
        }
        while let Some(event) = wire.station(1).receive() {
            match event {
                Event::Sendable { .. } => may_send = true,
                other => panic!("{other:?}"),
            }
        }
        while let Some(event) = wire.station(0).receive() {
            match event {
                Event::Received { data, .. } => received.extend(bytes_of(&data)),
                Event::Ended { connection } => {
                    assert_eq!(connection, theirs);
                    wire.station(0).close(theirs).unwrap();
                    return received;
                }
                other => panic!("{other:?}"),
            }
        }
        wire.step();
    }
}

fn whole_transfer(loss: usize) {
    let mut wire = Wire::new(loss);
    let ends = wire.connected();
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at / 3) as u8).collect();
    assert!(transfer(&mut wire, ends, &bytes) == bytes);
    // All that was in queues and under way comes home, but what the kernel is to fill.
    for _ in 0..200_000 {
        wire.step();
    }
    for host in 0..2 {
        let exchange = wire.station(host).io();
        assert_eq!(exchange.in_flight(), 0);
        assert_eq!(exchange.umem().free(), CHUNKS - 64);
        assert_eq!(exchange.counts().get(Count::BadEntry), 0);
    }
}

#[test]
fn a_stream_arrives_whole_and_its_buffers_come_home() {
    whole_transfer(0);
}

#[test]
fn a_stream_arrives_whole_when_a_twentieth_of_frames_is_lost() {
    whole_transfer(20);
}

/// Sends half of `bytes`, moves the receiver to a new station of its address, and sends the rest.
fn moved_transfer(loss: usize) {
    let mut wire = Wire::new(loss);
    let [mut theirs, ours] = wire.connected();
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at / 3) as u8).collect();
    let (mut received, mut sent, mut moves) = (Vec::new(), 0, 0);
    while received.len() < bytes.len() {
        match wire.station(1).send_bytes(ours, &bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error, Error::WouldBlock),
        }
        while let Some(event) = wire.station(1).receive() {
            assert!(matches!(event, Event::Sendable { .. }), "{event:?}");
        }
        while let Some(event) = wire.station(0).receive() {
            match event {
                Event::Received { data, .. } => received.extend(bytes_of(&data)),
                Event::Sendable { connection } => assert_eq!(connection, theirs),
                other => panic!("{other:?}"),
            }
        }
        if received.len() > 30_000 * (moves + 1) {
            let snapshot = wire.station(0).export(theirs).unwrap();
            assert_eq!(
                wire.station(0).send_bytes(theirs, b"?"),
                Err(Error::BadSocket)
            );
            wire.hosts[0] = Host::new(1);
            // It learns the time. No frame may come before the connection: it would be refused.
            let now = Instant::from_nanos(wire.now);
            wire.station(0).turn(now);
            theirs = wire.station(0).import(&snapshot).unwrap();
            assert_eq!(wire.station(0).import(&snapshot), Err(Error::AddressInUse));
            moves += 1;
        }
        wire.step();
    }
    assert!(received == bytes && moves > 3);
    wire.station(0).send_bytes(theirs, b"all there").unwrap();
    let Event::Received { data, .. } = wire.event(1) else {
        panic!("no answer");
    };
    assert_eq!(bytes_of(&data), b"all there");
}

#[test]
fn a_stream_arrives_whole_while_its_end_moves_from_station_to_station() {
    moved_transfer(0);
}

#[test]
fn it_does_so_when_a_twentieth_of_frames_is_lost() {
    moved_transfer(20);
}

#[test]
fn a_program_that_takes_no_events_holds_its_peer_back_and_nothing_more() {
    let mut wire = Wire::new(0);
    let [_, ours] = wire.connected();
    let mut sent = 0;
    for _ in 0..3000 {
        match wire.station(1).send_bytes(ours, &[1; 1000]) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error, Error::WouldBlock),
        }
        wire.step();
    }
    let station = wire.station(0);
    assert!(station.io().umem().free() > 0);
    let mut received = 0;
    for _ in 0..3000 {
        while let Some(event) = wire.station(0).receive() {
            if let Event::Received { data, .. } = event {
                received += data.len();
            }
        }
        wire.step();
    }
    assert_eq!(received, sent);
}

#[test]
fn a_program_that_kept_all_its_memory_receives_again_when_it_lets_go() {
    let mut wire = Wire::new(0);
    wire.station(0).bind(PORT).unwrap();
    let client = wire.station(1).bind(0).unwrap();
    let send = |wire: &mut Wire| {
        let station = wire.station(1);
        station
            .send_bytes_to(client, address(1), &[7; 100])
            .unwrap();
        wire.step();
        wire.step();
        wire.station(0).receive()
    };
    // The first one waits for ARP.
    while send(&mut wire).is_none() {}
    let mut kept: Vec<Event> = (0..CHUNKS).map_while(|_| send(&mut wire)).collect();
    assert!(kept.len() < CHUNKS);
    // What the program takes of its memory besides is nobody's loss but its own.
    let umem = wire.station(0).io().umem();
    let rest: Vec<_> = std::iter::from_fn(|| mbuf::Pool::alloc(umem)).collect();
    for _ in 0..100 {
        assert!(send(&mut wire).is_none());
    }
    kept.clear();
    drop(rest);
    wire.step();
    assert!(send(&mut wire).is_some());
}

#[test]
fn addresses_have_a_network() {
    let config = QueueConfig::new("vnic0", "10.0.2.61/24".parse().unwrap());
    assert_eq!(config.link, "vnic0");
    for wrong in ["10.0.2.61", "10.0.2.61/33", "10.0.2/24", "/24", ""] {
        assert!(wrong.parse::<sietch_io::Address>().is_err(), "{wrong}");
    }
}

#[test]
fn a_station_tells_the_link_its_address_and_says_it_again() {
    let mut host = Host::new(1);
    let mut told = Vec::new();
    for step in 0..5_000 {
        host.station.turn(Instant::from_nanos(step * STEP_NANOS));
        told.extend(host.sent());
    }
    assert_eq!(told.len(), 2);
    for frame in told {
        let arp = ArpRepr::parse(&frame[ETHERNET_HEADER_BYTES..]).unwrap();
        assert_eq!(&frame[..6], &[0xff; 6]);
        assert_eq!(arp.operation, ArpOperation::Request);
        assert_eq!(
            [arp.sender_ip, arp.target_ip],
            [Ipv4Addr::new(10, 0, 0, 1); 2]
        );
    }
}
