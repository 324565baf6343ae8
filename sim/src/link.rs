//! One direction of a link: its speed, its queue, its weather and the box in its middle.
//!
//! A frame waits until the ones before it have left, unless so many bytes wait already
//! that the queue is full. A queue may mark (RFC 3168) what it would otherwise only delay:
//! frames of ECN-capable senders that find more than `mark_above` bytes waiting.

use base::{Duration, Instant};
use wire::{ETHERNET_HEADER_BYTES, EtherType, EthernetRepr};

use crate::middlebox::{self, Middlebox};
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
    /// Time that a frame waits at most before it reaches the link: hosts are not metronomes,
    /// and flows that are fall into step.
    pub jitter: Duration,
    /// Bytes a second.
    pub bandwidth: u64,
    /// Bytes that wait for the link; a frame that finds more is lost.
    pub queue: u64,
    /// Bytes that wait before ECN-capable frames are marked; `u64::MAX` for never.
    pub mark_above: u64,
    /// Bytes that it carries in its life; what comes then is lost.
    pub carries: u64,
    /// What rewrites segments on their way.
    pub middlebox: Middlebox,
}

impl Weather {
    /// A quiet local network.
    pub const FAIR: Self = Self {
        loss: 0,
        duplication: 0,
        reordering: 0,
        corruption: 0,
        delay: Duration::from_micros(100),
        jitter: Duration::ZERO,
        bandwidth: 125_000_000,
        queue: 1_500_000,
        mark_above: u64::MAX,
        carries: u64::MAX,
        middlebox: Middlebox::Honest,
    };
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    weather: Weather,
    /// When the last byte sent so far has left.
    busy_until: Instant,
    /// Bytes carried to the other end, copies included.
    carried: u64,
}

impl Link {
    /// An idle link.
    pub fn new(weather: Weather) -> Self {
        Self {
            weather,
            busy_until: Instant::START,
            carried: 0,
        }
    }

    /// What happens to frames from now on; those under way arrive as they would have.
    pub fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// Bytes that have been put on the wire.
    pub fn carried(&self) -> u64 {
        self.carried
    }

    fn takes(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 1_000_000_000 / self.weather.bandwidth)
    }

    /// Sends a frame: when it arrives, and as what; perhaps never, perhaps twice.
    pub fn send(
        &mut self,
        frame: Vec<u8>,
        now: Instant,
        random: &mut Random,
    ) -> Vec<(Instant, Vec<u8>)> {
        let weather = self.weather;
        let Some(mut frame) = weather.middlebox.pass(frame) else {
            return Vec::new();
        };
        let waiting = self.busy_until.since(now);
        let is_dead = self.carried + frame.len() as u64 > weather.carries;
        if is_dead || waiting > self.takes(weather.queue) || random.chance(weather.loss) {
            return Vec::new();
        }
        if weather.mark_above < u64::MAX && waiting > self.takes(weather.mark_above) {
            middlebox::mark(&mut frame);
        }
        self.carried += frame.len() as u64;
        let mut reached = now;
        if weather.jitter > Duration::ZERO {
            reached += Duration::from_nanos(random.below(weather.jitter.as_nanos()));
        }
        self.busy_until = self.busy_until.max(reached) + self.takes(frame.len() as u64);
        let copies = if random.chance(weather.duplication) {
            2
        } else {
            1
        };
        (0..copies)
            .map(|_| self.deliver(frame.clone(), random))
            .collect()
    }

    /// One copy that has left: when it arrives, and as what.
    fn deliver(&self, mut frame: Vec<u8>, random: &mut Random) -> (Instant, Vec<u8>) {
        let weather = self.weather;
        let mut arrival = self.busy_until + weather.delay;
        if random.chance(weather.reordering) {
            arrival += weather.delay * (1 + random.below(8) as u32);
        }
        if random.chance(weather.corruption) {
            corrupt(&mut frame, random);
        }
        (arrival, frame)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(link: &mut Link, frames: usize) -> Vec<Instant> {
        let mut random = Random::new(1);
        (0..frames)
            .flat_map(|_| link.send(vec![0; 1000], Instant::from_millis(5), &mut random))
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn frames_leave_one_after_the_other_at_the_link_s_speed() {
        let weather = Weather {
            bandwidth: 1_000_000,
            delay: Duration::from_millis(20),
            ..Weather::FAIR
        };
        let at: Vec<_> = [26, 27, 28].map(Instant::from_millis).to_vec();
        assert_eq!(arrivals(&mut Link::new(weather), 3), at);
    }

    #[test]
    fn a_full_queue_loses_what_comes_next() {
        let weather = Weather {
            bandwidth: 1_000_000,
            queue: 4000,
            ..Weather::FAIR
        };
        let mut link = Link::new(weather);
        assert_eq!(arrivals(&mut link, 20).len(), 5);
        assert_eq!(link.carried(), 5000);
    }
}
