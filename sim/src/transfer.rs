//! Two programs that send each other random bytes and check what arrives.

use std::net::IpAddr;

use inet::{Endpoint, Error, Shutdown, SocketId, State, Transport};

use crate::host::Host;
use crate::world::{Side, World};

const PORT: u16 = 7;
/// More events than any honest transfer needs.
const STEPS_MAX: u64 = 2_000_000;

/// Turns without an event before a program must have done something.
const IDLE_MAX: u32 = 100;

/// What one program does with its connection.
struct Program {
    side: Side,
    socket: Option<SocketId>,
    to_send: Vec<u8>,
    sent: usize,
    expected: Vec<u8>,
    received: usize,
    is_shut: bool,
    is_ended: bool,
}

/// How a transfer went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Frames on the wire.
    pub frames: u64,
    /// Events that it took.
    pub steps: u64,
    /// Attempts to connect.
    pub attempts: u32,
}

/// A transfer in both directions over one connection.
pub struct Transfer {
    /// Where the left host connects to.
    to: Endpoint,
    listener: SocketId,
    programs: [Program; 2],
    attempts: u32,
}

impl Transfer {
    /// The left host will connect to the right one; they exchange so many bytes.
    pub fn new(world: &mut World, left_bytes: usize, right_bytes: usize) -> Self {
        let to = IpAddr::V4(Host::address(2));
        Self::over(world, to, left_bytes, right_bytes)
    }

    /// The same, to an address of the right host of either family.
    pub fn over(world: &mut World, to: IpAddr, left_bytes: usize, right_bytes: usize) -> Self {
        let listener = world
            .host(Side::Right)
            .stack
            .open(Transport::Tcp)
            .expect("a socket");
        let stack = &mut world.host(Side::Right).stack;
        stack
            .bind(
                listener,
                Endpoint {
                    port: PORT,
                    ..Endpoint::any_of(to)
                },
            )
            .expect("a free port");
        stack.listen(listener, 16).expect("a bound socket");
        let mut bytes = |len: usize| -> Vec<u8> {
            (0..len.div_ceil(8))
                .flat_map(|_| world.random.bits().to_le_bytes())
                .take(len)
                .collect()
        };
        let (from_left, from_right) = (bytes(left_bytes), bytes(right_bytes));
        let program = |side, to_send, expected| Program {
            side,
            socket: None,
            to_send,
            sent: 0,
            expected,
            received: 0,
            is_shut: false,
            is_ended: false,
        };
        let left = program(Side::Left, from_left.clone(), from_right.clone());
        let right = program(Side::Right, from_right, from_left);
        Self {
            to: Endpoint::new(to, PORT),
            listener,
            programs: [left, right],
            attempts: 0,
        }
    }

    /// Runs it to its end, and until both hosts have forgotten it. Panics where a promise is
    /// broken.
    pub fn run(mut self, world: &mut World) -> Outcome {
        let (mut steps, mut idle) = (0, 0);
        while !self.programs.iter().all(|program| program.is_ended) {
            self.advance(world);
            // A program that did not feel like reading may do so without an event.
            idle = if world.step() { 0 } else { idle + 1 };
            assert!(
                idle < IDLE_MAX,
                "nothing will ever happen again: {}",
                self.state(world)
            );
            steps += 1;
            assert!(steps < STEPS_MAX, "no end in sight: {}", self.state(world));
        }
        let right = world.host(Side::Right);
        right
            .stack
            .close(&mut right.env, self.listener)
            .expect("our listener");
        while world.left.stack.sockets_used() + world.right.stack.sockets_used() > 0 {
            assert!(world.step(), "sockets are left behind");
            steps += 1;
            assert!(steps < STEPS_MAX, "sockets never end");
        }
        Outcome {
            frames: world.frames(),
            steps,
            attempts: self.attempts,
        }
    }

    fn state(&self, world: &mut World) -> String {
        let describe = |program: &Program| {
            let host = match program.side {
                Side::Left => &world.left,
                Side::Right => &world.right,
            };
            let info = program.socket.map(|socket| host.stack.info(socket));
            format!(
                "{:?}: sent {} received {} {info:?}",
                program.side, program.sent, program.received
            )
        };
        let [left, right] = &self.programs;
        let drops = |host: &Host| -> Vec<(&'static str, u64)> {
            let stats = host.stack.stats();
            stats
                .drops
                .iter()
                .chain(stats.counts.iter())
                .filter(|(_, times)| *times > 0)
                .collect()
        };
        let drops = (drops(&world.left), drops(&world.right));
        format!(
            "at {:?}: {}; {}; {drops:?}",
            world.now,
            describe(left),
            describe(right)
        )
    }

