//! One direction: which frames are under way, and when each arrives.
//!
//! A frame waits until those before it have left at the link's rate, then takes the
//! path's delay and its own detour. Times are since the relay's start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::counts::{Counts, DropReason};
use crate::fate::{Copy, Fate, Fates, Weather};

/// Copies that may be under way in one direction.
pub const FLIGHTS_MAX: usize = 4096;
/// An Ethernet header with a packet of 64 KiB.
const FRAME_BYTES_MAX: usize = 14 + 65_535;
const ETHERNET_HEADER_BYTES: usize = 14;
const ETHER_TYPE_AT: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];

/// A copy of a frame under way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flight {
    /// When it arrives.
    pub due: Duration,
    /// Counts copies, so that those due at once keep their order.
    order: u64,
    /// The frame's number in its direction, from zero.
    pub number: u64,
    /// The bit that is wrong, counted from the frame's start.
    pub wrong_bit: Option<usize>,
    /// The frame as it will arrive.
    pub bytes: Vec<u8>,
}

/// What was decided about a frame that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The frame's number in its direction, from zero.
    pub number: u64,
    /// Its fate, or why the path had no room for it.
    pub fate: Result<Fate, DropReason>,
}

/// A direction.
#[derive(Debug)]
pub struct Path {
    weather: Weather,
    fates: Fates,
    counts: Counts,
    orders: u64,
    /// When the last byte accepted so far has left.
    busy_until: Duration,
    flights: BinaryHeap<Reverse<Flight>>,
}

impl Path {
    /// An idle path: one of the directions that share a seed.
    pub fn new(seed: u64, direction: u64, weather: Weather) -> Self {
        Self {
            weather,
            fates: Fates::new(seed, direction, weather),
            counts: Counts::default(),
            orders: 0,
            busy_until: Duration::ZERO,
            flights: BinaryHeap::new(),
        }
    }

    /// Takes a frame at the path's beginning.
    pub fn accept(&mut self, now: Duration, frame: &[u8]) -> Arrival {
        let number = self.counts.received;
        self.counts.received += 1;
        let fate = self.judge(now, number, frame);
        match fate {
            Ok(Fate::Arrives { first, second }) => {
                self.busy_until = self.busy_until.max(now) + self.takes(frame.len());
                self.launch(number, first, frame);
                if let Some(second) = second {
                    self.counts.doubled += 1;
                    self.launch(number, second, frame);
                }
            }
            Ok(Fate::Lost) => self.counts.drop(DropReason::Loss),
            Err(reason) => self.counts.drop(reason),
        }
        Arrival { number, fate }
    }

    fn judge(&mut self, now: Duration, number: u64, frame: &[u8]) -> Result<Fate, DropReason> {
        let waiting = self.busy_until.saturating_sub(now).as_nanos();
        let waiting_bytes = waiting * u128::from(self.weather.bandwidth) / 1_000_000_000;
        if frame.len() > FRAME_BYTES_MAX {
            return Err(DropReason::TooLong);
        }
        // The second copy needs room too.
        if self.flights.len() + 2 > FLIGHTS_MAX {
            return Err(DropReason::TooManyFlights);
        }
        if waiting_bytes + frame.len() as u128 > u128::from(self.weather.queue_bytes) {
            return Err(DropReason::QueueFull);
        }
        Ok(self.fates.of(number))
    }

    fn takes(&self, bytes: usize) -> Duration {
        Duration::from_nanos(bytes as u64 * 1_000_000_000 / self.weather.bandwidth.max(1))
    }

    fn launch(&mut self, number: u64, copy: Copy, frame: &[u8]) {
        let mut bytes = frame.to_vec();
        let wrong_bit = copy.wrong_bit.and_then(|chosen| damage(&mut bytes, chosen));
        self.counts.detours += u64::from(!copy.detour.is_zero());
        self.orders += 1;
        self.flights.push(Reverse(Flight {
            due: self.busy_until + self.weather.delay + copy.detour,
            order: self.orders,
            number,
            wrong_bit,
            bytes,
        }));
        self.counts.flying = self.flights.len() as u64;
    }

    /// The next copy that arrives no later than `now`.
    pub fn arrive(&mut self, now: Duration) -> Option<Flight> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(flight) = self.flights.pop()?;
        self.counts.flying = self.flights.len() as u64;
        Some(flight)
    }

    /// The receiver has no room for a copy yet: it is still the next one.
    pub fn put_back(&mut self, flight: Flight) {
        self.flights.push(Reverse(flight));
        self.counts.flying = self.flights.len() as u64;
    }

    /// A copy was handed over.
    pub fn note_delivered(&mut self, flight: &Flight) {
        self.counts.delivered += 1;
        self.counts.damaged += u64::from(flight.wrong_bit.is_some());
    }

    /// A copy that arrived found nobody.
    pub fn note_unreceived(&mut self) {
        self.counts.drop(DropReason::NoReceiver);
    }

    /// When the next copy arrives.
    pub fn next_due(&self) -> Option<Duration> {
        self.flights.peek().map(|Reverse(flight)| flight.due)
    }

    /// What became of all frames so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Turns a bit over, as bad memory in a router does: behind the Ethernet header, whose own
