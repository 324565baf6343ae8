//! Several bulk flows from left to right over one bottleneck.
//!
//! Each program writes as much as its socket takes, from its start to the end of the run, and
//! each reader takes at once what has arrived. A byte is a function of its flow and place, so
//! that a lost, doubled or displaced one shows without any memory of what was sent.

use base::{Duration, Instant};
use inet::{Endpoint, Error, Options, SocketId, TcpInfo, Transport};

use crate::host::Host;
use crate::world::{Side, World};

const PORT: u16 = 5001;
/// Bytes offered to a socket at a time.
const CHUNK: u64 = 65536;

/// When a flow begins, and what its sockets are told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// After the beginning of the run.
    pub start: Duration,
    /// Bytes to write; `None` for as many as the run has time for.
    pub bytes: Option<u64>,
    /// Of the sender.
    pub options: Options,
}

struct Flow {
    plan: Plan,
    sender: Option<SocketId>,
    receiver: Option<SocketId>,
    listener: SocketId,
    sent: u64,
    received: u64,
}

/// The flows of a run.
pub struct Flows {
    flows: Vec<Flow>,
    began: Instant,
}

/// The byte at `place` of flow `index`.
fn byte_at(index: usize, place: u64) -> u8 {
    // A period that no segment size, buffer size or power of two divides.
    (place % 251) as u8 ^ (index as u8).wrapping_mul(0x35)
}

impl Flows {
    /// One flow for each plan.
    pub fn new(world: &mut World, plans: &[Plan]) -> Self {
        let host = world.host(Side::Right);
        let flows = plans.iter().enumerate().map(|(index, plan)| {
            let listener = host.stack.open(Transport::Tcp).expect("a socket");
            let local = Endpoint {
                port: PORT + index as u16,
                ..Endpoint::ANY
            };
            host.stack.bind(listener, local).expect("a free port");
            host.stack.listen(listener, 1).expect("a bound socket");
            Flow {
                plan: *plan,
                sender: None,
                receiver: None,
                listener,
                sent: 0,
                received: 0,
            }
        });
        let flows = flows.collect();
        Self {
            flows,
            began: world.now,
        }
    }

    /// Lets the flows run for `time`; returns the bytes that each reader got in it.
    pub fn run(&mut self, world: &mut World, time: Duration) -> Vec<u64> {
        let before = self.received();
        let end = world.now + time;
        while world.now < end {
            for index in 0..self.flows.len() {
                self.advance(world, index);
            }
            world.carry();
            let horizon = self.next_start(world.now).min(end);
            if !world.step_before(horizon) {
                world.now = horizon;
            }
        }
        let after = self.received();
        after
            .iter()
            .zip(before)
            .map(|(now, then)| now - then)
            .collect()
    }

    fn next_start(&self, now: Instant) -> Instant {
        let starts = self.flows.iter().map(|flow| self.began + flow.plan.start);
        starts
            .filter(|start| *start > now)
            .min()
            .unwrap_or(Instant::NEVER)
    }

    /// Bytes that each reader got so far.
    pub fn received(&self) -> Vec<u64> {
        self.flows.iter().map(|flow| flow.received).collect()
    }

    /// What the sender of a flow shows to tools; `None` before it began.
    pub fn info(&self, world: &World, index: usize) -> Option<TcpInfo> {
        world.left.stack.info(self.flows[index].sender?).ok()
    }

    /// Both ends of a flow that has begun.
    pub fn sockets(&self, index: usize) -> [SocketId; 2] {
        let flow = &self.flows[index];
        [flow.sender, flow.receiver].map(|socket| socket.expect("a flow that has begun"))
    }

    fn advance(&mut self, world: &mut World, index: usize) {
        let flow = &mut self.flows[index];
        if world.now >= self.began + flow.plan.start {
            flow.write(world.host(Side::Left), index);
        }
        flow.read(world.host(Side::Right), index);
    }
}

impl Flow {
    fn open(&mut self, host: &mut Host, index: usize) -> SocketId {
        if let Some(socket) = self.sender {
            return socket;
        }
        let socket = host.stack.open(Transport::Tcp).expect("a socket");
        let options = self.plan.options;
        host.stack
            .configure(&mut host.env, socket, |own| *own = options)
            .expect("our socket");
        let to = Endpoint::v4(Host::address(2), PORT + index as u16);
        host.stack
            .connect(&mut host.env, socket, to)
            .expect("a route");
        self.sender = Some(socket);
        socket
    }

    fn write(&mut self, host: &mut Host, index: usize) {
        let socket = self.open(host, index);
        while self.plan.bytes.is_none_or(|bytes| self.sent < bytes) {
            let left = self.plan.bytes.map_or(u64::MAX, |bytes| bytes - self.sent);
            let chunk = left.min(CHUNK) as usize;
            let mut place = self.sent;
            let mut fill = |space: &mut [u8]| {
                for byte in space.iter_mut() {
                    *byte = byte_at(index, place);
                    place += 1;
                }
                space.len()
            };
            match host
                .stack
                .send_with(&mut host.env, socket, chunk, &mut fill)
            {
                Ok(bytes) => self.sent += bytes as u64,
                Err(Error::WouldBlock) => return,
                Err(error) => panic!("flow {index} cannot send: {error:?}"),
            }
        }
    }

    fn read(&mut self, host: &mut Host, index: usize) {
        if self.receiver.is_none() {
            self.receiver = host.stack.accept(&mut host.env, self.listener).ok();
        }
        let Some(socket) = self.receiver else { return };
        loop {
            let mut place = self.received;
            let mut take = |bytes: &[u8]| {
                for byte in bytes {
                    assert_eq!(*byte, byte_at(index, place), "flow {index} at {place}");
                    place += 1;
                }
                bytes.len()
            };
            match host
                .stack
                .recv_with(&mut host.env, socket, usize::MAX, &mut take)
            {
                Ok(bytes) => self.received += bytes as u64,
                Err(Error::WouldBlock) => return,
                Err(error) => panic!("flow {index} cannot receive: {error:?}"),
            }
        }
    }
}