    /// Lets both programs do what they can.
    fn advance(&mut self, world: &mut World) {
        self.open(world);
        for program in &mut self.programs {
            program.advance(world);
        }
        world.carry();
    }

    fn open(&mut self, world: &mut World) {
        let [left, right] = &mut self.programs;
        if left.socket.is_none() && !left.is_ended {
            self.attempts += 1;
            let host = world.host(Side::Left);
            let socket = host.stack.open(Transport::Tcp).expect("a socket");
            host.stack
                .connect(&mut host.env, socket, self.to)
                .expect("a route");
            left.socket = Some(socket);
        }
        if right.socket.is_none() && !right.is_ended {
            let host = world.host(Side::Right);
            right.socket = host.stack.accept(&mut host.env, self.listener).ok();
        }
    }
}

impl Program {
    fn advance(&mut self, world: &mut World) {
        let Some(socket) = self.socket else { return };
        let chunk = 1 + world.random.below(8000) as usize;
        let may_read = world.random.chance(70);
        let host = world.host(self.side);
        self.write(host, socket, chunk);
        if may_read && self.socket.is_some() {
            self.read(host, socket, chunk);
        }
        if self.is_ended {
            host.stack.close(&mut host.env, socket).expect("our socket");
            self.socket = None;
        }
    }

    fn write(&mut self, host: &mut Host, socket: SocketId, chunk: usize) {
        while self.sent < self.to_send.len() {
            let rest = &self.to_send[self.sent..];
            let mut at = 0;
            let result =
                host.stack
                    .send_with(&mut host.env, socket, rest.len().min(chunk), &mut |space| {
                        space.copy_from_slice(&rest[at..at + space.len()]);
                        at += space.len();
                        space.len()
                    });
            match result {
                Ok(bytes) => self.sent += bytes,
                Err(Error::WouldBlock) => return,
                Err(Error::TimedOut) if self.sent == 0 && self.side == Side::Left => {
                    return self.give_up_attempt(host, socket);
                }
                Err(error) => panic!("{:?} cannot send: {error:?}", self.side),
            }
        }
        let is_open = matches!(
            host.stack.state(socket),
            Ok(State::Established | State::CloseWait)
        );
        if !self.is_shut && is_open {
            host.stack
                .shutdown(&mut host.env, socket, Shutdown::Write)
                .expect("an open stream");
            self.is_shut = true;
        }
        match host.stack.take_error(socket) {
            Some(Error::TimedOut) if !self.is_shut => self.give_up_attempt(host, socket),
            Some(error) if self.received < self.expected.len() => {
                panic!(
                    "{:?} has failed: {error:?} {:?} {:?}",
                    self.side,
                    host.stack.info(socket),
                    host.env.now
                )
            }
            _ => {}
        }
    }

    /// The handshake found no answer in all its retries: the program tries again.
    fn give_up_attempt(&mut self, host: &mut Host, socket: SocketId) {
        host.stack.close(&mut host.env, socket).expect("our socket");
        self.socket = None;
    }

    fn read(&mut self, host: &mut Host, socket: SocketId, chunk: usize) {
        loop {
            let (expected, received) = (&self.expected, self.received);
            let mut at = received;
            let result = host
                .stack
                .recv_with(&mut host.env, socket, chunk, &mut |bytes| {
                    assert_eq!(
                        expected.get(at..at + bytes.len()),
                        Some(bytes),
                        "at byte {at}"
                    );
                    at += bytes.len();
                    bytes.len()
                });
            match result {
                Ok(0) => {
                    assert_eq!(self.received, self.expected.len(), "the stream ended early");
                    // A closed connection gives up sooner, so the last byte is waited for.
                    let is_delivered = host.stack.unsent(socket) == Ok(0);
                    self.is_ended = self.is_shut && is_delivered;
                    return;
                }
                Ok(bytes) => self.received += bytes,
                Err(Error::WouldBlock) => return,
                // The peer has read everything, closed, and forgotten us; so have we.
                Err(_) if self.received == self.expected.len() && self.is_shut => {
                    self.is_ended = true;
                    return;
                }
                Err(error) => panic!("{:?} cannot receive: {error:?}", self.side),
            }
        }
    }
}
