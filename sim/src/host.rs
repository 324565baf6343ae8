//! A host: a stack, and the world around it.

use std::net::Ipv4Addr;

use base::{Duration, Instant};
use inet::{Cidr, Config, Env, Events, Offloads, Port, SocketId, Stack};
use mbuf::{Checksum, HeapPool, Mbuf, Pool, RxFrame, TxFrame};
use wire::MacAddr;

use crate::random::Random;

/// What a stack sees of the simulation.
pub struct HostEnv {
    /// The clock.
    pub now: Instant,
    /// How long the batch in hand takes the host's CPU.
    pub spent: Duration,
    /// The host's own chance, apart from the link's.
    pub random: Random,
    /// All packet memory.
    pub pool: HeapPool,
    /// Frames that wait to be put on the link.
    pub sent: Vec<TxFrame>,
    /// Stations of groups that the port lets through.
    pub groups: Vec<MacAddr>,
    /// Wakeups since the last look.
    pub woken: Vec<(SocketId, Events)>,
}

impl Env for HostEnv {
    fn now(&self) -> Instant {
        self.now
    }

    fn spent(&self) -> Duration {
        self.spent
    }

    fn random(&mut self) -> u64 {
        self.random.bits()
    }

    fn alloc(&mut self) -> Option<Mbuf> {
        self.pool.alloc()
    }

    fn alloc_to_queue(&mut self) -> Option<Mbuf> {
        self.pool.alloc_to_queue()
    }

    fn is_scarce(&self) -> bool {
        self.pool.is_scarce()
    }

    fn transmit(&mut self, frame: TxFrame) {
        self.sent.push(frame);
    }

    fn group(&mut self, station: MacAddr, is_member: bool) {
        let at = self.groups.iter().position(|known| *known == station);
        match is_member {
            true => self.groups.push(station),
            false => drop(self.groups.remove(at.expect("a group that was joined"))),
        }
    }

    fn wake(&mut self, socket: SocketId, events: Events) {
        self.woken.push((socket, events));
    }
}

/// This part of a host's buffers is for what passes through.
const RESERVE_SHARE: usize = 16;

/// A host.
pub struct Host {
    /// Its stack.
    pub stack: Stack,
    /// Its world.
    pub env: HostEnv,
}

impl Host {
    /// Host `number` of network 10.0.0.0/24, with so many packet buffers.
    pub fn new(number: u8, seed: u64, offloads: Offloads, config: Config, buffers: usize) -> Self {
        let mut random = Random::new(seed ^ u64::from(number) << 56);
        let stack = Stack::new(config, [random.bits(), random.bits()]);
        let mut stack = stack.expect("memory for a stack");
        stack.attach(Port {
            mac: MacAddr([2, 0, 0, 0, 0, number]),
            mtu: 1500,
            offloads,
        });
        stack.set_address(Cidr::new(Self::address(number), 24));
        let (sent, woken) = (Vec::new(), Vec::new());
        let pool = HeapPool::with_reserve(buffers, buffers / RESERVE_SHARE);
        Self {
            stack,
            env: HostEnv {
                now: Instant::START,
                spent: Duration::ZERO,
                random,
                pool,
                sent,
                groups: Vec::new(),
                woken,
            },
        }
    }

    /// The address of host `number`.
    pub fn address(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    /// Receives a frame; without memory the NIC drops it.
    pub fn receive(&mut self, frame: &[u8]) {
        self.take(frame, mbuf::BLOCK_CAPACITY, Checksum::Unknown);
    }

    /// The same with a checksum that the NIC has found right.
    pub fn receive_verified(&mut self, frame: &[u8]) {
        self.take(frame, mbuf::BLOCK_CAPACITY, Checksum::Verified);
    }

    /// The same in small buffers, so that headers are torn apart, too.
    pub fn receive_torn(&mut self, frame: &[u8]) {
        let most = 1 + frame.len() % 97 + frame.len() / 4;
        self.take(frame, most, Checksum::Verified);
    }

    fn take(&mut self, frame: &[u8], most: usize, checksum: Checksum) {
        let mut chain = mbuf::Chain::new();
        for piece in frame.chunks(most) {
            let Some(mut buffer) = self.env.pool.alloc() else {
                return;
            };
            buffer.append(piece);
            chain.push_back(buffer);
        }
        self.stack.receive(
            &mut self.env,
            RxFrame {
                chain,
                checksum,
                ..RxFrame::default()
            },
        );
    }
}
