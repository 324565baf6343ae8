//! Two hosts on one wire, the kernel's side of the rings simulated, a clock of the test's own.

#![allow(dead_code, reason = "each test uses a part")]

use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;

use base::Instant;
use posix::{Errno, Events, Gather, Host, Link, Open, Result, Scatter, Transport, Trigger, Watch};
use rt::Exchange;
use rt::simulated::{SimulatedKernel, SimulatedRing};
use sietch_io::{Address, QueueConfig, Station};

pub const CHUNKS: usize = 2048;
pub const ENTRIES: u32 = 512;
pub const STEP_NANOS: u64 = 1_000_000;
pub const PORT: u16 = 6379;
/// Numbers of sockets and sets in these tests.
pub const LISTENER: u32 = 3;
pub const SERVED: u32 = 4;
pub const CLIENT: u32 = 5;
pub const SET: u32 = 6;

/// The kernel's side, and what it was told to send.
pub struct Port {
    pub kernel: Rc<RefCell<SimulatedKernel>>,
    pub sent: Vec<Vec<u8>>,
    pub kicks: usize,
}

impl Link for Port {
    type Io = Exchange<SimulatedRing>;

    fn kick(&mut self, exchange: &Exchange<SimulatedRing>) -> io::Result<()> {
        self.kicks += 1;
        let sent = self.kernel.borrow_mut().transmit(exchange, usize::MAX);
        self.sent.extend(sent);
        Ok(())
    }

    /// Each has the only queue.
    fn take_new_flows(&mut self, _: bool) {}
}

pub struct Side {
    pub kernel: Rc<RefCell<SimulatedKernel>>,
    pub host: Host<Shared>,
    pub port: Rc<RefCell<Port>>,
}

/// The port that the test looks at, too.
pub struct Shared(pub Rc<RefCell<Port>>);

impl Link for Shared {
    type Io = Exchange<SimulatedRing>;

    fn kick(&mut self, exchange: &Exchange<SimulatedRing>) -> io::Result<()> {
        self.0.borrow_mut().kick(exchange)
    }

    fn take_new_flows(&mut self, _: bool) {}
}

pub fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

impl Side {
    pub fn new(number: u8) -> Self {
        let (kernel, mut exchange) = SimulatedKernel::new(CHUNKS, 128, ENTRIES).unwrap();
        exchange.supply();
        let kernel = Rc::new(RefCell::new(kernel));
        let port = Rc::new(RefCell::new(Port {
            kernel: kernel.clone(),
            sent: Vec::new(),
            kicks: 0,
        }));
        let address = Address::new(address(number), 24).unwrap();
        let mut config = QueueConfig::new("wire", address);
        config.chunks = CHUNKS;
        let mac = [2, 0, 0, 0, 0, number];
        let seed = [number.into(), 7];
        let mut station = Station::new(exchange, mac, 1500, config.stack(), seed);
        station.set_address(address, None);
        let host = Host::new(Shared(port.clone()), station, address, ENTRIES);
        Self { kernel, host, port }
    }

    pub fn kicks(&self) -> usize {
        self.port.borrow().kicks
    }
}

pub struct Wire {
    pub sides: [Side; 2],
    pub now: u64,
}

impl Wire {
    pub fn new() -> Self {
        Self {
            sides: [Side::new(1), Side::new(2)],
            now: STEP_NANOS,
        }
    }

    pub fn server(&mut self) -> &mut Host<Shared> {
        &mut self.sides[0].host
    }

    pub fn client(&mut self) -> &mut Host<Shared> {
        &mut self.sides[1].host
    }

    /// A step of time: what left crosses, and both hosts look at what came.
    pub fn step(&mut self) {
        self.now += STEP_NANOS;
        let sent = self.sides.each_mut().map(|side| side.port.take_sent());
        for (frames, side) in sent.into_iter().zip(self.sides.iter_mut().rev()) {
            for frame in frames {
                let exchange = side.host.station().io();
                side.kernel.borrow_mut().deliver(exchange, &frame);
            }
        }
        for side in &mut self.sides {
            side.host.turn(Instant::from_nanos(self.now));
            side.host.flush();
        }
    }

