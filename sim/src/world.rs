//! Two hosts, the link between them, and the clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::{Duration, Instant};
use inet::{Config, Offloads};

use crate::device::cut;
use crate::host::Host;
use crate::link::{Link, Weather};
use crate::random::Random;

/// Packet buffers of one host: the windows of both directions, and what is under way.
const BUFFERS: usize = 2048;

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// 10.0.0.1
    Left,
    /// 10.0.0.2
    Right,
}

impl Side {
    /// The other host.
    pub fn peer(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// A frame under way: when it arrives, its number (so that order is total), where, what.
type Flight = Reverse<(Instant, u64, Side, Vec<u8>)>;

/// The simulation.
pub struct World {
    /// 10.0.0.1
    pub left: Host,
    /// 10.0.0.2
    pub right: Host,
    /// The clock.
    pub now: Instant,
    /// Chance, for links and programs.
    pub random: Random,
    links: [Link; 2],
    flying: BinaryHeap<Flight>,
    frames: u64,
}

impl World {
    /// Two hosts in the same weather.
    pub fn new(seed: u64, weather: Weather, offloads: Offloads) -> Self {
        Self::with_config(seed, weather, offloads, Config::default())
    }

    /// The same with limits of the stacks.
    pub fn with_config(seed: u64, weather: Weather, offloads: Offloads, config: Config) -> Self {
        Self::with_buffers(seed, weather, offloads, config, BUFFERS)
    }

    /// The same with so many packet buffers a host: a long fat path needs more.
    pub fn with_buffers(
        seed: u64,
        weather: Weather,
        offloads: Offloads,
        config: Config,
        buffers: usize,
    ) -> Self {
        Self {
            left: Host::new(1, seed, offloads, config, buffers),
            right: Host::new(2, seed, offloads, config, buffers),
            // Not zero, as on a real machine, and different from run to run.
            now: Instant::from_millis(1 + seed % 100_000),
            random: Random::new(seed),
            links: [Link::new(weather), Link::new(weather)],
            flying: BinaryHeap::new(),
            frames: 0,
        }
    }

    /// Both links from now on.
    pub fn change_weather(&mut self, weather: Weather) {
        self.links = [Link::new(weather), Link::new(weather)];
    }

    /// A host, with its clock set.
    pub fn host(&mut self, side: Side) -> &mut Host {
        let now = self.now;
        let host = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        host.env.now = now;
        host
    }

    /// Frames put on the link so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Changes the weather of a host's direction of the link.
    pub fn set_weather(&mut self, side: Side, weather: Weather) {
        self.links[side as usize].set_weather(weather);
    }

    /// Bytes that a host's direction of the link has carried.
    pub fn carried_from(&self, side: Side) -> u64 {
        self.links[side as usize].carried()
    }

    /// Puts on the link what the hosts have sent.
    pub fn carry(&mut self) {
        for side in [Side::Left, Side::Right] {
            let sent = std::mem::take(&mut self.host(side).env.sent);
            for bytes in sent.iter().flat_map(cut) {
                self.frames += 1;
                let number = self.frames;
                let arrivals = self.links[side as usize].send(bytes, self.now, &mut self.random);
                for (at, bytes) in arrivals {
                    self.flying.push(Reverse((at, number, side.peer(), bytes)));
                }
            }
        }
    }

    /// Goes to the next event and runs it; `false` if nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        self.step_before(Instant::NEVER)
    }

    /// The same, unless the next event lies behind `end`.
    pub(crate) fn step_before(&mut self, end: Instant) -> bool {
        self.carry();
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        let timer = [Side::Left, Side::Right]
            .into_iter()
            .filter_map(|side| self.host(side).stack.next_deadline())
            .min();
        let Some(next) = arrival.into_iter().chain(timer).min() else {
            return false;
        };
        if next > end {
            return false;
        }
        self.now = self.now.max(next);
        for side in [Side::Left, Side::Right] {
            let mut is_batch = false;
            while let Some(Reverse((at, _, to, _))) = self.flying.peek()
                && *at <= self.now
                && *to == side
                && let Some(Reverse((.., bytes))) = self.flying.pop()
            {
                self.host(side).receive(&bytes);
                is_batch = true;
            }
            let now = self.now;
            let host = self.host(side);
            if is_batch {
                host.stack.flush(&mut host.env);
            }
            if host.stack.next_deadline().is_some_and(|due| due <= now) {
                host.stack.expire(&mut host.env);
            }
        }
        self.carry();
        true
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step_before(end) {}
        self.now = end;
    }

    /// Runs until `is_done`; `false` if `steps` were not enough or nothing happens any more.
    pub fn run_until(&mut self, steps: u64, mut is_done: impl FnMut(&mut Self) -> bool) -> bool {
        for _ in 0..steps {
            if is_done(self) {
                return true;
            }
            if !self.step() {
                return is_done(self);
            }
        }
        false
    }
}
