//! A map is what a prefix of its changes makes it, not a shorter one than was durable.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::vec::Vec;

use models::{Random, for_each_seed};

use super::shell::Driver;
use crate::{Compacted, Found, Limits, MAP_HEADER_BYTES, Map, MapError, open};

const LIMITS: Limits = Limits {
    keys: 12,
    key_bytes: 60,
};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

struct World {
    driver: Driver,
    map: Map,
    /// What the map is before the entry of a number, for those that changed it.
    states: Vec<(u64, State)>,
    now: State,
}

impl World {
    fn new() -> Self {
        let mut driver = Driver::new(512, 42);
        let log = crate::format(&mut driver.disk, 1).unwrap();
        let map = Map::open(log, &mut driver.disk, LIMITS).unwrap();
        Self {
            driver,
            map,
            states: Vec::new(),
            now: State::new(),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), MapError> {
        let mut header = [0; MAP_HEADER_BYTES];
        let ticket = self.map.put(&mut header, key, &[value])?;
        self.driver.keep(ticket, &[&header, key, value]);
        self.states
            .push((ticket.place.sequence(), self.now.clone()));
        self.now.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn forget(&mut self, key: &[u8]) -> Result<(), MapError> {
        let mut header = [0; MAP_HEADER_BYTES];
        if let Some(ticket) = self.map.forget(&mut header, key)? {
            self.driver.keep(ticket, &[&header, key]);
            self.states
                .push((ticket.place.sequence(), self.now.clone()));
            self.now.remove(key);
        }
        Ok(())
    }

    fn compact(&mut self) -> Compacted {
        match self.map.compact(&mut self.driver.disk) {
            Ok(Compacted::Moved(ticket, bytes)) => {
                self.driver.keep(ticket, &[&bytes]);
                Compacted::Moved(ticket, bytes)
            }
            Ok(other) => other,
            Err(MapError::Append(_)) => Compacted::Waits,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn run(&mut self, count: usize, random: &mut Random) {
        self.driver.run(self.map.log(), count, random);
    }

    fn crash(&mut self, random: &mut Random) {
        let durable = self.map.log().durable().sequence();
        self.driver.lose_power(random);
        let log = open(&mut self.driver.disk).unwrap();
        let end = log.end().sequence();
        assert!(end >= durable);
        if let Some(at) = self.states.iter().position(|(number, _)| *number >= end) {
            self.now = self.states[at].1.clone();
        }
        self.states.clear();
        self.map = Map::open(log, &mut self.driver.disk, LIMITS).unwrap();
        self.check();
    }

    /// All that is stored is read, and is right.
    fn check(&mut self) {
        let mut value = Vec::new();
        assert_eq!(self.map.len(), self.now.len());
        for (key, expected) in &self.now {
            if let Some(Found::Stored(place)) = self.map.find(key) {
                self.map
                    .read(&mut self.driver.disk, place, &mut value)
                    .unwrap();
                assert_eq!(&value, expected);
            } else {
                assert!(matches!(self.map.find(key), Some(Found::UnderWay(_))));
            }
        }
        let from: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Excluded(b"d"), Bound::Unbounded);
        let keys = self.map.range(from).map(|(key, _)| key.to_vec());
        let expected = self.now.range::<[u8], _>(from).map(|(key, _)| key.clone());
        assert!(keys.eq(expected));
    }
}

#[test]
fn random_changes_compaction_and_losses_of_power_agree_with_a_model() {
    for_each_seed(300, |_, mut random| {
        let mut world = World::new();
        for _ in 0..400 {
            let key = [b'a' + random.below(14u8); 3];
            match random.below(10) {
                0..=3 => {
                    let value = std::vec![random.bits() as u8; random.below(900usize)];
                    let _ = world.put(&key, &value);
                }
                4 => {
                    let _ = world.forget(&key);
                }

                5 => drop(world.compact()),
                6 if random.once_in(8) => world.crash(&mut random),
                7 if random.once_in(8) => world.check(),
                _ => world.run(random.below(8), &mut random),
            }
        }
    });
}

#[test]
fn a_full_map_is_compacted_and_what_is_in_it_can_be_forgotten() {
    let (mut world, mut random) = (World::new(), Random::new(3));
    // One key over and over: most of the ring is of no use.
    for round in 0..200_u8 {
        while world.put(b"key", &[round; 1500]).is_err() {
            world.compact();
            world.run(100, &mut random);
        }
        world.run(100, &mut random);
    }
    let mut count = 0_u8;
    let full = loop {
        let mut put = world.put(&[b'k', count], &[count; 600]);
        for _ in 0..60 {
            if put.is_ok() {
                break;
            }
            world.compact();
            world.run(100, &mut random);
            put = world.put(&[b'k', count], &[count; 600]);
        }
        match put {
            Ok(()) => count += 1,
            Err(why) => break why,
        }
    };
    assert_eq!(full, MapError::Full);
    for key in 0..count {
        world.forget(&[b'k', key]).unwrap();
        world.run(100, &mut random);
    }
    for _ in 0..100 {
        world.compact();
        world.run(100, &mut random);
    }
    world.put(b"again", &[1; 1500]).unwrap();
    world.crash(&mut random);
}

#[test]
fn memory_is_bounded_by_the_limits() {
    let mut world = World::new();
    assert_eq!(world.put(&[1; 61], b""), Err(MapError::TooManyKeys));
    assert_eq!(world.put(&[1; 1025], b""), Err(MapError::TooManyKeys));
    for key in 0..12 {
        world.put(&[key], b"").unwrap();
        world.run(100, &mut Random::new(1));
    }
    assert_eq!(world.put(&[12], b""), Err(MapError::TooManyKeys));
    world.put(&[3], b"other").unwrap();
}
