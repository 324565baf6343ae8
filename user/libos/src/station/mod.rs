//! A stack and its frames, without the system: who drives it says what time it is, tells the kernel of
//! frames and waits for them. [`Queue`](crate::Queue) does that in a program, tests do in theirs.
//!
//! `calls` is what a program asks for, `events` what it is handed, `moving` takes connections elsewhere;
//! `plain` is for who wants the stack's own sockets.

mod calls;
mod events;
mod moving;
mod plain;

use std::net::Ipv4Addr;

use base::{Duration, Instant};
use inet::{Config, Offloads, Port, Stack, Stats};
use mbuf::{Mbuf, RxFrame};
use rt::FrameIo;
use wire::MacAddr;

use crate::config::Address;
use crate::world::World;

/// Frames that are taken at once: enough to spread what a batch costs, few enough to stay in the
/// cache.
pub const BATCH_FRAMES: usize = 64;
/// Room for the headers of TCP over IPv6 over Ethernet, with options.
const HEADROOM: usize = 128;

/// An address is announced so often, and so long apart (RFC 5227 2.3: ANNOUNCE_NUM, ANNOUNCE_INTERVAL): the
/// first time the link may not be up.
const ANNOUNCEMENTS: u32 = 2;
const ANNOUNCEMENTS_APART: Duration = Duration::from_secs(2);

/// See the module.
pub struct Station<P> {
    stack: Stack,
    world: World<P>,
    /// Room for a batch of frames; empty between turns.
    batch: Vec<RxFrame>,
    /// How often the address is still to be announced, and when next.
    announcements: u32,
    announce_at: Instant,
}

impl<P: FrameIo> Station<P> {
    /// A host with an address on a link of its own.
    pub fn new(io: P, mac: [u8; 6], mtu: u16, config: Config, seed: [u64; 2]) -> Self {
        let mut stack = Stack::new(config, seed).expect("memory for a stack");
        let can = io.capabilities();
        stack.attach(Port {
            mac: MacAddr(mac),
            mtu,
            offloads: Offloads {
                checksum: can.checksum,
                segment_v4: can.tso4,
                segment_v6: can.tso6,
            },
        });
        Self {
            stack,
            world: World::new(io),
            batch: Vec::with_capacity(BATCH_FRAMES),
            announcements: 0,
            announce_at: Instant::NEVER,
        }
    }

    /// Gives it an address and a way to other networks. The next turn tells the link of it.
    pub fn set_address(&mut self, address: Address, gateway: Option<Ipv4Addr>) {
        self.stack.set_address(Some(address.0));
        self.stack.set_gateway(gateway);
        self.announcements = ANNOUNCEMENTS;
        self.announce_at = Instant::START;
    }

    #[cold]
    fn announce(&mut self) {
        self.stack.announce(&mut self.world);
        self.announcements -= 1;
        self.announce_at = match self.announcements {
            0 => Instant::NEVER,
            _ => self.world.now + ANNOUNCEMENTS_APART,
        };
    }

    /// One turn: takes back what is sent, receives a batch, gives buffers for the next ones, runs what
    /// is due. Returns how many frames came.
    pub fn turn(&mut self, now: Instant) -> usize {
        self.world.now = now;
        self.world.io.begin(now);
        let taken = self.take_batch();
        self.world.io.end();
        if self.stack.next_deadline().is_some_and(|due| due <= now) {
            self.stack.expire(&mut self.world);
        }
        if self.announce_at <= now {
            self.announce();
        }
        taken
    }

    fn take_batch(&mut self) -> usize {
        self.world.io.receive(BATCH_FRAMES, &mut self.batch);
        let taken = self.batch.len();
        for frame in self.batch.drain(..) {
            self.stack.receive(&mut self.world, frame);
        }
        if taken != 0 {
            self.stack.flush(&mut self.world);
        }
        taken
    }

    /// Nothing is left to do until then.
    pub fn next_deadline(&self) -> Option<Instant> {
        let due = self.stack.next_deadline();
        match self.announcements {
            0 => due,
            _ => due.into_iter().chain([self.announce_at]).min(),
        }
    }

    /// Whether the program has something to [receive](Self::receive).
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.world.datagrams.is_empty() || !self.world.readiness.is_empty()
    }

    /// What moves the frames.
    #[inline]
    pub fn io(&mut self) -> &mut P {
        &mut self.world.io
    }

    /// What the stack did and dropped.
    pub fn stats(&self) -> &Stats {
        self.stack.stats()
    }

    /// An empty buffer of packet memory, with room for headers in front.
    pub fn buffer(&mut self) -> Option<Mbuf> {
        let mut buffer = self.world.io.alloc_to_queue()?;
        buffer.reserve(HEADROOM);
        Some(buffer)
    }
}