/// check a router renews, and only in IPv4, since ARP crosses no router and
/// has no checksum to save it. Returns which bit.
fn damage(frame: &mut [u8], chosen: u32) -> Option<usize> {
    let is_ipv4 = frame.get(ETHER_TYPE_AT..ETHERNET_HEADER_BYTES) == Some(&IPV4);
    let bits = frame.len().saturating_sub(ETHERNET_HEADER_BYTES) * 8;
    if !is_ipv4 || bits == 0 {
        return None;
    }
    let bit = ETHERNET_HEADER_BYTES * 8 + chosen as usize % bits;
    frame[bit / 8] ^= 1 << (bit % 8);
    Some(bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn frame(number: u16) -> Vec<u8> {
        let mut frame = vec![0; 100];
        frame[ETHER_TYPE_AT..ETHERNET_HEADER_BYTES].copy_from_slice(&IPV4);
        frame[50..52].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn number_of(flight: &Flight) -> u16 {
        u16::from_be_bytes([flight.bytes[50], flight.bytes[51]])
    }

    fn all_arrivals(path: &mut Path) -> Vec<Flight> {
        let flights: Vec<Flight> =
            std::iter::from_fn(|| path.arrive(Duration::from_secs(3600))).collect();
        flights
            .iter()
            .for_each(|flight| path.note_delivered(flight));
        flights
    }

    #[test]
    fn a_fair_path_delivers_everything_once_in_order_and_not_early() {
        let weather = Weather {
            delay: MILLISECOND,
            ..Weather::FAIR
        };
        let mut path = Path::new(1, 0, weather);
        for number in 0..100 {
            path.accept(Duration::ZERO, &frame(number));
        }
        assert_eq!(
            path.arrive(MILLISECOND),
            None,
            "a frame takes its own time as well"
        );
        let flights = all_arrivals(&mut path);
        assert_eq!(
            flights.iter().map(number_of).collect::<Vec<_>>(),
            Vec::from_iter(0..100)
        );
        assert!(flights.iter().all(|flight| flight.due > MILLISECOND));
    }

    #[test]
    fn bandwidth_spaces_frames_and_the_queue_has_an_end() {
        let weather = Weather {
            bandwidth: 100_000,
            queue_bytes: 1000,
            ..Weather::FAIR
        };
        let mut path = Path::new(1, 0, weather);
        let fates: Vec<_> = (0..20)
            .map(|n| path.accept(Duration::ZERO, &frame(n)).fate)
            .collect();
        assert!(fates[..10].iter().all(Result::is_ok), "{fates:?}");
        assert!(
            fates[10..]
                .iter()
                .all(|fate| *fate == Err(DropReason::QueueFull))
        );
        let due: Vec<_> = all_arrivals(&mut path)
            .iter()
            .map(|flight| flight.due)
            .collect();
        assert_eq!(
            due,
            (1..=10).map(|turn| MILLISECOND * turn).collect::<Vec<_>>()
        );
        assert_eq!(path.counts().queue_full, 10);
    }

    #[test]
    fn frames_under_way_have_a_limit() {
        let weather = Weather {
            delay: Duration::from_secs(60),
            ..Weather::FAIR
        };
        let mut path = Path::new(1, 0, weather);
        for step in 0..2 * FLIGHTS_MAX as u32 {
            path.accept(MILLISECOND * step, &frame(0));
        }
        assert!(path.counts().flying <= FLIGHTS_MAX as u64);
        assert!(path.counts().too_many_flights > 0);
        assert!(path.counts().is_complete());
    }

    #[test]
    fn in_a_storm_every_frame_is_accounted_for_and_two_runs_are_alike() {
        let weather = Weather {
            loss_ppm: 100_000,
            duplication_ppm: 100_000,
            reordering_ppm: 200_000,
            corruption_ppm: 50_000,
            delay: MILLISECOND,
            detour: 5 * MILLISECOND,
            ..Weather::FAIR
        };
        let run = |seed| {
            let mut path = Path::new(seed, 0, weather);
            for number in 0..2000 {
                path.accept(MILLISECOND * u32::from(number) / 10, &frame(number));
            }
            let flights = all_arrivals(&mut path);
            assert!(
                path.counts().is_complete(),
                "seed {seed}: {:?}",
                path.counts()
            );
            (flights, path.counts())
        };
        let (flights, counts) = run(3);
        assert_eq!(run(3), (flights.clone(), counts));
        let is_reordered = flights.is_sorted_by_key(|flight| flight.number);
        assert!(!is_reordered, "some are overtaken");
        assert!(
            counts.lost > 0 && counts.doubled > 0 && counts.damaged > 0,
            "{counts:?}"
        );
    }

    #[test]
    fn damage_is_one_bit_behind_the_ethernet_header_and_spares_arp() {
        for chosen in [0, 1, 12_345, u32::MAX] {
            let mut damaged = frame(7);
            let bit = damage(&mut damaged, chosen).expect("an IPv4 frame");
            let sound = frame(7);
            let differences = |(a, b): (&u8, &u8)| (a ^ b).count_ones();
            assert_eq!(damaged.iter().zip(&sound).map(differences).sum::<u32>(), 1);
            assert!(bit >= 8 * ETHERNET_HEADER_BYTES);
        }
        let mut arp = frame(7);
        arp[ETHER_TYPE_AT + 1] = 0x06;
        assert_eq!(damage(&mut arp, 5), None);
        assert_eq!(damage(&mut [0; 14], 5), None);
    }

    #[test]
    fn a_frame_that_found_no_room_stays_the_next_one() {
        let mut path = Path::new(1, 0, Weather::FAIR);
        for number in 0..3 {
            path.accept(Duration::ZERO, &frame(number));
        }
        let first = path.arrive(MILLISECOND).expect("it is due");
        path.put_back(first.clone());
        assert_eq!(path.arrive(MILLISECOND), Some(first));
    }
}