    pub fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    /// Steps until `attempt` need not wait.
    pub fn until<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        for _ in 0..20_000 {
            match attempt(self) {
                Err(Errno::AGAIN) => self.step(),
                done => return done,
            }
        }
        panic!("nothing happens");
    }

    pub fn listen(&mut self) {
        let server = self.server();
        server.add_socket(LISTENER, Transport::Tcp, true).unwrap();
        let listener = server.socket(LISTENER).unwrap();
        server.bind(&listener, address(1), PORT).unwrap();
        server.listen(&listener, 511).unwrap();
    }

    /// A client's socket that begins to connect to the server's listener.
    pub fn call(&mut self, client: u32) -> Arc<Open> {
        let host = self.client();
        host.add_socket(client, Transport::Tcp, true).unwrap();
        let open = host.socket(client).unwrap();
        let started = host.connect(&open, address(1), PORT);
        assert_eq!(started, Err(Errno::IN_PROGRESS));
        open
    }

    pub fn connect(&mut self, client: u32, served: u32) {
        let open = self.call(client);
        self.until(|wire| wire.client().finish_connecting(&open))
            .unwrap();
        let listener = self.server().socket(LISTENER).unwrap();
        self.until(|wire| wire.server().may_accept(&listener))
            .unwrap();
        let peer = self.server().accept(&listener, served, true).unwrap();
        assert_eq!(peer.addr, address(2));
    }

    /// A server of datagrams, and a client.
    pub fn of_datagrams() -> (Self, Arc<Open>, Arc<Open>) {
        let mut wire = Self::new();
        let socket = |host: &mut Host<Shared>, number| {
            host.add_socket(number, Transport::Udp, true).unwrap();
            host.socket(number).unwrap()
        };
        let server = socket(wire.server(), SERVED);
        wire.server()
            .bind(&server, Ipv4Addr::UNSPECIFIED, PORT)
            .unwrap();
        let client = socket(wire.client(), CLIENT);
        (wire, server, client)
    }

    /// The server's end and the client's, connected.
    pub fn connected() -> Self {
        let mut wire = Self::new();
        wire.listen();
        wire.connect(CLIENT, SERVED);
        wire
    }
}

pub trait TakeSent {
    fn take_sent(&self) -> Vec<Vec<u8>>;
}

impl TakeSent for Rc<RefCell<Port>> {
    fn take_sent(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.borrow_mut().sent)
    }
}

/// Sends what fits; how much.
pub fn send(host: &mut Host<Shared>, number: u32, bytes: &[u8]) -> Result<usize> {
    let open = host.socket(number)?;
    let pieces = [IoSlice::new(bytes)];
    let mut from = Gather::new(&pieces);
    match host.put(&open, &mut from) {
        Err(error) if from.done() == 0 => Err(error),
        _ => Ok(from.done()),
    }
}

pub fn receive(host: &mut Host<Shared>, number: u32, most: usize) -> Result<Vec<u8>> {
    let open = host.socket(number)?;
    let mut bytes = vec![0; most];
    let mut pieces = [IoSliceMut::new(&mut bytes)];
    let mut to = Scatter::new(&mut pieces);
    host.take(&open, &mut to)?;
    let done = to.done();
    bytes.truncate(done);
    Ok(bytes)
}

pub fn ready(host: &mut Host<Shared>, number: u32) -> Events {
    host.socket(number).unwrap().ready()
}

pub fn watch(interest: Events, trigger: Trigger) -> Watch {
    Watch {
        interest,
        trigger,
        data: 42,
    }
}

/// A set of the server's that watches its end of a connection.
pub fn watched(wire: &mut Wire, trigger: Trigger) {
    let server = wire.server();
    server.add_set(SET).unwrap();
    let open = server.socket(SERVED).unwrap();
    let set = server.set(SET).unwrap();
    set.add(SERVED, &open, watch(Events::IN, trigger)).unwrap();
}

pub fn collect(wire: &mut Wire) -> Vec<Events> {
    let mut found = Vec::new();
    let set = wire.server().set(SET).unwrap();
    set.collect(16, |event| {
        assert_eq!(event.data, 42);
        found.push(event.events);
    });
    found
}
