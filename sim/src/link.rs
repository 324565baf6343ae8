//! A link between two hosts, and its weather.

use base::{Duration, Instant};
use wire::{ETHERNET_HEADER_BYTES, EtherType, EthernetRepr};

use crate::random::Random;

/// What happens to frames.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Frames lost, in percent.
    pub loss: u8,
    /// Frames that arrive twice, in percent.
    pub duplication: u8,
    /// Frames that take a detour, in percent.
    pub reordering: u8,
    /// Frames with a wrong bit, in percent.
    pub corruption: u8,
    /// Time that a frame takes at least.
    pub delay: Duration,
    /// Bytes a second.
    pub bandwidth: u64,
    /// Frames that wait for the link; more are lost.
    pub queue: usize,
}

impl Weather {
    /// A quiet local network.
    pub const FAIR: Self = Self {
        loss: 0,
        duplication: 0,
        reordering: 0,
        corruption: 0,
        delay: Duration::from_micros(100),
        bandwidth: 125_000_000,
        queue: 1000,
    };
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    weather: Weather,
    /// When the last byte sent so far has left.
    busy_until: Instant,
}

impl Link {
    /// An idle link.
    pub fn new(weather: Weather) -> Self {
        Self {
            weather,
            busy_until: Instant::START,
        }
    }

    /// Sends a frame: when it arrives, and as what; perhaps never, perhaps twice.
    pub fn send(
        &mut self,
        frame: Vec<u8>,
        now: Instant,
        random: &mut Random,
    ) -> Vec<(Instant, Vec<u8>)> {
        let weather = self.weather;
        let takes = Duration::from_nanos(frame.len() as u64 * 1_000_000_000 / weather.bandwidth);
        let waiting = self.busy_until.since(now);
        let is_full = waiting > takes * weather.queue as u32;
        if is_full || random.chance(weather.loss) {
            return Vec::new();
        }
        self.busy_until = self.busy_until.max(now) + takes;
        let copies = if random.chance(weather.duplication) {
            2
        } else {
            1
        };
        let arrivals = (0..copies).map(|_| {
            let mut arrival = self.busy_until + weather.delay;
            if random.chance(weather.reordering) {
                arrival += weather.delay * (1 + random.below(8) as u32);
            }
            let mut frame = frame.clone();
            if random.chance(weather.corruption) {
                corrupt(&mut frame, random);
            }
            (arrival, frame)
        });
        arrivals.collect()
    }
}

/// Flips a bit as bad memory in a router does: behind the Ethernet header, whose own check
/// a router renews. ARP does not cross routers, and has no checksum to save it.
fn corrupt(frame: &mut [u8], random: &mut Random) {
    let is_ipv4 =
        EthernetRepr::parse(frame).is_ok_and(|header| header.ether_type == EtherType::Ipv4);
    if let Some(packet) = frame.get_mut(ETHERNET_HEADER_BYTES..).filter(|_| is_ipv4) {
        let bit = random.below(packet.len() as u64 * 8) as usize;
        packet[bit / 8] ^= 1 << (bit % 8);
    }
}
